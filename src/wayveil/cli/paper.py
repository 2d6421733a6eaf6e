"""`wayveil paper`: the published method and its three experiments."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from wayveil.cli import column_options as col
from wayveil.cli import options as opt
from wayveil.cli.console import note, print_json, progress_bar

paper_app = typer.Typer(
    help="The published method DPE, exactly as described in its paper, and its experiments. Its output is not private.",
    epilog="Example: wayveil paper constraints --quick -o constraints",
    no_args_is_help=True,
)

Output = Annotated[Path, typer.Option("-o", "--output", help="Folder for table.json, table.csv and the plots.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all randomness, including the paper's noise.")]


def register(app: typer.Typer) -> None:
    """Add `wayveil paper`."""
    app.add_typer(paper_app, name="paper")


@paper_app.command(
    epilog="Example: wayveil paper synthesize rides.csv --scope san-francisco --epsilon 1 --subset 500 -o dpe.csv"
)
@col.with_columns()
def synthesize(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File or folder of trajectories.")],
    scope: opt.ScopeName,
    epsilon: Annotated[float, typer.Option("--epsilon", help="The paper's epsilon; it promises nothing.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.")],
    dim: Annotated[
        int | None, typer.Option("--dim", help="Dimension D' of the embedding; by default D, that of the data.")
    ] = None,
    rules: Annotated[Path | None, typer.Option("--rules", help="Traffic rules (GeoJSON) as penalty terms.")] = None,
    rules_factor: Annotated[float, typer.Option("--rules-factor", help="Factor of the penalty terms.")] = 1.0,
    iterations: Annotated[
        int, typer.Option("--iterations", help="Maximum number of steps of each gradient descent.")
    ] = 100,
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", help="Learning rate of both gradient descents.")
    ] = 0.1,
    loss: Annotated[
        str, typer.Option("--loss", help="Loss: mean-square, absolute, signed or sum-square.")
    ] = "mean-square",
    metric: Annotated[str, typer.Option("--metric", help="Distance: euclidean, frechet or soft-dtw.")] = "euclidean",
    smoothing: Annotated[
        float, typer.Option("--smoothing", help="Smoothing of frechet and soft-dtw, in metres.")
    ] = 50.0,
    time_scale: Annotated[
        float | None,
        typer.Option("--time-scale", help="Metres that one second counts as; by default map diameter / time span."),
    ] = None,
    no_align: Annotated[bool, typer.Option("--no-align", help="Do not pad trajectories to equal length.")] = False,
    subset: Annotated[int | None, typer.Option("--subset", help="Use a random subset of this size.")] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="Floating-point precision: float64, float32, tf32 or bf16.")
    ] = None,
    seed: Seed = 0,
    *,
    columns: col.Columns,
) -> None:
    """Run the published method on a file. The output is NOT private and its files say so."""
    from wayveil.dpe import NOT_PRIVATE
    from wayveil.dpe.files import synthesize_file
    from wayveil.dpe.method import options_of

    note(NOT_PRIVATE)
    options = replace(
        options_of(epsilon, dim, loss, learning_rate, iterations, metric, smoothing, precision, seed),
        rules_factor=rules_factor,
        time_scale_mps=time_scale,
        extend=not no_align,
    )
    with progress_bar() as progress:
        summary = synthesize_file(
            file, scope, output, options, rules=rules, subset=subset, reading=columns, progress=progress
        )
    note(f"Wrote '{output.name}' and '{output.name}.json', both stamped as not private.")
    if summary["points_breaking_rules"] is not None:
        note(f"Points of the output that violate a rule: {summary['points_breaking_rules']}.")


@paper_app.command(epilog="Example: wayveil paper comparison data/ -o comparison --quick")
def comparison(
    data: Annotated[Path, typer.Argument(metavar="DATA_DIR", help="Folder with cabspotting, tdrive, geolife files.")],
    output: Output,
    methods: Annotated[str | None, typer.Option("--methods", help="Comma-separated names; default all.")] = None,
    subset: Annotated[int | None, typer.Option("--subset", help="Size of the random subset of each dataset.")] = None,
    iterations: Annotated[
        int | None, typer.Option("--iterations", help="Number of steps of DPE's gradient descent.")
    ] = None,
    time_scale: Annotated[float | None, typer.Option("--time-scale", help="Metres that one second counts as.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Number of processes for the private methods.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Three epsilons, small subsets, few steps.")] = False,
    seed: Seed = 1,
    as_json: opt.Json = False,
) -> None:
    """Compare DPE with AdaTrace, PrivTrace and wayveil on Cabspotting, T-Drive and Geolife."""
    from wayveil.reproduction.comparison import run

    _announce()
    with progress_bar() as progress:
        rows = run(data, output, methods=methods, subset=subset, iterations=iterations, time_scale_mps=time_scale,
                   seed=seed, jobs=jobs, quick=quick, progress=progress)  # fmt: skip
    _finish(rows, output, as_json)


@paper_app.command(epilog="Example: wayveil paper parameters -o parameters")
def parameters(
    output: Output,
    quick: Annotated[bool, typer.Option("--quick", help="Four corners of the grid, 20 steps.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The paper's whole grid: 11 x 100 runs; use a GPU.")] = False,
    seed: Seed = 1,
    as_json: opt.Json = False,
) -> None:
    """Plot the error against D' and epsilon on 500 simulated trajectories of 100 points."""
    from wayveil.reproduction.parameters import run

    _announce()
    with progress_bar() as progress:
        rows = run(output, seed=seed, quick=quick, full=full, progress=progress)
    _finish(rows, output, as_json)


@paper_app.command(epilog="Example: wayveil paper constraints -o constraints")
def constraints(
    output: Output,
    quick: Annotated[bool, typer.Option("--quick", help="50 steps instead of 500.")] = False,
    seed: Seed = 1,
    as_json: opt.Json = False,
) -> None:
    """Apply the method to 50 simulated walks, with and without penalty terms for a closed disc and a box."""
    from wayveil.reproduction.constraints import run

    _announce()
    with progress_bar() as progress:
        rows = run(output, seed=seed, quick=quick, progress=progress)
    _finish(rows, output, as_json)


def _announce() -> None:
    from wayveil.dpe import NOT_PRIVATE

    note(NOT_PRIVATE)


def _finish(rows: list[Any], output: Path, as_json: bool) -> None:
    if as_json:
        print_json([dict(row) for row in rows])
    note(f"Wrote table.json, table.csv and plots to '{output.name}'.")

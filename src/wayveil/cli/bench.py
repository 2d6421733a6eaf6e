"""`wayveil bench`: reproducible comparisons."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import options as opt
from wayveil.cli.console import NOT_FOR_PUBLICATION, note, print_json, progress_bar

_EXAMPLE = (
    "Example: wayveil bench utility data/ -o comparison --epsilons 0.1,0.5,1 --seeds 2 "
    "--methods wayveil,adatrace,privtrace"
)
bench_app = typer.Typer(help="Reproducible comparisons of methods.", epilog=_EXAMPLE, no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add `wayveil bench`."""
    app.add_typer(bench_app, name="bench")


@bench_app.command(epilog=_EXAMPLE)
def utility(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for tables, plots and finished runs.")],
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA_DIR", help="Folder with <name>.parquet files and roads/.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the simulated city, three epsilons and one seed.")
    ] = False,
    epsilons: Annotated[
        str | None, typer.Option("--epsilons", help="Comma-separated, such as 0.1,0.5,1; default 0.1 to 1.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Number of runs per combination; default 2.")] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="Comma-separated names (see `wayveil bench methods`), module:attribute for your own, or all.",
        ),
    ] = None,
    datasets: Annotated[str | None, typer.Option("--datasets", help="Comma-separated names; default all.")] = None,
    scope: Annotated[
        str | None, typer.Option("--scope", help="Scope of datasets that wayveil does not know by name.")
    ] = None,
    all_metrics: Annotated[
        bool, typer.Option("--all-metrics", help="Every metric, not only the five main ones.")
    ] = False,
    time_limit: Annotated[
        float, typer.Option("--time-limit", help="Maximum duration of one run in seconds; 0 = no limit.")
    ] = 900.0,
    memory_limit: Annotated[
        float, typer.Option("--memory-limit", help="Maximum memory of one run in gigabytes; 0 = no limit.")
    ] = 8.0,
    as_json: opt.Json = False,
) -> None:
    """Run every method on every dataset at every epsilon, and score the results.

    After an interruption, the same command with the same -o runs only what is missing. Each run has a process of its
    own, which is stopped at the limits. The results are computed from the private data and are not for publication.
    """
    from wayveil.evaluation.bench_limits import Limits
    from wayveil.evaluation.compare_methods import compare_methods

    limits = Limits(time_limit or None, 1000 * memory_limit or None)
    # A terminal shows the bar with the remaining time; a log gets one line per cell.
    say = (lambda line: None) if sys.stderr.isatty() else note
    with progress_bar() as progress:
        outcome, written = compare_methods(
            data, output, quick=quick, epsilons=epsilons, seeds=seeds, methods=methods, datasets=datasets, scope=scope,
            all_metrics=all_metrics, limits=limits, progress=progress, say=say,
        )  # fmt: skip
    note(NOT_FOR_PUBLICATION)
    for sentence in outcome.sentences:
        note(sentence)
    if as_json:
        print_json({"note": NOT_FOR_PUBLICATION, "rows": outcome.rows, "files": written})
    elif outcome.rows:
        from rich.console import Console

        from wayveil.evaluation.bench_outputs import wins_table

        Console().print(wins_table(outcome.rows))
        note(f"Wrote {', '.join(written)} to '{output.name}'.")
    if outcome.failures:
        raise typer.Exit(1)


@bench_app.command(name="methods", epilog="Example: wayveil bench methods --json")
def list_methods(as_json: opt.Json = False) -> None:
    """List every method: reference, what it protects, why epsilon holds, and whether it uses times, rules or a map."""
    from wayveil.evaluation.methods_table import described, methods_table

    if as_json:
        from wayveil.cli.console import print_json

        print_json({"methods": described()})
    else:
        from rich.console import Console

        Console().print(methods_table())


@bench_app.command(epilog="Example: wayveil bench conformance --methods adatrace,n-gram")
def conformance(
    methods: Annotated[
        str, typer.Option("--methods", help="Comma-separated names, module:attribute for your own, or all.")
    ] = "all",
    as_json: opt.Json = False,
) -> None:
    """Run the checks that every method must pass, on simulated data; exit code 1 if one fails."""
    from dataclasses import asdict

    from wayveil.baselines import load, names
    from wayveil.baselines.conformance import check_method
    from wayveil.errors import InputError

    chosen = [
        load(name) for name in (names() if methods == "all" else filter(None, map(str.strip, methods.split(","))))
    ]
    if not chosen:
        raise InputError("--methods names no method; write for example --methods adatrace,n-gram, or all.")
    found = []
    with progress_bar() as progress:
        for position, method in enumerate(chosen):
            progress("methods", position / len(chosen))
            found += check_method(method)
        progress("methods", 1.0)
    if as_json:
        from wayveil.cli.console import print_json

        print_json({"checks": [asdict(result) for result in found]})
    else:
        from rich.console import Console

        from wayveil.evaluation.methods_table import conformance_table

        Console().print(conformance_table(found))
    if any(result.problem for result in found):
        raise typer.Exit(1)

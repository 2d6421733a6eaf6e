"""`wayveil evaluate`: how useful synthetic trajectories are, measured against the real ones."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import column_options as col
from wayveil.cli import options as opt
from wayveil.cli.console import NOT_FOR_PUBLICATION, note, print_json, progress_bar


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Example: wayveil evaluate rides.parquet synthetic.parquet --scope san-francisco --for planning"
    )(evaluate)


@col.with_columns()
def evaluate(
    real: opt.PrivateData,
    synthetic: opt.SyntheticData,
    scope: opt.ScopeName,
    against: Annotated[
        list[str] | None, typer.Option("--against", help="Another synthetic file to compare with; may be repeated.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Also write JSON for `wayveil report --internal --evaluation`."),
    ] = None,
    headline: Annotated[bool, typer.Option("--headline", help="Only the five main metrics; fast.")] = False,
    no_time: Annotated[bool, typer.Option("--no-time", help="Leave out the metrics that use times.")] = False,
    trips: Annotated[
        bool,
        typer.Option(
            "--trips", help="Also judge single trips: classifier, models, flows, speeds; needs wayveil\\[evaluate]."
        ),
    ] = False,
    people: Annotated[
        bool,
        typer.Option("--people", help="Also compare people: places, days, chains of trips; both files need users."),
    ] = False,
    roads: Annotated[
        Path | None, typer.Option("--roads", help="A public road map, for street flows (with --trips).")
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="planning|simulation|research",
            help="What the data is for: the conclusion is about this use, and metrics that matter for it are marked.",
        ),
    ] = None,
    as_json: opt.Json = False,
    *,
    columns: col.Columns,
) -> None:
    """Compare synthetic trajectories with the real ones: a conclusion, every metric, its 95 % interval, and the floor.

    The floor is what a perfect release without copies would score: the metric between disjoint samples of the real
    data, at the sizes compared. A score clearly below the floor means that records were copied. The output is computed
    from the private data and is not for publication.
    """
    from wayveil.evaluation.compare_files import compare_files
    from wayveil.io.result_file import EVALUATION, check_result, write_result

    if output is not None:
        check_result(output, (real, synthetic, scope, *([str(roads)] if roads else []), *(against or [])), EVALUATION)
    with progress_bar() as progress:
        comparison = compare_files(
            real, [synthetic, *(against or [])], scope, headline=headline, with_time=not no_time, trips=trips,
            people=people, roads=roads, purpose=purpose, options=columns, progress=progress,
        )  # fmt: skip
    if not as_json:
        typer.echo(comparison.conclusion)
    note(NOT_FOR_PUBLICATION)
    for warning in comparison.warnings:
        note(warning)
    result = {"note": NOT_FOR_PUBLICATION, **comparison.to_dict()}
    if output is not None:
        write_result(output, result)
        note(f"Wrote '{output.name}'.")
    if as_json:
        print_json(result)
        return
    from rich.console import Console

    from wayveil.evaluation.score_table import score_table, trip_tables

    Console().print(score_table(comparison.evaluations))
    for name, evaluation in comparison.evaluations.items():
        for table in trip_tables(name, evaluation.trips):
            Console().print(table)
        if evaluation.people is not None:
            print(f"\n{name}\n{evaluation.people}")
    note(
        "Floor: the score of a fresh sample of the same population; the closer a value is to it, the better. "
        "Divergences range from 0 (equal) to 0.69 (nothing in common); for trips between cells of 100 m "
        "(trip_100) even the floor can be close to 0.69."
    )

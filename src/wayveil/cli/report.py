"""`wayveil report`: one offline HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import columns as col
from wayveil.cli.console import NOT_FOR_PUBLICATION, note, print_json, progress_bar


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        name="report",
        epilog="Example: wayveil report rides.release.json synthetic.parquet --roads roads.parquet "
        "--rules rules.geojson -o rides.html",
    )(report)


def report(
    release_file: Annotated[Path, typer.Argument(metavar="RELEASE", help="What `wayveil measure` wrote.")],
    synthetic_file: Annotated[Path, typer.Argument(metavar="SYNTH", help="What `wayveil synthesize` wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write; an earlier one is replaced.")],
    roads_file: Annotated[Path | None, typer.Option("--roads", help="A public road map to draw.")] = None,
    rules_file: Annotated[Path | None, typer.Option("--rules", help="Rules (GeoJSON) to draw and to count.")] = None,
    internal: Annotated[
        bool, typer.Option("--internal", help="The report that sees the private data; not for publication.")
    ] = False,
    real_file: Annotated[Path | None, typer.Option("--real", help="The private data (with --internal).")] = None,
    audit_file: Annotated[
        Path | None, typer.Option("--audit", help="JSON of `wayveil audit` (with --internal).")
    ] = None,
    evaluation_file: Annotated[
        Path | None,
        typer.Option("--evaluation", help="JSON of `wayveil evaluate` (with --internal); computed where not given."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
    format: col.Format = None,
    traj_column: col.TrajColumn = None,
    user_column: col.UserColumn = None,
    lon_column: col.LonColumn = None,
    lat_column: col.LatColumn = None,
    time_column: col.TimeColumn = None,
    timezone: col.Timezone = None,
    drop_bad_rows: col.DropBadRows = False,
) -> None:
    """One self-contained page that opens offline: the public data sheet, or with --internal the internal report.

    The data sheet is made from the release and the synthetic data only, so it may be published with them. The options
    on how the data is read are about the file of --real.
    """
    from wayveil.report.make import make_page

    options = col.read_options(
        format, traj_column, user_column, lon_column, lat_column, time_column, timezone, drop_bad_rows
    )
    with progress_bar() as progress:
        make_page(
            release_file, synthetic_file, output, roads=roads_file, rules=rules_file, internal=internal,
            real=real_file, audit=audit_file, evaluation=evaluation_file,
            real_options=options, progress=progress,
        )  # fmt: skip
    if internal:
        note(NOT_FOR_PUBLICATION)
    if as_json:
        print_json({"kind": "internal" if internal else "public", "page": str(output)})
    else:
        print(f"page: {output}")

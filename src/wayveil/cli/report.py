"""`wayveil report`: one offline HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import column_options as col
from wayveil.cli import options as opt
from wayveil.cli.console import NOT_FOR_PUBLICATION, note, print_json, progress_bar


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        name="report",
        epilog="Example: wayveil report rides.release.json synthetic.parquet --roads roads.parquet "
        "--rules rules.geojson -o rides.html",
    )(report)


@col.with_columns()
def report(
    release_file: opt.ReleaseFile,
    synthetic_file: opt.SyntheticFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write; replaces an existing page.")],
    roads_file: Annotated[Path | None, typer.Option("--roads", help="A public road map to draw.")] = None,
    rules_file: Annotated[
        Path | None, typer.Option("--rules", help="Traffic rules (GeoJSON) to draw; violations are counted.")
    ] = None,
    internal: Annotated[
        bool,
        typer.Option("--internal", help="Make the internal report, which uses the private data; not for publication."),
    ] = False,
    real_file: Annotated[Path | None, typer.Option("--real", help="The private data (with --internal).")] = None,
    audit_file: Annotated[
        Path | None, typer.Option("--audit", help="JSON of `wayveil audit` (with --internal).")
    ] = None,
    evaluation_file: Annotated[
        Path | None,
        typer.Option("--evaluation", help="JSON of `wayveil evaluate` (with --internal); computed if not given."),
    ] = None,
    as_json: opt.Json = False,
    *,
    columns: col.Columns,
) -> None:
    """Write one self-contained page that opens offline: the public data sheet, or the internal report (--internal).

    The data sheet is made from the release and the synthetic data only, so it may be published with them. The options
    for how the data is read apply to the file given with --real.
    """
    from wayveil.report.from_files import write_report

    with progress_bar() as progress:
        write_report(
            release_file, synthetic_file, output, roads=roads_file, rules=rules_file, internal=internal,
            real=real_file, audit=audit_file, evaluation=evaluation_file,
            real_options=columns, progress=progress,
        )  # fmt: skip
    if internal:
        note(NOT_FOR_PUBLICATION)
    if as_json:
        print_json({"kind": "internal" if internal else "public", "page": str(output)})
    else:
        print(f"page: {output}")

"""`wayveil tables`: origin-destination matrix, streets, lengths and times for planners."""

from pathlib import Path
from typing import Annotated

import typer

from wayveil.cli import options as opt
from wayveil.cli.console import note, print_json, progress_bar


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Example: wayveil tables rides.release.json synthetic.parquet --zones zones.geojson "
        "--roads roads.parquet -o tables"
    )(tables)


def tables(
    release_file: opt.ReleaseFile,
    synthetic_file: opt.SyntheticFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write to; created if it does not exist.")],
    zones: Annotated[
        Path | None,
        typer.Option("--zones", help="Polygons (GeoJSON, GeoPackage, ...); by default the regions of the release."),
    ] = None,
    roads: Annotated[
        Path | None, typer.Option("--roads", help="A public road map, for traffic and speeds by street.")
    ] = None,
    parts: Annotated[
        str | None, typer.Option("--parts", help="First hours of the parts of the day; by default 0,6,10,16,20.")
    ] = None,
    allow_unmarked: Annotated[
        bool,
        typer.Option(
            "--allow-unmarked",
            help="Accept unmarked synthetic data; never give private data: its tables would be exact.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing tables.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Make tables of traffic from a release and its synthetic data, each figure with its uncertainty.

    The tables are written as CSV and as one GeoPackage: trips from zone to zone (od), starts and ends (zones), traffic
    and mean speed of each street (streets), lengths, durations and hours of departure. The private data is not read,
    and nothing is spent.
    """
    from wayveil.core.optional import missing_library_text
    from wayveil.errors import InputError
    from wayveil.traffic.tables import tables as make_tables
    from wayveil.traffic.write import NAMES, check_folder, has_geopackage

    try:
        hours = None if parts is None else [int(hour) for hour in parts.split(",")]
    except ValueError:
        raise InputError("parts= must be whole hours, such as 0,6,10,16,20.") from None
    check_folder(NAMES, output, (release_file, synthetic_file, zones, roads), force=force)
    with progress_bar() as progress:
        found = make_tables(
            release_file, synthetic_file, zones=zones, roads=roads, parts=hours, allow_unmarked=allow_unmarked,
            progress=progress,
        )  # fmt: skip
        written = found.write(output, force=force)
    for sentence in found.summary["notes"]:
        note(sentence)
    if not has_geopackage():
        note(missing_library_text("pyogrio", "A GeoPackage"))
    if roads is None:
        note("Without a road map (--roads) there is no table of streets.")
    if as_json:
        print_json({"files": [str(path) for path in written], **found.summary})
    else:
        print(f"tables: {output}")

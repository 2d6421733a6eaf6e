"""The options for how a file is read, the same for every command that reads one."""

from typing import Annotated, Any

import typer

_PANEL = "How the data is read"
OUTPUT_EXTENSIONS = (
    ".parquet, .geo.parquet, .csv, .tsv, .trips.csv, .gpx, .geojson, .kepler.json, .gpkg, .fgb, .rou.xml or .plans.xml"
)
"""What `convert` and `synthesize` write, for their help."""

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="csv, parquet, geoparquet, gpx, geojson, jsonl, arrow, gpkg, fgb, shp, geolife, tdrive or cabspotting; "
        "detected automatically.",
        rich_help_panel=_PANEL,
    ),
]
TrajColumn = Annotated[
    str | None, typer.Option("--traj-column", help="Column of the trajectory id.", rich_help_panel=_PANEL)
]
UserColumn = Annotated[str | None, typer.Option("--user-column", help="Column of the user id.", rich_help_panel=_PANEL)]
LonColumn = Annotated[str | None, typer.Option("--lon-column", help="Column of the longitude.", rich_help_panel=_PANEL)]
LatColumn = Annotated[str | None, typer.Option("--lat-column", help="Column of the latitude.", rich_help_panel=_PANEL)]
TimeColumn = Annotated[str | None, typer.Option("--time-column", help="Column of the time.", rich_help_panel=_PANEL)]
Timezone = Annotated[
    str | None,
    typer.Option("--timezone", help="Time zone of times without one, such as Europe/Paris.", rich_help_panel=_PANEL),
]
LineColumn = Annotated[
    str | None,
    typer.Option("--line-column", help="Column of whole lines: WKT, WKB or JSON lists.", rich_help_panel=_PANEL),
]
IntervalSeconds = Annotated[
    float | None,
    typer.Option("--interval-seconds", help="Seconds between the points of such a line.", rich_help_panel=_PANEL),
]
TripColumns = Annotated[
    str | None,
    typer.Option(
        "--trip-columns",
        metavar="ROLE=NAME,...",
        help="Columns of a trip table: start_lon, start_lat, start_time, end_lon, end_lat, end_time.",
        rich_help_panel=_PANEL,
    ),
]
Decimal = Annotated[
    str, typer.Option("--decimal", help="Decimal mark of numbers in text: . or ,", rich_help_panel=_PANEL)
]
DayFirst = Annotated[
    bool | None,
    typer.Option("--dayfirst/--no-dayfirst", help="How 03/04/2024 is read.", rich_help_panel=_PANEL),
]
DropBadRows = Annotated[
    bool,
    typer.Option("--drop-bad-rows", help="Leave out rows with missing or impossible values.", rich_help_panel=_PANEL),
]

IgnoredDropBadRows = Annotated[
    bool,
    typer.Option(
        "--drop-bad-rows",
        help="No effect: `measure` always leaves bad rows out; `wayveil check` counts them.",
        rich_help_panel=_PANEL,
    ),
]


def read_options(
    format: str | None,
    traj_column: str | None,
    user_column: str | None,
    lon_column: str | None,
    lat_column: str | None,
    time_column: str | None,
    timezone: str | None,
    drop_bad_rows: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Keyword arguments for `wayveil.io.files.read` and `wayveil.io.source.open_source`."""
    return {
        "format": format,
        "traj_id": traj_column,
        "user": user_column,
        "lon": lon_column,
        "lat": lat_column,
        "time": time_column,
        "timezone": timezone,
        "on_bad_rows": "drop" if drop_bad_rows else "error",
        **more,
    }

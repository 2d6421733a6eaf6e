"""The options for how a file is read, the same for every command that reads one."""

from typing import Annotated, Any

import typer

_PANEL = "How the data is read"

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="csv, parquet, geoparquet, gpx, geolife, tdrive or cabspotting; detected automatically.",
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
    }

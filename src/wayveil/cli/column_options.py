"""The options for reading a file, shared by all commands that read one."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

_PANEL = "How the data is read"

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Format of the input: csv, parquet, geoparquet, gpx, geojson, jsonl, arrow, gpkg, fgb, shp, geolife, "
        "tdrive or cabspotting; by default detected from the file.",
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
    typer.Option("--timezone", help="Time zone of times that have none, such as Europe/Paris.", rich_help_panel=_PANEL),
]
LineColumn = Annotated[
    str | None,
    typer.Option(
        "--line-column", help="Column with a whole trajectory per row: WKT, WKB or JSON.", rich_help_panel=_PANEL
    ),
]
IntervalSeconds = Annotated[
    float | None,
    typer.Option("--interval-seconds", help="Seconds between points in --line-column.", rich_help_panel=_PANEL),
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
    str, typer.Option("--decimal", help="Decimal separator of numbers in text: . or ,", rich_help_panel=_PANEL)
]
DayFirst = Annotated[
    bool | None,
    typer.Option("--dayfirst/--no-dayfirst", help="Read 03/04/2024 as 3 April or as 4 March.", rich_help_panel=_PANEL),
]
DropBadRows = Annotated[
    bool,
    typer.Option("--drop-bad-rows", help="Leave out rows with missing or impossible values.", rich_help_panel=_PANEL),
]


Columns = dict[str, Any]
"""Keyword arguments for `wayveil.read`, from the options below."""

_OPTIONS: dict[str, tuple[str, Any, Any]] = {
    "format": ("format", Format, None),
    "traj_column": ("traj_id", TrajColumn, None),
    "user_column": ("user", UserColumn, None),
    "lon_column": ("lon", LonColumn, None),
    "lat_column": ("lat", LatColumn, None),
    "time_column": ("time", TimeColumn, None),
    "timezone": ("timezone", Timezone, None),
    "line_column": ("line", LineColumn, None),
    "interval_seconds": ("interval_s", IntervalSeconds, None),
    "trip_columns": ("trip_columns", TripColumns, None),
    "decimal": ("decimal", Decimal, "."),
    "dayfirst": ("dayfirst", DayFirst, None),
}
"""Name of each option, with the argument of `wayveil.read` that it sets, its type and its default."""
_BAD_ROWS = "drop_bad_rows"


def with_columns(*, bad_rows: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options above in place of its parameter `columns`, which receives their values.

    Without `bad_rows`, there is no --drop-bad-rows: the command handles bad rows in its own way.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        added = {name: (kind, default) for name, (_, kind, default) in _OPTIONS.items()}
        if bad_rows:
            added[_BAD_ROWS] = (DropBadRows, False)
        parameters = [parameter for name, parameter in own.items() if name != "columns"]
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in added.items()
        ]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            columns = {argument: given.pop(name) for name, (argument, _, _) in _OPTIONS.items()}
            columns["on_bad_rows"] = "drop" if given.pop(_BAD_ROWS, False) else "error"
            command(**given, columns=columns)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate

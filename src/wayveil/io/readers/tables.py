"""Convert data frames to Arrow tables, and Arrow tables to points."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from wayveil.core.arrow import decoded
from wayveil.errors import InputError
from wayveil.io.layouts import TRIP_ROLES, Layout, LineRoles, TripRoles, resolve_layout
from wayveil.io.options import ReadOptions, Roles
from wayveil.io.readers.crs import to_degrees
from wayveil.io.readers.geoparquet import coordinates
from wayveil.io.readers.labels import Labels, labels_of, labels_of_values
from wayveil.io.readers.lines import points_of_line_table
from wayveil.io.readers.numbers import degrees_of, is_text
from wayveil.io.readers.points import Points
from wayveil.io.readers.times import text_of_value, times_of
from wayveil.io.readers.trips import points_of_trip_table

GivenLabels = tuple[Labels | None, Labels | None]
"""Labels of the trajectories and of the users."""
NO_LABELS: GivenLabels = (None, None)


def table_of_frame(frame: Any, options: ReadOptions | None = None) -> pa.Table:
    """A pandas, polars, pyarrow or DuckDB frame as an Arrow table; only the needed columns where that saves work.

    A pandas column of objects becomes text; `points_of_frame` reads its values.
    """
    if isinstance(frame, pa.Table):
        return frame
    if is_lazy(frame):
        names = list(frame.collect_schema().names())
        kept = [names[at] for at in resolve_layout(names, options or ReadOptions(), "frame").positions]
        frame = frame.select(kept).collect()
    try:
        if isinstance(frame, pa.RecordBatch):
            return pa.Table.from_batches([frame])
        if is_pandas(frame):
            return table_of_columns(needed_columns(frame, options or ReadOptions()))
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError("The frame has columns that Arrow cannot represent; keep only the needed ones.") from None
    raise InputError("Give a path, Trajectories, or a pandas, polars, pyarrow, GeoPandas or DuckDB frame.")


def table_of_columns(frame: Any) -> pa.Table:
    """All columns of a pandas frame."""
    columns = [_texts_of(one) if _holds_objects(one) else _arrow(one) for one in _columns(frame)]
    return pa.table(dict(zip(map(str, frame.columns), columns)))


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame of a library that wayveil reads."""
    return is_pandas(value) or is_lazy(value) or is_geo(value) or hasattr(value, "__arrow_c_stream__")


def is_pandas(value: Any) -> bool:
    """Whether a value is a pandas frame."""
    return type(value).__module__.partition(".")[0] == "pandas"


def is_lazy(value: Any) -> bool:
    """Whether a value is a polars LazyFrame."""
    return type(value).__module__.partition(".")[0] == "polars" and hasattr(value, "collect_schema") and hasattr(
        value, "collect"
    )


def is_geo(value: Any) -> bool:
    """Whether a value is a GeoDataFrame, or a Trajectory or TrajectoryCollection of MovingPandas."""
    library = type(value).__module__.partition(".")[0]
    return library == "movingpandas" or (library == "geopandas" and hasattr(value, "columns"))


def needed_columns(frame: Any, options: ReadOptions) -> Any:
    """A pandas frame with the needed columns only: the contents of others must not matter."""
    names = [str(name) for name in frame.columns]
    return frame.iloc[:, resolve_layout(names, options, "frame").positions]


def _columns(frame: Any) -> list[Any]:
    return [frame.iloc[:, at] for at in range(frame.shape[1])]


def _holds_objects(column: Any) -> bool:
    """Whether a pandas column has the type object: each value may have another type and is read on its own."""
    categories = getattr(getattr(column, "cat", None), "categories", None)
    result: bool = (column if categories is None else categories).dtype == object
    return result


def _arrow(column: Any) -> pa.ChunkedArray:
    found = pa.array(column, from_pandas=True)
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _texts_of(column: Any) -> pa.ChunkedArray:
    """Objects as CSV text: numbers, dates and text as they are, lists as JSON; other values become missing."""
    texts = [_list_text(value) if isinstance(value, list | tuple | np.ndarray) else text_of_value(value)
             for value in column.astype(object)]  # fmt: skip
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def _list_text(value: Any) -> str | None:
    try:
        return json.dumps(value.tolist() if isinstance(value, np.ndarray) else value, default=text_of_value)
    except (TypeError, ValueError, RecursionError):
        return None


@dataclass(frozen=True)
class Known:
    """What is known about a table besides its columns."""

    labels: GivenLabels = NO_LABELS
    """Labels that were read elsewhere."""
    crs: Any = None
    """The reference system of a geometry column."""


NOTHING_KNOWN = Known()


def points_of_table(
    table: pa.Table,
    layout: Layout,
    options: ReadOptions,
    origin: str,
    *,
    shortest_first: bool = False,
    known: Known = NOTHING_KNOWN,
) -> Points:
    """The rows of a table whose columns are known by position."""
    table = _with_decimal_points(table, layout, options)
    try:
        label, user = (
            given
            if given is not None or at is None
            else labels_of(table.column(at), role, origin, shortest_first=shortest_first)
            for given, at, role in zip(known.labels, (layout.traj_id, layout.user), ("traj_id", "user"))
        )
        if isinstance(layout, LineRoles):
            return points_of_line_table(table, layout, options, origin, (label, user), known.crs)
        if isinstance(layout, TripRoles):
            return points_of_trip_table(table, layout, options, origin, (label, user))
        assert label is not None
        return _points_of_rows(table, layout, options, origin, (label, user), known.crs)
    except (pa.ArrowException, UnicodeDecodeError, OverflowError):
        # Arrow's message would quote the value that it could not read.
        raise InputError(f"A column of '{origin}' cannot be read as numbers, times or labels.") from None


def _points_of_rows(
    table: pa.Table, roles: Roles, options: ReadOptions, origin: str, labels: tuple[Labels, Labels | None], crs: Any
) -> Points:
    label, user = labels
    times = times_of(table.column(roles.time), options.timezone, origin, options.dayfirst)
    if roles.geometry is not None:
        lon, lat = to_degrees(*coordinates(table.column(roles.geometry), origin), crs, origin)
    else:
        assert roles.lon is not None and roles.lat is not None
        lon = degrees_of(table.column(roles.lon), "lon", origin)
        lat = degrees_of(table.column(roles.lat), "lat", origin)
    return Points(label, lon, lat, times.utc_s, user, times.zoneless)


def _with_decimal_points(table: pa.Table, layout: Layout, options: ReadOptions) -> pa.Table:
    """The table with decimal points in place of decimal commas in text columns, if the options say so."""
    if options.decimal == ".":
        return table
    import pyarrow.compute as pc

    numeric = ("lon", "lat", "time", *TRIP_ROLES) if not isinstance(layout, LineRoles) else ()
    for role in numeric:
        at = getattr(layout, role, None)
        if at is not None and is_text(decoded(table.column(at)).type):
            points = pc.replace_substring(decoded(table.column(at)), ",", ".")
            table = table.set_column(at, table.column_names[at], points)
    return table


def object_labels(frame: Any, layout: Layout) -> GivenLabels:
    """Labels of columns of objects, which keep their types: the user 7 and the user "7" are different."""
    columns = _columns(frame)
    label, user = (
        labels_of_values(list(columns[at].astype(object))) if at is not None and _holds_objects(columns[at]) else None
        for at in (layout.traj_id, layout.user)
    )
    return label, user


def drop_metadata(keys: Sequence[bytes]) -> list[bytes]:
    """The keys without those of GeoParquet, pandas and Arrow."""
    return [key for key in keys if key not in (b"geo", b"pandas", b"ARROW:schema")]


def points_of_frame(frame: Any, options: ReadOptions) -> Points:
    """The rows of a frame without geometries."""
    table = table_of_frame(frame, options)
    roles = resolve_layout(table.column_names, options, "frame")
    known = Known(object_labels(needed_columns(frame, options), roles)) if is_pandas(frame) else NOTHING_KNOWN
    return points_of_table(table, roles, options, "frame", known=known)

"""Arrow tables to points, and trajectories to Arrow tables."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.core.arrow import decoded
from wayveil.core.trajectories import is_missing
from wayveil.errors import InputError
from wayveil.io.options import ReadOptions, Roles, resolve_roles
from wayveil.io.readers.labels import labels_of, labels_of_values
from wayveil.io.readers.numbers import float_column, is_number, is_text, numbers_of_text
from wayveil.io.readers.points import Points
from wayveil.io.readers.times import times_of


def table_of_frame(frame: Any, options: ReadOptions | None = None) -> pa.Table:
    """A pandas, polars or pyarrow frame as an Arrow table; of a pandas frame only the columns that `options` find.

    A pandas column of objects becomes text; `points_of_frame` reads its values.
    """
    if isinstance(frame, pa.Table):
        return frame
    try:
        if isinstance(frame, pa.RecordBatch):
            return pa.Table.from_batches([frame])
        if is_pandas(frame):
            kept = needed_columns(frame, options or ReadOptions())
            columns = [_texts_of(one) if _holds_objects(one) else _arrow(one) for one in _columns(kept)]
            return pa.table(dict(zip(map(str, kept.columns), columns)))
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError("The frame has columns that Arrow cannot represent; keep only the needed ones.") from None
    raise InputError("Give a path, Trajectories, or a pandas, polars or pyarrow frame.")


def is_frame(value: Any) -> bool:
    """Whether `table_of_frame` accepts it."""
    return is_pandas(value) or hasattr(value, "__arrow_c_stream__")


def is_pandas(value: Any) -> bool:
    """Whether a value is a pandas frame."""
    return type(value).__module__.partition(".")[0] == "pandas"


def needed_columns(frame: Any, options: ReadOptions) -> Any:
    """A pandas frame with the needed columns only: the contents of others must not matter."""
    names = [str(name) for name in frame.columns]
    return frame.iloc[:, resolve_roles(names, options, "frame").positions]


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
    """Objects as CSV text: numbers, dates and text; others are missing."""
    texts = [_text_of(value) for value in column.astype(object)]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def _text_of(value: Any) -> str | None:
    if is_missing(value) or isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Number):
        return str(value)
    try:
        return str(value) if isinstance(value, str) and value.encode() else None
    except UnicodeEncodeError:
        return None


def points_of_table(
    table: pa.Table, roles: Roles, options: ReadOptions, origin: str, *, shortest_first: bool = False
) -> Points:
    """The rows of a table whose columns are known by position."""
    try:
        sort = {"shortest_first": shortest_first}
        label = labels_of(table.column(roles.traj_id), "traj_id", origin, **sort)
        user = None if roles.user is None else labels_of(table.column(roles.user), "user", origin, **sort)
        times = times_of(table.column(roles.time), options.timezone, origin)
        if roles.geometry is not None:
            from wayveil.io.readers.geoparquet import coordinates

            lon, lat = coordinates(table.column(roles.geometry), origin)
        else:
            assert roles.lon is not None and roles.lat is not None
            lon = degrees_of(table.column(roles.lon), "lon", origin)
            lat = degrees_of(table.column(roles.lat), "lat", origin)
    except (pa.ArrowException, UnicodeDecodeError, OverflowError):
        # Arrow's message would quote the value that it could not read.
        raise InputError(f"A column of '{origin}' cannot be read as numbers, times or labels.") from None
    return Points(label, lon, lat, times.utc_s, user, times.zoneless)


def points_of_frame(frame: Any, options: ReadOptions, origin: str = "frame") -> Points:
    """The rows of a frame."""
    table = table_of_frame(frame, options)
    roles = resolve_roles(table.column_names, options, origin)
    points = points_of_table(table, roles, options, origin)
    if not is_pandas(frame):
        return points
    # Labels keep their types: the user 7 and the user "7" are different.
    columns = _columns(needed_columns(frame, options))
    label, user = (
        labels_of_values(list(columns[at].astype(object))) if at is not None and _holds_objects(columns[at]) else None
        for at in (roles.traj_id, roles.user)
    )
    return replace(points, label=label or points.label, user=user or points.user)


def degrees_of(column: pa.ChunkedArray, role: str, origin: str) -> NDArray[np.float64]:
    """Degrees of a column of numbers or text, NaN for other values; any other column type is refused."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if is_text(kind):
        return numbers_of_text(column)
    if is_number(kind):
        return float_column(column)
    raise InputError(
        f"The column for {role} of '{origin}' does not contain numbers (with decimal points); check {role}=."
    )


def drop_metadata(keys: Sequence[bytes]) -> list[bytes]:
    """The keys without those of GeoParquet, pandas and Arrow."""
    return [key for key in keys if key not in (b"geo", b"pandas", b"ARROW:schema")]

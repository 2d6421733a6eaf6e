"""Arrow tables to points, and trajectories to Arrow tables."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.arrow import column_of, decoded
from wayveil.errors import InputError
from wayveil.formats.labels import MAX_LABEL_BYTES, labels_of, labels_of_values
from wayveil.formats.numbers import float_column, is_number, is_text, numbers_of_text
from wayveil.formats.options import OPTION, ReadOptions, Roles, resolve_roles
from wayveil.formats.points import Points
from wayveil.formats.times import LARGEST_S, times_of
from wayveil.trajectories import Trajectories, is_missing


def table_of_frame(frame: Any, options: ReadOptions | None = None) -> pa.Table:
    """A pandas, polars or pyarrow frame as an Arrow table; of a pandas frame only the columns that `options` find.

    A pandas column of objects comes as text, which tells how the frame is built; `points_of_frame` reads its values.
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
        raise InputError("The frame has columns that Arrow cannot hold; keep only the needed ones.") from None
    raise InputError("Give a path, Trajectories, or a pandas, polars or pyarrow frame.")


def is_frame(value: Any) -> bool:
    """Whether `table_of_frame` is made for it."""
    return is_pandas(value) or hasattr(value, "__arrow_c_stream__")


def is_pandas(value: Any) -> bool:
    """Whether a value is a pandas frame."""
    return type(value).__module__.partition(".")[0] == "pandas"


def needed_columns(frame: Any, options: ReadOptions) -> Any:
    """A pandas frame with the columns that play a part: what others hold must not matter."""
    names = [str(name) for name in frame.columns]
    return frame.iloc[:, resolve_roles(names, options, "frame").positions]


def _columns(frame: Any) -> list[Any]:
    return [frame.iloc[:, at] for at in range(frame.shape[1])]


def _holds_objects(column: Any) -> bool:
    """Whether a pandas column has no type of its own: its values may be of any type, so each is read by itself."""
    categories = getattr(getattr(column, "cat", None), "categories", None)
    return (column if categories is None else categories).dtype == object


def _arrow(column: Any) -> pa.ChunkedArray:
    found = pa.array(column, from_pandas=True)
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _texts_of(column: Any) -> pa.ChunkedArray:
    """Objects as the text that they would be in a CSV file: numbers, dates and text; others are missing."""
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
            from wayveil.formats.geoparquet import coordinates

            lon, lat = coordinates(table.column(roles.geometry), origin)
        else:
            assert roles.lon is not None and roles.lat is not None
            lon = degrees_of(table.column(roles.lon), "lon", origin)
            lat = degrees_of(table.column(roles.lat), "lat", origin)
    except (pa.ArrowException, UnicodeDecodeError, OverflowError):
        # Arrow's own words quote the value that it could not read.
        raise InputError(f"A column of '{origin}' cannot be read as numbers, times or labels.") from None
    return Points(label, lon, lat, times.utc_s, user, times.zoneless)


def points_of_frame(frame: Any, options: ReadOptions, origin: str = "frame") -> Points:
    """The rows of a frame."""
    table = table_of_frame(frame, options)
    roles = resolve_roles(table.column_names, options, origin)
    points = points_of_table(table, roles, options, origin)
    if not is_pandas(frame):
        return points
    # Objects keep their types where they are labels: the user 7 and the user "7" are two.
    columns = _columns(needed_columns(frame, options))
    label, user = (
        labels_of_values(list(columns[at].astype(object))) if at is not None and _holds_objects(columns[at]) else None
        for at in (roles.traj_id, roles.user)
    )
    return replace(points, label=label or points.label, user=user or points.user)


def degrees_of(column: pa.ChunkedArray, role: str, origin: str) -> NDArray[np.float64]:
    """Degrees of a column of numbers or text, NaN where a value is none; only another column type is refused."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if is_text(kind):
        return numbers_of_text(column)
    if is_number(kind):
        return float_column(column)
    raise InputError(
        f"The column for {role} of '{origin}' does not hold numbers (with decimal points); see {OPTION[role]} "
        f"({role}= in Python)."
    )


def user_column(user: NDArray[np.generic]) -> pa.Array:
    """Users as int64 or text; any other label cannot be written and read back the same."""
    import pyarrow.compute as pc

    values = np.asarray(user)
    if values.dtype == object:
        kinds = {type(value) for value in values}
        if kinds and kinds <= {str}:
            values = values.astype(np.str_)
        elif kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
            values = values.astype(np.int64)
    if values.dtype.kind in "iu" and not (values.dtype == np.uint64 and (values > np.uint64(2**63 - 1)).any()):
        return pa.array(values.astype(np.int64))
    if values.dtype.kind != "U":
        raise InputError("Users must be whole numbers or text to be written.")
    try:
        texts = pa.array(values.tolist(), pa.string())
    except UnicodeEncodeError:
        raise InputError("Some users hold characters that UTF-8 cannot write.") from None
    if len(texts) and not 0 < pc.min(pc.binary_length(texts)).as_py():
        raise InputError("Some users have an empty label; give them one before writing.")
    if len(texts) and pc.max(pc.binary_length(texts)).as_py() > MAX_LABEL_BYTES:
        raise InputError(f"Some users have labels longer than {MAX_LABEL_BYTES} bytes.")
    return texts


def whole_seconds(t_utc: NDArray[np.float64]) -> bool:
    """Whether every time is a whole second."""
    return bool((t_utc == np.floor(t_utc)).all())


def table_of(trajectories: Trajectories, *, first_id: int = 0, whole: bool | None = None) -> pa.Table:
    """Columns traj_id, lat, lon, t and, where there are users, user_id; one row a point.

    `t` is int64 when every time is a whole second (or as `whole` says), float64 otherwise.
    """
    t_utc = trajectories.t_utc
    if not (np.isfinite(t_utc).all() and (np.abs(t_utc) <= LARGEST_S).all()):
        raise InputError("Some times are missing or beyond the year 5138; they cannot be written.")
    whole = whole_seconds(t_utc) if whole is None else whole
    counts = np.diff(trajectories.offsets)
    columns: dict[str, Any] = {
        "traj_id": column_of(np.repeat(np.arange(first_id, first_id + len(counts)), counts)),
        "lat": column_of(trajectories.lat),
        "lon": column_of(trajectories.lon),
        "t": column_of(t_utc.astype(np.int64) if whole else t_utc),
    }
    if trajectories.user is not None:
        columns["user_id"] = user_column(trajectories.user).take(np.repeat(np.arange(len(counts)), counts))
    return pa.table(columns)


def drop_metadata(keys: Sequence[bytes]) -> list[bytes]:
    """Keys of a schema that are somebody else's bookkeeping."""
    return [key for key in keys if key not in (b"geo", b"pandas", b"ARROW:schema")]

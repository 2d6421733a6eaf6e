"""Arrow tables to points, and trajectories to Arrow tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.arrow import column_of
from wayveil.errors import InputError
from wayveil.formats.options import OPTION, ReadOptions, Roles, resolve_roles
from wayveil.formats.points import MAX_LABEL_BYTES, Points, labels_of
from wayveil.formats.times import LARGEST_S, float_column, to_utc_seconds
from wayveil.trajectories import Trajectories

_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?$"


def table_of_frame(frame: Any, options: ReadOptions | None = None) -> pa.Table:
    """A pandas, polars or pyarrow frame as an Arrow table; `options` name its columns, as in `points_of_frame`."""
    if isinstance(frame, pa.Table):
        return frame
    try:
        if isinstance(frame, pa.RecordBatch):
            return pa.Table.from_batches([frame])
        if type(frame).__module__.partition(".")[0] == "pandas":
            try:
                return pa.Table.from_pandas(frame, preserve_index=False)
            except pa.ArrowException:
                return pa.Table.from_pandas(_mixed_as_text(frame, options or ReadOptions()), preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError("The frame has columns that Arrow cannot hold; keep only the needed ones.") from None
    raise InputError("Give a path, Trajectories, or a pandas, polars or pyarrow frame.")


def is_frame(value: Any) -> bool:
    """Whether `table_of_frame` is made for it."""
    return type(value).__module__.partition(".")[0] == "pandas" or hasattr(value, "__arrow_c_stream__")


def _mixed_as_text(frame: Any, options: ReadOptions) -> Any:
    """A pandas frame whose places and times may be numbers here and text such as "#REF!" there: all as text.

    Ids stay as they are: the user 7 and the user "7" must not become one.
    """
    roles = resolve_roles([str(name) for name in frame.columns], options, "frame")
    plain = frame.copy(deep=False)
    for at in (roles.lon, roles.lat, roles.time):
        if at is not None and frame.dtypes.iloc[at].kind == "O":
            name = frame.columns[at]
            plain[name] = frame[name].map(str, na_action="ignore")
    return plain


def points_of_table(table: pa.Table, roles: Roles, options: ReadOptions, origin: str) -> Points:
    """The rows of a table whose columns are known by position."""
    try:
        label = labels_of(table.column(roles.traj_id), "traj_id", origin)
        user = None if roles.user is None else labels_of(table.column(roles.user), "user", origin)
        t_utc = to_utc_seconds(table.column(roles.time), options.timezone, origin)
        if roles.geometry is not None:
            from wayveil.formats.geoparquet import coordinates

            lon, lat = coordinates(table.column(roles.geometry), origin)
        else:
            assert roles.lon is not None and roles.lat is not None
            lon = _degrees(table.column(roles.lon), "lon", origin)
            lat = _degrees(table.column(roles.lat), "lat", origin)
    except (pa.ArrowException, UnicodeDecodeError, OverflowError):
        # Arrow's own words quote the value that it could not read.
        raise InputError(f"A column of '{origin}' cannot be read as numbers, times or labels.") from None
    return Points(label, lon, lat, t_utc, user)


def points_of_frame(frame: Any, options: ReadOptions, origin: str = "frame") -> Points:
    """The rows of a frame."""
    table = table_of_frame(frame, options)
    roles = resolve_roles(table.column_names, options, origin)
    return points_of_table(table, roles, options, origin)


def _degrees(column: pa.ChunkedArray, role: str, origin: str) -> NDArray[np.float64]:
    if pa.types.is_dictionary(column.type):
        import pyarrow.compute as pc

        column = pc.cast(column, column.type.value_type)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        numbers = numbers_of_text(column)
        if numbers is not None:
            return float_column(numbers)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return float_column(column)
    raise InputError(
        f"The column for {role} of '{origin}' does not hold numbers (with decimal points); see {OPTION[role]} "
        f"({role}= in Python)."
    )


def numbers_of_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Text turned to numbers; what is none is missing, as long as most of it is one, and otherwise None comes back."""
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(pc.cast(column, pa.large_string()))
    good = pc.fill_null(pc.match_substring_regex(text, _NUMBER), False)
    filled = pc.sum(pc.fill_null(pc.not_equal(text, ""), False)).as_py() or 0
    if 2 * (pc.sum(good).as_py() or 0) < filled:
        return None
    return pc.cast(pc.if_else(good, text, pa.scalar(None, pa.large_string())), pa.float64())


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

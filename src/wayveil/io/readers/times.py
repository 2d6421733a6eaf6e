"""Convert times of every kind to Unix seconds in UTC."""

import datetime as dt
from dataclasses import dataclass
from numbers import Number
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.core.arrow import decoded
from wayveil.core.tables import LARGEST_S
from wayveil.core.trajectories import is_missing
from wayveil.errors import InputError
from wayveil.io.options import zone_named
from wayveil.io.readers.numbers import NUMBER, float_column, is_number, is_text, matching, numbers_of_text, trimmed

_QUARTER_S = 900
"""Offsets from UTC change on quarter hours only, so one look-up per quarter hour is enough."""
_ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d(:?\d\d(\.\d+)?)?)?)?(Z|[+-]\d\d(:?\d\d)?)?$"
_ZONED = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"
_SLASHED = r"^(\d\d)[./-](\d\d)[./-](\d{4})([T ].*)?$"
# In Arrow's replacement strings, a group number has one digit: "\\10" is group 1 followed by a zero.
_PADDED_DAY = r"^(\d[./-]\d\d?[./-]\d{4})", r"0\1"
_PADDED_MONTH = r"^(\d\d[./-])(\d[./-]\d{4})", r"\10\2"
_PADDED_HOUR = r"^(\d\d[./-]\d\d[./-]\d{4}[T ])(\d:)", r"\10\2"
_WITH_MICROSECONDS = len("2024-03-04 07:30:00.123456")
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks per second of the units of Arrow timestamps."""


@dataclass(frozen=True, eq=False)
class Times:
    """Unix seconds, one per row; NaN where a time is missing or cannot be read."""

    utc_s: NDArray[np.float64]
    zoneless: NDArray[np.bool_] | None = None
    """Rows whose time is NaN because it names no time zone and no `timezone` was given; None where there are none."""


def to_utc_seconds(column: pa.ChunkedArray, timezone: str | None, origin: str) -> NDArray[np.float64]:
    """Convert numbers, timestamps or ISO 8601 text to Unix seconds; NaN for other values."""
    return times_of(column, timezone, origin).utc_s


def times_of(column: pa.ChunkedArray, timezone: str | None, origin: str, dayfirst: bool | None = None) -> Times:
    """Convert a column to times. Each value is read on its own; errors depend on the type of the column alone.

    `dayfirst` says how dates such as 03/04/2024 are read; without it, their times are NaN.
    """
    column = decoded(column)
    kind = column.type
    if is_text(kind):
        return _from_text(column if dayfirst is None else iso_dates(column, dayfirst), timezone)
    if pa.types.is_timestamp(kind):
        if kind.tz is None and timezone is None:
            raise InputError(f"The times of '{origin}' have no time zone; set it with timezone=.")
        return Times(_from_timestamps(column, timezone))
    if pa.types.is_date(kind):
        raise InputError(f"The times of '{origin}' are dates without a time of day; name another column with time=.")
    if is_number(kind):
        return Times(seconds_of_numbers(float_column(column)))
    if pa.types.is_null(kind):
        return Times(np.full(len(column), np.nan))
    raise InputError(f"The time column of '{origin}' contains no numbers, timestamps or text; check time=.")


def iso_dates(column: pa.ChunkedArray, dayfirst: bool) -> pa.ChunkedArray:
    """Dates such as 3/4/2024 or 03.04.2024 7:30 rewritten as ISO 8601; other texts are left as they are."""
    import pyarrow.compute as pc

    text = pc.replace_substring_regex(trimmed(column), *_PADDED_DAY)
    text = pc.replace_substring_regex(text, *_PADDED_MONTH)
    text = pc.replace_substring_regex(text, *_PADDED_HOUR)
    return pc.replace_substring_regex(text, _SLASHED, r"\3-\2-\1\4" if dayfirst else r"\3-\1-\2\4")


def text_of_value(value: Any) -> str | None:
    """A number, a date or text as it would stand in a CSV file; None for any other value."""
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


def seconds_of_numbers(number: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds are kept; larger numbers are taken as milli-, micro- or nanoseconds, depending on their size.

    Each value is judged alone, so that one trajectory's times do not depend on another's.
    """
    size = np.abs(number)
    if not (size > LARGEST_S).any():
        return number
    number = np.where(size > 1e17, number / 1e9, np.where(size > 1e14, number / 1e6, number))
    number = np.where((size > LARGEST_S) & (size <= 1e14), number / 1e3, number)
    return np.where(np.abs(number) <= LARGEST_S, number, np.nan)


def _from_text(column: pa.ChunkedArray, timezone: str | None) -> Times:
    """Parse each text on its own: a number, a date with a zone, or a date in the local time of `timezone`."""
    import pyarrow.compute as pc

    text = trimmed(column)
    dates = matching(text, _ISO)
    if dates.null_count == len(dates):
        return Times(seconds_of_numbers(numbers_of_text(text)))
    seconds = np.full(len(text), np.nan)
    if dates.null_count > text.null_count:
        seconds = seconds_of_numbers(numbers_of_text(matching(text, NUMBER)))
    if pc.max(pc.binary_length(dates)).as_py() > _WITH_MICROSECONDS:
        # Timestamps in microseconds cover all years, but Arrow then accepts no finer fraction.
        dates = pc.replace_substring_regex(dates, r"(\.\d{6})\d+", r"\1")
    is_zoned = pc.fill_null(pc.match_substring_regex(dates, _ZONED), False)
    nothing = pa.scalar(None, pa.large_string())
    zoned, local = pc.if_else(is_zoned, dates, nothing), pc.if_else(is_zoned, nothing, dates)
    if zoned.null_count < len(zoned):
        seconds = _filled(seconds, _from_timestamps(_stamps(zoned, pa.timestamp("us", "UTC")), None))
    if local.null_count == len(local):
        return Times(seconds)
    if timezone is None:
        return Times(seconds, local.is_valid().to_numpy())
    return Times(_filled(seconds, _from_timestamps(_stamps(local, pa.timestamp("us")), timezone)))


def _filled(seconds: NDArray[np.float64], more: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isnan(more), seconds, more)


def _stamps(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Timestamps of dates written as text; missing where a date does not exist."""
    whole = text.combine_chunks()
    whole = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    return pa.chunked_array([_cast_or_null(whole, kind)])


def _cast_or_null(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast recursively in halves; single values that are not valid dates become missing."""
    import pyarrow.compute as pc

    try:
        return pc.cast(text, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(text) == 1:
            return pa.nulls(1, kind)
    half = len(text) // 2
    return pa.concat_arrays([_cast_or_null(text[:half], kind), _cast_or_null(text[half:], kind)])


def _from_timestamps(column: pa.ChunkedArray, timezone: str | None) -> NDArray[np.float64]:
    """Unix seconds; timestamps without a zone are in the local time of `timezone`."""
    import pyarrow.compute as pc

    ticks = _TICKS[column.type.unit]
    valid = None
    if column.null_count:
        valid = column.is_valid().to_numpy()
        column = pc.fill_null(column, pa.scalar(0, column.type))
    whole, rest = np.divmod(pc.cast(column, pa.int64()).to_numpy(), ticks)
    if column.type.tz is None and timezone is not None:
        whole = whole - utc_offsets(whole, zone_named(timezone))
    # Whole seconds and the rest are computed separately: nanoseconds since 1970 do not fit the 53 bits of a float.
    seconds = whole + rest / ticks
    seconds = np.where(np.abs(seconds) <= LARGEST_S, seconds, np.nan)
    return seconds if valid is None else np.where(valid, seconds, np.nan)


def utc_offsets(local_s: NDArray[np.int64], zone: ZoneInfo) -> NDArray[np.int64]:
    """Offset of `zone` from UTC in seconds at each local time (the first of the two in a repeated hour).

    Offsets change on quarter hours only, so each distinct quarter hour is looked up once.
    """
    quarter, inverse = np.unique(local_s // _QUARTER_S, return_inverse=True)
    return np.array([_offset_s(int(q) * _QUARTER_S, zone) for q in quarter], np.int64)[inverse]


def _offset_s(local_s: int, zone: ZoneInfo) -> int:
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=local_s)
        offset = moment.replace(tzinfo=zone).utcoffset()
    except (OverflowError, ValueError):
        return 0
    return int(offset.total_seconds()) if offset is not None else 0

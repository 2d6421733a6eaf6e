"""Times of every kind to Unix seconds, UTC."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.arrow import numbers_of
from wayveil.errors import InputError
from wayveil.formats.options import zone_named

LARGEST_S = 1e11
"""Beyond this number (the year 5138) a Unix time is taken as milliseconds, then micro-, then nanoseconds."""
_QUARTER_S = 900
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d(:?\d\d(\.\d+)?)?)?)?(Z|[+-]\d\d(:?\d\d)?)?$"
_ZONED = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def to_utc_seconds(column: pa.ChunkedArray, timezone: str | None, origin: str) -> NDArray[np.float64]:
    """Unix seconds of numbers, timestamps, or ISO 8601 text; a missing or unusable number becomes NaN."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        import pyarrow.compute as pc

        column = pc.cast(column, kind.value_type)
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _from_text(column, timezone, origin)
    if pa.types.is_timestamp(kind):
        return _from_timestamps(column, timezone, origin)
    if pa.types.is_date(kind):
        raise InputError(f"The times of '{origin}' are days without a clock; name another column with --time-column.")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return seconds_of_numbers(float_column(column))
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    raise InputError(f"The time column of '{origin}' holds neither numbers, timestamps nor text; see --time-column.")


def float_column(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Any numeric column as float64, missing values as NaN."""
    if column.type == pa.float64():
        return numbers_of(column)
    if pa.types.is_integer(column.type) and not column.null_count:
        return numbers_of(column).astype(np.float64)
    import pyarrow.compute as pc

    return numbers_of(pc.cast(column, pa.float64(), safe=False))


def seconds_of_numbers(number: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds as they are; larger numbers by their size as milli-, micro- or nanoseconds.

    Each value is judged alone, so that one trajectory's times do not depend on another's.
    """
    size = np.abs(number)
    if not (size > LARGEST_S).any():
        return number
    number = np.where(size > 1e17, number / 1e9, np.where(size > 1e14, number / 1e6, number))
    number = np.where((size > LARGEST_S) & (size <= 1e14), number / 1e3, number)
    return np.where(np.abs(number) <= LARGEST_S, number, np.nan)


def _from_text(column: pa.ChunkedArray, timezone: str | None, origin: str) -> NDArray[np.float64]:
    """Each text by itself: what is neither a number nor a date is missing, whatever the others are.

    The others only decide whether the column is refused: where most are no times, or where kinds are mixed.
    """
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(pc.cast(column, pa.large_string()))
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.large_string()), text)
    given = len(text) - text.null_count
    numbers, dates = _alike(text, _NUMBER), _alike(text, _ISO)
    zoned = _alike(dates, _ZONED)
    kinds = [len(part) - part.null_count for part in (numbers, dates, zoned)]
    if 2 * (kinds[0] + kinds[1]) <= given > 0 or (kinds[0] and kinds[1]) or 0 < kinds[2] < kinds[1]:
        raise InputError(
            f"Some times of '{origin}' are neither Unix seconds nor ISO 8601 text (2024-03-04 07:30:00, all with a "
            "zone or all without); rewrite them or name another column with --time-column."
        )
    if not kinds[1]:
        return seconds_of_numbers(float_column(pc.cast(numbers, pa.float64())))
    # Microseconds, so that every year has them; Arrow takes no finer fraction then.
    dates = pc.replace_substring_regex(dates, r"(\.\d{6})\d+", r"\1").combine_chunks()
    stamps = _each(dates, pa.timestamp("us", "UTC" if kinds[2] else None))
    return _from_timestamps(pa.chunked_array([stamps]), timezone, origin)


def _alike(text: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """The texts that look like the pattern; the others are missing."""
    import pyarrow.compute as pc

    return pc.if_else(pc.match_substring_regex(text, pattern), text, pa.scalar(None, pa.large_string()))


def _each(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast in halves of halves, down to days that no calendar has: these are missing."""
    import pyarrow.compute as pc

    try:
        return pc.cast(text, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(text) == 1:
            return pa.nulls(1, kind)
    half = len(text) // 2
    return pa.concat_arrays([_each(text[:half], kind), _each(text[half:], kind)])


def _from_timestamps(column: pa.ChunkedArray, timezone: str | None, origin: str) -> NDArray[np.float64]:
    import pyarrow.compute as pc

    ticks = _TICKS[column.type.unit]
    aware = column.type.tz is not None
    if not aware and timezone is None:
        raise InputError(
            f"The times of '{origin}' name no time zone; say which clocks they follow with --timezone "
            "(timezone= in Python)."
        )
    valid = None
    if column.null_count:
        valid = column.is_valid().to_numpy()
        column = pc.fill_null(column, pa.scalar(0, column.type))
    whole, rest = np.divmod(pc.cast(column, pa.int64()).to_numpy(), ticks)
    if not aware and timezone is not None:
        whole = whole - utc_offsets(whole, zone_named(timezone))
    # Whole seconds and the rest are divided apart: nanoseconds since 1970 do not fit the 53 bits of a float.
    seconds = whole + rest / ticks
    seconds = np.where(np.abs(seconds) <= LARGEST_S, seconds, np.nan)
    return seconds if valid is None else np.where(valid, seconds, np.nan)


def utc_offsets(local_s: NDArray[np.int64], zone: ZoneInfo) -> NDArray[np.int64]:
    """Seconds that the clocks of `zone` are ahead of UTC at each local time (the first of two at a repeated hour).

    Clocks change on quarter hours, so each distinct quarter hour is looked up once.
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

"""Numbers of every column type, and numbers written as text, with one grammar for all."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.core.arrow import decoded, numbers_of
from wayveil.errors import InputError

NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
"""Pattern of a number written as text, without white space around it."""


def is_text(kind: pa.DataType) -> bool:
    """Whether a column type is text."""
    result: bool = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return result


def is_number(kind: pa.DataType) -> bool:
    """Whether a column type is numeric."""
    result: bool = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return result


def float_column(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Any numeric column as float64, missing values as NaN."""
    if column.type == pa.float64():
        return numbers_of(column)
    if pa.types.is_integer(column.type) and not column.null_count:
        return numbers_of(column).astype(np.float64)
    import pyarrow.compute as pc

    return numbers_of(pc.cast(column, pa.float64(), safe=False))


def trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without white space around it; works on bytes that are not UTF-8, too."""
    import pyarrow.compute as pc

    return pc.ascii_trim_whitespace(pc.cast(column, pa.large_string()))


def matching(text: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """The texts that match a pattern; the others are missing."""
    import pyarrow.compute as pc

    return pc.if_else(pc.match_substring_regex(text, pattern), text, pa.scalar(None, pa.large_string()))


def numbers_of_text(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Parse each text on its own: a number, or NaN.

    Arrow converts a column at once if every text is a number; otherwise each text is matched with `NUMBER` first. Every
    finite number that Arrow reads matches it, so both ways give the same numbers; a test compares them.
    """
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(column, pa.float64())
    except pa.ArrowInvalid:
        numbers = pc.cast(matching(trimmed(column), NUMBER), pa.float64())
    found = numbers_of(numbers)
    finite = np.isfinite(found)
    return found if finite.all() else np.where(finite, found, np.nan)


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

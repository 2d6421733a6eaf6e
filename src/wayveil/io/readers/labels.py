"""Labels of trajectories and users: whole numbers or text, each value parsed on its own.

Two different values must never become one label, and a value that cannot be a label must not change how any other
value is read. Such a value gets a fault, and its row contributes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.core.arrow import decoded, numbers_of
from wayveil.core.tables import MAX_LABEL_BYTES
from wayveil.core.trajectories import LARGEST_WHOLE_FLOAT, canonical_label, is_missing
from wayveil.errors import InputError
from wayveil.io.options import MEANING

MISSING, TOO_LONG, UNREADABLE = 1, 2, 3
"""Why a row has no usable label; 0 means that it has one."""
_INT64_DIGITS = 18
"""Every whole number with this many digits fits into 64 bits."""


@dataclass(frozen=True, eq=False)
class Labels:
    """One label per row: an integer, or a position among `names`."""

    code: NDArray[np.int64]
    names: NDArray[Any] | None = None
    """Distinct labels in sorted order, so that codes and labels have the same order; None where labels are integers."""
    fault: NDArray[np.uint8] | None = None
    """MISSING, TOO_LONG or UNREADABLE where a row has no usable label, 0 elsewhere; None where all rows have one."""

    @property
    def valid(self) -> NDArray[np.bool_] | None:
        """True where the label is usable; None where all are."""
        return None if self.fault is None else self.fault == 0

    def value(self, row: int) -> int | str:
        """The label of one row."""
        code = int(self.code[row])
        name = code if self.names is None else self.names[code]
        return name if isinstance(name, int) else str(name)

    def values(self) -> NDArray[Any]:
        """All labels as integers or text."""
        return self.code if self.names is None else self.names[self.code]

    def take(self, rows: NDArray[np.generic]) -> "Labels":
        """The labels of some rows (indices or a mask)."""
        return Labels(self.code[rows], self.names, None if self.fault is None else self.fault[rows])


def labels_of(column: pa.ChunkedArray, role: str, origin: str, *, shortest_first: bool = False) -> Labels:
    """A column of integers, whole floats, decimals or text as labels; any other column type is refused.

    Texts are sorted alphabetically, or with `shortest_first` by length and then alphabetically, so that numbers written
    as text are in numerical order.
    """
    kind = column.type
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind) and not column.null_count:
        return Labels(numbers_of(column).astype(np.int64, copy=False))
    import pyarrow.compute as pc  # slow to import, and plain columns do not need it

    if pa.types.is_dictionary(kind):
        return labels_of(decoded(column), role, origin, shortest_first=shortest_first)
    if pa.types.is_floating(kind):
        return _whole_floats(numbers_of(pc.cast(column, pa.float64(), safe=False)))
    if pa.types.is_decimal(kind):
        return _decimals(column)
    if pa.types.is_null(kind):
        return Labels(np.zeros(len(column), np.int64), None, np.full(len(column), MISSING, np.uint8))
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        fault = np.where(column.is_valid().to_numpy(), 0, MISSING).astype(np.uint8)
        return Labels(numbers_of(pc.fill_null(column, 0)).astype(np.int64, copy=False), None, fault)
    if pa.types.is_uint64(kind):
        column, kind = pc.cast(column, pa.string()), pa.string()
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise InputError(f"The {MEANING[role]} column of '{origin}' must contain whole numbers or text; check {role}=.")
    return _texts(column, shortest_first)


def labels_of_values(values: Sequence[Any]) -> Labels:
    """Python values as labels: 7 and "7" are different, 7 and 7.0 are the same."""
    known: dict[int | str, int] = {}
    code = np.zeros(len(values), np.int64)
    fault = np.zeros(len(values), np.uint8)
    for row, value in enumerate(values):
        label = canonical_label(value)
        if label is None:
            fault[row] = MISSING if is_missing(value) else UNREADABLE
        elif isinstance(label, str) and len(label.encode()) > MAX_LABEL_BYTES:
            fault[row] = TOO_LONG
        else:
            code[row] = known.setdefault(label, len(known))
    ordered = sorted(known, key=lambda label: (isinstance(label, str), label))
    names = np.empty(max(len(ordered), 1), object)
    names[:] = ordered or [0]
    rank = np.zeros(max(len(ordered), 1), np.int64)
    rank[[known[label] for label in ordered]] = np.arange(len(ordered))
    return Labels(rank[code], names, fault if fault.any() else None)


def _whole_floats(number: NDArray[np.float64]) -> Labels:
    """Whole numbers as integers; a float beyond 2^53 may represent several whole numbers and is unreadable."""
    missing = np.isnan(number)
    with np.errstate(invalid="ignore"):
        whole = (number == np.floor(number)) & (np.abs(number) <= LARGEST_WHOLE_FLOAT)
    fault = np.where(missing, MISSING, np.where(whole, 0, UNREADABLE)).astype(np.uint8)
    return Labels(np.where(whole, number, 0.0).astype(np.int64), None, fault if fault.any() else None)


def _encoded(column: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.int64], NDArray[np.bool_]]:
    """Distinct values, the position of each row's value among them, and where a value is missing."""
    whole = column.combine_chunks()
    whole = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    missing = ~whole.is_valid().to_numpy(zero_copy_only=False) if whole.null_count else np.zeros(len(whole), bool)
    coded = whole.dictionary_encode()
    index = coded.indices.fill_null(0) if coded.indices.null_count else coded.indices
    return coded.dictionary, index.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), missing


def _decimals(column: pa.ChunkedArray) -> Labels:
    """Decimals as labels, compared exactly: as integers if the column's type fits into 64 bits, otherwise as text."""
    distinct, index, missing = _encoded(column)
    whole = [int(value) if int(value) == value else None for value in distinct.to_pylist()]
    bad = np.array([value is None for value in whole], bool)
    fault = np.where(missing, MISSING, np.where(bad[index], UNREADABLE, 0) if len(bad) else 0).astype(np.uint8)
    if column.type.precision - column.type.scale <= _INT64_DIGITS:
        number = np.array([value or 0 for value in whole] or [0], np.int64)
        return Labels(number[index], None, fault if fault.any() else None)
    names, rank = np.unique(np.array([str(value or 0) for value in whole] or ["0"], np.str_), return_inverse=True)
    return Labels(rank.astype(np.int64)[index], names, fault if fault.any() else None)


def _texts(column: pa.ChunkedArray, shortest_first: bool) -> Labels:
    import pyarrow.compute as pc

    # As bytes: Parquet files and CSV files may hold text that is not UTF-8.
    distinct, index, missing = _encoded(pc.cast(column, pa.large_binary()))
    raw = distinct.to_pylist()
    names, faults = np.empty(len(raw), object), np.zeros(len(raw), np.uint8)
    for place, value in enumerate(raw):
        names[place], faults[place] = _text(value)
    # Numpy text drops trailing NUL characters, so `_text` has given those labels a fault.
    texts = names.astype(np.str_) if len(names) else np.array([""], np.str_)
    ordered, rank = np.unique(texts, return_inverse=True)
    if shortest_first:
        order = np.lexsort((ordered, np.char.str_len(ordered)))
        place_of = np.empty(len(order), np.int64)
        place_of[order] = np.arange(len(order))
        ordered, rank = ordered[order], place_of[rank]
    fault = faults[index] if faults.any() else np.zeros(len(index), np.uint8)
    fault[missing] = MISSING
    return Labels(rank.astype(np.int64)[index], ordered, fault if fault.any() else None)


def _text(value: bytes) -> tuple[str, int]:
    """The text of a label and its fault; the text is empty where there is a fault."""
    if not value:
        return "", MISSING
    if len(value) > MAX_LABEL_BYTES:
        return "", TOO_LONG
    try:
        return ("", UNREADABLE) if value[-1] == 0 else (value.decode(), 0)
    except UnicodeDecodeError:
        return "", UNREADABLE

"""Points: rows as they stand in a file, before they are cleaned, sorted and put together."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.arrow import numbers_of
from wayveil.errors import InputError
from wayveil.formats.options import MEANING, OPTION, OnBadRows
from wayveil.trajectories import Trajectories, from_labels

MAX_LABEL_BYTES = 256


@dataclass(frozen=True, eq=False)
class Labels:
    """One label a row: an integer, or a text given by its rank among `names`."""

    code: NDArray[np.int64]
    names: NDArray[np.str_] | None = None
    """Sorted distinct texts, so that codes and texts have the same order; None where the labels are integers."""
    valid: NDArray[np.bool_] | None = None
    """False where the label is missing; None where none is."""

    def value(self, row: int) -> int | str:
        """The label of one row."""
        code = int(self.code[row])
        return code if self.names is None else str(self.names[code])

    def values(self) -> NDArray[np.generic]:
        """All labels as integers or text."""
        return self.code if self.names is None else self.names[self.code]

    def take(self, rows: NDArray[np.generic]) -> "Labels":
        """The labels of some rows (indices or a mask)."""
        return Labels(self.code[rows], self.names, None if self.valid is None else self.valid[rows])


@dataclass(frozen=True, eq=False)
class Points:
    """One row a point, in the file's order; NaN where a number is missing.

    Privacy: not private (trusted side only).
    """

    label: Labels
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    t_utc: NDArray[np.float64]
    user: Labels | None

    def __len__(self) -> int:
        return len(self.lon)

    def take(self, rows: NDArray[np.generic]) -> "Points":
        """Some of the rows (indices or a mask)."""
        user = None if self.user is None else self.user.take(rows)
        return Points(self.label.take(rows), self.lon[rows], self.lat[rows], self.t_utc[rows], user)


def labels_of(column: pa.ChunkedArray, role: str, origin: str) -> Labels:
    """A column of integers, whole floats or text as labels; empty text counts as missing."""
    if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type) and not column.null_count:
        return Labels(numbers_of(column).astype(np.int64, copy=False))
    import pyarrow.compute as pc  # slow to import, and plain columns need nothing of it

    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _whole_floats(pc.cast(column, pa.float64(), safe=False).to_numpy(), role, origin)
    if pa.types.is_uint64(kind):
        column = pc.cast(column, pa.string())
    elif pa.types.is_integer(kind):
        valid = column.is_valid().to_numpy() if column.null_count else None
        column = pc.fill_null(column, 0) if column.null_count else column
        return Labels(numbers_of(column).astype(np.int64, copy=False), None, valid)
    elif pa.types.is_null(kind):
        return Labels(np.zeros(len(column), np.int64), None, np.zeros(len(column), bool))
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise InputError(
            f"The {MEANING[role]} column of '{origin}' must hold whole numbers or text; see {OPTION[role]}."
        )
    return _texts(pc.cast(column, pa.large_string()), role, origin)


def _whole_floats(number: NDArray[np.float64], role: str, origin: str) -> Labels:
    valid = ~np.isnan(number)
    number = np.where(valid, number, 0.0)
    if (np.abs(number) > 2.0**53).any() or (number != np.floor(number)).any():
        raise InputError(
            f"The {MEANING[role]} column of '{origin}' holds numbers that are not whole; see {OPTION[role]}."
        )
    return Labels(number.astype(np.int64), None, None if valid.all() else valid)


def _texts(column: pa.ChunkedArray, role: str, origin: str) -> Labels:
    import pyarrow.compute as pc

    longest = pc.max(pc.binary_length(column)).as_py()
    if longest is not None and longest > MAX_LABEL_BYTES:
        raise InputError(
            f"The {MEANING[role]} column of '{origin}' holds labels longer than {MAX_LABEL_BYTES} bytes; "
            f"see {OPTION[role]}."
        )
    coded = pc.fill_null(column, "").combine_chunks()
    coded = (coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded).dictionary_encode()
    try:
        names = np.array(coded.dictionary.to_pylist(), dtype=np.str_)
    except UnicodeDecodeError:
        raise InputError(f"The {MEANING[role]} column of '{origin}' is not UTF-8 text.") from None
    # Trailing NUL characters vanish in numpy text, and two labels must never become one.
    names, rank = np.unique(names, return_inverse=True)
    if len(names) != len(coded.dictionary):
        raise InputError(f"The {MEANING[role]} column of '{origin}' holds labels that end in a NUL character.")
    code = rank.astype(np.int64)[coded.indices.to_numpy(zero_copy_only=False)]
    empty = len(names) > 0 and names[0] == ""
    return Labels(code, names, code != 0 if empty else None)


def bad_rows(points: Points) -> dict[str, NDArray[np.bool_]]:
    """Masks of rows that cannot be used, by kind; a row stands under the first kind that holds."""
    lon, lat = points.lon, points.lat
    finite = np.isfinite(lon) & np.isfinite(lat)
    with np.errstate(invalid="ignore"):
        outside = finite & ((np.abs(lat) > 90) | (np.abs(lon) > 180))
        exchanged = outside & (np.abs(lon) <= 90) & (np.abs(lat) <= 180)
    unlabelled = np.zeros(len(points), bool) if points.label.valid is None else ~points.label.valid
    if points.user is not None and points.user.valid is not None:
        userless = ~points.user.valid
    else:
        userless = np.zeros(len(points), bool)
    return {
        "missing coordinate": ~finite,
        "latitude and longitude exchanged": exchanged,
        "coordinate out of range": outside & ~exchanged,
        "missing or unreadable time": ~np.isfinite(points.t_utc),
        "missing trajectory id": unlabelled,
        "missing user": userless,
    }


def usable(points: Points, on_bad_rows: OnBadRows, origin: str) -> Points:
    """The points without bad rows; with `on_bad_rows="error"` there must be none."""
    kinds = bad_rows(points)
    bad = np.logical_or.reduce(list(kinds.values()))
    if not bad.any():
        return points
    if on_bad_rows == "drop":
        return points.take(~bad)
    # "Some", not how many: messages end up in logs, and an exact count is private.
    if kinds["latitude and longitude exchanged"].any():
        raise InputError(
            f"Some latitudes of '{origin}' are beyond 90 degrees: latitude and longitude look exchanged; "
            "settle it with --lat-column and --lon-column, or see `wayveil check`."
        )
    kind = next(name for name, mask in kinds.items() if mask.any())
    raise InputError(
        f"Some rows of '{origin}' cannot be used ({kind}); see `wayveil check`, or leave them out with --drop-bad-rows "
        '(in Python and in run files on_bad_rows="drop").'
    )


def assemble(points: Points, on_bad_rows: OnBadRows, origin: str) -> Trajectories:
    """Rows to trajectories in the order of (label, time), stably; rows of one label become one trajectory.

    Privacy: not private (trusted side only).
    """
    points = usable(points, on_bad_rows, origin)
    code, t_utc = points.label.code, points.t_utc
    if len(code) > 1:
        step, sooner = np.diff(code), np.diff(t_utc) < 0
        if (step < 0).any() or (sooner & (step == 0)).any():
            points = points.take(np.lexsort((t_utc, code)))
    return joined(points, origin)


def joined(points: Points, origin: str) -> Trajectories:
    """Grouped rows to trajectories; all rows of a trajectory must name the same user."""
    code, user = points.label.code, points.user
    if user is None:
        return from_labels(code, points.lon, points.lat, points.t_utc)
    if ((user.code[1:] != user.code[:-1]) & (code[1:] == code[:-1])).any():
        raise InputError(
            f"Some trajectories of '{origin}' have rows of several users; make the trajectory ids unique across users."
        )
    whole = from_labels(code, points.lon, points.lat, points.t_utc, user.code)
    if user.names is None or whole.user is None:
        return whole
    return Trajectories(whole.offsets, whole.lon, whole.lat, whole.t_utc, user.names[whole.user.astype(np.int64)])


def points_of(trajectories: Trajectories) -> Points:
    """Trajectories back to rows, labelled 0, 1, 2, …"""
    counts = np.diff(trajectories.offsets)
    index = np.repeat(np.arange(len(trajectories)), counts)
    user = None
    if trajectories.user is not None:
        names, rank = np.unique(trajectories.user, return_inverse=True)
        user = Labels(rank[index].astype(np.int64), names.astype(np.str_))
    return Points(Labels(index), trajectories.lon, trajectories.lat, trajectories.t_utc, user)

"""Trajectories: the data type that readers return and all methods take."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.html import PRIVATE_NOTICE, card, extent_facts, points_svg
from wayveil.core.optional import import_optional
from wayveil.core.plots import plot_trajectories
from wayveil.errors import InputError

LARGEST_WHOLE_FLOAT = 2.0**53 - 1
"""Up to this number floats represent all whole numbers; beyond it, several whole numbers round to the same float."""


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Trajectories: points with place and time, and optional users, in read-only arrays.

    Trajectory i owns the points `offsets[i]:offsets[i + 1]`. Identifiers of trajectories are not kept. Users are
    optional labels that only group trajectories. `repr` shows no number, because it ends up in logs; a notebook shows
    counts, the span and a small map, marked as private.

    Examples
    --------
    >>> import wayveil
    >>> rides = wayveil.Trajectories([0, 2, 3], lon=[2.30, 2.31, 2.35], lat=[48.8, 48.9, 48.9], t_utc=[0, 60, 0])
    >>> rides
    Trajectories(without users)
    >>> len(rides)
    2

    Privacy
    -------
    Not private (trusted side only), unless they are synthetic.
    """

    offsets: NDArray[np.int64]
    """(n + 1,) first point of each trajectory, and the number of points at the end."""
    lon: NDArray[np.float64]
    """Degrees east, WGS 84."""
    lat: NDArray[np.float64]
    """Degrees north, WGS 84."""
    t_utc: NDArray[np.float64]
    """Unix seconds, UTC."""
    user: NDArray[np.generic] | None = None
    """(n,) integer or text label of each trajectory's user, or None.

    The labels are canonical (see `canonical_label`). If some are missing, the dtype is object and these are None.
    """

    def __post_init__(self) -> None:
        for name, dtype in (("offsets", np.int64), ("lon", np.float64), ("lat", np.float64), ("t_utc", np.float64)):
            column = np.ascontiguousarray(getattr(self, name), dtype=dtype).view()
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        if not len(self.lon) == len(self.lat) == len(self.t_utc):
            raise InputError("lon, lat and t must have the same number of values.")
        offsets = self.offsets
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(self.lon) or (np.diff(offsets) < 1).any():
            raise InputError("offsets must start at 0, grow, and end at the number of points.")
        if self.user is not None:
            user = _canonical_users(self.user).view()
            if user.shape != (len(offsets) - 1,):
                raise InputError("user must have one value for each trajectory.")
            user.flags.writeable = False
            object.__setattr__(self, "user", user)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trajectories):
            return NotImplemented
        if (self.user is None) != (other.user is None):
            return False
        same = all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("offsets", "lon", "lat", "t_utc")
        )
        if self.user is None or other.user is None:
            return same
        return same and np.array_equal(self.user, other.user)

    __hash__ = None  # type: ignore[assignment]

    def to_pandas(self) -> Any:
        """A pandas frame with one row per point: traj_id, lat, lon, t and, if there are users, user_id.

        Privacy: as private as the trajectories.
        """
        from wayveil.core.tables import table_of  # pyarrow, which most uses of trajectories do not need

        import_optional("pandas")
        return table_of(self).to_pandas()

    def to_geopandas(self, shapes: str = "lines") -> Any:
        """A GeoDataFrame in degrees: one row per trajectory, with start and end, or one row per point ("points").

        Privacy: as private as the trajectories.
        """
        from wayveil.core.geoframes import geo_frame

        return geo_frame(self, shapes)

    def plot(self, ax: Any = None) -> Any:
        """Draw the trajectories as lines, or their density if there are many; returns the axes of matplotlib.

        Privacy: as private as the trajectories; the title says so.
        """
        return plot_trajectories(self, ax)

    def __repr__(self) -> str:
        # Deliberately without numbers: a repr ends up in logs, and the exact count is private.
        return "Trajectories(" + ("with users" if self.user is not None else "without users") + ")"

    def _repr_html_(self) -> str:
        # Exact counts are shown to the owner of the data only, so the card carries a notice.
        drawing = points_svg(self, label="Map of where the points are")
        return card("Trajectories", extent_facts(self), notice=PRIVATE_NOTICE, drawing=drawing)


def is_missing(value: object) -> bool:
    """Whether a value of a frame means "missing": None, NaN, pandas' NA and NaT, or an empty text."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return value == "" if isinstance(value, str) else isinstance(value, float) and value != value


def canonical_label(value: object) -> int | str | None:
    """The canonical form of a label: a Python integer, a text, or None if the value is not a usable label.

    Whole floats and whole decimals become integers. Booleans, fractions, floats beyond 2^53, texts that end in a NUL
    character (numpy drops it) or that UTF-8 cannot encode, and objects of other types are not usable.
    """
    if isinstance(value, bool | np.bool_) or is_missing(value):
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return int(number) if abs(number) <= LARGEST_WHOLE_FLOAT and number == int(number) else None
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == int(value) else None
    if not isinstance(value, str) or value.endswith("\0"):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return str(value)


def _canonical_users(user: Any) -> NDArray[Any]:
    """Users as an array of integers or text, or of objects if labels are missing or of both kinds."""
    if isinstance(user, np.ndarray) and user.dtype.kind in "iuU":
        return user
    values = user.tolist() if isinstance(user, np.ndarray) and user.dtype != object else list(user)
    labels = [canonical_label(value) for value in values]
    if labels and all(isinstance(label, str) for label in labels):
        return np.array(labels, np.str_)
    if all(isinstance(label, int) and -(2**63) <= label < 2**63 for label in labels):
        return np.array(labels, np.int64)
    found = np.empty(len(labels), object)
    found[:] = labels
    return found


def user_codes(user: NDArray[Any], known: dict[int | str, int]) -> NDArray[np.int64]:
    """A number for each user, the same in every batch that shares `known`; -1 if the user is missing."""
    if user.dtype == object:
        codes = [-1 if label is None else known.setdefault(label, len(known)) for label in user.tolist()]
        return np.array(codes, np.int64)
    names, index = np.unique(user, return_inverse=True)
    codes = [-1 if name == "" else known.setdefault(name, len(known)) for name in names.tolist()]
    return np.array(codes, np.int64)[index]


EMPTY = Trajectories(np.zeros(1, np.int64), np.empty(0), np.empty(0), np.empty(0))
"""No trajectories."""


def select(trajectories: Trajectories, keep: NDArray[np.generic]) -> Trajectories:
    """The trajectories at the positions `keep` (indices or a boolean mask), in that order."""
    index = np.flatnonzero(keep) if keep.dtype == bool else np.asarray(keep, np.int64)
    if len(index) == 0:
        return (
            EMPTY
            if trajectories.user is None
            else Trajectories(EMPTY.offsets, EMPTY.lon, EMPTY.lat, EMPTY.t_utc, trajectories.user[:0])
        )
    offsets, points = ragged.take(trajectories.offsets, index)
    user = None if trajectories.user is None else trajectories.user[index]
    return Trajectories(offsets, trajectories.lon[points], trajectories.lat[points], trajectories.t_utc[points], user)


def concatenate(parts: list[Trajectories]) -> Trajectories:
    """All trajectories of `parts`, one after the other."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return EMPTY
    if len({part.user is None for part in parts}) > 1:
        raise InputError("Some parts have users and others do not.")
    offsets = ragged.join(part.offsets for part in parts)
    users = None if parts[0].user is None else _joined_users([part.user for part in parts if part.user is not None])
    lon, lat, t_utc = (np.concatenate([getattr(part, name) for part in parts]) for name in ("lon", "lat", "t_utc"))
    return Trajectories(offsets, lon, lat, t_utc, users)


def _joined_users(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """One array; of objects if the kinds differ, because numpy would turn the user 7 into the user "7"."""
    kinds = {part.dtype.kind for part in parts}
    return np.concatenate(parts if len(kinds) == 1 else [part.astype(object) for part in parts])


def batches(trajectories: Trajectories, size: int = 65_536) -> Iterator[Trajectories]:
    """The same trajectories in runs of at most `size`."""
    for start in range(0, len(trajectories), size):
        yield _run(trajectories, start, min(start + size, len(trajectories)))


def pieces(trajectories: Trajectories, points: int) -> Iterator[Trajectories]:
    """The same trajectories in runs of at most `points` points (one trajectory may have more); at least one run."""
    start = 0
    while True:
        room = np.searchsorted(trajectories.offsets, trajectories.offsets[start] + points, side="right") - 1
        stop = min(max(int(room), start + 1), len(trajectories))
        yield _run(trajectories, start, stop)
        if stop >= len(trajectories):
            return
        start = stop


def _run(trajectories: Trajectories, start: int, stop: int) -> Trajectories:
    first, last = trajectories.offsets[start], trajectories.offsets[stop]
    return Trajectories(
        trajectories.offsets[start : stop + 1] - first,
        trajectories.lon[first:last],
        trajectories.lat[first:last],
        trajectories.t_utc[first:last],
        None if trajectories.user is None else trajectories.user[start:stop],
    )

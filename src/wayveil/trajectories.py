"""Trajectories: the one noun of the data side."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Many trajectories as frozen columns.

    Trajectory i owns the points `offsets[i]:offsets[i + 1]`. Identifiers are not kept: a trajectory is its
    points, and a user, where there is one, is a label that only groups trajectories.
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
    """(n,) integer or string label of who made each trajectory, or None."""

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
            user = np.asarray(self.user).view()
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
        """A pandas frame with one row a point: traj_id, lat, lon, t and, where there are users, user_id.

        Privacy: as private as the trajectories.
        """
        from wayveil.formats.tables import table_of

        try:
            return table_of(self).to_pandas()
        except ImportError:
            raise InputError("pandas is not installed; `pip install pandas` brings it.") from None

    def __repr__(self) -> str:
        # Deliberately without numbers: a repr ends up in logs, and the exact count is private.
        return "Trajectories(" + ("with users" if self.user is not None else "without users") + ")"


EMPTY = Trajectories(np.zeros(1, np.int64), np.empty(0), np.empty(0), np.empty(0))


def from_labels(
    label: NDArray[np.generic],
    lon: NDArray[np.float64],
    lat: NDArray[np.float64],
    t_utc: NDArray[np.float64],
    user: NDArray[np.generic] | None = None,
) -> Trajectories:
    """Build trajectories from one row a point; `label` must be grouped (equal labels stand together).

    `user`, where given, has one value a point; a trajectory takes the user of its first point.
    """
    if len(label) == 0:
        return EMPTY
    starts = np.flatnonzero(np.r_[True, label[1:] != label[:-1]])
    return Trajectories(np.r_[starts, len(label)], lon, lat, t_utc, None if user is None else user[starts])


def select(trajectories: Trajectories, keep: NDArray[np.generic]) -> Trajectories:
    """The trajectories at the positions `keep` (indices or a boolean mask), in that order."""
    index = np.flatnonzero(keep) if keep.dtype == bool else np.asarray(keep, np.int64)
    if len(index) == 0:
        return (
            EMPTY
            if trajectories.user is None
            else Trajectories(EMPTY.offsets, EMPTY.lon, EMPTY.lat, EMPTY.t_utc, trajectories.user[:0])
        )
    counts = np.diff(trajectories.offsets)[index]
    offsets = np.r_[0, np.cumsum(counts)]
    points = np.arange(offsets[-1]) + np.repeat(trajectories.offsets[index] - offsets[:-1], counts)
    user = None if trajectories.user is None else trajectories.user[index]
    return Trajectories(offsets, trajectories.lon[points], trajectories.lat[points], trajectories.t_utc[points], user)


def concatenate(parts: list[Trajectories]) -> Trajectories:
    """All trajectories of `parts`, one after the other."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return EMPTY
    if len({part.user is None for part in parts}) > 1:
        raise InputError("Some parts have users and some have not.")
    shifts = np.cumsum([0] + [len(part.lon) for part in parts])
    offsets = np.concatenate([np.zeros(1, np.int64)] + [part.offsets[1:] + shift for part, shift in zip(parts, shifts)])
    users = None if parts[0].user is None else np.concatenate([part.user for part in parts])
    lon, lat, t_utc = (np.concatenate([getattr(part, name) for part in parts]) for name in ("lon", "lat", "t_utc"))
    return Trajectories(offsets, lon, lat, t_utc, users)


def batches(trajectories: Trajectories, size: int = 65_536) -> Iterator[Trajectories]:
    """The same trajectories in runs of at most `size`."""
    for start in range(0, len(trajectories), size):
        stop = min(start + size, len(trajectories))
        first, last = trajectories.offsets[start], trajectories.offsets[stop]
        yield Trajectories(
            trajectories.offsets[start : stop + 1] - first,
            trajectories.lon[first:last],
            trajectories.lat[first:last],
            trajectories.t_utc[first:last],
            None if trajectories.user is None else trajectories.user[start:stop],
        )

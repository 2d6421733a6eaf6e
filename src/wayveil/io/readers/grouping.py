"""Grouping of rows into trajectories. Every reader uses this module, and nothing else, to form trajectories.

The noise is scaled to one trajectory, counted once. So keys are compared and never subtracted (the difference of two
64-bit integers can overflow), and after grouping no key may occur in two runs: within a batch `assemble` refuses it,
and across the batches of a stream `KeyOrder` does.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.trajectories import EMPTY, Trajectories, select
from wayveil.errors import InputError
from wayveil.io.options import ReadOptions
from wayveil.io.readers.labels import Labels
from wayveil.io.readers.points import Points, usable

MAX_TRAJECTORY_POINTS = 20_000_000
"""A trajectory with more points contributes nothing: it would not fit into memory with the others."""


def assemble(points: Points, options: ReadOptions, origin: str) -> Trajectories:
    """Group rows into trajectories, sorted stably by (id, time); all rows of one key become one trajectory.

    The key is the trajectory id. In a measurement of users it is the user with the id: if a trajectory that two users
    share contributed nothing, removing one of the users would bring the trajectory of the other one back.

    Privacy: not private (trusted side only).
    """
    points = usable(points, options, origin)
    if not len(points):
        return EMPTY
    owner = points.user if options.measured_unit == "user" else None
    points = _sorted(points, owner is not None)
    owner = points.user if owner is not None else None
    begins = np.r_[True, ~_same_key(points.label, owner)]
    starts = np.flatnonzero(begins)
    _require_distinct_keys(points.label.code[starts], None if owner is None else owner.code[starts])
    sizes = np.diff(np.r_[starts, len(points)])
    keep = sizes <= MAX_TRAJECTORY_POINTS
    if not keep.all() and not options.leaves_out:
        raise InputError(too_many_points(origin))
    if points.user is not None and owner is None:
        shared = _shared(points.user, np.cumsum(begins) - 1, len(starts))
        if shared.any() and not options.leaves_out:
            raise InputError(
                f"Some trajectories of '{origin}' have rows of several users; make the trajectory ids unique across "
                'users, or leave these trajectories out with on_bad_rows="drop".'
            )
        keep &= ~shared
    user = None
    if points.user is not None and options.measured_unit != "trajectory":
        user = points.user.take(starts).values()
    whole = Trajectories(np.r_[starts, len(points)], points.lon, points.lat, points.t_utc, user)
    return whole if keep.all() else select(whole, keep)


def too_many_points(origin: str) -> str:
    """The error for a trajectory with too many points, for readers that refuse one."""
    return f"A trajectory in '{origin}' has more than {MAX_TRAJECTORY_POINTS:,} points; check traj_id=."


def _same_key(label: Labels, owner: Labels | None) -> NDArray[np.bool_]:
    """Whether each row, except the first, has the key of the previous row."""
    same = label.code[1:] == label.code[:-1]
    result: NDArray[np.bool_] = same if owner is None else same & (owner.code[1:] == owner.code[:-1])
    return result


def _sorted(points: Points, by_user: bool) -> Points:
    """The rows in the order of (id, user where it is part of the key, time), stably."""
    code, t_utc = points.label.code, points.t_utc
    owner = points.user if by_user else None
    falls = code[1:] < code[:-1]
    if owner is not None:
        falls |= (code[1:] == code[:-1]) & (owner.code[1:] < owner.code[:-1])
    falls |= _same_key(points.label, owner) & (t_utc[1:] < t_utc[:-1])
    if not falls.any():
        return points
    keys = (t_utc, code) if owner is None else (t_utc, owner.code, code)
    return points.take(np.lexsort(keys))


def _require_distinct_keys(code: NDArray[np.int64], owner: NDArray[np.int64] | None) -> None:
    """Raise an error if a key occurs in two runs: the keys of sorted rows strictly increase from run to run."""
    rises = code[1:] > code[:-1]
    if owner is not None:
        rises |= (code[1:] == code[:-1]) & (owner[1:] > owner[:-1])
    if not rises.all():
        raise InputError(
            "The rows of one trajectory are not grouped together, so it would be counted twice; nothing was measured."
        )


def _shared(user: Labels, run: NDArray[np.int64], runs: int) -> NDArray[np.bool_]:
    """Which runs have several users; rows without a user are ignored."""
    code = user.code
    if user.valid is not None:
        code, run = code[user.valid], run[user.valid]
    differs = (code[1:] != code[:-1]) & (run[1:] == run[:-1])
    shared = np.zeros(runs, bool)
    shared[run[1:][differs]] = True
    return shared


class KeyOrder:
    """Whether ids strictly increase, or strictly decrease, from one trajectory to the next, over all batches.

    If they do, no id can occur again in a later batch.
    """

    def __init__(self) -> None:
        self.last: int | str | None = None
        self.direction = 0

    def starts(self, labels: Labels) -> NDArray[np.int64] | None:
        """Rows at which a new trajectory begins, or None if one came out of order. All labels must be valid."""
        code = labels.code
        if len(code) == 0:
            return np.zeros(0, np.int64)
        rises, falls = code[1:] > code[:-1], code[1:] < code[:-1]
        first = labels.value(0)
        if self.last is not None and isinstance(self.last, str) != isinstance(first, str):
            return None
        above = self.last is not None and first > self.last  # type: ignore[operator]
        below = self.last is not None and first < self.last  # type: ignore[operator]
        up, down = bool(above or rises.any()), bool(below or falls.any())
        if (up and down) or (up and self.direction < 0) or (down and self.direction > 0):
            return None
        self.direction = 1 if up else -1 if down else self.direction
        begins = np.r_[self.last is None or above or below, rises | falls]
        self.last = labels.value(-1)
        return np.flatnonzero(begins)

"""Paths: trajectories in the scope's metres, with their arc lengths, for comparison."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import step_lengths
from wayveil.core.prepare import inside_scope, offsets_of_kept
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.core.week import DAY_S
from wayveil.errors import InputError

PATH_STEP_M = 50.0
"""Metres between the points at which paths are compared: half the finest cell."""

_FEW = 0.05
"""Data has no routes if at most this share of its trajectories has points between the ends."""


@dataclass(frozen=True, eq=False)
class Paths(ragged.Rows):
    """Trajectories as polylines in metres east and north of the scope's south-west corner.

    Privacy: not private (trusted side only).
    """

    offsets: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    t_utc: NDArray[np.float64]
    start_week_s: NDArray[np.float64]
    """(n,) seconds since Monday's local midnight of each trajectory's first point."""
    width_m: float
    height_m: float
    sample_size: int = 0
    """Size of each group except the last (see `groups`); 0 = groups of equal size."""

    @property
    def has_routes(self) -> bool:
        """Whether more than a few trajectories have points between their ends."""
        return bool((np.diff(self.offsets) > 2).mean() > _FEW)

    @property
    def start_clock_s(self) -> NDArray[np.float64]:
        """(n,) seconds since local midnight of each trajectory's first point."""
        return self.start_week_s % DAY_S

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """Trajectory of each point."""
        return ragged.owners(np.diff(self.offsets))

    @cached_property
    def steps_m(self) -> NDArray[np.float64]:
        """(points,) distance to the next point of the same trajectory; 0 at a last point."""
        return np.roll(step_lengths(self.offsets, self.x_m, self.y_m), -1)

    @cached_property
    def length_m(self) -> NDArray[np.float64]:
        """(n,) length of each polyline."""
        return ragged.sums(self.steps_m, self.offsets)

    @cached_property
    def arc_m(self) -> NDArray[np.float64]:
        """(points,) arc length along all polylines, placed end to end with a metre between them: one sorted axis."""
        steps = self.steps_m.copy()
        steps[self.last] = 1.0
        arc_m: NDArray[np.float64] = np.r_[0.0, np.cumsum(steps[:-1])]
        return arc_m

    @cached_property
    def every_50_m(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """x, y and trajectory of the points at 0, 50, 100, … metres along each polyline."""
        counts = np.floor((self.length_m + 1e-9) / PATH_STEP_M).astype(np.int64) + 1
        owner = ragged.owners(counts)
        # Position on the common axis: the trajectory's start, plus 50 m times the rank within the trajectory.
        begin = self.arc_m[self.first] - PATH_STEP_M * ragged.offsets_of(counts)[:-1]
        at = np.arange(len(owner)) * PATH_STEP_M + begin[owner]
        np.minimum(at, self.arc_m[self.last][owner], out=at)
        return np.interp(at, self.arc_m, self.x_m), np.interp(at, self.arc_m, self.y_m), owner


def project(trajectories: Trajectories, scope: Scope) -> Paths:
    """Trajectories in metres of `scope`; nothing is clipped.

    Privacy: not private (trusted side only).
    """
    if len(trajectories) == 0:
        raise InputError("There is no trajectory to evaluate; check the file and the scope.")
    x_m, y_m = scope.to_metres(trajectories.lon, trajectories.lat)
    week_s = scope.local_seconds(trajectories.t_utc[trajectories.offsets[:-1]])
    return Paths(trajectories.offsets, x_m, y_m, trajectories.t_utc, week_s, scope.width_m, scope.height_m)


def as_measured(paths: Paths, scope: Scope) -> Paths:
    """The paths without the points outside the scope's box and days, which `measure` ignores too.

    Otherwise a few positions at (0, 0) would widen all bins of metrics that extend to the longest trip.
    """
    inside = inside_scope(paths.x_m, paths.y_m, paths.t_utc, scope)
    if not inside.any():
        raise InputError("No point of the real data lies inside the scope's box and days; check them.")
    if inside.all():
        return paths
    offsets = offsets_of_kept(paths.offsets, inside)
    t_utc = paths.t_utc[inside]
    week_s = scope.local_seconds(t_utc[offsets[:-1]])
    return Paths(offsets, paths.x_m[inside], paths.y_m[inside], t_utc, week_s, paths.width_m, paths.height_m)


def check_in_scope(paths: Paths, what: str) -> None:
    """Raise InputError if no point lies inside the scope: every score would be meaningless."""
    inside = (paths.x_m >= 0) & (paths.x_m <= paths.width_m) & (paths.y_m >= 0) & (paths.y_m <= paths.height_m)
    if not inside.any():
        raise InputError(f"No point of {what} lies inside the scope; check its box and the column names.")


def along(
    paths: Paths, which: NDArray[np.int64], distance_m: NDArray[np.float64], value: NDArray[np.float64]
) -> NDArray[np.float64]:
    """`value` (one per point) at `distance_m` from the start of each trajectory in `which`, by linear interpolation."""
    begin = paths.arc_m[paths.first[which]]
    at = np.minimum(begin + distance_m, paths.arc_m[paths.last[which]])
    return np.interp(at, paths.arc_m, value)


def waypoints(paths: Paths, which: NDArray[np.int64], count: int, value: NDArray[np.float64]) -> NDArray[np.float64]:
    """(len(which), count) `value` at `count` points at equal arc length, both ends included."""
    share = np.linspace(0.0, 1.0, count)
    distance_m = paths.length_m[which][:, None] * share
    return along(paths, np.repeat(which, count), distance_m.ravel(), value).reshape(len(which), count)


def groups(count: int, number: int, size: int = 0) -> NDArray[np.int64]:
    """(count,) a fixed pseudo-random label in 0..number-1 for each trajectory, in groups of equal size.

    With `size` each group has that many trajectories, and the last group takes the rest.
    """
    order = np.random.default_rng(20_181_018).permutation(count)
    return order % number if size == 0 else np.minimum(order // size, number - 1)

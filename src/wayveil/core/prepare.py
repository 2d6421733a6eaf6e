"""From raw trajectories to the input of the queries: inside the scope, within the caps, in metres.

Each trajectory is prepared on its own, so removing one does not change the others. That is half of every sensitivity
proof; the other half is the bound on the norm of what one unit adds.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import Polylines, lengths
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories

LATEST_S = 1e11
"""The year 5138; times with a larger absolute value are invalid."""


@dataclass(frozen=True, eq=False)
class Prepared(ragged.Rows):
    """Trajectories in metres from the scope's south-west corner, with quantities that several queries share.

    Privacy: not private (trusted side only).
    """

    offsets: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    t_utc: NDArray[np.float64]
    points: NDArray[np.int64]
    """(n,) number of points of each trajectory."""
    duration_s: NDArray[np.float64]
    """(n,) last time minus first, at most the scope's cap, never negative."""
    length_cap_m: float
    """The scope's cap on the length."""

    @cached_property
    def length_m(self) -> NDArray[np.float64]:
        """(n,) polyline length, at most the scope's cap."""
        return np.minimum(lengths(Polylines(self.offsets, self.x_m, self.y_m)), self.length_cap_m)

    @cached_property
    def gaps(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(trajectory, seconds) of every gap between consecutive points of a trajectory, in order."""
        later = np.ones(len(self.t_utc), bool)
        later[self.first] = False
        row = ragged.owners(np.maximum(self.points - 1, 0))
        return row, np.diff(self.t_utc, prepend=0.0)[later]

    @cached_property
    def median_interval_s(self) -> NDArray[np.float64]:
        """(n,) median gap between points (the lower middle one for an even number); 0 for a single point."""
        row, gap_s = self.gaps
        count = np.maximum(self.points - 1, 0)
        some = count > 0
        middle = (ragged.offsets_of(count)[:-1] + (count - 1) // 2)[some]
        median_interval_s = np.zeros(len(self))
        median_interval_s[some] = gap_s[np.lexsort((gap_s, row))][middle]
        return median_interval_s


def inside_scope(
    x_m: NDArray[np.float64], y_m: NDArray[np.float64], t_utc: NDArray[np.float64], scope: Scope
) -> NDArray[np.bool_]:
    """Which points lie in the scope's box, days and hours; NaN coordinates and times beyond `LATEST_S` do not."""
    inside = (x_m >= 0) & (x_m <= scope.width_m) & (y_m >= 0) & (y_m <= scope.height_m) & (np.abs(t_utc) <= LATEST_S)
    window = scope.time_window()
    if window is not None:
        inside &= (t_utc >= window[0]) & (t_utc < window[1])
    if (hours := scope.hours_window_s) is not None:
        inside &= scope.seconds_into_hours(np.where(np.abs(t_utc) <= LATEST_S, t_utc, 0.0)) < hours[1]
    return np.asarray(inside)


def offsets_of_kept(offsets: NDArray[np.int64], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Offsets of the kept points of each trajectory; a trajectory without kept points is dropped."""
    running = ragged.offsets_of(kept)[offsets]
    return np.asarray(running[np.r_[True, np.diff(running) > 0]])


def prepare(trajectories: Trajectories, scope: Scope) -> Prepared:
    """Clip to the scope's box, days and hours, thin to its cap of points, project to metres.

    Points outside are left out; a trajectory with no point inside contributes nothing to any query.

    Privacy: not private (trusted side only).
    """
    with np.errstate(invalid="ignore"):
        x_m, y_m = scope.to_metres(trajectories.lon, trajectories.lat)
    t_utc = trajectories.t_utc
    inside = inside_scope(x_m, y_m, t_utc, scope)
    offsets = trajectories.offsets
    if not inside.all():
        x_m, y_m, t_utc = x_m[inside], y_m[inside], t_utc[inside]
        offsets = offsets_of_kept(offsets, inside)
    if (np.diff(offsets) > scope.caps.points).any():
        offsets, keep = _thin(offsets, scope.caps.points)
        x_m, y_m, t_utc = x_m[keep], y_m[keep], t_utc[keep]
    duration_s = np.clip(t_utc[offsets[1:] - 1] - t_utc[offsets[:-1]], 0.0, scope.caps.duration_h * 3600)
    return Prepared(offsets, x_m, y_m, t_utc, np.diff(offsets), duration_s, scope.caps.length_km * 1000)


def _thin(offsets: NDArray[np.int64], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of at most `most` evenly spaced points of each trajectory, first and last included."""
    counts = np.diff(offsets)
    kept = np.minimum(counts, most)
    stride = np.repeat((counts - 1) / np.maximum(kept - 1, 1), kept)
    place = np.rint(ragged.ranks(kept) * stride).astype(np.int64)
    return ragged.offsets_of(kept), np.repeat(offsets[:-1], kept) + place

"""Times that a vehicle could keep: whole seconds, strictly increasing, no step faster than allowed.

Privacy: free (post-processing).
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wayveil.polylines import step_lengths
from wayveil.rules.motion import Motion, ground_lengths, motion_from_metres
from wayveil.rules.pace import MaxDuration, MinSpeed
from wayveil.rules.rule import Rule
from wayveil.rules.speed import SpeedLimit
from wayveil.scope import Scope
from wayveil.synthesis.levelling import levelled

ELLIPSOID = 1.006
"""A way is up to .56 % longer or shorter on the ellipsoid than on the sphere that metres are taken on."""
_ROUND_OFF_M = 1e-6
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class Tracks:
    """Points in metres and Unix seconds; track i owns `offsets[i]:offsets[i + 1]`."""

    offsets: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    t_utc: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def owner(self) -> NDArray[np.int64]:
        """Track of each point."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def ends(self) -> NDArray[np.bool_]:
        """Whether each point is the first or the last of its track."""
        mask = np.zeros(len(self.x_m), bool)
        mask[self.offsets[:-1]] = True
        mask[self.offsets[1:] - 1] = True
        return mask


def points_of(offsets: NDArray[np.int64], index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of all points of the tracks at `index`, in that order."""
    counts = np.diff(offsets)[index]
    begin = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(offsets[index] - begin, counts)


def take_tracks(tracks: Tracks, index: NDArray[np.int64]) -> Tracks:
    """The tracks at the given positions."""
    points = points_of(tracks.offsets, index)
    offsets = np.r_[0, np.cumsum(np.diff(tracks.offsets)[index])]
    return Tracks(offsets, tracks.x_m[points], tracks.y_m[points], tracks.t_utc[points])


def put_tracks(tracks: Tracks, index: NDArray[np.int64], part: Tracks) -> Tracks:
    """The same tracks with those at `index` replaced; numbers of points stay."""
    points = points_of(tracks.offsets, index)
    x, y, t = tracks.x_m.copy(), tracks.y_m.copy(), tracks.t_utc.copy()
    x[points], y[points], t[points] = part.x_m, part.y_m, part.t_utc
    return Tracks(tracks.offsets, x, y, t)


def as_written(tracks: Tracks, scope: Scope) -> Tracks:
    """What a reader of the written file gets: degrees rounded to 1e-7, times to whole seconds."""
    x, y = np.empty(len(tracks.x_m)), np.empty(len(tracks.x_m))
    for first in range(0, len(x), _BLOCK):
        part = slice(first, first + _BLOCK)
        x[part], y[part] = scope.to_metres(*written_degrees(tracks.x_m[part], tracks.y_m[part], scope))
    return Tracks(tracks.offsets, x, y, np.rint(tracks.t_utc))


def written_degrees(
    x_m: NDArray[np.float64], y_m: NDArray[np.float64], scope: Scope
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(lon, lat) as a file holds them: rounded to 1e-7 degrees, about a centimetre."""
    lon, lat = np.empty(len(x_m)), np.empty(len(x_m))
    for first in range(0, len(lon), _BLOCK):
        part = slice(first, first + _BLOCK)
        for column, degrees in zip((lon, lat), scope.to_degrees(x_m[part], y_m[part])):
            np.round(degrees, 7, out=column[part])
    return lon, lat


def motion_of_tracks(tracks: Tracks, scope: Scope) -> Motion:
    """The tracks as rules look at them."""
    return motion_from_metres(tracks.x_m, tracks.y_m, tracks.t_utc, tracks.offsets, scope)


def physical_times(
    offsets: NDArray[np.int64],
    x_m: NDArray[np.float64],
    y_m: NDArray[np.float64],
    t_s: NDArray[np.float64],
    fastest_mps: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """t' with whole Δt' >= max(1 s, length / fastest), the same start, and the same duration where that is possible.

    The seconds that fast steps lack are taken from those that can spare most, so that most gaps stay what they are;
    where all together cannot spare enough, the duration grows by what is missing.

    Parameters
    ----------
    fastest_mps
        One speed, or one for each point: the limit of the step that ends there.

    Privacy: free (post-processing).
    """
    if len(x_m) == 0:
        return np.zeros(0)
    offsets = np.asarray(offsets, np.int64)
    result = np.empty(len(x_m))
    # Blocks of whole trajectories that fit the processor's cache take a third of the time.
    cuts = np.unique(np.searchsorted(offsets, np.arange(0, len(x_m), _BLOCK)))
    cuts = np.r_[cuts[cuts < len(offsets) - 1], len(offsets) - 1]
    for first, last in pairwise(cuts.tolist()):
        part = slice(offsets[first], offsets[last])
        own = offsets[first : last + 1] - offsets[first]
        fastest = fastest_mps[part] if isinstance(fastest_mps, np.ndarray) and fastest_mps.ndim else fastest_mps
        need = _seconds_needed(own, step_lengths(own, x_m[part], y_m[part]), fastest)
        whole = np.rint(t_s[part])
        duration = np.maximum(whole[own[1:] - 1] - whole[own[:-1]], 0.0)
        result[part] = _stretched(own, need, whole, duration)
    return result


def legal_times(tracks: Tracks, rules: Iterable[Rule], scope: Scope) -> NDArray[np.float64]:
    """Times under the scope's fastest speed and every rule about speed and duration; exact, without descent.

    A limit for a place holds where a step's middle lies there, so new times change no step's limit. Where limits and
    durations contradict each other, the speed is kept and the duration is too long.

    Privacy: free (post-processing).
    """
    if len(tracks.x_m) == 0:
        return np.zeros(0)
    rules = tuple(rules)
    motion = motion_of_tracks(tracks, scope)
    length = np.r_[0.0, ground_lengths(motion, np)[0]]
    fastest = np.full(len(length), scope.caps.speed_kmh / 3.6 / ELLIPSOID)
    for rule in rules:
        if isinstance(rule, SpeedLimit):
            # A limit of zero is broken by every step that the rule is about.
            concerned = dataclasses.replace(rule, limit_mps=0.0).violations(motion)
            fastest[concerned] = np.minimum(fastest[concerned], rule.limit_mps)
    need = _seconds_needed(tracks.offsets, length, fastest)
    whole = np.rint(tracks.t_utc)
    begin, end = tracks.offsets[:-1], tracks.offsets[1:] - 1
    duration = np.maximum(whole[end] - whole[begin], 0.0)
    total_m = np.add.reduceat(length, begin)
    for rule in rules:
        if isinstance(rule, MaxDuration):
            duration = np.minimum(duration, np.floor(rule.limit_s))
        elif isinstance(rule, MinSpeed):
            duration = np.minimum(duration, np.floor((total_m + _ROUND_OFF_M) / rule.limit_mps))
    return _within_window(tracks.offsets, _stretched(tracks.offsets, need, whole, duration), whole, scope)


def _seconds_needed(
    offsets: NDArray[np.int64], length_m: NDArray[np.float64], fastest_mps: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    need = length_m - _ROUND_OFF_M
    need /= fastest_mps
    np.ceil(need, out=need)
    np.maximum(need, 1.0, out=need)
    need[offsets[:-1]] = 0.0
    return need


def _stretched(
    offsets: NDArray[np.int64], need_s: NDArray[np.float64], t_s: NDArray[np.float64], duration_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """t with Δt = need + share of what a step can spare, so that the whole lasts `duration`, or Σ need if longer."""
    begin, counts = offsets[:-1], np.diff(offsets)
    spare = np.zeros(len(t_s))
    np.subtract(t_s[1:], t_s[:-1], out=spare[1:])
    spare -= need_s
    np.maximum(spare, 0.0, out=spare)
    spare[begin] = 0.0
    left = np.maximum(duration_s - np.add.reduceat(need_s, begin), 0.0)
    spare = levelled(offsets, spare, left)
    share = left / np.maximum(np.add.reduceat(spare, begin), 1e-9)  # one, but for what the level is off
    running = np.cumsum(spare)
    running -= np.repeat(running[begin], counts)
    running *= np.repeat(share, counts)
    # Rounding the running sum keeps it monotone and its last value, a whole number, as it is.
    np.rint(running, out=running)
    needed = np.cumsum(need_s)
    running += needed
    running += np.repeat(t_s[begin] - needed[begin], counts)
    return running


def _within_window(
    offsets: NDArray[np.int64], t_utc: NDArray[np.float64], before: NDArray[np.float64], scope: Scope
) -> NDArray[np.float64]:
    """Leave earlier where the longer duration would end after the scope's last day and did not before."""
    window = scope.time_window()
    if window is None:
        return t_utc
    last = np.floor(window[1]) - 1
    late = np.where(before[offsets[1:] - 1] <= last, t_utc[offsets[1:] - 1] - last, 0.0)
    room = np.maximum(t_utc[offsets[:-1]] - np.ceil(window[0]), 0.0)
    return t_utc - np.repeat(np.minimum(np.maximum(late, 0.0), room), np.diff(offsets))

"""Caps of the scope: no trajectory is longer, takes longer, is faster or ends later than the scope allows.

Privacy: free (post-processing; caps are public).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import step_lengths
from wayveil.core.scope import Scope
from wayveil.rules.tolerances import ELLIPSOID_RATIO, ROUND_OFF_M
from wayveil.synthesis.place.track_columns import Tracks
from wayveil.synthesis.trips.departures import late_s


def ground_stretch(scope: Scope) -> float:
    """Return the largest ratio of a length on the ground to the same length in the scope's metres, within the box."""
    equator_m = -scope.south * scope.height_m / (scope.north - scope.south)
    widest = np.array([0.0, scope.height_m, np.clip(equator_m, 0.0, scope.height_m)])
    return ELLIPSOID_RATIO * max(float(scope.ground(widest).max()), 1.0)


def fastest_mps(scope: Scope) -> float:
    """Return the scope's fastest speed, in the scope's own metres per second."""
    return scope.caps.speed_kmh / 3.6 / ground_stretch(scope)


def within_caps(tracks: Tracks, scope: Scope) -> Tracks:
    """Return the tracks without the points beyond the scope's greatest length or duration.

    Each track keeps at least two points: if its first step alone exceeds a cap, the step is shortened.
    """
    if len(tracks) == 0:
        return tracks
    begin, counts = tracks.offsets[:-1], np.diff(tracks.offsets)
    most_m = scope.caps.length_km * 1000 / ground_stretch(scope)
    most_s = np.floor(scope.caps.duration_h * 3600)
    step_m = step_lengths(tracks.offsets, tracks.x_m, tracks.y_m)
    lasts_s = tracks.t_utc[tracks.offsets[1:] - 1] - tracks.t_utc[begin]
    if not ((ragged.sums(step_m, tracks.offsets) > most_m) | (lasts_s > most_s)).any():
        return tracks  # nearly always; saves the memory of the arrays below
    # Length and time only grow along a track, so that the points beyond a cap are at its end.
    over = _since_start(step_m.cumsum(), begin, counts) / most_m
    np.maximum(over, _since_start(tracks.t_utc, begin, counts) / most_s, out=over)
    beyond = over > 1.0
    x_m, y_m, t_utc = tracks.x_m.copy(), tracks.y_m.copy(), tracks.t_utc.copy()
    second = (begin + 1)[counts > 1]
    for k in second[beyond[second]]:
        gap_s = t_utc[k] - t_utc[k - 1]
        share = max(np.floor(gap_s / over[k]), 1.0) / gap_s  # whole seconds, at the same speed
        x_m[k], y_m[k], t_utc[k] = (at[k - 1] + share * (at[k] - at[k - 1]) for at in (x_m, y_m, t_utc))
    beyond[second] = False
    kept = ~beyond
    offsets = ragged.offsets_of(ragged.sums(kept, tracks.offsets))
    return Tracks(offsets, x_m[kept], y_m[kept], t_utc[kept])


def beyond_caps(tracks: Tracks, scope: Scope) -> NDArray[np.bool_]:
    """Which tracks exceed a cap of the scope, or end after the scope's last day or daily hours."""
    if len(tracks) == 0:
        return np.zeros(0, bool)
    first_s, last_s = tracks.t_utc[tracks.offsets[:-1]], tracks.t_utc[tracks.offsets[1:] - 1]
    step_m = step_lengths(tracks.offsets, tracks.x_m, tracks.y_m)
    gap_s = np.diff(tracks.t_utc, prepend=tracks.t_utc[0])
    too_fast = step_m - ROUND_OFF_M > np.maximum(gap_s, 0.0) * fastest_mps(scope)
    window = scope.time_window()
    late = late_s(first_s, last_s, scope) > 0
    if window is not None:
        late |= last_s >= window[1]
    beyond: NDArray[np.bool_] = (
        np.logical_or.reduceat(too_fast, tracks.offsets[:-1])
        | (ragged.sums(step_m, tracks.offsets) > scope.caps.length_km * 1000 / ground_stretch(scope))
        | (last_s - first_s > scope.caps.duration_h * 3600)
        | late
    )
    return beyond


def _since_start(
    running: NDArray[np.float64], begin: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    return running - np.repeat(running[begin], counts)

"""Times under all rules about speed and duration; exact, without gradient descent.

Privacy: free (post-processing).
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.scope import Scope
from wayveil.rules.motion import ground_lengths
from wayveil.rules.rule import Rule
from wayveil.rules.tolerances import ELLIPSOID_RATIO, ROUND_OFF_M
from wayveil.synthesis.place.physics import stretched_times, whole_seconds
from wayveil.synthesis.place.track_columns import Tracks, motion_of_tracks
from wayveil.synthesis.trips.departures import late_s


def legal_times(tracks: Tracks, rules: Iterable[Rule], scope: Scope) -> NDArray[np.float64]:
    """Return times under the scope's fastest speed and the rules' least step times and longest durations.

    These limits depend on positions only, so new times do not change them. If least step times and the longest duration
    contradict each other, the least step times are kept and the duration remains too long.

    Privacy: free (post-processing).
    """
    if len(tracks.x_m) == 0:
        return np.zeros(0)
    rules = tuple(rules)
    motion = motion_of_tracks(tracks, scope)
    length_m = np.r_[0.0, ground_lengths(motion, np)[0]]
    need_s = (length_m - ROUND_OFF_M) / (scope.caps.speed_kmh / 3.6 / ELLIPSOID_RATIO)
    for rule in rules:
        least_s = rule.least_step_s(motion)
        if np.ndim(least_s) > 0 or least_s > 0:
            np.maximum(need_s, least_s, out=need_s)
    need_s = whole_seconds(tracks.offsets, need_s)
    t_utc = np.rint(tracks.t_utc)
    begin, end = tracks.offsets[:-1], tracks.offsets[1:] - 1
    duration_s = np.maximum(t_utc[end] - t_utc[begin], 0.0)
    total_m = ragged.sums(length_m, tracks.offsets)
    for rule in rules:
        duration_s = np.minimum(duration_s, np.floor(rule.longest_duration_s(total_m)))
    return _within_window(tracks.offsets, stretched_times(tracks.offsets, need_s, t_utc, duration_s), t_utc, scope)


def _within_window(
    offsets: NDArray[np.int64], t_utc: NDArray[np.float64], before: NDArray[np.float64], scope: Scope
) -> NDArray[np.float64]:
    """Return times with an earlier departure for trips that would end after the scope's hours or its last day.

    The last day does not move a trip that ended after it even before its times were changed.
    """
    window, begin, end = scope.time_window(), offsets[:-1], offsets[1:] - 1
    if window is not None:
        last = np.floor(window[1]) - 1
        late = np.where(before[end] <= last, t_utc[end] - last, 0.0)
        room = np.maximum(t_utc[begin] - np.ceil(window[0]), 0.0)
        t_utc = t_utc - np.repeat(np.minimum(np.maximum(late, 0.0), room), np.diff(offsets))
    if scope.hours_window_s is not None:
        t_utc = t_utc - np.repeat(np.ceil(late_s(t_utc[begin], t_utc[end], scope)), np.diff(offsets))
    return t_utc

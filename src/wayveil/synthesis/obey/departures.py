"""New departures for trips that pass an area at closed hours; their positions do not change.

First, departures are exchanged with trips that pass no area with hours, so that each hour and weekday keeps its number
of departures. A trip without a partner is shifted to any hour at which it obeys the rules.

Privacy: free (post-processing).
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wayveil.core.polylines import Polylines
from wayveil.core.scope import Scope
from wayveil.core.week import DAY_S, WEEK_S
from wayveil.rules.hours import Hours
from wayveil.rules.rule import Rule
from wayveil.synthesis.obey.settings import DEPARTURES
from wayveil.synthesis.place.track_columns import Tracks


def exchanged_departures(
    tracks: Tracks, rules: Iterable[Rule], scope: Scope, random: np.random.Generator
) -> NDArray[np.float64]:
    """Return times with departures exchanged between tracks at closed hours and tracks that pass no area with hours.

    Partners are drawn at random, in several rounds. Both must stay within the days of the scope.
    """
    inside = [(hours, points) for _, hours, points in _timed(tracks, rules)]
    if not inside:
        return tracks.t_utc
    closed = _closed(tracks, inside, np.zeros((len(tracks), 1)), scope)[:, 0]
    waiting = np.flatnonzero(closed)
    owner = tracks.owner
    passing = np.unique(np.concatenate([owner[points] for _, points in inside]))
    others = np.setdiff1d(np.arange(len(tracks)), passing)
    start, shift = np.rint(tracks.t_utc[tracks.offsets[:-1]]), np.zeros((len(tracks), 1))
    for _ in range(DEPARTURES.exchange_rounds):
        number = min(len(waiting), len(others))
        if number == 0:
            break
        one, other = random.permutation(waiting)[:number], random.permutation(others)[:number]
        tried = np.zeros_like(shift)
        tried[one, 0] = start[other] - start[one]
        legal = ~_closed(tracks, inside, tried, scope, one)[one, 0]
        legal &= ~_outside_window(tracks, one, tried[one], scope)[:, 0]
        legal &= ~_outside_window(tracks, other, -tried[one], scope)[:, 0]
        shift[one[legal]] = tried[one[legal]]
        shift[other[legal]] = -tried[one[legal]]
        waiting, others = np.setdiff1d(waiting, one[legal]), np.setdiff1d(others, other[legal])
    return tracks.t_utc + np.repeat(shift[:, 0], np.diff(tracks.offsets))


def open_departures(
    tracks: Tracks,
    rules: Iterable[Rule],
    scope: Scope,
    pool_utc: NDArray[np.float64],
    random: np.random.Generator,
    deeper_than_m: float = 0.0,
) -> NDArray[np.float64]:
    """Return times with each track shifted as a whole to a departure at which it passes no area at closed hours.

    Tried in order: up to 20 minutes earlier or later; the hours of other departures on the same day; other
    departures; every half hour of the week. So the open hours keep the distribution of departures. A track for which
    none of them is legal keeps its times.

    Parameters
    ----------
    pool_utc
        Departures to draw from: those of all synthetic trajectories.
    deeper_than_m
        Tracks that are inside a closed area by less than this keep their times: moving points is the smaller change.

    Privacy: free (post-processing).
    """
    begin = tracks.offsets[:-1]
    inside = [(hours, points) for _, hours, points in _timed(tracks, rules)]
    if not inside or len(pool_utc) == 0:
        return tracks.t_utc
    closed = _closed(tracks, inside, np.zeros((len(tracks), 1)), scope)[:, 0]
    if deeper_than_m > 0:
        closed &= _deepest_m(tracks, rules, scope) > deeper_than_m
    which = np.flatnonzero(closed)
    if len(which) == 0:
        return tracks.t_utc
    shift = np.zeros(len(tracks))
    # Chunks bound the memory: points inside an area × shifts tried.
    for chunk in np.array_split(which, -(-len(which) // DEPARTURES.tracks)):
        tried = _shifts(tracks.t_utc[begin[chunk]], scope, pool_utc, random)
        part = np.zeros((len(tracks), 1))
        good = ~_outside_window(tracks, chunk, tried, scope)
        for column in range(0, tried.shape[1], DEPARTURES.columns):
            left = part[chunk, 0] == 0
            if not left.any():
                break
            some = tried[:, column : column + DEPARTURES.columns]
            full = np.zeros((len(tracks), some.shape[1]))
            full[chunk] = some
            legal = ~_closed(tracks, inside, full, scope, chunk)[chunk] & good[:, column : column + DEPARTURES.columns]
            found = left & legal.any(axis=1)
            part[chunk[found], 0] = some[found, legal[found].argmax(axis=1)]
        shift += part[:, 0]
    return tracks.t_utc + np.repeat(shift, np.diff(tracks.offsets))


def _timed(tracks: Tracks, rules: Iterable[Rule]) -> list[tuple[Rule, Hours, NDArray[np.int64]]]:
    """Return each rule with hours, its hours, and the points that break it during these hours."""
    lines = Polylines(tracks.offsets, tracks.x_m, tracks.y_m)
    found: list[tuple[Rule, Hours, NDArray[np.int64]]] = []
    for rule in rules:
        hours = rule.closed_hours()
        if hours is not None:
            points = np.flatnonzero(rule.timed_points(lines))
            if len(points):
                found.append((rule, hours, points))
    return found


def _closed(
    tracks: Tracks,
    inside: list[tuple[Hours, NDArray[np.int64]]],
    shift_s: NDArray[np.float64],
    scope: Scope,
    only: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """Return (tracks, shifts): whether a point breaks a rule with hours after the shift."""
    result = np.zeros(shift_s.shape, bool)
    owner = tracks.owner
    chosen = np.ones(len(tracks), bool)
    if only is not None:
        chosen[:] = False
        chosen[only] = True
    for hours, points in inside:
        points = points[chosen[owner[points]]]
        size = max(1, DEPARTURES.block // shift_s.shape[1])
        for start in range(0, len(points), size):
            part = points[start : start + size]
            at = tracks.t_utc[part, None] + shift_s[owner[part]]
            week_s = scope.local_seconds(at.ravel())
            row, column = np.nonzero((hours.depth_s(week_s, np) > 0).reshape(at.shape))
            result[owner[part[row]], column] = True
    return result


def _deepest_m(tracks: Tracks, rules: Iterable[Rule], scope: Scope) -> NDArray[np.float64]:
    """Return how deep inside a closed area each track is, in metres; infinite for a rule that has no area."""
    deepest = np.zeros(len(tracks))
    owner = tracks.owner
    for rule, hours, points in _timed(tracks, rules):
        week_s = scope.local_seconds(tracks.t_utc[points])
        points = points[hours.depth_s(week_s, np) > 0]
        area = rule.closed_area()
        depth_m = np.inf if area is None else area.depth_m(tracks.x_m[points], tracks.y_m[points])
        np.maximum.at(deepest, owner[points], depth_m)
    return deepest


def _shifts(
    start_utc: NDArray[np.float64], scope: Scope, pool_utc: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float64]:
    """Return (tracks, shifts) in seconds, the smallest changes first."""
    near_minutes, draws, grid_s = DEPARTURES.near_minutes, DEPARTURES.draws, DEPARTURES.grid_s
    minutes = np.repeat(np.arange(1, near_minutes + 1), 2) * np.tile([60.0, -60.0], near_minutes)
    near = np.broadcast_to(minutes, (len(start_utc), len(minutes)))
    drawn = pool_utc[random.integers(0, len(pool_utc), (len(start_utc), 2 * draws))]
    same_day, any_day = np.rint(drawn[:, :draws]), np.rint(drawn[:, draws:])
    clock = scope.local_seconds(same_day.ravel()).reshape(same_day.shape) % DAY_S
    same_day = clock - (scope.local_seconds(start_utc) % DAY_S)[:, None]
    any_day = any_day - start_utc[:, None]
    steps = np.arange(1, int(WEEK_S / 2 / grid_s) + 1)
    whole_week = np.repeat(steps, 2) * np.tile([grid_s, -grid_s], len(steps))
    far = np.broadcast_to(whole_week, (len(start_utc), len(whole_week)))
    result: NDArray[np.float64] = np.rint(np.hstack([near, same_day, any_day, far]))
    return result


def _outside_window(
    tracks: Tracks, which: NDArray[np.int64], shift_s: NDArray[np.float64], scope: Scope
) -> NDArray[np.bool_]:
    """Return which shifts lead out of the days or hours of the scope; a shift of zero counts as one of them."""
    outside: NDArray[np.bool_] = np.equal(shift_s, 0)
    first = tracks.t_utc[tracks.offsets[which]][:, None] + shift_s
    last = tracks.t_utc[tracks.offsets[which + 1] - 1][:, None] + shift_s
    window, hours = scope.time_window(), scope.hours_window_s
    if window is not None:
        outside = outside | (first < window[0]) | (last > window[1] - 1)
    if hours is not None:
        begun = scope.seconds_into_hours(first.ravel()).reshape(first.shape)
        outside = outside | (begun + (last - first) > hours[1] - 1)
    return outside

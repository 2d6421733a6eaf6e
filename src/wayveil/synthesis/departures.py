"""Another departure where an area is closed at this hour: the places of a trajectory stay exactly as they are.

First departures are traded with tracks that pass no such area: the hours and weekdays of all keep their numbers. Whom
nobody trades with departs at any hour that is open.

Privacy: free (post-processing).
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wayveil.rules.closed import Closed
from wayveil.rules.hours import Hours
from wayveil.rules.motion import WEEK_S
from wayveil.rules.rule import Rule
from wayveil.scope import Scope
from wayveil.synthesis.physics import Tracks

_DAY_S = 86_400.0
_NEAR_MINUTES = 20
_DRAWS = 24
_TRADES = 32
_HALF_HOUR_S = 1_800.0
_BLOCK = 2_000_000


def traded_departures(
    tracks: Tracks, rules: Iterable[Rule], scope: Scope, random: np.random.Generator
) -> NDArray[np.float64]:
    """Times with departures exchanged between tracks in a closed area and tracks that pass no area with hours.

    Each in turn asks some of the others, at random; a trade needs that nobody leaves the scope's days by it.
    """
    inside = [(rule.hours, points) for rule, points in _inside(tracks, rules)]
    if not inside:
        return tracks.t_utc
    closed = _closed(tracks, inside, np.zeros((len(tracks), 1)), scope)[:, 0]
    waiting = np.flatnonzero(closed)
    owner = tracks.owner
    passing = np.unique(np.concatenate([owner[points] for _, points in inside]))
    others = np.setdiff1d(np.arange(len(tracks)), passing)
    start, shift = np.rint(tracks.t_utc[tracks.offsets[:-1]]), np.zeros((len(tracks), 1))
    for _ in range(_TRADES):
        number = min(len(waiting), len(others))
        if number == 0:
            break
        one, other = random.permutation(waiting)[:number], random.permutation(others)[:number]
        wanted = np.zeros_like(shift)
        wanted[one, 0] = start[other] - start[one]
        fair = ~_closed(tracks, inside, wanted, scope, one)[one, 0]
        fair &= ~_outside_window(tracks, one, wanted[one], scope)[:, 0]
        fair &= ~_outside_window(tracks, other, -wanted[one], scope)[:, 0]
        shift[one[fair]] = wanted[one[fair]]
        shift[other[fair]] = -wanted[one[fair]]
        waiting, others = np.setdiff1d(waiting, one[fair]), np.setdiff1d(others, other[fair])
    return tracks.t_utc + np.repeat(shift[:, 0], np.diff(tracks.offsets))


def open_departures(
    tracks: Tracks,
    rules: Iterable[Rule],
    scope: Scope,
    pool_utc: NDArray[np.float64],
    random: np.random.Generator,
    deeper_than_m: float = 0.0,
) -> NDArray[np.float64]:
    """Times with each track shifted as a whole to a departure at which no area with hours is closed around it.

    Tried in order: up to 20 minutes earlier or later; the hours of other departures on the same day; other
    departures; every half hour of the week around. So the hours of the day keep their distribution, among those that
    are open. A track that none of them opens keeps its times.

    Parameters
    ----------
    pool_utc
        Departures to draw from: those of all synthetic trajectories.
    deeper_than_m
        Tracks that are in a closed area by less than this keep their times: moving points is the smaller change.

    Privacy: free (post-processing).
    """
    begin = tracks.offsets[:-1]
    inside = [(rule.hours, points) for rule, points in _inside(tracks, rules)]
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
    for chunk in np.array_split(which, -(-len(which) // 2_000)):
        wanted = _shifts(tracks.t_utc[begin[chunk]], scope, pool_utc, random)
        part = np.zeros((len(tracks), 1))
        good = ~_outside_window(tracks, chunk, wanted, scope)
        for column in range(0, wanted.shape[1], 32):
            left = part[chunk, 0] == 0
            if not left.any():
                break
            some = wanted[:, column : column + 32]
            full = np.zeros((len(tracks), some.shape[1]))
            full[chunk] = some
            legal = ~_closed(tracks, inside, full, scope, chunk)[chunk] & good[:, column : column + 32]
            found = left & legal.any(axis=1)
            part[chunk[found], 0] = some[found, legal[found].argmax(axis=1)]
        shift += part[:, 0]
    return tracks.t_utc + np.repeat(shift, np.diff(tracks.offsets))


def _inside(tracks: Tracks, rules: Iterable[Rule]) -> list[tuple[Closed, NDArray[np.int64]]]:
    """Each rule with hours and the points inside its area, whatever the hour."""
    found: list[tuple[Closed, NDArray[np.int64]]] = []
    for rule in rules:
        if isinstance(rule, Closed) and not rule.hours.always:
            points = np.flatnonzero(rule.area.inside(tracks.x_m, tracks.y_m))
            if len(points):
                found.append((rule, points))
    return found


def _closed(
    tracks: Tracks,
    inside: list[tuple[Hours, NDArray[np.int64]]],
    shift_s: NDArray[np.float64],
    scope: Scope,
    only: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """(tracks, shifts) whether some point is in a closed area after the shift."""
    result = np.zeros(shift_s.shape, bool)
    owner = tracks.owner
    chosen = np.ones(len(tracks), bool)
    if only is not None:
        chosen[:] = False
        chosen[only] = True
    for hours, points in inside:
        points = points[chosen[owner[points]]]
        size = max(1, _BLOCK // shift_s.shape[1])
        for start in range(0, len(points), size):
            part = points[start : start + size]
            at = tracks.t_utc[part, None] + shift_s[owner[part]]
            week_s = scope.local_seconds(at.ravel())
            row, column = np.nonzero((hours.depth_s(week_s, np) > 0).reshape(at.shape))
            result[owner[part[row]], column] = True
    return result


def _deepest_m(tracks: Tracks, rules: Iterable[Rule], scope: Scope) -> NDArray[np.float64]:
    deepest = np.zeros(len(tracks))
    owner = tracks.owner
    for rule, points in _inside(tracks, rules):
        week_s = scope.local_seconds(tracks.t_utc[points])
        points = points[rule.hours.depth_s(week_s, np) > 0]
        np.maximum.at(deepest, owner[points], rule.area.depth_m(tracks.x_m[points], tracks.y_m[points]))
    return deepest


def _shifts(
    start_utc: NDArray[np.float64], scope: Scope, pool_utc: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float64]:
    """(tracks, shifts) seconds, the smallest changes first; none is zero."""
    minutes = np.repeat(np.arange(1, _NEAR_MINUTES + 1), 2) * np.tile([60.0, -60.0], _NEAR_MINUTES)
    near = np.broadcast_to(minutes, (len(start_utc), len(minutes)))
    drawn = pool_utc[random.integers(0, len(pool_utc), (len(start_utc), 2 * _DRAWS))]
    same_day, any_day = np.rint(drawn[:, :_DRAWS]), np.rint(drawn[:, _DRAWS:])
    clock = scope.local_seconds(same_day.ravel()).reshape(same_day.shape) % _DAY_S
    same_day = clock - (scope.local_seconds(start_utc) % _DAY_S)[:, None]
    any_day = any_day - start_utc[:, None]
    steps = np.arange(1, int(WEEK_S / 2 / _HALF_HOUR_S) + 1)
    round_week = np.repeat(steps, 2) * np.tile([_HALF_HOUR_S, -_HALF_HOUR_S], len(steps))
    far = np.broadcast_to(round_week, (len(start_utc), len(round_week)))
    return np.rint(np.hstack([near, same_day, any_day, far]))


def _outside_window(
    tracks: Tracks, which: NDArray[np.int64], shift_s: NDArray[np.float64], scope: Scope
) -> NDArray[np.bool_]:
    """Shifts to before the scope's first day or after its last; zero shifts are no choice either."""
    window = scope.time_window()
    if window is None:
        return shift_s == 0
    first = tracks.t_utc[tracks.offsets[which]]
    last = tracks.t_utc[tracks.offsets[which + 1] - 1]
    outside = (first[:, None] + shift_s < window[0]) | (last[:, None] + shift_s > window[1] - 1)
    return outside | (shift_s == 0)

"""Contradictions: rules that no trajectory can obey together are refused, with the reason.

`rules/web/rules_check.js` finds the same contradictions in the page of `wayveil rules draw`. It takes the constants
from here, and tests compare its messages with those of this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from wayveil.core.scope import Scope
from wayveil.core.week import DAY_S, WEEK_S
from wayveil.errors import RuleError
from wayveil.rules.area import Area
from wayveil.rules.hours import ALWAYS
from wayveil.rules.max_duration import MaxDuration
from wayveil.rules.min_speed import MinSpeed
from wayveil.rules.one_way import Headings, OneWay
from wayveil.rules.rule import Rule
from wayveil.rules.speed import SpeedLimit

SMALL_SHARE = 1e-6
"""A remaining share of an area below this counts as empty: round-off of overlays."""
SHORTEST_TRIP_M = 100.0
"""Metres that a trajectory must be able to travel within a speed limit and a longest duration."""
SHORTEST_TRIP_S = 300.0
"""Seconds without a break that closed hours must leave for a trajectory."""
OPPOSED_DEPTH = 0.4
"""A piece opposes a one-way line if `wrong` at its middle (see `OneWay`) is above this share of the line's width."""
OPPOSED_SHARE = 0.5
"""Share of a line's length that must oppose another line for both to close the street."""
_MOST_PAIRS = 20_000
"""Number of pairs of drawn one-way lines that are compared; bounds the time."""


def refuse_contradictions(rules: Iterable[Rule], scope: Scope, whose: str = "The rules") -> None:
    """Raise a RuleError that names rules which contradict each other; return if there are none."""
    try:
        _find(tuple(rules), scope)
    except RuleError as error:
        raise RuleError(f"{whose} contradict each other: {str(error).rstrip('.')}.") from None


def _find(rules: tuple[Rule, ...], scope: Scope) -> None:
    free = _allowed(rules, scope)
    _refuse_all_closed([rule for rule in rules if rule.closed_area() is not None], free, scope)
    _refuse_speeds(rules, free, scope)
    _refuse_opposed([rule for rule in rules if isinstance(rule, OneWay) and not rule.of_map])


def _allowed(rules: tuple[Rule, ...], scope: Scope) -> Any:
    """Return the part of the scope that all areas to stay within have in common."""
    import shapely

    free = shapely.box(0, 0, scope.width_m, scope.height_m)
    for rule in rules:
        stay = rule.stay_area()
        if stay is not None:
            free = free.intersection(stay.shape)
            if free.area <= SMALL_SHARE * scope.width_m * scope.height_m:
                raise RuleError(f"with '{rule.name}', the stay_within areas do not overlap within the scope")
    return free


def _refuse_all_closed(rules: list[Rule], free: Any, scope: Scope) -> None:
    """Refuse closed areas that together leave no place at any time."""
    import shapely

    if not rules:
        return
    shapes = [area.shape.intersection(free) for rule in rules if (area := rule.closed_area()) is not None]
    hours = [rule.closed_hours() or ALWAYS for rule in rules]
    sizes = np.array([shape.area for shape in shapes])
    marks = {day * DAY_S for day in range(8)}
    for when in hours:
        marks.update(mark % WEEK_S for window in when.windows for mark in window)
    # Nothing changes between two boundaries, so one instant represents each interval of the week.
    edges = np.array(sorted(marks))
    instants = (edges[1:] + edges[:-1]) / 2
    always = np.ones(len(instants), bool)
    is_closed = np.array([always if when.always else when.depth_s(instants, np) > 0 for when in hours])
    patterns, which = np.unique(is_closed.T, axis=0, return_inverse=True)

    def leaves_room(pattern: np.ndarray) -> bool:
        if pattern @ sizes < free.area * (1 - SMALL_SHARE):
            return True
        union = shapely.union_all([shape for shape, on in zip(shapes, pattern) if on])
        return bool(free.difference(union).area > SMALL_SHARE * free.area)

    is_open = np.array([leaves_room(pattern) for pattern in patterns])[which.ravel()]
    is_open &= np.isin(instants // DAY_S, weekdays(scope))
    longest_s = _longest_stretch(is_open, np.diff(edges))
    if longest_s == 0:
        raise RuleError(
            "the closed areas cover everything that the scope and stay_within allow, at all times; make an area "
            "smaller or give it hours"
        )
    if longest_s < SHORTEST_TRIP_S:
        raise RuleError(
            f"the closed areas cover everything that the scope and stay_within allow, except for {longest_s:g} seconds "
            "at a time; make an area smaller or give it other hours"
        )


def weekdays(scope: Scope) -> list[int]:
    """Return the weekdays that occur in the days of the scope, Monday = 0."""
    if scope.first_day is None or scope.last_day is None:
        return list(range(7))
    days = min((scope.last_day - scope.first_day).days + 1, 7)
    return [(scope.first_day.weekday() + k) % 7 for k in range(days)]


def _longest_stretch(is_open: np.ndarray, seconds: np.ndarray) -> float:
    """Return the length of the longest open period of the week in seconds; it may run past midnight on Sunday."""
    longest = running = 0.0
    for one, length in zip(np.tile(is_open, 2), np.tile(seconds, 2)):
        running = running + float(length) if one else 0.0
        longest = max(longest, running)
    return min(longest, WEEK_S)


def _refuse_speeds(rules: tuple[Rule, ...], free: Any, scope: Scope) -> None:
    limits = [rule.limit_mps for rule in rules if isinstance(rule, SpeedLimit) and _holds_everywhere(rule, free)]
    fastest = min(limits, default=None)
    slowest = max((rule.limit_mps for rule in rules if isinstance(rule, MinSpeed)), default=None)
    longest = min((rule.limit_s for rule in rules if isinstance(rule, MaxDuration)), default=None)
    if fastest is not None and slowest is not None and slowest >= fastest:
        raise RuleError(f"min_speed ({slowest * 3.6:g} km/h) is not below speed_limit ({fastest * 3.6:g} km/h)")
    if slowest is not None and slowest * 3.6 >= scope.caps.speed_kmh:
        raise RuleError(
            f"min_speed ({slowest * 3.6:g} km/h) is not below the scope's fastest speed ({scope.caps.speed_kmh:g} km/h)"
        )
    if fastest is not None and longest is not None and fastest * longest < SHORTEST_TRIP_M:
        raise RuleError(
            f"max_duration at speed_limit leaves {fastest * longest:.0f} m for a whole trajectory; raise one of them"
        )


def _holds_everywhere(rule: SpeedLimit, free: Any) -> bool:
    if isinstance(rule.where, Area):
        return bool(free.difference(rule.where.shape).area <= SMALL_SHARE * free.area)
    return rule.where is None


def _refuse_opposed(rules: list[OneWay]) -> None:
    """Refuse lines along the same street in opposite directions, of one rule or of two: they close the street."""
    import shapely

    for rule in rules:
        if _share_against(rule, rule) > OPPOSED_SHARE:
            raise RuleError(
                f"'{rule.name}' has lines along the same street in both directions, which closes it; remove one, or "
                "use closed"
            )
    if len(rules) < 2:
        return
    boxes = []
    for rule in rules:
        ends = rule.segments.ends
        low, high = np.minimum(ends[:, :2], ends[:, 2:]).min(0), np.maximum(ends[:, :2], ends[:, 2:]).max(0)
        boxes.append(shapely.box(*(low - rule.width_m), *(high + rule.width_m)))
    first, second = shapely.STRtree(boxes).query(np.array(boxes), predicate="intersects")
    pairs = sorted((a, b) for a, b in zip(first.tolist(), second.tolist()) if a != b)
    for a, b in pairs[:_MOST_PAIRS]:
        if _share_against(rules[a], rules[b]) > OPPOSED_SHARE:
            raise RuleError(
                f"'{rules[a].name}' and '{rules[b].name}' run along the same street in opposite directions, which "
                "closes it; remove one, or use closed"
            )


def _share_against(rule: OneWay, other: OneWay) -> float:
    """Return the share of a line's length along which its direction is against the other line."""
    ends = rule.segments.ends
    length = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1])
    heading = rule.segments.directions
    middle = (ends[:, :2] + ends[:, 2:]) / 2
    against = np.zeros(len(ends), bool)
    for group, most in other.segments.blocks(middle[:, 0], middle[:, 1]):
        headings = Headings(*middle[group].T, *heading[group].T)
        against[group] = other.wrong_at(headings, most, np) > other.width_m * OPPOSED_DEPTH
    return float(length[against].sum() / length.sum())

"""Rules from Python, with shapes in degrees and speeds in km/h; `read_rules` builds on the same functions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.errors import RuleError
from wayveil.rules.area import Area
from wayveil.rules.bounds import StayWithin, scope_bounds
from wayveil.rules.classes import DEFAULT_WIDTH_M as ROAD_WIDTH_M
from wayveil.rules.classes import Classes, class_names, road_classes
from wayveil.rules.closed import Closed
from wayveil.rules.geometry import area_of, around_scope, line_of
from wayveil.rules.hours import ALWAYS, Hours
from wayveil.rules.max_duration import MaxDuration
from wayveil.rules.min_speed import MinSpeed
from wayveil.rules.one_way import DEFAULT_WIDTH_M, OneWay, map_one_ways
from wayveil.rules.polygons import area_in_metres
from wayveil.rules.segments import check_width, segments_of_lines
from wayveil.rules.speed import SpeedLimit

LIMITS_KMH = (0.1, 2_000.0)
"""Smallest and largest speed in a rule, in km/h: from below walking speed to faster than any vehicle."""
LIMITS_H = (1 / 60, 24 * 366.0)
"""Shortest and longest duration in a rule, in hours: from a minute to a year."""


def closed(geometry: Any | None, scope: Scope, when: Hours = ALWAYS, name: str = "closed") -> Closed:
    """No point may lie in the polygon during the hours.

    Parameters
    ----------
    geometry
        A polygon in degrees, as a GeoJSON mapping or a shapely shape; None for the whole scope.
    when
        The result of `hours`; always, if left out.

    Examples
    --------
    >>> from wayveil import read_scope
    >>> from wayveil.rules import closed, hours
    >>> ring = [[-39.95, 30.02], [-39.94, 30.02], [-39.94, 30.03], [-39.95, 30.02]]
    >>> harbour = {"type": "Polygon", "coordinates": [ring]}
    >>> rule = closed(harbour, read_scope("demo-city"), hours("22:00", "06:00"), name="harbour")
    >>> rule.name
    'harbour'

    Privacy
    -------
    Free (rules are public).
    """
    area = area_in_metres(around_scope(scope)) if geometry is None else area_of(geometry, scope)
    return Closed(area, when, name)


def stay_within(geometry: Any | None, scope: Scope, name: str = "stay_within") -> StayWithin:
    """No point may lie outside the polygon.

    Parameters
    ----------
    geometry
        A polygon in degrees, as a GeoJSON mapping or a shapely shape; None for the scope's box.

    Examples
    --------
    >>> from wayveil import read_scope
    >>> from wayveil.rules import stay_within
    >>> print(stay_within(None, read_scope("demo-city")).describe())
    No point may lie outside the box of the scope.

    Privacy
    -------
    Free (rules are public).
    """
    return scope_bounds(scope) if geometry is None else StayWithin(area_of(geometry, scope, grow=-1), name)


def speed_limit(
    kmh: float,
    scope: Scope | None = None,
    geometry: Any | None = None,
    roads: RoadMap | None = None,
    classes: list[str] | tuple[str, ...] = (),
    width_m: float = ROAD_WIDTH_M,
    name: str = "speed_limit",
) -> SpeedLimit:
    """No step may be faster than `kmh`: anywhere, in a polygon, or near roads of some classes of a map.

    Parameters
    ----------
    scope
        Needed if the limit has a place.
    geometry
        A polygon in degrees, as a GeoJSON mapping or a shapely shape.
    roads, classes, width_m
        A road map (`wayveil.read_roads`), classes of its roads, and the distance within which the limit holds.

    Examples
    --------
    >>> from wayveil.rules import speed_limit
    >>> print(speed_limit(50).describe())
    No step may be faster than 50 km/h anywhere.

    Privacy
    -------
    Free (rules are public).
    """
    limit_mps = _between(kmh, LIMITS_KMH, "kmh") / 3.6
    where: Area | Classes | None = None
    if geometry is not None and classes:
        raise RuleError("a speed limit applies to a polygon or to road classes, not both; make two rules")
    if geometry is not None or classes:
        if scope is None:
            raise RuleError("a speed limit for a place needs scope=")
        if geometry is not None:
            where = area_of(geometry, scope)
        elif roads is None:
            raise RuleError("a speed limit for road classes needs a road map; give one with roads=")
        else:
            names, text = class_names(classes)
            where = replace(road_classes(roads, scope, names, width_m), text=text)
    return SpeedLimit(limit_mps, where, name)


def one_way(
    geometry: Any | None,
    scope: Scope,
    roads: RoadMap | None = None,
    width_m: float = DEFAULT_WIDTH_M,
    name: str = "one_way",
) -> OneWay:
    """No step may run against the direction of a line.

    Parameters
    ----------
    geometry
        A line in degrees, as a GeoJSON mapping or a shapely shape; None for the one-way streets of `roads`.
    width_m
        The distance from the line within which a step is judged.

    Examples
    --------
    >>> from wayveil import read_scope
    >>> from wayveil.rules import one_way
    >>> street = {"type": "LineString", "coordinates": [[-39.95, 30.02], [-39.94, 30.02]]}
    >>> one_way(street, read_scope("demo-city"), name="High Street").name
    'High Street'

    Privacy
    -------
    Free (rules are public).
    """
    if geometry is None:
        if roads is None:
            raise RuleError("one_way without a line means the one-way streets of a road map; give one with roads=")
        return map_one_ways(roads, scope, width_m, name)
    check_width(width_m)
    lines = line_of(geometry, scope)
    segments = segments_of_lines(lines, list(range(len(lines))), width_m + 5.0)
    return OneWay(segments, np.ones(len(segments.ends), bool), width_m, name=name)


def min_speed(kmh: float, name: str = "min_speed") -> MinSpeed:
    """The mean speed of each trajectory must be at least `kmh`.

    Examples
    --------
    >>> from wayveil.rules import min_speed
    >>> min_speed(3).name
    'min_speed'

    Privacy
    -------
    Free (rules are public).
    """
    return MinSpeed(_between(kmh, LIMITS_KMH, "kmh") / 3.6, name)


def max_duration(hours: float, name: str = "max_duration") -> MaxDuration:
    """No trajectory may take longer than `hours`.

    Examples
    --------
    >>> from wayveil.rules import max_duration
    >>> max_duration(2).name
    'max_duration'

    Privacy
    -------
    Free (rules are public).
    """
    return MaxDuration(_between(hours, LIMITS_H, "hours") * 3600, name)


def _between(value: float, limits: tuple[float, float], what: str) -> float:
    low, high = limits
    if not (isinstance(value, int | float) and math.isfinite(value) and low <= value <= high):
        raise RuleError(f"{what} must be between {low:g} and {high:g}")
    return float(value)

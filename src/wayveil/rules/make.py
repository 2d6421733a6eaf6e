"""Rules from Python, with shapes in degrees and speeds in km/h; `read_rules` builds on the same functions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from wayveil.errors import RuleError
from wayveil.roads import RoadMap
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
from wayveil.scope import Scope

LIMITS_KMH = (0.1, 2_000.0)
"""Limits of speed that a rule may have, in km/h: from slower than walking to faster than any vehicle."""
LIMITS_H = (1 / 60, 24 * 366.0)
"""Limits of duration that a rule may have, in hours: from a minute to a year."""


def closed(geometry: Any | None, scope: Scope, when: Hours = ALWAYS, name: str = "closed") -> Closed:
    """Nobody may be in the polygon (None = the whole scope) during the hours."""
    area = area_in_metres(around_scope(scope)) if geometry is None else area_of(geometry, scope)
    return Closed(area, when, name)


def stay_within(geometry: Any | None, scope: Scope, name: str = "stay_within") -> StayWithin:
    """Nobody may be outside the polygon (None = the scope's box)."""
    return scope_bounds(scope) if geometry is None else StayWithin(area_of(geometry, scope, grow=-1), name)


def speed_limit(
    kmh: float,
    scope: Scope | None = None,
    geometry: Any | None = None,
    roadmap: RoadMap | None = None,
    classes: list[str] | tuple[str, ...] = (),
    width_m: float = ROAD_WIDTH_M,
    name: str = "speed_limit",
) -> SpeedLimit:
    """No step may be faster than `kmh`: anywhere, in a polygon, or near roads of some classes of a map."""
    limit_mps = _between(kmh, LIMITS_KMH, "kmh") / 3.6
    where: Area | Classes | None = None
    if geometry is not None and classes:
        raise RuleError("a speed limit holds in a polygon or on roads by class, not both; make two rules")
    if geometry is not None or classes:
        if scope is None:
            raise RuleError("a speed limit for a place needs the scope")
        if geometry is not None:
            where = area_of(geometry, scope)
        elif roadmap is None:
            raise RuleError("a speed limit on roads by class needs a road map; give one with --roads")
        else:
            names, text = class_names(classes)
            where = replace(road_classes(roadmap, scope, names, width_m), text=text)
    return SpeedLimit(limit_mps, where, name)


def one_way(
    geometry: Any | None,
    scope: Scope,
    roadmap: RoadMap | None = None,
    width_m: float = DEFAULT_WIDTH_M,
    name: str = "one_way",
) -> OneWay:
    """Nobody may travel against the line's direction (None = the map's own one-way streets)."""
    if geometry is None:
        if roadmap is None:
            raise RuleError("one_way without a line means the map's one-way streets; give a map with --roads")
        return map_one_ways(roadmap, scope, width_m, name)
    check_width(width_m)
    lines = line_of(geometry, scope)
    segments = segments_of_lines(lines, list(range(len(lines))), width_m + 5.0)
    return OneWay(segments, np.ones(len(segments.ends), bool), width_m, name=name)


def min_speed(kmh: float, name: str = "min_speed") -> MinSpeed:
    """The mean speed of each trajectory must be at least `kmh`."""
    return MinSpeed(_between(kmh, LIMITS_KMH, "kmh") / 3.6, name)


def max_duration(hours: float, name: str = "max_duration") -> MaxDuration:
    """No trajectory may take longer than `hours`."""
    return MaxDuration(_between(hours, LIMITS_H, "hours") * 3600, name)


def _between(value: float, limits: tuple[float, float], what: str) -> float:
    low, high = limits
    if not (isinstance(value, int | float) and math.isfinite(value) and low <= value <= high):
        raise RuleError(f"{what} must be between {low:g} and {high:g}")
    return float(value)

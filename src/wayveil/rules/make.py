"""Rules from Python, with shapes in degrees and speeds in km/h; `read_rules` builds on the same functions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from wayveil.errors import RuleError
from wayveil.roads import RoadMap
from wayveil.rules.area import Area, area_in_metres
from wayveil.rules.bounds import StayWithin, scope_bounds
from wayveil.rules.classes import class_names
from wayveil.rules.closed import Closed
from wayveil.rules.geometry import area_of, around_scope, line_of
from wayveil.rules.hours import ALWAYS, Hours
from wayveil.rules.one_way import DEFAULT_WIDTH_M, OneWay, check_width, map_one_ways
from wayveil.rules.pace import MaxDuration, MinSpeed
from wayveil.rules.segments import segments_of_lines
from wayveil.rules.speed import Classes, SpeedLimit, road_classes
from wayveil.scope import Scope

LIMITS_KMH = (0.1, 2_000.0)
LIMITS_H = (1 / 60, 24 * 366.0)


def closed(geometry: Any | None, scope: Scope, when: Hours = ALWAYS, name: str = "closed") -> Closed:
    """Nobody in the polygon (None = the whole scope) during the hours."""
    area = area_in_metres(around_scope(scope)) if geometry is None else area_of(geometry, scope)
    return Closed(area, when, name)


def stay_within(geometry: Any | None, scope: Scope, name: str = "stay_within") -> StayWithin:
    """Nobody outside the polygon (None = the scope's box)."""
    return scope_bounds(scope) if geometry is None else StayWithin(area_of(geometry, scope, grow=-1), name)


def speed_limit(
    kmh: float,
    scope: Scope | None = None,
    geometry: Any | None = None,
    roadmap: RoadMap | None = None,
    classes: list[str] | tuple[str, ...] = (),
    width_m: float = 25.0,
    name: str = "speed_limit",
) -> SpeedLimit:
    """Nobody faster than `kmh`: anywhere, in a polygon, or near roads of some classes of a map."""
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
            names, told = class_names(classes)
            where = replace(road_classes(roadmap, scope, names, width_m), text=told)
    return SpeedLimit(limit_mps, where, name)


def one_way(
    geometry: Any | None,
    scope: Scope,
    roadmap: RoadMap | None = None,
    width_m: float = DEFAULT_WIDTH_M,
    name: str = "one_way",
) -> OneWay:
    """Nobody against the line's direction (None = the map's own one-way streets)."""
    if geometry is None:
        if roadmap is None:
            raise RuleError("one_way without a line means the map's one-way streets; give a map with --roads")
        return map_one_ways(roadmap, scope, width_m, name)
    check_width(width_m)
    lines = line_of(geometry, scope)
    segments = segments_of_lines(lines, list(range(len(lines))), width_m + 5.0)
    return OneWay(segments, np.ones(len(segments.ends), bool), width_m, name=name)


def min_speed(kmh: float, name: str = "min_speed") -> MinSpeed:
    """Mean speed of each trajectory at least `kmh`."""
    return MinSpeed(_between(kmh, LIMITS_KMH, "kmh") / 3.6, name)


def max_duration(hours: float, name: str = "max_duration") -> MaxDuration:
    """No trajectory longer than `hours`."""
    return MaxDuration(_between(hours, LIMITS_H, "hours") * 3600, name)


def _between(value: float, limits: tuple[float, float], what: str) -> float:
    low, high = limits
    if not (isinstance(value, int | float) and math.isfinite(value) and low <= value <= high):
        raise RuleError(f"{what} must be between {low:g} and {high:g}")
    return float(value)

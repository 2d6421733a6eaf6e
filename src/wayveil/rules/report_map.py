"""Rules as GeoJSON for the map of a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from wayveil.core.scope import Scope
from wayveil.rules.area import Area
from wayveil.rules.counting import unique_names
from wayveil.rules.draw import has_place
from wayveil.rules.hours import ALWAYS
from wayveil.rules.one_way import OneWay
from wayveil.rules.rule import Rule
from wayveil.rules.speed import SpeedLimit


def rules_geojson_for_page(rules: Iterable[Rule], scope: Scope) -> dict[str, Any]:
    """Return a FeatureCollection in degrees of the areas and drawn lines, for the map of a report.

    Properties: `rule`, `name`, `text` (plain words) and, for closed areas, `windows`: pairs of seconds since Monday
    00:00 on the scope's clocks, empty = always closed. Names are as the user wrote them; the page escapes them.
    """
    rules = tuple(rules)
    features = []
    for rule, name in zip(rules, unique_names(rules)):
        kind, geometry = None, None
        extra: dict[str, object] = {}
        if (closed := rule.closed_area()) is not None:
            kind, geometry = "closed", _area_degrees(closed, scope)
            extra = {"windows": [list(window) for window in (rule.closed_hours() or ALWAYS).windows]}
        elif (stay := rule.stay_area()) is not None and has_place(rule):
            kind, geometry = "stay_within", _area_degrees(stay, scope)
        elif isinstance(rule, SpeedLimit) and isinstance(rule.where, Area):
            kind, geometry = "speed_limit", _area_degrees(rule.where, scope)
            extra = {"kmh": round(rule.limit_mps * 3.6, 3)}
        elif isinstance(rule, OneWay) and not rule.of_map:
            kind, geometry = "one_way", _lines_degrees(rule.segments.ends, scope)
        if kind is not None and geometry is not None:
            properties = {"rule": kind, "name": name, "text": rule.describe(), **extra}
            features.append({"type": "Feature", "properties": properties, "geometry": geometry})
    return {"type": "FeatureCollection", "features": features}


def _area_degrees(area: Area, scope: Scope) -> dict[str, Any] | None:
    import shapely

    inside = area.outline.intersection(shapely.box(0, 0, scope.width_m, scope.height_m))
    polygons = [part for part in shapely.get_parts(inside) if part.geom_type == "Polygon"]
    rings = [[_ring_degrees(ring, scope) for ring in shapely.get_rings(polygon)] for polygon in polygons]
    return {"type": "MultiPolygon", "coordinates": rings} if rings else None


def _ring_degrees(ring: Any, scope: Scope) -> list[list[float]]:
    import shapely

    return _positions(shapely.get_coordinates(ring), scope)


def _lines_degrees(ends: np.ndarray, scope: Scope) -> dict[str, Any]:
    return {"type": "MultiLineString", "coordinates": [_positions(piece.reshape(2, 2), scope) for piece in ends]}


def _positions(xy: np.ndarray, scope: Scope) -> list[list[float]]:
    lon, lat = scope.to_degrees(xy[:, 0], xy[:, 1])
    return [[round(float(a), 7), round(float(b), 7)] for a, b in zip(lon, lat)]

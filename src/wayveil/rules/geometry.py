"""Convert GeoJSON shapes in degrees to areas and lines in the scope's metres (antimeridian, poles, broken rings)."""

from __future__ import annotations

from typing import Any

import numpy as np

from wayveil.core.scope import Scope
from wayveil.errors import RuleError
from wayveil.rules.area import Area
from wayveil.rules.polygons import area_in_metres, crosses_itself, repaired

MAX_VERTICES = 2_000_000
"""Largest number of corners of a polygon; bounds memory and time."""
_WORLD_DEG = 359.99
"""An edge with at least this many degrees of longitude goes around the world as written, not the short way."""
_LINES = ("LineString", "MultiLineString")


def area_of(geometry: Any, scope: Scope, grow: int = 1) -> Area:
    """Return the part in and around the scope of a polygon in degrees: a GeoJSON mapping or a shapely geometry.

    An edge that jumps by more than 180° of longitude goes the short way, across the antimeridian. `grow` is the side
    to which a very detailed area is simplified: see `polygons.area_in_metres`.
    """
    import shapely

    if hasattr(geometry, "__geo_interface__"):
        geometry = geometry.__geo_interface__
    drawn = [_polygon(rings, scope) for rings in _polygons(geometry)]
    shapes = [repaired(shape) for shape in drawn]
    frame = around_scope(scope)
    parts = [shapely.intersection(copy, frame) for shape in shapes for copy in _copies(shape, scope)]
    parts = [part for part in parts if not part.is_empty]
    whole = parts[0] if len(parts) == 1 else shapely.union_all(parts)
    box = shapely.box(0, 0, scope.width_m, scope.height_m)
    if whole.is_empty or not whole.intersects(box) or whole.intersection(box).area <= 0:
        raise RuleError("the area lies outside the scope; GeoJSON puts the longitude first, then the latitude")
    return area_in_metres(whole, grow, any(map(crosses_itself, drawn)))


def outlines_of(geometry: Any) -> list[np.ndarray]:
    """Return (corners, 2) degrees of each line or polygon of a shape, without holes and jumps of longitude."""
    lines = _lines(geometry) if _kind(geometry)[0] in _LINES else [rings[0] for rings in _polygons(geometry)]
    return [np.column_stack([_unwrap(line), line[:, 1]]) for line in lines]


def line_of(geometry: Any, scope: Scope) -> list[np.ndarray]:
    """Return the polylines of a GeoJSON line in degrees, each (vertices, 2) in metres, in the drawn direction."""
    import shapely

    if hasattr(geometry, "__geo_interface__"):
        geometry = geometry.__geo_interface__
    lines = _lines(geometry)
    metres = [np.column_stack(scope.to_metres(line[:, 0], line[:, 1])) for line in lines]
    frame = around_scope(scope)
    metres = [line for line in metres if shapely.LineString(line).intersects(frame)]
    if not metres:
        raise RuleError("the line lies outside the scope; GeoJSON puts the longitude first, then the latitude")
    for line in metres:
        if np.abs(np.diff(line, axis=0)).max() > 10 * (scope.width_m + scope.height_m):
            raise RuleError("the line is much longer than the scope; clip it to the scope")
    return metres


def around_scope(scope: Scope) -> Any:
    """Return the scope's box, larger by its width plus its height on each side; nothing beyond it matters."""
    import shapely

    size = scope.width_m + scope.height_m
    return shapely.box(-size, -size, scope.width_m + size, scope.height_m + size)


def _copies(shape: Any, scope: Scope) -> list[Any]:
    """Return the shape and its copies one turn of the globe to the west and to the east: longitudes repeat."""
    import shapely.affinity

    turn = _turn_m(scope)
    return [shapely.affinity.translate(shape, k * turn) for k in (-1, 0, 1)]


def _turn_m(scope: Scope) -> float:
    span = (scope.east - scope.west) % 360.0
    return scope.width_m / span * 360.0


def _polygon(rings: list[np.ndarray], scope: Scope) -> Any:
    """Return a polygon in metres, as drawn; longitudes are not wrapped, so that each ring stays in one piece."""
    import shapely

    m_per_deg = _turn_m(scope) / 360.0
    rings_m = []
    shell_middle = None
    for ring in rings:
        lon = _unwrap(ring)
        if abs(lon[-1] - lon[0]) > 1e-9:
            raise RuleError("the area runs around a pole; draw it as a polygon that closes without circling the globe")
        middle = (lon.min() + lon.max()) / 2
        if shell_middle is None:
            shell_middle = middle
        lon = lon - 360.0 * np.round((middle - shell_middle) / 360.0)
        y = scope.to_metres(np.zeros(len(ring)), ring[:, 1])[1]
        rings_m.append(np.column_stack([(lon - scope.west) * m_per_deg, y]))
    return shapely.Polygon(rings_m[0], rings_m[1:])


def _unwrap(positions: np.ndarray) -> np.ndarray:
    """Return longitudes without jumps; edges around the whole world are kept as written."""
    lon = positions[:, 0]
    jump = np.diff(lon)
    turns = np.where(np.abs(jump) < _WORLD_DEG, np.round(jump / 360.0), 0.0)
    return lon - 360.0 * np.concatenate([[0.0], np.cumsum(turns)])


def _lines(geometry: Any) -> list[np.ndarray]:
    kind, coordinates = _kind(geometry)
    if kind not in _LINES:
        raise RuleError("one_way needs a line; draw one in the direction of travel")
    return [_positions(line, 2) for line in ([coordinates] if kind == "LineString" else _list(coordinates))]


def _polygons(geometry: Any) -> list[list[np.ndarray]]:
    kind, coordinates = _kind(geometry)
    if kind not in ("Polygon", "MultiPolygon"):
        raise RuleError("the rule needs a polygon; draw an area")
    polygons = [coordinates] if kind == "Polygon" else _list(coordinates)
    rings = [[_ring(ring) for ring in _list(polygon)] for polygon in polygons]
    if not rings or not all(rings):
        raise RuleError("the polygon has no corners")
    if sum(len(ring) for polygon in rings for ring in polygon) > MAX_VERTICES:
        raise RuleError(f"the polygon has more than {MAX_VERTICES:,} corners; simplify it")
    return rings


def _ring(ring: Any) -> np.ndarray:
    positions = _positions(ring, 3)
    if (positions[0] != positions[-1]).any():
        positions = np.concatenate([positions, positions[:1]])
    if len(positions) < 4:
        raise RuleError("a polygon needs at least three corners")
    return positions


def _positions(values: Any, fewest: int) -> np.ndarray:
    values = _list(values)
    try:
        table = np.asarray(values)
    except ValueError:  # positions with and without a height mixed, or something else
        try:
            table = np.asarray([_list(position)[:2] for position in values])
        except ValueError:
            raise RuleError("the coordinates are not a list of [longitude, latitude]") from None
    if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "if":
        raise RuleError("the coordinates are not a list of [longitude, latitude]")
    table = table[:, :2].astype(np.float64)
    if len(table) < fewest:
        raise RuleError(f"the shape needs at least {fewest} corners")
    if not np.isfinite(table).all() or (np.abs(table[:, 1]) > 90).any() or (np.abs(table[:, 0]) > 540).any():
        raise RuleError("a coordinate is not in degrees (longitude -180 to 180, latitude -90 to 90)")
    return table


def _kind(geometry: Any) -> tuple[str, Any]:
    if not isinstance(geometry, dict) or not isinstance(geometry.get("type"), str):
        raise RuleError("the geometry is not GeoJSON")
    if geometry["type"] == "GeometryCollection":
        raise RuleError("a geometry collection is not one shape; split it into several features")
    return geometry["type"], geometry.get("coordinates")


def _list(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise RuleError("the coordinates are not a list of [longitude, latitude]")
    return value

"""Areas from polygons: repair of borders that cross themselves, and simplification for gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from wayveil.errors import RuleError
from wayveil.rules.area import Area

MAX_EDGES = 1_000
"""Largest number of edges in the outline that gradient descent measures distances to; bounds the time."""
MAX_CROSSINGS = 1_000
"""Largest number of self-crossings that are repaired; the time of the repair grows faster than their square."""
_AREAL = ("Polygon", "MultiPolygon")


def area_in_metres(polygon: Any, grow: int = 1, crossed: bool | None = None) -> Area:
    """Return the area of a shapely polygon in metres.

    Parameters
    ----------
    grow
        An area with more than MAX_EDGES edges gets an outline that is a little larger (1) or smaller (-1).
    crossed
        Whether the border crossed itself as drawn; computed if not given.
    """
    import shapely

    crossed = crosses_itself(polygon) if crossed is None else crossed
    polygon = _polygons_of(repaired(polygon))
    if polygon.is_empty or polygon.area <= 0:
        raise RuleError("The area is empty; draw a polygon with at least three corners that do not lie on one line.")
    outline = _few_edges(polygon, grow)
    shapely.prepare(polygon)
    shapely.prepare(outline)
    return Area(polygon, _edges_of(outline), outline, crossed)


def repaired(polygon: Any) -> Any:
    """Return the same area by the even-odd rule, with a border that does not cross itself."""
    import shapely

    if shapely.is_valid(polygon):
        return polygon
    if _crossings(polygon) > MAX_CROSSINGS:
        raise RuleError(f"The area's border crosses itself in more than {MAX_CROSSINGS:,} places; draw it again.")
    return shapely.make_valid(polygon)


def crosses_itself(polygon: Any) -> bool:
    """Whether the border crosses itself; a border that only touches itself is unambiguous."""
    import shapely

    return not shapely.is_valid(polygon) and shapely.is_valid_reason(polygon).startswith("Self-intersection")


def _crossings(polygon: Any) -> int:
    """Return how often the border meets itself, except at neighbouring edges; stops counting beyond the limit."""
    import shapely

    edges = shapely.linestrings(_edges_of(polygon).reshape(-1, 2, 2))
    tree = shapely.STRtree(edges)
    step, met = max(1, 2_000_000 // len(edges)), 0  # one edge may meet all others
    for start in range(0, len(edges), step):
        part = edges[start : start + step]
        met += tree.query(part, predicate="intersects").shape[1] - 3 * len(part)  # itself and its two neighbours
        if met > 2 * MAX_CROSSINGS:
            break
    return met // 2


def _polygons_of(shape: Any) -> Any:
    """Return only the parts that have an area."""
    import shapely

    parts = [part for part in shapely.get_parts(shape, return_index=False) if part.geom_type in _AREAL]
    nested = [part for part in shapely.get_parts(shape) if part.geom_type == "GeometryCollection"]
    parts += [piece for part in nested for piece in shapely.get_parts(part) if piece.geom_type in _AREAL]
    if len(parts) == 1:
        return parts[0]
    return shapely.union_all(parts) if parts else shapely.Polygon()


def _few_edges(polygon: Any, grow: int) -> Any:
    import shapely

    if _edge_count(polygon) <= MAX_EDGES:
        return polygon
    west, south, east, north = polygon.bounds
    size = max(east - west, north - south)
    simple, tolerance, moved = polygon, size / 20_000, 0.0
    while tolerance < size / 8:
        # Simplifying moves the border by at most the sum of the tolerances; the buffer makes the change one-sided.
        simple, moved, tolerance = simple.simplify(tolerance), moved + tolerance, 2 * tolerance
        if _edge_count(simple) > 8 * MAX_EDGES:
            continue
        sided = simple.buffer(grow * moved, quad_segs=1).simplify(moved / 8)
        sided = sided.buffer(grow * moved / 8, join_style="mitre")
        if not sided.is_empty and _edge_count(sided) <= MAX_EDGES:
            return sided
    if grow > 0:
        hull = polygon.convex_hull
        return hull if _edge_count(hull) <= MAX_EDGES else shapely.box(west, south, east, north)
    raise RuleError(f"The area has too many fine parts for {MAX_EDGES} edges; simplify it in QGIS and try again.")


def _edge_count(polygon: Any) -> int:
    import shapely

    return int(shapely.get_num_coordinates(polygon))


def _edges_of(polygon: Any) -> np.ndarray:
    import shapely

    rings = shapely.get_rings(shapely.get_parts(polygon))
    pieces = [shapely.get_coordinates(ring) for ring in rings]
    return np.concatenate([np.hstack([ring[:-1], ring[1:]]) for ring in pieces])

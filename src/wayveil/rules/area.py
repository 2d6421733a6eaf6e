"""Area: a polygon in the scope's metres, exact for the truth and with few edges for descent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from wayveil.errors import RuleError
from wayveil.rules.motion import Array, array_module, safe_sqrt

MAX_EDGES = 1_000
MAX_CROSSINGS = 1_000
_CHUNK = 64
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class Area:
    """A polygon or multipolygon.

    `shape` is exact. `edges` bound the same area where it has at most MAX_EDGES edges; otherwise they bound a simpler
    one that is a little larger (`grow` > 0) or smaller (`grow` < 0), so that a zero penalty still means no violation.
    """

    shape: Any
    edges: np.ndarray
    """(edges, 4) ax, ay, bx, by in metres."""
    outline: Any
    """The polygon that `edges` bound."""
    crossed: bool = False
    """Whether the border crossed itself as it was drawn; `shape` is then what even and odd make of it."""

    def inside(self, x_m: np.ndarray, y_m: np.ndarray) -> np.ndarray:
        """Whether each point lies in the interior, exactly."""
        import shapely

        return self._in_box(x_m, y_m, lambda x, y: shapely.contains_xy(self.shape, x, y))

    def touches(self, x_m: np.ndarray, y_m: np.ndarray) -> np.ndarray:
        """Whether each point lies in the interior or on the border, exactly."""
        import shapely

        if shapely.get_num_coordinates(self.shape) == 5 and shapely.equals(self.shape, shapely.box(*self.shape.bounds)):
            return self._box_holds(x_m, y_m)
        return self._in_box(x_m, y_m, lambda x, y: shapely.intersects_xy(self.shape, x, y))

    def _in_box(self, x_m: np.ndarray, y_m: np.ndarray, test: Callable[..., np.ndarray]) -> np.ndarray:
        result = self._box_holds(x_m, y_m)
        result[result] = test(x_m[result], y_m[result])
        return result

    def _box_holds(self, x_m: np.ndarray, y_m: np.ndarray) -> np.ndarray:
        west, south, east, north = self.shape.bounds
        result = x_m >= west
        result &= x_m <= east
        result &= y_m >= south
        result &= y_m <= north
        return result

    def depth_m(self, x_m: Array, y_m: Array) -> Array:
        """Signed distance to the border: positive inside, negative outside; its gradient is finite everywhere."""
        xp = array_module(x_m, y_m)
        if xp is not np:
            return _signed_depth(self.edges, x_m, y_m, xp)
        blocks = [
            _signed_depth(self.edges, x_m[start : start + _BLOCK], y_m[start : start + _BLOCK], np)
            for start in range(0, len(x_m), _BLOCK)
        ]
        return np.concatenate(blocks) if blocks else np.zeros(0)

    def reaches(self, x_m: np.ndarray, y_m: np.ndarray, margin_m: float) -> np.ndarray:
        """Points that may have a depth above -margin; the others need no distance."""
        west, south, east, north = self.outline.bounds
        return (x_m > west - margin_m) & (x_m < east + margin_m) & (y_m > south - margin_m) & (y_m < north + margin_m)


def _signed_depth(edges: np.ndarray, x: Array, y: Array, xp: ModuleType) -> Array:
    still_x, still_y = (x, y) if xp is np else _without_gradient(x, y)
    best = xp.full_like(still_x, np.inf)
    nearest = xp.zeros(x.shape, dtype=np.int32)
    inside = xp.zeros(x.shape, dtype=bool)
    # The search for the nearest edge carries no gradient and holds points × 64 numbers at a time.
    for start in range(0, len(edges), _CHUNK):
        part = edges[start : start + _CHUNK]
        ax, ay, bx, by = (xp.asarray(part[:, column], dtype=x.dtype) for column in range(4))
        square = square_distance(still_x[:, None], still_y[:, None], ax, ay, bx, by, xp)
        least = xp.argmin(square, axis=1)
        value = xp.min(square, axis=1)
        nearest = xp.where(value < best, (least + start).astype(np.int32), nearest)
        best = xp.minimum(best, value)
        spans = (ay > still_y[:, None]) != (by > still_y[:, None])
        rise = xp.where(by == ay, 1.0, by - ay)
        crossing = still_x[:, None] < ax + (still_y[:, None] - ay) / rise * (bx - ax)
        inside = inside ^ (xp.sum(spans & crossing, axis=1) % 2 == 1)
    picked = xp.asarray(edges, dtype=x.dtype)[nearest]
    distance = safe_sqrt(square_distance(x, y, picked[:, 0], picked[:, 1], picked[:, 2], picked[:, 3], xp), xp)
    return xp.where(inside, distance, -distance)


def square_distance(x: Array, y: Array, ax: Array, ay: Array, bx: Array, by: Array, xp: ModuleType) -> Array:
    """Squared distance from (x, y) to the straight piece from a to b."""
    ux, uy = bx - ax, by - ay
    square = ux * ux + uy * uy
    share = ((x - ax) * ux + (y - ay) * uy) / xp.where(square > 0, square, 1.0)
    share = xp.minimum(xp.maximum(share, 0.0), 1.0)
    dx, dy = x - ax - share * ux, y - ay - share * uy
    return dx * dx + dy * dy


def _without_gradient(x: Array, y: Array) -> tuple[Array, Array]:
    import jax

    return jax.lax.stop_gradient(x), jax.lax.stop_gradient(y)


def area_in_metres(polygon: Any, grow: int = 1, crossed: bool | None = None) -> Area:
    """An area from a shapely polygon in metres; a self-crossing one is repaired. `grow`, `crossed`: see `Area`."""
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
    """The same area, by even and odd, with a border that does not cross itself.

    The repair takes far more than the square of the number of crossings: a scribble of 1,000 corners would take hours.
    """
    import shapely

    if shapely.is_valid(polygon):
        return polygon
    if _crossings(polygon) > MAX_CROSSINGS:
        raise RuleError(f"The area's border crosses itself in more than {MAX_CROSSINGS:,} places; draw it anew.")
    return shapely.make_valid(polygon)


def crosses_itself(polygon: Any) -> bool:
    """Whether the border crosses itself; one that only touches itself leaves no doubt about what is inside."""
    import shapely

    return not shapely.is_valid(polygon) and shapely.is_valid_reason(polygon).startswith("Self-intersection")


def crossing_words(rule: object) -> str | None:
    """What became of a rule's area whose border crosses itself, in a sentence; None where none does."""
    import shapely

    areas = [one for one in (getattr(rule, "area", None), getattr(rule, "where", None)) if isinstance(one, Area)]
    if not any(area.crossed for area in areas):
        return None
    parts = sum(int(shapely.get_num_geometries(area.shape)) for area in areas)
    once, count = ("the part", "counts") if parts == 1 else (f"the {parts:,} parts", "count")
    return (
        f"Its polygon crosses itself: {once} that the border encloses once {count}, and what it encloses twice does "
        "not; draw it anew if another area is meant."
    )


def _crossings(polygon: Any) -> int:
    """How often the border meets itself elsewhere than from one edge to the next; counted no further than needed."""
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
    """Only the parts that have an area."""
    import shapely

    parts = [part for part in shapely.get_parts(shape, return_index=False) if part.geom_type in _AREAL]
    nested = [part for part in shapely.get_parts(shape) if part.geom_type == "GeometryCollection"]
    parts += [piece for part in nested for piece in shapely.get_parts(part) if piece.geom_type in _AREAL]
    if len(parts) == 1:
        return parts[0]
    return shapely.union_all(parts) if parts else shapely.Polygon()


_AREAL = ("Polygon", "MultiPolygon")


def _few_edges(polygon: Any, grow: int) -> Any:
    import shapely

    if _edge_count(polygon) <= MAX_EDGES:
        return polygon
    west, south, east, north = polygon.bounds
    size = max(east - west, north - south)
    simple, tolerance, moved = polygon, size / 20_000, 0.0
    while tolerance < size / 8:
        # Simplifying moves the border by at most the tolerances together; the buffer makes the change one-sided.
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

"""Area: a polygon in the scope's metres, with an exact test for points and a distance for gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from wayveil.rules.motion import Array, array_module, safe_sqrt

_CHUNK = 64
"""Number of edges that are compared with all points at a time; bounds the memory."""
_BLOCK = 1 << 15
"""Number of points processed at a time, so that they stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Area:
    """A polygon or multipolygon.

    `shape` is exact. `edges` bound the same area if it has at most `polygons.MAX_EDGES` edges. Otherwise they bound a
    simpler area that is a little larger or smaller, so that a zero penalty still means no violation.
    """

    shape: Any
    edges: np.ndarray
    """(edges, 4) ax, ay, bx, by in metres."""
    outline: Any
    """The polygon that `edges` bound."""
    crossed: bool = False
    """Whether the border crossed itself as it was drawn; `shape` then follows the even-odd rule."""

    def inside(self, x_m: np.ndarray, y_m: np.ndarray) -> np.ndarray:
        """Return whether each point lies in the interior, exactly."""
        import shapely

        return self._in_box(x_m, y_m, lambda x, y: shapely.contains_xy(self.shape, x, y))

    def touches(self, x_m: np.ndarray, y_m: np.ndarray) -> np.ndarray:
        """Return whether each point lies in the interior or on the border, exactly."""
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
        answer: np.ndarray = result
        return answer

    def depth_m(self, x_m: Array, y_m: Array) -> Array:
        """Return the signed distance to the border in metres: positive inside; its gradient is finite everywhere."""
        xp = array_module(x_m, y_m)
        if xp is not np:
            return _signed_depth(self.edges, x_m, y_m, xp)
        blocks = [
            _signed_depth(self.edges, x_m[start : start + _BLOCK], y_m[start : start + _BLOCK], np)
            for start in range(0, len(x_m), _BLOCK)
        ]
        return np.concatenate(blocks) if blocks else np.zeros(0)

    def reaches(self, x_m: np.ndarray, y_m: np.ndarray, margin_m: float) -> np.ndarray:
        """Return which points may be deeper than -margin; the others need no exact distance."""
        west, south, east, north = self.outline.bounds
        result: np.ndarray = (
            (x_m > west - margin_m) & (x_m < east + margin_m) & (y_m > south - margin_m) & (y_m < north + margin_m)
        )
        return result


def _signed_depth(edges: np.ndarray, x: Array, y: Array, xp: ModuleType) -> Array:
    still_x, still_y = (x, y) if xp is np else _without_gradient(x, y)
    best = xp.full_like(still_x, np.inf)
    nearest = xp.zeros(x.shape, dtype=np.int32)
    inside = xp.zeros(x.shape, dtype=bool)
    # The search for the nearest edge carries no gradient and holds points × 64 numbers at a time.
    for start in range(0, len(edges), _CHUNK):
        part = edges[start : start + _CHUNK]
        ax, ay, bx, by = (xp.asarray(part[:, column], dtype=x.dtype) for column in range(4))
        square = square_distance(still_x[:, None], still_y[:, None], (ax, ay, bx, by), xp)
        least = xp.argmin(square, axis=1)
        value = xp.min(square, axis=1)
        nearest = xp.where(value < best, (least + start).astype(np.int32), nearest)
        best = xp.minimum(best, value)
        spans = (ay > still_y[:, None]) != (by > still_y[:, None])
        rise = xp.where(by == ay, 1.0, by - ay)
        crossing = still_x[:, None] < ax + (still_y[:, None] - ay) / rise * (bx - ax)
        inside = inside ^ (xp.sum(spans & crossing, axis=1) % 2 == 1)
    picked = xp.asarray(edges, dtype=x.dtype)[nearest]
    distance = safe_sqrt(square_distance(x, y, picked.T, xp), xp)
    return xp.where(inside, distance, -distance)


def square_distance(x: Array, y: Array, piece: Sequence[Array] | Array, xp: ModuleType) -> Array:
    """Return the squared distance from (x, y) to the straight piece from a to b; `piece` has x and y of a and of b."""
    ax, ay, bx, by = piece
    ux, uy = bx - ax, by - ay
    square = ux * ux + uy * uy
    share = ((x - ax) * ux + (y - ay) * uy) / xp.where(square > 0, square, 1.0)
    share = xp.minimum(xp.maximum(share, 0.0), 1.0)
    dx, dy = x - ax - share * ux, y - ay - share * uy
    return dx * dx + dy * dy


def _without_gradient(x: Array, y: Array) -> tuple[Array, Array]:
    import jax

    return jax.lax.stop_gradient(x), jax.lax.stop_gradient(y)

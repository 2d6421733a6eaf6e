"""Routes that leave the roads where the roads do not reach the estimated density.

For example, a map has few of the paths of a campus, and cheapest paths go around it. However slow its streets are made,
the few routes on them cannot account for the density there. So some of the routes that pass nearby visit it off-road.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid, blocks_of
from wayveil.core.polylines import Polylines
from wayveil.core.pyramid import Field, pool
from wayveil.synthesis.place.points import Course, adjusted, course_of, slowness_weight
from wayveil.synthesis.routes.road_shapes import with_short_steps
from wayveil.synthesis.routes.settings import OFFROAD, ROADS
from wayveil.synthesis.trips.draw import within_blocks


def leave_roads(
    lines: Polylines, points: NDArray[np.int64], target: Field, grid: Grid, random: np.random.Generator
) -> Polylines:
    """The routes, some with an off-road visit in blocks where the density on roads is below the target.

    In each block, a route either follows its road or passes through one place that is drawn in proportion to the
    missing density. The probability of the second is the missing share of the block's time. Ends do not move.

    Parameters
    ----------
    points
        Number of fixes of each route, which is the weight of its time.
    target
        The target density of fixes.
    """
    missing = _out_of_reach(course_of(lines, grid), points, target)
    side = max(1, round(OFFROAD.block_m / grid.cell_m))
    wanted = pool(target, side)
    share = np.divide(pool(missing, side), wanted, out=np.zeros_like(wanted), where=wanted > 0)
    chance = np.clip((share - OFFROAD.usual_share) / (1 - OFFROAD.usual_share), 0.0, 1.0)
    if not chance.any():
        return lines
    block = blocks_of(grid, side).index(lines.x_m, lines.y_m)
    first = _first_of_passages(lines, block)
    passage = np.cumsum(first) - 1
    leaves = random.random(passage[-1] + 1) < chance.ravel()[block[first]]
    ends = np.r_[lines.offsets[:-1], lines.offsets[1:] - 1]
    leaves[passage[ends]] = False
    away = np.flatnonzero(first & leaves[passage])
    kept = first | ~leaves[passage]
    x, y = lines.x_m.copy(), lines.y_m.copy()
    x[away], y[away] = within_blocks(missing, side, block[away], grid, random)
    offsets = ragged.offsets_of(ragged.sums(kept, lines.offsets))
    return with_short_steps(Polylines(offsets, x[kept], y[kept]), ROADS.vertex_cells * grid.cell_m)


def _out_of_reach(course: Course, points: NDArray[np.int64], target: Field) -> Field:
    """The part of the target that the routes do not reach, after fitting the slowness of each cell."""
    slowness = np.ones_like(target)
    for _ in range(OFFROAD.rounds):
        slowness = adjusted(slowness, target, _time_spent(course, slowness, points, target))
    return np.asarray(np.maximum(target - _time_spent(course, slowness, points, target), 0.0))


def _time_spent(course: Course, slowness: Field, points: NDArray[np.int64], target: Field) -> Field:
    """Time of all routes in each cell, scaled to the target's sum."""
    offsets, time = course.lines.offsets, slowness_weight(course, slowness)
    each = points / np.maximum(ragged.sums(time, offsets), 1e-300)
    time *= np.repeat(each, np.diff(offsets))
    spent = np.bincount(course.cell, time, minlength=target.size).reshape(target.shape)
    return np.asarray(spent * (target.sum() / max(spent.sum(), 1e-300)))


def _first_of_passages(lines: Polylines, block: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The first vertex of each stretch of a route inside one block; each end is a separate stretch."""
    first = np.ones(len(block), bool)
    first[1:] = block[1:] != block[:-1]
    first[lines.offsets[:-1]] = True
    first[lines.offsets[:-1] + 1] = True
    first[lines.offsets[1:] - 1] = True
    return first

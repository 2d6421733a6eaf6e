"""offroad: where the map's roads do not lead to what the release says is there, some routes leave them.

A campus has few of its ways on the map, and cheapest paths go around it; however slow its streets are made, the few
routes on them cannot bring there the time that people spend. There the routes that come by take a walk through it.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid, blocks_of
from wayveil.polylines import Polylines
from wayveil.pyramid import Field, pool
from wayveil.synthesis.draw import within_blocks
from wayveil.synthesis.placing import Course, adjusted, course_of, slowness_weight
from wayveil.synthesis.road_network import VERTEX_CELLS
from wayveil.synthesis.road_shapes import with_short_steps

_BLOCK_M = 800.0
_ROUNDS = 3
_USUAL = 0.4
"""Share of a block's time that may stay out of reach: a field and routes never agree cell by cell."""


def leave_roads(
    lines: Polylines, points: NDArray[np.int64], target: Field, grid: Grid, random: np.random.Generator
) -> Polylines:
    """The routes, some with a visit to a place off their road in blocks that the roads do not fill.

    A route passes a block on its road, or straight by one place in it that is drawn in proportion to what is missing;
    the second as often as a part of the block's time is missing. Ends stay where they are.

    Parameters
    ----------
    points
        How many fixes each route will have: how much its time counts.
    target
        Where the release says that time is spent.
    """
    missing = _out_of_reach(course_of(lines, grid), points, target)
    side = max(1, round(_BLOCK_M / grid.cell_m))
    wanted = pool(target, side)
    share = np.divide(pool(missing, side), wanted, out=np.zeros_like(wanted), where=wanted > 0)
    chance = np.clip((share - _USUAL) / (1 - _USUAL), 0.0, 1.0)
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
    offsets = np.r_[0, np.cumsum(np.add.reduceat(kept, lines.offsets[:-1], dtype=np.int64))]
    return with_short_steps(Polylines(offsets, x[kept], y[kept]), VERTEX_CELLS * grid.cell_m)


def _out_of_reach(course: Course, points: NDArray[np.int64], target: Field) -> Field:
    """What the routes leave of the target, with each place made as slow or fast as it takes."""
    slowness = np.ones_like(target)
    for _ in range(_ROUNDS):
        slowness = adjusted(slowness, target, _time_spent(course, slowness, points, target))
    return np.asarray(np.maximum(target - _time_spent(course, slowness, points, target), 0.0))


def _time_spent(course: Course, slowness: Field, points: NDArray[np.int64], target: Field) -> Field:
    """Time of all routes in each cell, scaled to the target's sum."""
    offsets, time = course.lines.offsets, slowness_weight(course, slowness)
    each = points / np.maximum(np.add.reduceat(time, offsets[:-1]), 1e-300)
    time *= np.repeat(each, np.diff(offsets))
    spent = np.bincount(course.cell, time, minlength=target.size).reshape(target.shape)
    return np.asarray(spent * (target.sum() / max(spent.sum(), 1e-300)))


def _first_of_passages(lines: Polylines, block: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The first vertex of each stretch of a route inside one block; an end is a stretch of its own."""
    first = np.ones(len(block), bool)
    first[1:] = block[1:] != block[:-1]
    first[lines.offsets[:-1]] = True
    first[lines.offsets[:-1] + 1] = True
    first[lines.offsets[1:] - 1] = True
    return first

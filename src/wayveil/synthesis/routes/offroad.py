"""Routes that leave the roads where routes on roads cannot reproduce the estimated density.

For example, a map lacks most paths of a campus, so cheapest paths go around it. However slowly trips move on the few
mapped streets, they cannot account for the density there. So some routes that pass nearby make an off-road visit.

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
    """Add off-road visits to some routes, in blocks where the density on roads is below the target.

    In each block, a route either follows its road or passes through one place that is drawn in proportion to the
    missing density. The probability of leaving the road grows with the share of the block's density that is missing.
    Starts and ends do not move.

    Parameters
    ----------
    points
        Number of GPS fixes of each route: the weight of its time.
    target
        Target density of GPS fixes.
    """
    missing = _missing_density(course_of(lines, grid), points, target)
    side = max(1, round(OFFROAD.block_m / grid.cell_m))
    wanted = pool(target, side)
    share = np.divide(pool(missing, side), wanted, out=np.zeros_like(wanted), where=wanted > 0)
    chance = np.clip((share - OFFROAD.usual_share) / (1 - OFFROAD.usual_share), 0.0, 1.0)
    if not chance.any():
        return lines
    block = blocks_of(grid, side).index(lines.x_m, lines.y_m)
    first = _passage_starts(lines, block)
    passage = np.cumsum(first) - 1
    leaves = random.random(passage[-1] + 1) < chance.ravel()[block[first]]
    ends = np.r_[lines.offsets[:-1], lines.offsets[1:] - 1]
    leaves[passage[ends]] = False
    moved = np.flatnonzero(first & leaves[passage])
    kept = first | ~leaves[passage]
    x, y = lines.x_m.copy(), lines.y_m.copy()
    x[moved], y[moved] = within_blocks(missing, side, block[moved], grid, random)
    offsets = ragged.offsets_of(ragged.sums(kept, lines.offsets))
    return with_short_steps(Polylines(offsets, x[kept], y[kept]), ROADS.vertex_cells * grid.cell_m)


def _missing_density(course: Course, points: NDArray[np.int64], target: Field) -> Field:
    """The part of the target that the routes do not reproduce, even after fitting the slowness of each cell."""
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


def _passage_starts(lines: Polylines, block: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Marks the first vertex of each stretch of a route inside one block; each end of a route is its own stretch."""
    first = np.ones(len(block), bool)
    first[1:] = block[1:] != block[:-1]
    first[lines.offsets[:-1]] = True
    first[lines.offsets[:-1] + 1] = True
    first[lines.offsets[1:] - 1] = True
    return first

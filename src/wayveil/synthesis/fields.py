"""fields: the noisy grids of a release → where points lie and where trajectories begin and end.

With a map three opinions about the same noisy counts are pooled: the Bayesian estimate, the network's correction of it,
and what the network says without the map. They err in different places, so their geometric mean errs less.

Privacy: free (post-processing of the release).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil.density import NoisyLevel, estimate_field
from wayveil.grid import Grid
from wayveil.progress import nobody
from wayveil.pyramid import Field, pool, spread
from wayveil.questions.answer import Answer
from wayveil.questions.field import Blocks
from wayveil.synthesis.mapped import estimate_mapped_field

if TYPE_CHECKING:
    from wayveil.synthesis.learned.refine import Kind, Refined

_END_POINT_POWER = 1.5
_LEAST = 1e-300


@dataclass(frozen=True)
class Pooling:
    """Weights of two opinions beside the network's own on a map."""

    bayes: float
    unmapped: float


OCCUPANCY, END_POINTS = Pooling(bayes=0.2, unmapped=0.05), Pooling(bayes=0.2, unmapped=0.2)
"""Seen on the trial data, one rule for all of it (docs/explanation/model-card.md): a map tells less about ends than
about ways."""


def estimate_fields(
    points: Sequence[NoisyLevel],
    ends: Sequence[NoisyLevel],
    count: float,
    area: Field,
    road_features: Sequence[Field] = (),
    learned: bool = False,
    told: Callable[[float], None] = nobody,
) -> tuple[Field, Field]:
    """Occupancy, and starts and ends together, each adding up to `count` or nearly so.

    Parameters
    ----------
    points, ends
        The noisy grids of both fields, from coarse to fine.
    road_features
        Of a public map; empty without one.
    learned
        Whether the network is asked too; without it the Bayesian estimate is all there is.
    told
        Hears about how much of the work is done.
    """
    bayes = _bayes(points, ends, count, area, road_features)
    whole = 2.0 if road_features else 1.0
    told(0.4 / whole)
    if not learned:
        return bayes
    seen = [part.field for part in _learned(points, ends, count, area, bayes, road_features)]
    told(1.0 / whole)
    if not road_features:
        return seen[0], seen[1]
    unmapped = _learned(points, ends, count, area, _bayes(points, ends, count, area, ()), (), aloud=False)
    sides, rules = (points[0].side, ends[0].side), (OCCUPANCY, END_POINTS)
    occupancy, both_ends = (
        on_a_map(own, other, third.field if third.share > 0 else None, side, rule)
        for own, other, third, side, rule in zip(seen, bayes, unmapped, sides, rules, strict=True)
    )
    return occupancy, both_ends


def on_a_map(own: Field, bayes: Field, unmapped: Field | None, side: int, rule: Pooling) -> Field:
    """Three opinions pooled, with the block sums of the network without the map; two where that has none (None).

    Simulated maps say more about their traffic than real ones do: how much there is in which part of the city is told
    better without the map, and in which street with it.
    """
    if unmapped is None:
        return pool_opinions(own, [(bayes, rule.bayes)])
    pooled = pool_opinions(own, [(bayes, rule.bayes), (unmapped, rule.unmapped)])
    return with_blocks_of(pooled, unmapped, side)


def pool_opinions(own: Field, others: Sequence[tuple[Field, float]]) -> Field:
    """own^(1 − Σw) · Π other^w, with the sum of `own`: the geometric mean of distributions over the same cells."""
    log = (1 - sum(weight for _, weight in others)) * np.log(np.maximum(own, _LEAST))
    for field, weight in others:
        log += weight * np.log(np.maximum(field, _LEAST))
    pooled = np.where(own > 0, np.exp(log - log.max()), 0.0)
    return pooled * (own.sum() / max(pooled.sum(), _LEAST))


def with_blocks_of(field: Field, sums_of: Field, side: int) -> Field:
    """The field with each block scaled to another's sum; a block that is empty in either stays as it is."""
    mine, theirs = pool(field, side), pool(sums_of, side)
    factor = np.divide(theirs, mine, out=np.ones_like(mine), where=(mine > 0) & (theirs > 0))
    moved = field * spread(factor, side, field.shape)
    return moved * (sums_of.sum() / max(moved.sum(), _LEAST))


def cell_area(grid: Grid) -> Field:
    """Share of each base cell that lies inside the scope."""
    columns = np.clip(grid.width_m / grid.cell_m - np.arange(grid.columns), 0.0, 1.0)
    rows = np.clip(grid.height_m / grid.cell_m - np.arange(grid.rows), 0.0, 1.0)
    return np.outer(rows, columns)


def split_ends(answer: Answer, both: Field) -> tuple[Field, Field]:
    """Starts and ends from their sum and from the noisy difference on blocks, shrunk by its known noise."""
    assert isinstance(answer.question, Blocks)
    side = answer.question.side
    difference = answer.counts
    kept = np.maximum(0.0, 1 - 2 * answer.noise**2 / np.maximum(difference**2, 1e-9))
    blocks = pool(both, side)
    limited = np.clip(difference * kept, -0.9 * blocks, 0.9 * blocks)
    tilt = np.divide(limited, blocks, out=np.zeros_like(blocks), where=blocks > 0)
    fine_tilt = spread(tilt, side, both.shape)
    return both * (1 + fine_tilt), both * (1 - fine_tilt)


def _bayes(
    points: Sequence[NoisyLevel],
    ends: Sequence[NoisyLevel],
    count: float,
    area: Field,
    road_features: Sequence[Field],
) -> tuple[Field, Field]:
    if road_features:
        occupancy = estimate_mapped_field(points, count, area, road_features)
    else:
        occupancy = estimate_field(points, count, area)
    # Ends lie where points lie; within a block they keep to its busiest cells.
    sharp = (occupancy / max(float(occupancy.max()), _LEAST)) ** _END_POINT_POWER
    return occupancy, estimate_field(ends, count, area, base=sharp, coarse_base=occupancy, neighbours=False)


def _learned(
    points: Sequence[NoisyLevel],
    ends: Sequence[NoisyLevel],
    count: float,
    area: Field,
    bayes: tuple[Field, Field],
    road_features: Sequence[Field],
    aloud: bool = True,
) -> "tuple[Refined, Refined]":
    """Both fields corrected by the network, with a warning where it steps back if `aloud`."""
    from wayveil.synthesis.learned import features
    from wayveil.synthesis.learned import refine as eye

    def corrected(levels: Sequence[NoisyLevel], field: Field, kind: "Kind", beside: NDArray[np.float32]) -> "Refined":
        roads = road_features or None
        found = eye.refine(levels, count, area, field, kind=kind, beside=beside, road_features=roads)
        return eye.aloud(found) if aloud else found

    occupancy = corrected(points, bayes[0], "occupancy", features.beside_occupancy(ends, bayes[1], area))
    return occupancy, corrected(ends, bayes[1], "end_points", features.beside_end_points(occupancy.field, area))

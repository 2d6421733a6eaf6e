"""Densities of points and of the ends of trajectories, from the noisy grids of a release.

With a map, three estimates from the same noisy counts are pooled: the Bayesian one, the network's correction of it, and
the network's estimate without the map. Their errors are partly independent, so their geometric mean is more accurate.

Privacy: free (post-processing of the release).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.core.density import NoisyLevel, estimate_field
from wayveil.core.grid import Grid
from wayveil.core.pyramid import Field, pool, spread
from wayveil.progress import Progress, quiet
from wayveil.questions.answer import Answer
from wayveil.questions.field import Blocks
from wayveil.synthesis.estimate.learned import features
from wayveil.synthesis.estimate.learned.refine import Kind, Observed, Refined, refine, with_warning
from wayveil.synthesis.estimate.mapped_density import estimate_mapped_field
from wayveil.synthesis.estimate.settings import FIELDS

_LEAST = 1e-300
"""Keeps logarithms and quotients of an empty field finite."""


@dataclass(frozen=True)
class Pooling:
    """Weights of two other estimates that are pooled with the network's estimate on a map."""

    bayes: float
    unmapped: float


OCCUPANCY, END_POINTS = Pooling(bayes=0.2, unmapped=0.05), Pooling(bayes=0.2, unmapped=0.2)
"""Chosen on the trial data, the same for all datasets (docs/explanation/model-card.md). A map is less informative about
ends than about routes."""


@dataclass(frozen=True, eq=False)
class Grids:
    """What is known about where points and ends are."""

    points: Sequence[NoisyLevel]
    """The noisy grids of the points, from coarse to fine."""
    ends: Sequence[NoisyLevel]
    """The noisy grids of the starts and ends."""
    count: float
    area: Field
    """Share of each cell that lies inside the scope."""
    road_features: Sequence[Field] = ()
    """Road features of a public map; empty without one."""


def estimate_fields(grids: Grids, learned: bool = False, progress: Progress = quiet) -> tuple[Field, Field]:
    """Occupancy, and starts and ends together; the sum of each is about `count`.

    With `learned`, the network corrects the Bayesian estimate.
    """
    bayes = _bayes(grids)
    whole = 2.0 if grids.road_features else 1.0
    progress("estimating", 0.4 / whole)
    if not learned:
        return bayes
    seen = [part.field for part in _learned(grids, bayes)]
    progress("estimating", 1.0 / whole)
    if not grids.road_features:
        return seen[0], seen[1]
    plain = replace(grids, road_features=())
    unmapped = _learned(plain, _bayes(plain), warn=False)
    sides, rules = (grids.points[0].side, grids.ends[0].side), (OCCUPANCY, END_POINTS)
    occupancy, both_ends = (
        on_a_map(own, other, third.field if third.share > 0 else None, side, rule)
        for own, other, third, side, rule in zip(seen, bayes, unmapped, sides, rules, strict=True)
    )
    return occupancy, both_ends


def on_a_map(own: Field, bayes: Field, unmapped: Field | None, side: int, rule: Pooling) -> Field:
    """Three estimates pooled, with the block sums of the network without the map; two if `unmapped` is None.

    The network was trained on simulated maps, which are more informative about traffic than real ones. So the mass of
    each part of the city is estimated better without the map, and its distribution over streets with it.
    """
    if unmapped is None:
        return pool_estimates(own, [(bayes, rule.bayes)])
    pooled = pool_estimates(own, [(bayes, rule.bayes), (unmapped, rule.unmapped)])
    return with_blocks_of(pooled, unmapped, side)


def pool_estimates(own: Field, others: Sequence[tuple[Field, float]]) -> Field:
    """own^(1 − Σw) · Π other^w, with the sum of `own`: the geometric mean of distributions over the same cells."""
    log = (1 - sum(weight for _, weight in others)) * np.log(np.maximum(own, _LEAST))
    for field, weight in others:
        log += weight * np.log(np.maximum(field, _LEAST))
    pooled = np.where(own > 0, np.exp(log - log.max()), 0.0)
    result: Field = pooled * (own.sum() / max(pooled.sum(), _LEAST))
    return result


def with_blocks_of(field: Field, sums_of: Field, side: int) -> Field:
    """The field with each block scaled to the block's sum in `sums_of`; unchanged if it is empty in either field."""
    own, other = pool(field, side), pool(sums_of, side)
    factor = np.divide(other, own, out=np.ones_like(own), where=(own > 0) & (other > 0))
    moved = field * spread(factor, side, field.shape)
    result: Field = moved * (sums_of.sum() / max(moved.sum(), _LEAST))
    return result


def cell_area(grid: Grid) -> Field:
    """Share of each base cell that lies inside the scope."""
    columns = np.clip(grid.width_m / grid.cell_m - np.arange(grid.columns), 0.0, 1.0)
    rows = np.clip(grid.height_m / grid.cell_m - np.arange(grid.rows), 0.0, 1.0)
    return np.outer(rows, columns)


def split_ends(answer: Answer, both: Field) -> tuple[Field, Field]:
    """Starts and ends from their sum and from the noisy difference in blocks, with shrinkage by its known noise."""
    assert isinstance(answer.question, Blocks)
    side = answer.question.side
    blocks = pool(both, side)
    most = FIELDS.most_tilt * blocks
    limited = np.clip(_shrunk(answer.counts, 2 * answer.noise**2, blocks), -most, most)
    tilt = np.divide(limited, blocks, out=np.zeros_like(blocks), where=blocks > 0)
    fine_tilt = spread(tilt, side, both.shape)
    return both * (1 + fine_tilt), both * (1 - fine_tilt)


def _shrunk(difference: Field, variance: float, blocks: Field) -> Field:
    """Posterior mean of the differences, by adaptive shrinkage (Stephens 2017).

    Each is normal, with a spread that is some share of the ends of its block. The distribution of these shares follows
    from all differences, by expectation maximisation: small in most blocks, large in a few, such as an airport's.
    """
    spreads = np.geomspace(*FIELDS.tilt_spreads, FIELDS.tilt_sizes)[:, None, None] * blocks
    total = spreads**2 + max(variance, 1e-9)
    log_likelihood = -0.5 * (np.log(total) + difference**2 / total)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=0))
    share = np.full((FIELDS.tilt_sizes, 1, 1), 1 / FIELDS.tilt_sizes)
    for _ in range(FIELDS.tilt_rounds):
        posterior = share * likelihood
        posterior /= posterior.sum(axis=0)
        share = posterior.mean(axis=(1, 2), keepdims=True)
    result: Field = difference * (posterior * spreads**2 / total).sum(axis=0)
    return result


def _bayes(grids: Grids) -> tuple[Field, Field]:
    count, area = grids.count, grids.area
    if grids.road_features:
        occupancy = estimate_mapped_field(grids.points, count, area, grids.road_features)
    else:
        occupancy = estimate_field(grids.points, count, area)
    # Ends follow the density of points; within a block they concentrate in its busiest cells.
    sharp = (occupancy / max(float(occupancy.max()), _LEAST)) ** FIELDS.end_point_power
    return occupancy, estimate_field(grids.ends, count, area, base=sharp, coarse_base=occupancy, neighbours=False)


def _learned(grids: Grids, bayes: tuple[Field, Field], warn: bool = True) -> tuple[Refined, Refined]:
    """Both fields corrected by the network; if `warn`, with a warning when the Bayesian estimate is used instead."""
    area = grids.area

    def corrected(
        levels: Sequence[NoisyLevel], field: Field, kind: Kind, other_field: NDArray[np.float32]
    ) -> Refined:
        observed = Observed(levels, grids.count, area, grids.road_features or None)
        refined = refine(observed, field, kind=kind, other_field=other_field)
        return with_warning(refined) if warn else refined

    from_ends = features.inputs_for_occupancy(grids.ends, bayes[1], area)
    occupancy = corrected(grids.points, bayes[0], "occupancy", from_ends)
    from_occupancy = features.inputs_for_end_points(occupancy.field, area)
    return occupancy, corrected(grids.ends, bayes[1], "end_points", from_occupancy)

"""From three noisy grids to one smooth density: top-down empirical Bayes with a blind-spot pass.

A cell's rate is lognormal around parent × share; its posterior mean under the known noise is the estimate.
Then a regression of the noisy counts on the estimates *around* each cell (never on the cell itself, so noise cannot
predict itself) gives a better prior mean, and the posterior is taken again. The estimate with a road map is in
`wayveil.synthesis.estimate.mapped_density`.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wayveil.core.nonnegative import nonnegative_fit
from wayveil.core.posterior import posterior_mean
from wayveil.core.pyramid import Field, interpolate, pool, shifted, spread

DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))
"""(rows, columns) to four of the eight neighbours of a cell; the other four lie opposite."""
_UNCLEAR_UNITS = 100.0
"""Signal of all levels together, in noise units, below which they hardly tell how much cells differ. Averaging is
better at 72 to 84 units in five simulated cities, and was 2 % worse at 123 units on T-Drive (research/log.md)."""
_USUAL_SPREAD = 0.5
"""Prior mean of the standard deviation of a cell's log rate around the expected one (a factor of 1.6), used where the
signal is below `_UNCLEAR_UNITS`."""
_CONSISTENCY = 0.25
"""How strongly a level is pulled to its parent's totals: 0 not at all, 1 entirely."""


@dataclass(frozen=True, eq=False)
class NoisyLevel:
    """One noisy grid: counts in trajectories, the side of a cell in base cells, the noise in trajectories."""

    counts: Field
    side: int
    noise: float | Field
    """One scale for all cells, or one for each; for Gaussian noise, that of the Laplace noise of equal variance."""
    gaussian: bool = False

    @property
    def mean_noise(self) -> float:
        """One noise scale for all cells, from the mean of their precisions 1 / noise."""
        return float(1 / np.mean(1 / np.asarray(self.noise)))


def estimate_field(
    levels: Sequence[NoisyLevel],
    total: float,
    area: Field,
    base: Field | None = None,
    coarse_base: Field | None = None,
    neighbours: bool = True,
) -> Field:
    """Density on the base grid, summing to `total`.

    Parameters
    ----------
    levels
        From coarse to fine.
    area
        Share of each base cell that lies inside the scope.
    base
        A public or already estimated density that the field is expected to follow, or None for a flat one.
    coarse_base
        Expected density of the coarsest level, if it differs from `base`, which divides the mass inside a block.
    neighbours
        Whether the estimates of neighbouring cells are predictors of a cell.
    """
    unclear = total * sum(1 / level.mean_noise for level in levels) < _UNCLEAR_UNITS
    weight = area if base is None else (base / max(base.max(), 1e-300) + 1e-9) * area
    estimate: Field | None = None
    previous = 0
    for level in levels:
        shape = level.counts.shape
        share = pool(weight, level.side)
        if estimate is None:
            mean = pool(area * (weight if coarse_base is None else coarse_base), level.side)
            mean = total * mean / mean.sum()
        else:
            mean = from_parent(estimate, share, previous // level.side, shape, smooth=base is None)
        current = posterior_rates(level, mean, unclear)
        if neighbours and level.side <= levels[-1].side * 4:
            current = _blind_spot(level, current, mean, unclear)
        if estimate is not None:
            current = towards_parent(current, estimate, previous // level.side)
        estimate = current * (total / max(current.sum(), 1e-300))
        previous = level.side
    assert estimate is not None
    fine = _to_base(estimate, previous, weight, base)
    return reconcile(levels[:-1], fine, total, unclear)


def posterior_rates(level: NoisyLevel, mean: Field, unclear: bool) -> Field:
    """The posterior mean of the rates of a level, given their prior mean.

    The spread around the prior mean is estimated in groups of cells; if `unclear`, it stays close to the usual spread.
    """
    if not unclear:
        return posterior_mean(level, mean)
    return posterior_mean(level, mean, groups=1, usual_spread=_USUAL_SPREAD, averaged=True)


def reconcile(coarser: Sequence[NoisyLevel], field: Field, total: float, unclear: bool = False) -> Field:
    """Scale the field's blocks to the posterior mean of their sums, given the coarser levels.

    A posterior mean is never zero, so the sum over a hundred thousand nearly empty cells is too large, and the
    outskirts get too much mass. Coarse sums have little relative noise, so their posterior means correct this.
    """
    for level in coarser:
        sums = pool(field, level.side)
        better = posterior_rates(level, sums, unclear)
        factor = np.divide(better, sums, out=np.ones_like(sums), where=sums > 0)
        field = field * spread(factor, level.side, field.shape)
    result: Field = field * (total / max(field.sum(), 1e-300))
    return result


def from_parent(parent: Field, share: Field, ratio: int, shape: tuple[int, int], smooth: bool) -> Field:
    """Prior mean of the children: the parent's estimate split by share; if `smooth`, averaged with an interpolation."""
    parent_share = pool(share, ratio)
    flat = spread(parent / np.maximum(parent_share, 1e-12), ratio, shape) * share
    if not smooth:
        return flat
    interpolated = interpolate(parent / np.maximum(parent_share, 1e-9), ratio, shape) * share
    interpolated_total = pool(interpolated, ratio)
    factor = np.divide(parent, interpolated_total, out=np.zeros_like(parent), where=interpolated_total > 0)
    return 0.5 * flat + 0.5 * interpolated * spread(factor, ratio, shape)


def _blind_spot(level: NoisyLevel, estimate: Field, mean: Field, unclear: bool) -> Field:
    """Posterior mean with a prior mean from a regression on the old prior mean and on neighbouring cells."""
    columns = [mean]
    for down, right in DIRECTIONS:
        for reach in (1, 2):
            ahead = shifted(estimate, down * reach, right * reach)
            behind = shifted(estimate, -down * reach, -right * reach)
            columns.append(0.5 * (ahead + behind))
            if reach == 1:  # a street continues on both sides of a cell, so both neighbours on a line are busy
                columns.append(np.sqrt(ahead * behind))
    design = np.stack([column.ravel() for column in columns], axis=1)
    precision = 1 / np.sqrt(2 * np.ravel(level.noise) ** 2 + mean.ravel() ** 2)
    scaled = design * precision[:, None]
    gram = scaled.T @ scaled
    gram += (1e-10 * np.trace(gram) + 1e-300) * np.eye(len(gram))
    coefficients = nonnegative_fit(gram, scaled.T @ (level.counts.ravel() * precision))
    better_mean = np.maximum(design @ coefficients, 1e-6).reshape(mean.shape)
    better_mean[mean <= 0] = 0.0
    return posterior_rates(level, better_mean, unclear)


def towards_parent(current: Field, parent: Field, ratio: int) -> Field:
    """Pull the sums of the estimate's blocks to the coarser estimate."""
    totals = pool(current, ratio)
    factor = np.divide(parent, totals, out=np.zeros_like(parent), where=totals > 0) ** _CONSISTENCY
    return current * spread(factor, ratio, current.shape)


def _to_base(estimate: Field, side: int, weight: Field, base: Field | None) -> Field:
    """Spread the finest level over the base cells, in proportion to the base, or smoothly."""
    if side == 1:
        return estimate
    detail = weight
    if base is None:
        detail = interpolate(estimate, side, weight.shape) * weight + 1e-9 * weight
    factor = estimate / np.maximum(pool(detail, side), 1e-12)
    return spread(factor, side, weight.shape) * detail

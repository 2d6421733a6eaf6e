"""From noisy grids and a road map to one density: each class of road has a rate that the noisy counts tell.

A cell is expected to hold Σ_k r_k·f_k (f_k its length of roads of class k, one feature for places without a map, one
for everything off the roads), times how busy its surroundings are. The rates start at what is known of any city (wide
roads carry more) and are drawn from there by each level's counts, by ridge regression with the known noise; so at low
ε the map speaks and at high ε the data. Neighbours then say how much busier a cell is *than its map expects*: compared
so, a street predicts the next street and not the yard beside it.

Privacy: free (post-processing; the map is public).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wayveil.density import NoisyLevel, _from_parent, _towards_parent, reconcile
from wayveil.nonnegative import nonnegative_fit
from wayveil.posterior import posterior_mean
from wayveil.pyramid import Field, pool, shifted, spread

ROAD_RATES = (16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25)
"""Expected points a cell width of road, from motorway to service, and a cell without a map: each class of the hierarchy
carries twice the next. A rule of thumb and not a fit; it did best of four on simulated cities
(docs/explanation/model-card.md)."""
_OFF_ROAD_RATE = 0.05
_RATE_SPREAD = 0.3
"""Standard deviation of a rate's correction at one level, before its counts are seen."""
_LEAST_CORRECTION = 0.05
_OWN_SPREAD, _AROUND_SPREAD = 0.3, 0.1
_DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def estimate_mapped_field(
    levels: Sequence[NoisyLevel],
    total: float,
    area: Field,
    features: Sequence[Field],
    rates: Sequence[float] = ROAD_RATES,
) -> Field:
    """Density on the base grid, summing to `total`, that follows the roads; arguments as of `estimate_field`.

    Parameters
    ----------
    features
        As `road_features` gives them: public quantities a base cell.
    rates
        What is expected of one unit of each feature before any count is seen; only their ratios matter.
    """
    expected = [rate * feature * area for rate, feature in zip(rates, features, strict=True)]
    expected.append(_OFF_ROAD_RATE * area)
    parts = np.stack(expected)
    estimate: Field | None = None
    previous = 0
    for level in levels:
        ratio = previous // level.side
        means = _class_means(level, parts, estimate, ratio, total)
        parts = parts * _corrections(level, means)[:, None, None]
        means = _class_means(level, parts, estimate, ratio, total)
        current = posterior_mean(level.counts, means.sum(axis=0), level.noise)
        if level.side <= 4 * levels[-1].side:
            current = _with_surroundings(level, current, means, pool(parts.sum(axis=0), level.side))
        if estimate is not None:
            current = _towards_parent(current, estimate, ratio)
        estimate = current * (total / max(current.sum(), 1e-300))
        previous = level.side
    assert estimate is not None
    base = parts.sum(axis=0)
    factor = estimate / np.maximum(pool(base, previous), 1e-300)
    return reconcile(levels[:-1], spread(factor, previous, base.shape) * base, total)


def _class_means(
    level: NoisyLevel, parts: NDArray[np.float64], parent: Field | None, ratio: int, total: float
) -> NDArray[np.float64]:
    """(classes, rows, columns) prior mean of each cell of the level, divided among the classes that explain it."""
    pooled = np.stack([pool(part, level.side) for part in parts])
    share = pooled.sum(axis=0)
    if parent is None:
        mean = total * share / max(share.sum(), 1e-300)
    else:
        mean = _from_parent(parent, share, ratio, level.counts.shape, smooth=True)
    busy: Field = np.divide(mean, share, out=np.zeros_like(share), where=share > 0)
    return pooled * busy


def _corrections(level: NoisyLevel, means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Factor of each class's rate that this level's counts ask for."""
    ones = np.ones(len(means))
    return np.maximum(_ridge(level, means, means.sum(axis=0), ones, _RATE_SPREAD * ones), _LEAST_CORRECTION)


def _with_surroundings(level: NoisyLevel, estimate: Field, means: NDArray[np.float64], share: Field) -> Field:
    """Posterior under a prior mean that also listens to the cells around, never to the cell itself."""
    busier = np.divide(estimate, share, out=np.zeros_like(share), where=share > 0)
    around = [
        0.5 * (shifted(busier, down, right) + shifted(busier, -down, -right)) * share for down, right in _DIRECTIONS
    ]
    columns = np.concatenate([means, np.stack(around)])
    mean = means.sum(axis=0)
    spread_of = np.r_[np.full(len(means), _OWN_SPREAD), np.full(len(around), _AROUND_SPREAD)]
    coefficients = _ridge(level, columns, mean, np.zeros(len(columns)), spread_of)
    better = np.maximum(np.tensordot(coefficients, columns, axes=1), 1e-6)
    return posterior_mean(level.counts, np.where(mean > 0, better, 0.0), level.noise)


def _ridge(
    level: NoisyLevel,
    columns: NDArray[np.float64],
    mean: Field,
    centre: NDArray[np.float64],
    spread_of: NDArray[np.float64],
) -> NDArray[np.float64]:
    """argmin over c ≥ 0 of Σ (y − Xc)² / (2b² + μ²) + Σ ((c − centre) / spread)²: Laplace noise and lognormal cells."""
    precision = 1 / np.sqrt(2 * np.ravel(level.noise) ** 2 + mean.ravel() ** 2 + 1e-300)
    scaled = columns.reshape(len(columns), -1) * precision
    gram = scaled @ scaled.T + np.diag(spread_of**-2.0)
    right = scaled @ (level.counts.ravel() * precision) + centre / spread_of**2
    return nonnegative_fit(gram, right)

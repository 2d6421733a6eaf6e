"""From noisy grids and a road map to one density, with a rate for each road class estimated from the noisy counts.

The prior mean of a cell is Σ_k r_k·f_k (f_k is its length of roads of class k; one feature is for places without a map,
one for the area off the roads), times how busy its surroundings are. The prior of the rates is the same for all cities
(wide roads carry more), and each level's counts update them by ridge regression with the known noise. So the map
dominates at low ε and the data at high ε. Neighbouring cells then predict the ratio of a cell to its expectation *from
the map*, so that a busy street raises the prediction for the next street and not for the yard next to it.

Privacy: free (post-processing; the map is public).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wayveil.core.density import DIRECTIONS, NoisyLevel, from_parent, reconcile, towards_parent
from wayveil.core.nonnegative import nonnegative_fit
from wayveil.core.posterior import posterior_mean
from wayveil.core.pyramid import Field, pool, shifted, spread
from wayveil.synthesis.estimate.settings import MAPPED_DENSITY


def estimate_mapped_field(
    levels: Sequence[NoisyLevel],
    total: float,
    area: Field,
    features: Sequence[Field],
    rates: Sequence[float] = MAPPED_DENSITY.road_rates,
) -> Field:
    """Density on the base grid, summing to `total`, that follows the roads; arguments as in `estimate_field`.

    Parameters
    ----------
    features
        The result of `road_features`: public quantities per base cell.
    rates
        Prior mean of the count per unit of each feature; only their ratios matter.
    """
    expected = [rate * feature * area for rate, feature in zip(rates, features, strict=True)]
    expected.append(MAPPED_DENSITY.off_road_rate * area)
    parts = np.stack(expected)
    estimate: Field | None = None
    previous = 0
    for level in levels:
        ratio = previous // level.side
        means = _class_means(level, parts, estimate, ratio, total)
        parts = parts * _corrections(level, means)[:, None, None]
        means = _class_means(level, parts, estimate, ratio, total)
        current = posterior_mean(level, means.sum(axis=0))
        if level.side <= 4 * levels[-1].side:
            current = _with_surroundings(level, current, means, pool(parts.sum(axis=0), level.side))
        if estimate is not None:
            current = towards_parent(current, estimate, ratio)
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
        mean = from_parent(parent, share, ratio, level.counts.shape, smooth=True)
    busy: Field = np.divide(mean, share, out=np.zeros_like(share), where=share > 0)
    return pooled * busy


def _corrections(level: NoisyLevel, means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Factor on each class's rate, estimated from this level's counts."""
    ones = np.ones(len(means))
    return np.maximum(
        _ridge(level, means, means.sum(axis=0), ones, MAPPED_DENSITY.rate_spread * ones),
        MAPPED_DENSITY.least_correction,
    )


def _with_surroundings(level: NoisyLevel, estimate: Field, means: NDArray[np.float64], share: Field) -> Field:
    """Posterior mean with a prior mean that is also regressed on neighbouring cells, never on the cell itself."""
    busier = np.divide(estimate, share, out=np.zeros_like(share), where=share > 0)
    around = [
        0.5 * (shifted(busier, down, right) + shifted(busier, -down, -right)) * share for down, right in DIRECTIONS
    ]
    columns = np.concatenate([means, np.stack(around)])
    mean = means.sum(axis=0)
    spread_of = np.r_[
        np.full(len(means), MAPPED_DENSITY.own_spread), np.full(len(around), MAPPED_DENSITY.around_spread)
    ]
    coefficients = _ridge(level, columns, mean, np.zeros(len(columns)), spread_of)
    better = np.maximum(np.tensordot(coefficients, columns, axes=1), 1e-6)
    return posterior_mean(level, np.where(mean > 0, better, 0.0))


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

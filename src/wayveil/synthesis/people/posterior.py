"""Estimates of small tables from noisy counts: averages over models, each weighted by how well it explains the answer.

A model says which counts are expected and how far the true ones may be from them. The first one is that trips belong to
people at random; its prior probability is one half. The noise is known, so an answer that this model explains about as
well as any other leaves the expected counts of random trips nearly as they are.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SPREADS = (0.0, 0.1, 0.3, 1.0, 3.0)
"""Standard deviations of true counts around those of a model, relative to the mean count. The variance is proportional
to the expected count plus the mean count."""
AT_RANDOM = 0.5
"""Prior probability that the trips of a person have nothing in common, so that the first model holds exactly."""
SCALES = (0.15, 0.5, 1.5, 4.0)
"""Scales, in bins, on either side of the centre of a shape."""


@dataclass(frozen=True, eq=False)
class Models:
    """Expected shares, a row per model, with their prior probabilities."""

    shares: Floats
    prior: Floats

    def estimate(self, noisy: Floats, sd: float, total: float) -> Floats:
        """The posterior mean of the counts, which add up to `total`."""
        mean = (max(total, 0.0) * self.shares)[:, None, :]
        average = mean.mean(axis=2, keepdims=True)
        noise, variance = np.square(sd), np.square(SPREADS)[None, :, None] * (mean + average) * average
        whole = noise + variance
        fit = -0.5 * ((noisy - mean) ** 2 / whole + np.log(whole)).sum(axis=2)
        chance = np.repeat(self.prior[:, None] / len(SPREADS), len(SPREADS), axis=1)
        chance *= (1 - AT_RANDOM) / (1 - chance[0, 0])
        chance[0, 0] = AT_RANDOM
        log_weight = fit + np.log(chance)
        weight = np.exp(log_weight - log_weight.max())
        counts = np.einsum("sg,sgk->k", weight, mean + (noisy - mean) * variance / whole) / weight.sum()
        return projected(counts, max(total, 0.0))


def models_around(expected: Floats, ordered: bool) -> Models:
    """The model that trips belong to people at random; where bins are ordered, also shapes with one peak."""
    first = (expected / max(float(expected.sum()), 1e-300))[None]
    if not ordered:
        return Models(first, np.ones(1))
    bins = float(len(expected))
    others = shapes(np.arange(bins + 1) - 0.5, np.arange(-0.5, bins, 0.5), SCALES)
    return Models(np.vstack([first, others]), np.r_[0.5, np.full(len(others), 0.5 / len(others))])


def shapes(edges: Floats, centres: Floats, scales: tuple[float, ...]) -> Floats:
    """Shares in bins of asymmetric Laplace distributions; the first and the last bin take the tails."""
    centre, left, right = (grid.ravel()[:, None] for grid in np.meshgrid(centres, scales, scales, indexing="ij"))
    apart = np.asarray(edges)[None, 1:-1] - centre
    below = left / (left + right) * np.exp(np.minimum(apart, 0.0) / left)
    above = right / (left + right) * np.exp(-np.maximum(apart, 0.0) / right)
    running = np.where(apart < 0, below, 1 - above)
    return np.asarray(np.diff(running, axis=1, prepend=0.0, append=1.0))


def projected(values: Floats, total: float) -> Floats:
    """The nearest values that are not negative and add up to `total`: max(y − λ, 0)."""
    order = np.sort(values)[::-1]
    running = (np.cumsum(order) - total) / np.arange(1, len(order) + 1)
    last = int(np.flatnonzero(order > running)[-1]) if total > 0 else 0
    return np.asarray(np.maximum(values - running[last], 0.0))

"""The posterior mean of a count under its known noise: the estimate with the least expected KL divergence."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_NODES = np.linspace(-3.5, 4.0, 26)
"""Nodes of the quadrature for a standard normal variable."""
_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()
"""Weights of these nodes."""
_WEIGHTS_32 = _WEIGHTS.astype(np.float32)
_SPREADS = (0.04, 0.12, 0.25, 0.5, 0.8, 1.2, 1.6, 2.0, 2.5, 3.0)
"""Candidates for σ, the standard deviation of the logarithm of a cell; 3.0 is a factor of 20."""
_LOG_FLOOR = float(np.log(1e-300))
"""Least log likelihood of a cell, so that a single outlier does not determine σ."""
_LEAST_EXPONENT = np.float32(-80.0)
"""exp of anything smaller is 0 in float32."""
_LEAST_WEIGHT = 0.01
"""Least weight of a candidate for σ that is averaged over, as a share of the largest."""
_SAMPLE = 4000
"""Largest number of cells from which σ is estimated."""
_BLOCK = 1 << 13
"""Cells processed at a time, so that they stay in the cache."""


class NoisyCounts(Protocol):
    """Counts with the scale of their noise, such as an answer or a level of a field."""

    @property
    def counts(self) -> NDArray[np.float64]: ...

    @property
    def noise(self) -> float | NDArray[np.float64]:
        """Scale of Laplace noise: one for all counts or one for each."""
        ...

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian; it then has the variance of Laplace noise of scale `noise`."""
        ...


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy counts that were derived from others."""

    counts: NDArray[np.float64]
    noise: float | NDArray[np.float64]
    gaussian: bool = False


def noise_of(noisy: NoisyCounts) -> float:
    """The scale of the noise, if it is the same for all counts."""
    return float(np.asarray(noisy.noise).flat[0])


def posterior_mean(
    noisy: NoisyCounts,
    prior_mean: NDArray[np.float64],
    *,
    groups: int = 4,
    usual_spread: float = np.inf,
    averaged: bool = False,
) -> NDArray[np.float64]:
    """E[λ | y] for y = λ + noise (Laplace or Gaussian), λ lognormal with mean `prior_mean` and spread σ.

    σ is found by marginal likelihood, separately in `groups` groups of cells of similar prior mean (empirical Bayes).
    Its prior is proportional to e^(−σ / `usual_spread`), so that a single outlier among few cells does not decide it.
    With `averaged`, the result is averaged over the posterior of σ, because a weak signal hardly determines σ. Cells
    whose prior mean is zero stay zero.

    Privacy: free (post-processing).
    """
    result = np.array(prior_mean, float)
    possible = np.flatnonzero(result.ravel() > 1e-12)
    if len(possible) == 0:
        return result
    y, mean = np.asarray(noisy.counts, float).ravel()[possible], result.ravel()[possible]
    scale, gaussian = np.broadcast_to(noisy.noise, result.shape).ravel()[possible], noisy.gaussian
    edges = np.quantile(mean, np.linspace(0, 1, groups + 1)[1:-1])
    group = np.searchsorted(edges, mean, side="right")
    estimate = np.zeros_like(mean)
    for k in range(groups):
        member = np.flatnonzero(group == k)
        if len(member):
            known = y[member], mean[member], scale[member]
            score = _spread_scores(*known, usual_spread, gaussian)
            weight = np.exp(score - score.max())
            likely = weight > _LEAST_WEIGHT if averaged else np.arange(len(weight)) == weight.argmax()
            for spread, share in zip(np.array(_SPREADS)[likely], weight[likely] / weight[likely].sum()):
                estimate[member] += share * _mean_given(*known, _factors(float(spread)), gaussian)
    result.ravel()[possible] = estimate
    return result


def _factors(spread: float) -> NDArray[np.float64]:
    """λ / mean at each node of the quadrature, with mean exactly one."""
    factors = np.exp(spread * _NODES - spread * spread / 2)
    result: NDArray[np.float64] = factors / (_WEIGHTS * factors).sum()
    return result


def _spread_scores(
    y: NDArray[np.float64], mean: NDArray[np.float64], noise: NDArray[np.float64], usual: float, gaussian: bool
) -> NDArray[np.float64]:
    """The logarithm of the posterior of each candidate for σ, up to a constant."""
    if len(y) > _SAMPLE:  # an even subsample: the likelihood of 4,000 cells is enough to choose σ
        keep = np.linspace(0, len(y) - 1, _SAMPLE).astype(int)
        y, mean, noise = y[keep], mean[keep], noise[keep]
    # In units of the noise and in single precision: enough to distinguish ten spreads.
    y_32, mean_32 = (y / noise).astype(np.float32), (mean / noise).astype(np.float32)
    misfit = np.empty((len(_NODES), len(y)), np.float32)

    def log_likelihood(spread: float) -> float:
        np.multiply.outer(_factors(spread).astype(np.float32), mean_32, out=misfit)
        np.subtract(misfit, y_32, out=misfit)
        if gaussian:
            np.multiply(misfit, misfit / 4, out=misfit)
        else:
            np.abs(misfit, out=misfit)
        least = misfit.min(axis=0)
        np.subtract(least, misfit, out=misfit)
        np.maximum(misfit, _LEAST_EXPONENT, out=misfit)
        likelihood = _WEIGHTS_32 @ np.exp(misfit, out=misfit)
        # A floor, so that a few cells far from their prior mean do not decide the spread of all cells.
        return float(np.logaddexp(np.log(likelihood) - least.astype(float), _LOG_FLOOR).sum())

    return np.array([log_likelihood(spread) - spread / usual for spread in _SPREADS])


def _mean_given(
    y: NDArray[np.float64],
    mean: NDArray[np.float64],
    noise: NDArray[np.float64],
    factors: NDArray[np.float64],
    gaussian: bool,
) -> NDArray[np.float64]:
    estimate = np.empty_like(mean)
    weighted = np.stack([_WEIGHTS, _WEIGHTS * factors]).astype(np.float32)
    for start in range(0, len(y), _BLOCK):  # blocks that stay in the cache
        part = slice(start, start + _BLOCK)
        score = np.abs(y[part] - np.multiply.outer(factors, mean[part]))
        if gaussian:
            score *= score / (4 * noise[part])
        score -= score.min(axis=0)
        sums = weighted @ _exp(score, noise[part])
        estimate[part] = mean[part] * sums[1] / sums[0]
    return estimate


def _exp(score: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float32]:
    """exp(−score / noise) in single precision; the least score of each cell is zero, so no relevant term underflows."""
    shrunk = np.multiply(score, -1 / noise, dtype=np.float32, casting="same_kind")
    return np.exp(np.maximum(shrunk, _LEAST_EXPONENT, out=shrunk), out=shrunk)

"""The one alpha, and the tests of fit that use it.

A right mechanism fails a test with probability ALPHA; then one fresh sample of four times the size, declared here and
nowhere else, decides. No statistical test is repeated beyond that.
"""

from collections.abc import Callable

import numpy as np

ALPHA = 1e-6


def laplace_cdf(k, scale):
    """P(X <= k) of the discrete Laplace P(X = k) ∝ exp(-|k|/scale)."""
    k = np.floor(np.asarray(k, float))
    p = np.exp(-1.0 / scale)
    tail = np.exp(-np.abs(np.where(k < 0, k, k + 1)) / scale) / (1 + p)
    return np.where(k < 0, tail, 1 - tail)


def gaussian_cdf(k, scale):
    """P(X <= k) of the discrete Gaussian P(X = k) ∝ exp(-k²/2 scale²), for small scales by summing."""
    reach = int(12 * scale) + 2
    support = np.arange(-reach, reach + 1)
    weight = np.exp(-(support**2) / (2 * scale**2))
    cumulative = np.r_[0.0, np.cumsum(weight / weight.sum())]
    return cumulative[np.clip(np.asarray(k) + reach + 1, 0, len(cumulative) - 1).astype(int)]


def chi_square_p(sample, cdf: Callable, scale: float, bins: int = 30) -> float:
    """p-value of the sample under the whole distribution, in about `bins` cells that follow the claimed scale."""
    from scipy.stats import chi2

    edges = np.unique(np.rint(np.linspace(-4 * scale, 4 * scale, bins)))
    expected = np.diff(np.r_[0.0, cdf(edges, scale), 1.0]) * len(sample)
    observed = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=len(edges) + 1)
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def fits(draw: Callable[[int], np.ndarray], cdf: Callable, scale: float, size: int) -> bool:
    """Whether `draw(size)` looks like the claimed distribution; one larger sample decides where it does not."""
    return any(chi_square_p(draw(n), cdf, scale) >= ALPHA for n in (size, 4 * size))

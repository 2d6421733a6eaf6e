"""One-dimensional noisy histograms: smooth with a width chosen by SURE, then take the posterior mean.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.posterior import posterior_mean

_WIDTHS = (0.0, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)


def estimate_histogram(counts: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Shares of each bin, adding up to one, never zero.

    The smoothing width minimises Stein's unbiased estimate of the risk, ‖Ky − y‖² + 2·var·tr K; the posterior mean
    around the smooth curve keeps spikes that are larger than the noise.
    """
    smooth = np.maximum(_best_smoothing(np.asarray(counts, float), noise), 0.0)
    smooth = np.maximum(smooth, 1e-3 * smooth.mean() + 1e-9)
    estimate = posterior_mean(counts, smooth, noise, groups=1)
    return estimate / estimate.sum()


def _best_smoothing(counts: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    position = np.arange(len(counts))
    variance = 2 * noise**2
    best_risk, best = np.inf, counts
    for width in _WIDTHS:
        if width == 0:
            kernel = np.eye(len(counts))
        else:
            kernel = np.exp(-0.5 * ((position[:, None] - position) / width) ** 2)
            kernel /= kernel.sum(axis=1, keepdims=True)
        smooth = kernel @ counts
        risk = float(((smooth - counts) ** 2).sum() + 2 * variance * np.trace(kernel))
        if risk < best_risk:
            best_risk, best = risk, smooth
    return best


def estimate_table(
    counts: NDArray[np.float64],
    noise: float,
    rows: NDArray[np.float64],
    columns: NDArray[np.float64],
    total: float,
    possible: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """A noisy two-way table around the product of its estimated margins, scaled to both; shares adding up to one."""
    allowed = np.ones(counts.shape, bool) if possible is None else possible
    mean = _scale_to_margins(np.outer(rows, columns) * allowed + 1e-15 * allowed, rows, columns) * total
    estimate = posterior_mean(counts, np.maximum(mean, 1e-6) * allowed, noise, groups=2) * allowed + 1e-9 * allowed
    return _scale_to_margins(estimate, rows, columns)


def _scale_to_margins(
    table: NDArray[np.float64], rows: NDArray[np.float64], columns: NDArray[np.float64], rounds: int = 20
) -> NDArray[np.float64]:
    """Iterative proportional fitting; margins that the allowed cells cannot reach are approached, not forced."""
    for _ in range(rounds):
        table = table * (rows / np.maximum(table.sum(axis=1), 1e-12))[:, None]
        table = table * (columns / np.maximum(table.sum(axis=0), 1e-12))[None, :]
    return table / table.sum()


def spread_bins(
    shares: NDArray[np.float64], edges: NDArray[np.float64], fine: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Shares on coarse bins, given to finer bins in proportion to their widths."""
    cumulative = np.interp(fine, edges, np.r_[0.0, np.cumsum(shares)])
    result = np.maximum(np.diff(cumulative), 0.0)
    return result / result.sum()

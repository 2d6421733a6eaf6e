"""One-dimensional noisy histograms: two estimates that err differently, and their geometric mean.

One smooths with a width chosen by SURE and takes the posterior mean around the smooth curve: it keeps spikes, but a
long empty tail of clipped noise adds up. The other goes from wide bins to narrow ones, halving, so that a tail which
is empty as a whole stays empty: it is blunt at spikes. Where they disagree one of them saw noise.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.posterior import posterior_mean

_WIDTHS = (0.0, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)


def estimate_histogram(counts: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Shares of each bin, adding up to one, never zero."""
    noisy = np.asarray(counts, float)
    estimate = np.sqrt(_smoothed(noisy, noise) * _halved(noisy, noise))
    return estimate / estimate.sum()


def _smoothed(counts: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Posterior mean around the curve of least estimated risk, ‖Ky − y‖² + 2·var·tr K (Stein)."""
    smooth = np.maximum(_best_smoothing(counts, noise), 0.0)
    smooth = np.maximum(smooth, 1e-3 * smooth.mean() + 1e-9)
    estimate = posterior_mean(counts, smooth, noise, groups=1)
    return estimate / estimate.sum()


def _halved(counts: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Top-down: each run of bins gets its posterior mean around half of its parent's, bent towards the neighbours."""
    size = 1 << max(1, int(np.ceil(np.log2(len(counts)))))
    noisy, present = np.zeros(size), np.zeros(size)
    noisy[: len(counts)], present[: len(counts)] = counts, 1.0
    total = max(float(counts.sum()), noise)
    run = max(1, size // 4)
    width = present.reshape(-1, run).sum(axis=1)
    mean = total * width / width.sum()
    while True:
        sums = noisy.reshape(-1, run).sum(axis=1)
        estimate = posterior_mean(sums, mean, noise * np.sqrt(run), groups=2)
        if run < max(1, size // 4):
            parent = mean.reshape(-1, 2).sum(axis=1)
            together = estimate.reshape(-1, 2).sum(axis=1)
            estimate *= np.repeat(np.divide(parent, together, out=np.zeros_like(parent), where=together > 0), 2)
        estimate *= total / max(estimate.sum(), 1e-300)
        if run == 1:
            shares = np.maximum(estimate[: len(counts)], 1e-9 * total)
            return shares / shares.sum()
        run //= 2
        mean = _children(estimate, width, present.reshape(-1, run).sum(axis=1))
        width = present.reshape(-1, run).sum(axis=1)


def _children(
    parent: NDArray[np.float64], parent_width: NDArray[np.float64], width: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Each parent's mass on its two halves: half evenly, half along the line through its neighbours' densities."""
    density = parent / np.maximum(parent_width, 1e-12)
    even = np.repeat(density, 2) * width
    centre = np.arange(len(density)) * 2 + 0.5
    bent = np.interp(np.arange(2 * len(density)), centre, density) * width
    together = bent.reshape(-1, 2).sum(axis=1)
    bent *= np.repeat(np.divide(parent, together, out=np.zeros_like(parent), where=together > 0), 2)
    return np.maximum(0.5 * even + 0.5 * bent, 1e-9 * (width > 0))


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
    affinity: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """A noisy two-way table around the product of its estimated margins, scaled to both; shares adding up to one.

    `affinity` multiplies that product where it is known beforehand which rows and columns go together.
    """
    allowed = np.ones(counts.shape, bool) if possible is None else possible
    product = np.outer(rows, columns) * (1.0 if affinity is None else affinity)
    mean = _scale_to_margins(product * allowed + 1e-15 * allowed, rows, columns) * total
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

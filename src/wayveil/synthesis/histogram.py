"""One-dimensional noisy histograms: an average of smooth curves, and the posterior mean around it.

The curves (`curves.py`) are averaged with their evidence as weights, and so is how far their sum is from the noisy
count. Spikes come back with the posterior mean around the average.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.posterior import posterior_mean
from wayveil.synthesis.curves import (
    Kind,
    Total,
    averaged,
    curves_from_somewhere,
    from_bin_to_bin,
    laplace_evidence,
    smooth_curves,
)


def estimate_histogram(
    counts: NDArray[np.float64],
    noise: float,
    middles: NDArray[np.float64],
    total: Total | None = None,
    kind: Kind = from_bin_to_bin,
    from_somewhere: bool = False,
) -> NDArray[np.float64]:
    """Shares of each bin, adding up to one, never zero.

    `middles` are the bins' values, and `kind` says what curves they have. `total` is what the counts add up to, where
    another answer tells. With `from_somewhere` the counts may begin at any bin, with nothing below it.
    """
    noisy = np.asarray(counts, float)
    # Three bins have no shape to be smooth: what was counted is all there is.
    if len(noisy) <= 3:
        smooth = np.maximum(noisy, noise)
    elif from_somewhere:
        smooth = averaged(*curves_from_somewhere(noisy, noise, middles, kind, total))
    else:
        smooth = averaged(*smooth_curves(noisy, noise, kind(middles), total))
    estimate = posterior_mean(noisy, np.maximum(smooth, 1e-9 * smooth.sum()), noise, groups=1)
    return estimate / estimate.sum()


def estimate_among(
    counts: NDArray[np.float64],
    noise: float,
    middles: NDArray[np.float64],
    total: Total,
    shapes: NDArray[np.float64],
    kind: Kind = from_bin_to_bin,
    doubt: float = 0.0,
    long_tails: bool = False,
) -> NDArray[np.float64]:
    """Shares of each bin, of a quantity that usually has one of the given `shapes` (rows of shares).

    Either it has one, each as likely as the next, or it is any smooth curve, which is `doubt` nats less likely from the
    start. Where little was heard shapes tell a peak from noise; where much was heard curves may know better. With
    `long_tails` evidence is that of the Laplace noise, otherwise of a Gaussian as wide, which is quicker to believe.
    """
    noisy = np.asarray(counts, float)
    curves, evidence = smooth_curves(noisy, noise, kind(middles), total)
    expected = total.count * shapes
    likely = -((noisy - expected) ** 2).sum(axis=1) / (4 * noise**2)
    if long_tails:
        evidence, likely = (laplace_evidence(noisy, noise, *of) for of in ((curves, evidence), (expected, likely)))
    odds = np.r_[evidence - np.log(len(curves)) - doubt, likely - np.log(len(shapes))]
    smooth = averaged(np.concatenate([curves, expected]), odds)
    estimate = posterior_mean(noisy, np.maximum(smooth, 1e-9 * smooth.sum()), noise, groups=1)
    return np.asarray(estimate / estimate.sum())


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
    mean = scale_to_margins(product * allowed + 1e-15 * allowed, rows, columns) * total
    prior: NDArray[np.float64] = np.maximum(mean, 1e-6)
    estimate = posterior_mean(counts, prior * allowed, noise, groups=2) * allowed + 1e-9 * allowed
    return scale_to_margins(estimate, rows, columns)


def scale_to_margins(
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
    """Shares on coarse bins, given to finer bins along a smooth rising curve through the running sums."""
    result = np.maximum(np.diff(_rising_curve(fine, edges, np.r_[0.0, np.cumsum(shares)])), 0.0)
    return result / result.sum()


def _rising_curve(
    at: NDArray[np.float64], edges: NDArray[np.float64], running: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Monotone cubic through (edges, running), after Fritsch and Butland: slopes are harmonic means of those beside."""
    width = np.diff(edges)
    slope = np.maximum(np.diff(running) / width, 1e-300)
    before, after = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
    inner = (before + after) / (before / slope[:-1] + after / slope[1:])
    tangent = np.r_[slope[0], inner, slope[-1]]
    bin_of = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(width) - 1)
    step = width[bin_of]
    t = np.clip((at - edges[bin_of]) / step, 0.0, 1.0)
    return np.asarray(
        (1 + 2 * t) * (1 - t) ** 2 * running[bin_of]
        + t * (1 - t) ** 2 * step * tangent[bin_of]
        + t**2 * (3 - 2 * t) * running[bin_of + 1]
        + t**2 * (t - 1) * step * tangent[bin_of + 1]
    )

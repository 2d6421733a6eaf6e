"""One-dimensional noisy histograms: an average of smooth curves, and the posterior mean around it.

The curves (`curves.py`) are averaged with their evidence as weights; the evidence includes how well their sum agrees
with the noisy total. The posterior mean around this average restores spikes.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.posterior import NoisyCounts, noise_of, posterior_mean
from wayveil.core.raking import rake
from wayveil.synthesis.estimate.curves import (
    Kind,
    Total,
    averaged,
    curves_with_unknown_start,
    from_bin_to_bin,
    laplace_evidence,
    log_likelihood,
    smooth_curves,
)
from wayveil.synthesis.estimate.settings import CURVES


def estimate_histogram(
    answer: NoisyCounts,
    middles: NDArray[np.float64],
    total: Total | None = None,
    kind: Kind = from_bin_to_bin,
    unknown_start: bool = False,
) -> NDArray[np.float64]:
    """Shares of each bin, adding up to one, never zero.

    `middles` are the bins' values, and `kind` defines the families of curves. `total` is the sum of the counts from
    another answer. With `unknown_start` the distribution may begin at any bin and be zero below it.
    """
    noisy, noise = np.asarray(answer.counts, float), noise_of(answer)
    # With three bins smoothness is no constraint, so the counts are used as they are.
    if len(noisy) <= 3:
        smooth = np.maximum(noisy, noise)
    elif unknown_start:
        smooth = averaged(*curves_with_unknown_start(noisy, noise, middles, kind, total))
    else:
        smooth = averaged(*smooth_curves(noisy, noise, kind(middles), total))
    estimate = posterior_mean(answer, np.maximum(smooth, 1e-9 * smooth.sum()), groups=1)
    result: NDArray[np.float64] = estimate / estimate.sum()
    return result


@dataclass(frozen=True, eq=False)
class ShapePrior:
    """Prior of a quantity whose distribution usually has one of the given shapes, and otherwise is a smooth curve.

    Shapes distinguish a peak from noise if the signal is weak; curves are better if it is strong.
    """

    shapes: NDArray[np.float64]
    """(shapes, bins) shares of the bins."""
    kind: Kind = from_bin_to_bin
    """Families of smooth curves."""
    curve_nats: float = 0.0
    """Nats by which the log prior of the smooth curves is lower."""
    log_prior: NDArray[np.float64] | None = None
    """Log prior of each shape; uniform if None."""
    log_mean: tuple[float, float] | None = None
    """Prior mean and standard deviation of the mean logarithm of a curve's values."""
    curved_share: float = 0.0
    """Share of the estimate that comes from smooth curves alone, because no quantity follows the shapes exactly."""


def estimate_among(
    answer: NoisyCounts, middles: NDArray[np.float64], total: Total, prior: ShapePrior, *, long_tails: bool = False
) -> NDArray[np.float64]:
    """Shares of each bin under a prior of typical shapes; never zero, adding up to one.

    With `long_tails` the likelihood is that of Laplace noise, unless the noise is Gaussian. Otherwise it is that of
    Gaussian noise with the same variance, under which large deviations are stronger evidence.
    """
    noisy, noise = np.asarray(answer.counts, float), noise_of(answer)
    expected = total.count * prior.shapes
    likely = -((noisy - expected) ** 2).sum(axis=1) / (4 * noise**2)
    curves, evidence = smooth_curves(noisy, noise, prior.kind(middles), total)
    curved = averaged(curves, evidence)
    if prior.log_mean is not None:
        log_mean = curves @ np.log(middles) / curves.sum(axis=1)
        evidence = evidence - 0.5 * ((log_mean - prior.log_mean[0]) / prior.log_mean[1]) ** 2
    if long_tails and not answer.gaussian:
        evidence, likely = (laplace_evidence(noisy, noise, *one) for one in ((curves, evidence), (expected, likely)))
    likely = likely - np.log(len(prior.shapes)) if prior.log_prior is None else likely + prior.log_prior
    odds = np.r_[evidence - np.log(len(curves)) - prior.curve_nats, likely]
    result = np.zeros(len(noisy))
    for share, smooth in (
        (1 - prior.curved_share, averaged(np.concatenate([curves, expected]), odds)),
        (prior.curved_share, curved),
    ):
        if share:
            mean = np.maximum(smooth, 1e-9 * smooth.sum())
            estimate = posterior_mean(answer, mean, groups=1)
            result += share * estimate / estimate.sum()
    return result


def estimate_table(
    answer: NoisyCounts,
    rows: NDArray[np.float64],
    columns: NDArray[np.float64],
    total: float,
    possible: NDArray[np.bool_] | None = None,
    affinities: Sequence[NDArray[np.float64] | None] = (None,),
) -> NDArray[np.float64]:
    """A noisy two-way table around the product of its estimated margins, scaled to both; shares adding up to one.

    Each of the `affinities` may multiply that product, as prior knowledge about the dependence of rows and columns; the
    results are averaged with their evidence as weights.
    """
    counts = answer.counts
    allowed = np.ones(counts.shape, bool) if possible is None else possible
    margins = (0, rows), (1, columns)
    means = []
    for affinity in affinities:
        product = np.outer(rows, columns) * (1.0 if affinity is None else affinity)
        mean = rake(product * allowed + 1e-15 * allowed, margins, CURVES.table_rounds)
        means.append(mean / mean.sum() * total)
    likely = log_likelihood(counts.ravel(), np.array(means).reshape(len(means), -1), noise_of(answer), answer.gaussian)
    mean = np.tensordot(_weights(likely), np.array(means), axes=1) if len(means) > 1 else means[0]
    prior: NDArray[np.float64] = np.maximum(mean, 1e-6)
    estimate = posterior_mean(answer, prior * allowed, groups=2) * allowed + 1e-9 * allowed
    estimate = rake(estimate, margins, CURVES.table_rounds)
    return np.asarray(estimate / estimate.sum())


def _weights(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    weight = np.exp(log_odds - log_odds.max())
    return np.asarray(weight / weight.sum())


def spread_bins(
    shares: NDArray[np.float64], edges: NDArray[np.float64], fine: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Shares of coarse bins distributed over finer bins, by a smooth monotone curve through the cumulative shares."""
    result = np.maximum(np.diff(_rising_curve(fine, edges, np.r_[0.0, np.cumsum(shares)])), 0.0)
    answer: NDArray[np.float64] = result / result.sum()
    return answer


def _rising_curve(
    at: NDArray[np.float64], edges: NDArray[np.float64], running: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Monotone cubic through (edges, running), after Fritsch and Butland: slopes are harmonic means of neighbours."""
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

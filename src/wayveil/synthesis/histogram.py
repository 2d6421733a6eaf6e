"""One-dimensional noisy histograms: an average of smooth curves on the log scale, and the posterior mean around it.

Counts of lengths, durations and intervals rise, bend and fade. For a decay κ and a stiffness λ let

    η = argmin  Σ (y_i − e^(η_i − κ·v_i))² / (2·var)  +  λ/2 Σ (Δ²η)_i²,   v_i the bin's middle as a share of the top,

so that where the noise drowns everything the counts fade like a gamma distribution (a straight η) instead of adding up
clipped noise. The curves of all κ and λ are averaged with their evidence as weights, and so is how far their sum is
from the noisy count. Spikes come back with the posterior mean around the average.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.posterior import posterior_mean


@dataclass(frozen=True)
class Total:
    """How many trajectories there are, and the scale of that answer's noise."""

    count: float
    noise: float


_STIFFNESS = tuple(float(v) for v in np.exp(np.linspace(np.log(3e4), np.log(0.3), 7)))
_DECAYS = (0.0, 4.0, 12.0, 36.0)
_STEPS = 12
_FIRST_STEPS = 40
_LONGEST_STEP = 1.5
_DEEPEST = -60.0


def estimate_histogram(
    counts: NDArray[np.float64],
    noise: float,
    middles: NDArray[np.float64],
    total: Total | None = None,
    from_somewhere: bool = False,
) -> NDArray[np.float64]:
    """Shares of each bin, adding up to one, never zero.

    `middles` are the bins' values, of which large ones fade (a length). `total` is what the counts add up to, where
    another answer tells. With `from_somewhere` the counts may begin at any bin, with nothing below it.
    """
    noisy = np.asarray(counts, float)
    # Three bins have no shape to be smooth: what was counted is all there is.
    few, curves = len(noisy) <= 3, curves_from_somewhere if from_somewhere else smooth_curves
    smooth = np.maximum(noisy, noise) if few else averaged(*curves(noisy, noise, middles, total))
    estimate = posterior_mean(noisy, np.maximum(smooth, 1e-9 * smooth.sum()), noise, groups=1)
    return estimate / estimate.sum()


def estimate_among(
    counts: NDArray[np.float64],
    noise: float,
    middles: NDArray[np.float64],
    total: Total,
    shapes: NDArray[np.float64],
    doubt: float = 0.0,
) -> NDArray[np.float64]:
    """Shares of each bin, of a quantity that usually has one of the given `shapes` (rows of shares).

    Either it has one, each as likely as the next, or it is any smooth curve, which is `doubt` nats less likely from the
    start. Where little was heard shapes tell a peak from noise; where much was heard curves may know better.
    """
    noisy = np.asarray(counts, float)
    curves, evidence = smooth_curves(noisy, noise, middles, total)
    expected = total.count * shapes
    likely = -((noisy - expected) ** 2).sum(axis=1) / (4 * noise**2)
    odds = np.r_[evidence - np.log(len(curves)) - doubt, likely - np.log(len(shapes))]
    smooth = averaged(np.concatenate([curves, expected]), odds)
    estimate = posterior_mean(noisy, np.maximum(smooth, 1e-9 * smooth.sum()), noise, groups=1)
    return np.asarray(estimate / estimate.sum())


def averaged(curves: NDArray[np.float64], evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ evidence × curve: none is chosen, since the noise seldom settles which one is right."""
    weight = np.exp(evidence - evidence.max())
    return np.asarray(weight @ curves / weight.sum())


def curves_from_somewhere(
    counts: NDArray[np.float64], noise: float, middles: NDArray[np.float64], total: Total | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smooth curves that begin at one of many bins, with nothing below it, and the logarithm of each one's evidence.

    A curve that is to bend to a peak also bends to the noise beside it; where the bins are intervals between points,
    a hundred trips too many at a second each have more points than all the others.
    """
    curves, evidences = [], []
    for begin in range(0, max(len(counts) - 4, 1), max(1, len(counts) // 24)):
        found, evidence = smooth_curves(counts[begin:], noise, middles[begin:], total)
        curves.append(np.pad(found, ((0, 0), (begin, 0))))
        evidences.append(evidence - (counts[:begin] ** 2).sum() / (4 * noise**2))
    return np.concatenate(curves), np.concatenate(evidences)


def smooth_curves(
    counts: NDArray[np.float64], noise: float, middles: NDArray[np.float64] | None, total: Total | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A curve through the counts for each κ (without `middles` none fades) and λ, and the logarithm of its evidence."""
    variance = 2 * noise**2
    share_of_top = np.zeros(len(counts)) if middles is None else middles / middles[-1]
    curves, evidences = [], []
    for decay in _DECAYS if middles is not None else _DECAYS[:1]:
        fading = np.maximum(-decay * share_of_top, _DEEPEST)
        start = np.log(max(counts.sum(), np.sqrt(variance)) / np.exp(fading).sum())
        log_curve = np.full(len(counts), start)
        for stiffness in _STIFFNESS:
            log_curve, one = _fit_curve(counts, variance, fading, stiffness, log_curve)
            curves.append(np.exp(log_curve + fading))
            evidences.append(one)
    found, evidence = np.array(curves), np.array(evidences)
    if total is not None:
        evidence -= (found.sum(axis=1) - total.count) ** 2 / (4 * total.noise**2)
    return found, evidence


def _fit_curve(
    counts: NDArray[np.float64],
    variance: float,
    fading: NDArray[np.float64],
    stiffness: float,
    log_curve: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    """η by Gauss–Newton steps from a stiffer curve, and its evidence in Laplace's approximation."""
    from scipy.linalg.lapack import dpbtrf, dpbtrs  # scipy's wrappers cost more than these small systems

    for _ in range(_FIRST_STEPS if stiffness == _STIFFNESS[0] else _STEPS):
        mean = np.exp(log_curve + fading)
        slope = mean * (counts - mean) / variance - stiffness * _pull(log_curve)
        step = dpbtrs(dpbtrf(_curvature(mean, stiffness, variance))[0], slope)[0]
        largest = float(np.abs(step).max())
        log_curve = log_curve + step * min(1.0, _LONGEST_STEP / max(largest, 1e-12))
        if largest < 1e-3:
            break
    mean = np.exp(log_curve + fading)
    root = dpbtrf(_curvature(mean, stiffness, variance))[0]
    misfit = ((counts - mean) ** 2).sum() / (2 * variance) + stiffness * (np.diff(log_curve, 2) ** 2).sum() / 2
    return log_curve, float(0.5 * (len(counts) - 2) * np.log(stiffness) - misfit - np.log(root[-1]).sum())


def _pull(log_curve: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gradient of ½ Σ (Δ²η)²."""
    bent = np.diff(log_curve, 2)
    pull = np.zeros(len(log_curve))
    pull[:-2] += bent
    pull[1:-1] -= 2 * bent
    pull[2:] += bent
    return pull


def _curvature(mean: NDArray[np.float64], stiffness: float, variance: float) -> NDArray[np.float64]:
    """Gauss–Newton curvature in η as upper bands: mean²/var on the diagonal, plus λ Δ²ᵀΔ²."""
    bands = np.zeros((3, len(mean)))
    bands[0, 2:] = stiffness
    bands[1, 1:-1] -= 2 * stiffness
    bands[1, 2:] -= 2 * stiffness
    bands[2] = mean**2 / variance + 1e-9
    bands[2, :-2] += stiffness
    bands[2, 1:-1] += 4 * stiffness
    bands[2, 2:] += stiffness
    return bands


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

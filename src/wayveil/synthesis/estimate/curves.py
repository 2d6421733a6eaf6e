"""Smooth curves through noisy counts on the log scale, each with its evidence (marginal likelihood).

Counts of lengths, durations and intervals rise to a peak and then decay. For a decay f and a stiffness λ let

    η = argmin  Σ (y_i − e^(η_i + f_i))² / (2·var)  +  λ/2 ∫ (η'')²

If the counts are all noise, η is straight and the estimate decays as f does, instead of being a sum of clipped noise.
A `Family` defines the axis along which curves are smooth, and their possible decays.

Privacy: free (post-processing).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.estimate.settings import CURVES

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Total:
    """The noisy number of trajectories, and the scale of its noise."""

    count: float
    noise: float


@dataclass(frozen=True, eq=False)
class Family:
    """Curves of one kind."""

    axis: Floats
    """Position of each bin; the penalty on curvature is uniform along this axis."""
    decays: Floats
    """(decays, bins): the decays f, which are added to η."""


Kind = Callable[[Floats], tuple[Family, ...]]
"""A function from the middles of bins to the families of curves for them."""


def without_decay(middles: Floats) -> tuple[Family]:
    """Smooth from bin to bin, without a decay."""
    return (Family(np.arange(len(middles), dtype=float), np.zeros((1, len(middles)))),)


def from_bin_to_bin(middles: Floats) -> tuple[Family]:
    """Smooth from bin to bin; large values decay as in a gamma distribution."""
    return (Family(np.arange(len(middles), dtype=float), _gamma_decays(middles)),)


def also_by_log(middles: Floats) -> tuple[Family, Family]:
    """As `from_bin_to_bin`, and also smooth in the logarithm.

    Counts may differ much between 1 and 2 km, but little between 60 and 61 km.
    """
    return (*from_bin_to_bin(middles), Family(np.log(middles), _gamma_decays(middles)))


def about_lognormal(middles: Floats) -> tuple[Family]:
    """Smooth in the logarithm, with a lognormal decay around a value that the slope of a straight η determines."""
    log_value = np.log(middles / middles[-1])
    lognormal = -0.5 * np.array(CURVES.narrowness)[:, None] * (log_value - log_value.mean()) ** 2
    decays = np.concatenate([_gamma_decays(middles), np.maximum(lognormal, CURVES.deepest)])
    return (Family(np.log(middles), decays),)


def _gamma_decays(middles: Floats) -> Floats:
    result: Floats = np.maximum(-np.array(CURVES.decays)[:, None] * middles / middles[-1], CURVES.deepest)
    return result


def averaged(curves: Floats, evidence: Floats) -> Floats:
    """Mean of the curves, weighted by evidence: the noise seldom allows a choice of one of them."""
    weight = np.exp(evidence - evidence.max())
    return np.asarray(weight @ curves / weight.sum())


def laplace_evidence(counts: Floats, noise: float, curves: Floats, evidence: Floats, gaussian: bool = False) -> Floats:
    """The evidence under Laplace noise in place of Gaussian noise, which penalises a single outlier too much.

    Unchanged if the noise is `gaussian`.
    """
    if gaussian:
        return evidence
    apart = np.abs(counts - curves) / noise
    return np.asarray(evidence + (apart**2).sum(axis=1) / 4 - apart.sum(axis=1))


def log_likelihood(counts: Floats, expected: Floats, noise: float, gaussian: bool) -> Floats:
    """−Σ|count − expected| / noise of each row of expected counts; −Σ((count − expected) / (2·noise))² if Gaussian."""
    apart = np.abs(counts - expected) / noise
    return np.asarray(-(apart**2 / 4 if gaussian else apart).sum(axis=-1))


def curves_with_unknown_start(
    counts: Floats, noise: float, middles: Floats, kind: Kind, total: Total | None = None
) -> tuple[Floats, Floats]:
    """Smooth curves that begin at one of many bins and are zero below it, and the log evidence of each.

    A curve that is flexible enough for a steep first peak also follows the noise below that peak. For sampling
    intervals this matters: a hundred spurious trips with an interval of one second have more points than all others.
    """
    curves, evidences = [], []
    for begin in range(0, max(len(counts) - 4, 1), max(1, len(counts) // CURVES.first_bins)):
        found, evidence = smooth_curves(counts[begin:], noise, kind(middles[begin:]), total)
        curves.append(np.pad(found, ((0, 0), (begin, 0))))
        evidences.append(evidence - (counts[:begin] ** 2).sum() / (4 * noise**2))
    return np.concatenate(curves), np.concatenate(evidences)


@dataclass(frozen=True, eq=False)
class _Seen:
    """What curves are fitted to: noisy counts, and their noisy total from another answer."""

    counts: Floats
    variance: float
    total: float
    total_variance: float
    """Infinite if the total is unknown."""


def smooth_curves(
    counts: Floats, noise: float, families: tuple[Family, ...], total: Total | None = None
) -> tuple[Floats, Floats]:
    """A curve through the counts for each decay of the families and each λ, and its log evidence.

    The total is one more observation, usually a precise one. It distinguishes the tail of a curve from the noise of
    many empty bins: a curve that follows this noise adds up to too much, because it cannot be negative.
    """
    variance = 2 * noise**2
    seen = _Seen(counts, variance, 0.0, np.inf)
    if total is not None:
        seen = _Seen(counts, variance, total.count, 2 * total.noise**2)
    curves, evidences = [], []
    for family in families:
        bends, evenness = _bends(family.axis)
        for decay in family.decays:
            start = np.log(max(counts.sum(), np.sqrt(variance)) / np.exp(decay).sum())
            log_curve = np.full(len(counts), start)
            for stiffness in CURVES.stiffness:
                log_curve, one = _fit_curve(seen, decay, stiffness, bends, log_curve)
                curves.append(np.exp(log_curve + decay))
                evidences.append(one + evenness)
    return np.array(curves), np.array(evidences)


def _fit_curve(seen: _Seen, decay: Floats, stiffness: float, bends: Floats, log_curve: Floats) -> tuple[Floats, float]:
    """η by Gauss–Newton steps from a stiffer curve, and its log evidence in Laplace's approximation.

    The curvature is a band matrix H, and the total adds m·mᵀ / variance to it, where m is the curve. So each step is
    that of H, less its part along H⁻¹m (Sherman and Morrison).
    """
    from scipy.linalg.lapack import dpbtrf, dpbtrs  # scipy's wrappers cost more than these small systems

    stiff = stiffness * _bands(bends, len(seen.counts))
    for _ in range(CURVES.first_steps if stiffness == CURVES.stiffness[0] else CURVES.steps):
        mean = np.exp(log_curve + decay)
        slope = mean * ((seen.counts - mean) / seen.variance + (seen.total - mean.sum()) / seen.total_variance)
        slope -= stiffness * _pull(log_curve, bends)
        both = dpbtrs(dpbtrf(_curvature(mean, stiff, seen.variance))[0], np.stack([slope, mean], axis=1))[0]
        step, of_sum = both[:, 0], both[:, 1]
        step = step - of_sum * (mean @ step) / (seen.total_variance + mean @ of_sum)
        largest = float(np.abs(step).max())
        log_curve = log_curve + step * min(1.0, CURVES.longest_step / max(largest, 1e-12))
        if largest < CURVES.converged:
            break
    mean = np.exp(log_curve + decay)
    root = dpbtrf(_curvature(mean, stiff, seen.variance))[0]
    misfit = ((seen.counts - mean) ** 2).sum() / seen.variance + stiffness * (_bent(log_curve, bends) ** 2).sum()
    misfit += (seen.total - mean.sum()) ** 2 / seen.total_variance
    spread = np.log1p(mean @ dpbtrs(root, mean)[0] / seen.total_variance)
    log_determinant = 2 * np.log(root[-1]).sum() + spread
    return log_curve, float(0.5 * (len(bends) * np.log(stiffness) - misfit - log_determinant))


def _bends(axis: Floats) -> tuple[Floats, float]:
    """(bins − 2, 3): rows B with Σ (Bη)² ~ ∫ (η'')², and their term in the log evidence.

    Scaled so that the geometric mean of the middle coefficients is −2, as on an even axis, where Bη is Δ²η. Fewer than
    three bins (as with a low cap of the scope) have no curvature.
    """
    if len(axis) < 3:
        return np.zeros((0, 3)), 0.0
    gap, across = np.diff(axis), axis[2:] - axis[:-2]
    second = 2 * np.stack([1 / (gap[:-1] * across), -1 / (gap[:-1] * gap[1:]), 1 / (gap[1:] * across)], axis=1)
    rows = second * np.sqrt(across / 2)[:, None]
    rows *= 2 / np.exp(np.log(-rows[:, 1]).mean())
    even = np.tile([1.0, -2.0, 1.0], (len(rows), 1))
    return rows, 0.5 * (_log_determinant(rows) - _log_determinant(even))


def _log_determinant(rows: Floats) -> float:
    """ln det BBᵀ, whose bands are products of neighbouring rows."""
    from scipy.linalg.lapack import dpbtrf

    bands = np.zeros((3, len(rows)))
    bands[2] = (rows**2).sum(axis=1)
    bands[1, 1:] = (rows[:-1, 1:] * rows[1:, :-1]).sum(axis=1)
    bands[0, 2:] = rows[:-2, 2] * rows[2:, 0]
    return 2 * float(np.log(dpbtrf(bands)[0][-1]).sum())


def _bent(log_curve: Floats, bends: Floats) -> Floats:
    return np.asarray(bends[:, 0] * log_curve[:-2] + bends[:, 1] * log_curve[1:-1] + bends[:, 2] * log_curve[2:])


def _pull(log_curve: Floats, bends: Floats) -> Floats:
    """Gradient of ½ Σ (Bη)²."""
    bent = _bent(log_curve, bends)
    pull = np.zeros(len(log_curve))
    pull[:-2] += bends[:, 0] * bent
    pull[1:-1] += bends[:, 1] * bent
    pull[2:] += bends[:, 2] * bent
    return pull


def _bands(bends: Floats, bins: int) -> Floats:
    """BᵀB as upper bands."""
    left, middle, right = bends.T
    bands = np.zeros((3, bins))
    bands[0, 2:] = left * right
    bands[1, 1:-1] += left * middle
    bands[1, 2:] += middle * right
    bands[2, :-2] += left**2
    bands[2, 1:-1] += middle**2
    bands[2, 2:] += right**2
    return bands


def _curvature(mean: Floats, stiff: Floats, variance: float) -> Floats:
    """Gauss–Newton curvature in η as upper bands: mean²/var on the diagonal, plus λ BᵀB."""
    bands = stiff.copy()
    bands[2] += mean**2 / variance + 1e-9
    return bands

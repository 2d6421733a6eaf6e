"""curves: smooth curves through noisy counts, on the log scale, each with the evidence for it.

Counts of lengths, durations and intervals rise, bend and fade. For a fade f and a stiffness λ let

    η = argmin  Σ (y_i − e^(η_i + f_i))² / (2·var)  +  λ/2 ∫ (η'')²

so that where the noise drowns everything the counts fade as f does (a straight η) instead of adding up clipped noise. A
`Family` says along which axis curves are smooth and how they may fade.

Privacy: free (post-processing).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Total:
    """How many trajectories there are, and the scale of that answer's noise."""

    count: float
    noise: float


@dataclass(frozen=True, eq=False)
class Family:
    """Curves of one kind."""

    axis: Floats
    """Where each bin lies: as much bending is as unlikely anywhere along it."""
    fades: Floats
    """(fades, bins): what is added to η."""


Kind = Callable[[Floats], tuple[Family, ...]]
"""The families that bins with the given middles may have."""

_STIFFNESS = tuple(float(v) for v in np.exp(np.linspace(np.log(3e4), np.log(0.3), 7)))
_DECAYS = (0.0, 4.0, 12.0, 36.0)
_NARROWNESS = (1.0, 3.0, 9.0)
"""1/σ² of lognormals: within a factor of 2.7, 1.8 and 1.4."""
_STEPS = 12
_FIRST_STEPS = 40
_LONGEST_STEP = 1.5
_DEEPEST = -60.0


def unfading(middles: Floats) -> tuple[Family]:
    """Smooth from bin to bin; none fades."""
    return (Family(np.arange(len(middles), dtype=float), np.zeros((1, len(middles)))),)


def from_bin_to_bin(middles: Floats) -> tuple[Family]:
    """Smooth from bin to bin; large values fade as those of a gamma distribution do."""
    return (Family(np.arange(len(middles), dtype=float), _gamma_fades(middles)),)


def also_by_ratios(middles: Floats) -> tuple[Family, Family]:
    """As `from_bin_to_bin`, or smooth in the logarithm: one km and two may differ much, sixty and sixty-one hardly."""
    return (*from_bin_to_bin(middles), Family(np.log(middles), _gamma_fades(middles)))


def about_lognormal(middles: Floats) -> tuple[Family]:
    """Smooth in the logarithm; values may gather around one of them, too. Which one a straight η settles."""
    log_value = np.log(middles / middles[-1])
    gathered = -0.5 * np.array(_NARROWNESS)[:, None] * (log_value - log_value.mean()) ** 2
    fades = np.concatenate([_gamma_fades(middles), np.maximum(gathered, _DEEPEST)])
    return (Family(np.log(middles), fades),)


def _gamma_fades(middles: Floats) -> Floats:
    return np.maximum(-np.array(_DECAYS)[:, None] * middles / middles[-1], _DEEPEST)


def averaged(curves: Floats, evidence: Floats) -> Floats:
    """Σ evidence × curve: none is chosen, since the noise seldom settles which one is right."""
    weight = np.exp(evidence - evidence.max())
    return np.asarray(weight @ curves / weight.sum())


def laplace_evidence(counts: Floats, noise: float, curves: Floats, evidence: Floats) -> Floats:
    """The evidence with the misfit that the noise really has: one count far off is a wonder for a Gaussian alone."""
    apart = np.abs(counts - curves) / noise
    return np.asarray(evidence + (apart**2).sum(axis=1) / 4 - apart.sum(axis=1))


def curves_from_somewhere(
    counts: Floats, noise: float, middles: Floats, kind: Kind, total: Total | None = None
) -> tuple[Floats, Floats]:
    """Smooth curves that begin at one of many bins, with nothing below it, and the logarithm of each one's evidence.

    A curve that is to bend to a peak also bends to the noise beside it; where the bins are intervals between points,
    a hundred trips too many at a second each have more points than all the others.
    """
    curves, evidences = [], []
    for begin in range(0, max(len(counts) - 4, 1), max(1, len(counts) // 24)):
        found, evidence = smooth_curves(counts[begin:], noise, kind(middles[begin:]), total)
        curves.append(np.pad(found, ((0, 0), (begin, 0))))
        evidences.append(evidence - (counts[:begin] ** 2).sum() / (4 * noise**2))
    return np.concatenate(curves), np.concatenate(evidences)


def smooth_curves(
    counts: Floats, noise: float, families: tuple[Family, ...], total: Total | None = None
) -> tuple[Floats, Floats]:
    """A curve through the counts for each fade of the families and each λ, and the logarithm of its evidence."""
    variance = 2 * noise**2
    curves, evidences = [], []
    for family in families:
        bends, evenness = _bends(family.axis)
        for fade in family.fades:
            start = np.log(max(counts.sum(), np.sqrt(variance)) / np.exp(fade).sum())
            log_curve = np.full(len(counts), start)
            for stiffness in _STIFFNESS:
                log_curve, one = _fit_curve(counts, variance, fade, stiffness, bends, log_curve)
                curves.append(np.exp(log_curve + fade))
                evidences.append(one + evenness)
    found, evidence = np.array(curves), np.array(evidences)
    if total is not None:
        evidence -= (found.sum(axis=1) - total.count) ** 2 / (4 * total.noise**2)
    return found, evidence


def _fit_curve(
    counts: Floats, variance: float, fade: Floats, stiffness: float, bends: Floats, log_curve: Floats
) -> tuple[Floats, float]:
    """η by Gauss–Newton steps from a stiffer curve, and its evidence in Laplace's approximation."""
    from scipy.linalg.lapack import dpbtrf, dpbtrs  # scipy's wrappers cost more than these small systems

    stiff = stiffness * _bands(bends, len(counts))
    for _ in range(_FIRST_STEPS if stiffness == _STIFFNESS[0] else _STEPS):
        mean = np.exp(log_curve + fade)
        slope = mean * (counts - mean) / variance - stiffness * _pull(log_curve, bends)
        step = dpbtrs(dpbtrf(_curvature(mean, stiff, variance))[0], slope)[0]
        largest = float(np.abs(step).max())
        log_curve = log_curve + step * min(1.0, _LONGEST_STEP / max(largest, 1e-12))
        if largest < 1e-3:
            break
    mean = np.exp(log_curve + fade)
    root = dpbtrf(_curvature(mean, stiff, variance))[0]
    misfit = ((counts - mean) ** 2).sum() / (2 * variance) + stiffness * (_bent(log_curve, bends) ** 2).sum() / 2
    return log_curve, float(0.5 * len(bends) * np.log(stiffness) - misfit - np.log(root[-1]).sum())


def _bends(axis: Floats) -> tuple[Floats, float]:
    """(bins − 2, 3): rows B with Σ (Bη)² ~ ∫ (η'')², and what they change in the evidence.

    Scaled so that the middle coefficient is −2 on (geometric) average, as it is on an even axis, where Bη is Δ²η.
    Fewer than three bins (a cap below the width of two) cannot bend.
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
    """ln det BBᵀ."""
    full = np.zeros((len(rows), len(rows) + 2))
    for shift in range(3):
        full[np.arange(len(rows)), np.arange(len(rows)) + shift] = rows[:, shift]
    return float(np.linalg.slogdet(full @ full.T)[1])


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

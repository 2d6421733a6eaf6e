"""weekly: when trips depart, by hour of the day and by weekday, from two noisy answers.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.posterior import posterior_mean
from wayveil.synthesis.curves import Total, averaged, smooth_curves, unfading
from wayveil.synthesis.day_shapes import day_shapes
from wayveil.synthesis.histogram import estimate_table, scale_to_margins
from wayveil.synthesis.weekend import WEEKEND, in_parts, weekend_affinity

_EVEN = 0.03
"""Least share of departures that may be at any hour: beside a sharp peak a smooth curve falls to nothing, and one
trajectory in twenty at the other hours is dearer to miss than to have. A quarter of the noise in all hours where that
is more, since a curve through noise alone is steep somewhere."""
_PEAK_CHANCE = 0.05
_CLEAR = 8.0
"""Noise units that a peak must stand out by: one of 24 hours has as much of the noise alone once in 250 releases."""
_PEAK_SHARES = np.linspace(0.6, 0.995, 13)
"""Recordings that were all cut at the same hour: most departures in one, the others alike. Smaller peaks are left to
the curves, which know a rush hour from noise better."""

_HEARD = 6.0
"""Noise units that make usual days less likely by one nat."""
_USUAL_SPREAD = 0.5
_ROUNDS = 2
_SMALL_ERROR = 0.05
"""Of a day's trips: where their plain sum has less than this of noise, nothing is gained by expecting hours."""
_WEEKEND_BUSIER = np.exp(np.linspace(-1.6, 1.6, 17))
_USUALLY_WITHIN = 0.4
"""A day of the weekend over another day: what is tried, and the usual spread of its logarithm."""
_APART = (0.02, 0.06, 0.15, 0.35, 0.8, 2.0, 5.0)
_LEAST_OF_MEAN = 0.02


def estimate_week(
    hours: NDArray[np.float64], week: NDArray[np.float64], week_noise: float, count: float
) -> NDArray[np.float64]:
    """(weekday, hour): the hours of all days, well measured, times the weekdays, other hours on the weekend.

    The posterior of each hour of the week comes on top, or of each part of a day where the `week` was asked in parts.

    Parameters
    ----------
    hours
        Estimated shares of the hours of a day.
    week, week_noise
        (weekday, part of the day) noisy counts, and the scale of their noise.
    """
    affinity = np.ones((len(week), len(hours)))
    for _ in range(_ROUNDS):
        days = estimate_weekdays(*_sums_of_days(week, week_noise, hours * affinity, count), count)
        affinity = weekend_affinity(week, week_noise, days, hours, count)
    expected = np.outer(days, hours) * affinity
    parts, whole = in_parts(hours, week.shape[1]), in_parts(expected, week.shape[1])
    apart = estimate_table(week, week_noise, days, parts, count, affinity=whole / np.outer(days, parts))
    return scale_to_margins(expected * np.repeat(apart / whole, len(hours) // len(parts), axis=1), days, hours)


def _sums_of_days(
    week: NDArray[np.float64], noise: float, expected: NDArray[np.float64], count: float
) -> tuple[NDArray[np.float64], float]:
    """Trips of each day, and the scale of their noise.

    Weighed by the hours that are expected of a day the sum has least noise: empty hours have nothing to tell. Plain
    sums are right whatever the hours, and are taken where their noise does not matter.
    """
    expected = in_parts(expected / expected.sum(axis=1, keepdims=True), week.shape[1])
    bins = week.shape[1]
    error = np.sqrt(2 * bins) * noise * len(week) / max(count, 1.0)
    plain = 1 / (1 + (error / _SMALL_ERROR) ** 2)
    weight = (1 - plain) * expected + plain / bins
    scale = (weight * expected).sum(axis=1)
    spread = np.sqrt((weight**2).sum(axis=1)) / scale
    return (week * weight).sum(axis=1) / scale, noise * float(spread.mean())


def estimate_hours(counts: NDArray[np.float64], noise: float, total: Total) -> NDArray[np.float64]:
    """Shares of the hours, none of them empty: curves, single peaks and usual days, averaged by their evidence.

    The more was heard, the less it matters what is usual.
    """
    noisy, count = np.asarray(counts, float), total.count
    curves, evidence = smooth_curves(noisy, noise, unfading(noisy), total)
    even = np.clip(len(noisy) * noise / (4 * count), _EVEN, 1.0)
    evened = (1 - even) * curves + even * curves.mean(axis=1, keepdims=True)
    # One hour of noise alone is far off for a Gaussian, not for the Laplace that it is.
    evidence = evidence + _squares(noisy, curves, noise) - _distances(noisy, evened, noise) - np.log(len(curves))
    peaks, peak_chances = _single_peaks(noisy, noise, count)
    usual = count * day_shapes()
    odds = [
        evidence,
        peak_chances - _distances(noisy, peaks, noise),
        -_distances(noisy, usual, noise) - np.log(len(usual)) - count / noise / _HEARD,
    ]
    likely = averaged(np.vstack([evened, peaks, usual]), np.concatenate(odds))
    likely = np.maximum(likely, 1e-9 * likely.sum())
    estimate = posterior_mean(noisy, likely, noise, groups=1, usual_spread=_USUAL_SPREAD)
    return estimate / estimate.sum()


def _squares(noisy: NDArray[np.float64], means: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    return ((noisy - means) ** 2).sum(axis=1) / (4 * noise**2)


def _distances(noisy: NDArray[np.float64], means: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    return np.abs(noisy - means).sum(axis=1) / noise


def estimate_weekdays(counts: NDArray[np.float64], noise: float, count: float) -> NDArray[np.float64]:
    """Shares of the seven days: those of the week alike, those of the weekend alike, each with a deviation of its own.

    How busy the weekend is and how large the deviations are is averaged over by evidence, and so is that nearly all
    recordings are of one day.
    """
    noisy, count = np.asarray(counts, float), max(count, noise)
    weekend = np.arange(len(noisy)) >= WEEKEND.start
    busier, apart = (axis.ravel() for axis in np.meshgrid(_WEEKEND_BUSIER, _APART))
    working = count / (WEEKEND.start + (len(noisy) - WEEKEND.start) * busier)
    mean = working[:, None] * np.where(weekend, busier[:, None], 1.0)
    own = (apart[:, None] * mean) ** 2
    variance = own + 2 * noise**2
    evidence = -0.5 * ((noisy - mean) ** 2 / variance + np.log(variance / (2 * noise**2))).sum(axis=1)
    evidence -= 0.5 * (np.log(busier) / _USUALLY_WITHIN) ** 2 + np.log(len(busier))
    likely = np.maximum(mean + own / variance * (noisy - mean), _LEAST_OF_MEAN * mean)
    peaks, peak_chances = _single_peaks(noisy, noise, count)
    estimate = averaged(np.vstack([likely, peaks]), np.r_[evidence, peak_chances - _squares(noisy, peaks, noise)])
    return estimate / estimate.sum()


def _single_peaks(
    noisy: NDArray[np.float64], noise: float, count: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A peak of each size at each hour (or day) on even ground, and the logarithm of the chance of each."""
    clear = _PEAK_SHARES[_PEAK_SHARES * count > _CLEAR * noise]
    bins, size = len(noisy), clear[:, None, None]
    peaks = count * ((1 - size) / bins + size * np.eye(bins)).reshape(-1, bins)
    # The noise has long tails: an hour that was not heard to hold half of all is no such peak.
    heard = np.tile(noisy > 0.5 * count, len(clear))
    return peaks, np.where(heard, np.log(_PEAK_CHANCE / (bins * len(_PEAK_SHARES))), -np.inf)

"""weekly: when trips depart, by hour of the day and by weekday, from two noisy answers.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.histogram import Total, averaged, estimate_table, smooth_curves
from wayveil.synthesis.posterior import posterior_mean

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


def estimate_week(
    hour: NDArray[np.float64], hour_noise: float, week: NDArray[np.float64], week_noise: float, total: Total
) -> NDArray[np.float64]:
    """(weekday, hour): the hours of the day, well measured, times the weekdays, with the joint's posterior on top."""
    hours = estimate_hours(hour, hour_noise, total)
    # If every day had these hours, hours² would weigh a day's counts with least noise: empty hours have none to tell.
    sharpness = float((hours**2).sum())
    days = estimate_weekdays(week @ hours / sharpness, week_noise / np.sqrt(sharpness), total.count)
    return estimate_table(week, week_noise, days, hours, total.count)


def estimate_hours(counts: NDArray[np.float64], noise: float, total: Total) -> NDArray[np.float64]:
    """Shares of the hours, none of them empty: smooth curves and single peaks, averaged by their evidence."""
    noisy = np.asarray(counts, float)
    curves, evidence = smooth_curves(noisy, noise, None, total)
    even = np.clip(len(noisy) * noise / (4 * total.count), _EVEN, 1.0)
    curves = (1 - even) * curves + even * curves.mean(axis=1, keepdims=True)
    peaks, peak_evidence = _single_peaks(noisy, noise, total.count)
    likely = averaged(np.vstack([curves, peaks]), np.r_[evidence, peak_evidence])
    estimate = posterior_mean(noisy, np.maximum(likely, 1e-9 * likely.sum()), noise, groups=1)
    return estimate / estimate.sum()


def estimate_weekdays(counts: NDArray[np.float64], noise: float, count: float) -> NDArray[np.float64]:
    """Shares of bins that are no scale, such as weekdays: the posterior mean around all being the same."""
    noisy = np.asarray(counts, float)
    estimate = posterior_mean(noisy, np.full(len(noisy), max(count, noise) / len(noisy)), noise, groups=1)
    return estimate / estimate.sum()


def _single_peaks(
    noisy: NDArray[np.float64], noise: float, count: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A peak of each size at each hour on even ground, and the evidence of each (Gaussian, like that of the curves)."""
    clear = _PEAK_SHARES[_PEAK_SHARES * count > _CLEAR * noise]
    bins, size = len(noisy), clear[:, None, None]
    peaks = count * ((1 - size) / bins + size * np.eye(bins)).reshape(-1, bins)
    misfit = ((noisy - peaks) ** 2).sum(axis=1) / (4 * noise**2)
    # The noise has longer tails than a Gaussian: an hour that was not heard to hold half of all is no such peak.
    heard = np.tile(noisy > 0.5 * count, len(clear))
    return peaks, np.where(heard, np.log(_PEAK_CHANCE / (bins * len(_PEAK_SHARES))) - misfit, -np.inf)

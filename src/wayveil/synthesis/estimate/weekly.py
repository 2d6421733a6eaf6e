"""Departures by hour of the day and by weekday, from two noisy answers.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.posterior import Noisy, NoisyCounts, noise_of, posterior_mean
from wayveil.core.raking import rake
from wayveil.synthesis.estimate.curves import Total, averaged, smooth_curves, without_decay
from wayveil.synthesis.estimate.day_shapes import day_shapes
from wayveil.synthesis.estimate.histogram import estimate_table
from wayveil.synthesis.estimate.settings import CURVES, HOURS
from wayveil.synthesis.estimate.weekend import WEEKEND, in_parts, weekend_affinity


def estimate_week(
    hours: NDArray[np.float64], week: NDArray[np.float64], week_noise: float, count: float
) -> NDArray[np.float64]:
    """(weekday, hour) shares: posterior mean of the noisy counts around a product with other hours on the weekend.

    The prior mean is the product of the shares of the hours of all days and of the weekdays, times `weekend_affinity`.
    The posterior is that of each hour of the week, or of each part of a day if `week` has parts.

    Parameters
    ----------
    hours
        Estimated shares of the hours of a day.
    week, week_noise
        (weekday, part of the day) noisy counts, and their scale.
    """
    affinity = np.ones((len(week), len(hours)))
    for _ in range(HOURS.week_rounds):
        days = estimate_weekdays(*_sums_of_days(week, week_noise, hours * affinity, count), count)
        affinity = weekend_affinity(week, week_noise, days, hours, count)
    expected = np.outer(days, hours) * affinity
    parts, whole = in_parts(hours, week.shape[1]), in_parts(expected, week.shape[1])
    of_parts = estimate_table(Noisy(week, week_noise), days, parts, count, affinities=(whole / np.outer(days, parts),))
    expected *= np.repeat(of_parts / whole, len(hours) // len(parts), axis=1)
    expected = rake(expected, ((0, days), (1, hours)), CURVES.table_rounds)
    return np.asarray(expected / expected.sum())


def _sums_of_days(
    week: NDArray[np.float64], noise: float, expected: NDArray[np.float64], count: float
) -> tuple[NDArray[np.float64], float]:
    """Trips of each day, and the scale of their noise.

    A sum weighted by the expected shares of the hours has the least noise, because hours without trips add only noise.
    Plain sums are unbiased whatever the hours are, and are used if their relative noise is small.
    """
    expected = in_parts(expected / expected.sum(axis=1, keepdims=True), week.shape[1])
    bins = week.shape[1]
    error = np.sqrt(2 * bins) * noise * len(week) / max(count, 1.0)
    plain = 1 / (1 + (error / HOURS.small_error) ** 2)
    weight = (1 - plain) * expected + plain / bins
    scale = (weight * expected).sum(axis=1)
    spread = np.sqrt((weight**2).sum(axis=1)) / scale
    return (week * weight).sum(axis=1) / scale, noise * float(spread.mean())


def estimate_hours(answer: NoisyCounts, total: Total) -> NDArray[np.float64]:
    """Shares of the hours, none of them zero: curves, single peaks and typical days, averaged with evidence as weights.

    The stronger the signal, the lower is the prior weight of typical days.
    """
    noisy, noise, count = np.asarray(answer.counts, float), noise_of(answer), total.count
    curves, evidence = smooth_curves(noisy, noise, without_decay(noisy), total)
    even = np.clip(HOURS.any_hour_noise * len(noisy) * noise / count, HOURS.any_hour_share, 1.0)
    mixed = (1 - even) * curves + even * curves.mean(axis=1, keepdims=True)
    # An outlier in one hour is improbable under Gaussian noise but not under Laplace noise.
    misfit = _squares if answer.gaussian else _distances
    evidence = evidence + _squares(noisy, curves, noise) - misfit(noisy, mixed, noise) - np.log(len(curves))
    peaks, peak_chances = _single_peaks(noisy, noise, count)
    usual = count * day_shapes()
    odds = [
        evidence,
        peak_chances - misfit(noisy, peaks, noise),
        -misfit(noisy, usual, noise) - np.log(len(usual)) - count / noise / HOURS.usual_noise_units,
    ]
    likely = averaged(np.vstack([mixed, peaks, usual]), np.concatenate(odds))
    likely = np.maximum(likely, 1e-9 * likely.sum())
    estimate = posterior_mean(answer, likely, groups=1, usual_spread=HOURS.deviation)
    result: NDArray[np.float64] = estimate / estimate.sum()
    return result


def _squares(noisy: NDArray[np.float64], means: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    result: NDArray[np.float64] = ((noisy - means) ** 2).sum(axis=1) / (4 * noise**2)
    return result


def _distances(noisy: NDArray[np.float64], means: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.abs(noisy - means).sum(axis=1) / noise
    return result


def estimate_weekdays(counts: NDArray[np.float64], noise: float, count: float) -> NDArray[np.float64]:
    """Shares of the seven days: one level for working days, one for the weekend, and a deviation of each day.

    The result is averaged, weighted by evidence, over the ratio of the levels, the size of the deviations, and the
    hypothesis that nearly all recordings are of one day.
    """
    noisy, count = np.asarray(counts, float), max(count, noise)
    weekend = np.arange(len(noisy)) >= WEEKEND.start
    busier, apart = (axis.ravel() for axis in np.meshgrid(HOURS.weekend_ratios, HOURS.day_spreads))
    working = count / (WEEKEND.start + (len(noisy) - WEEKEND.start) * busier)
    mean = working[:, None] * np.where(weekend, busier[:, None], 1.0)
    own = (apart[:, None] * mean) ** 2
    variance = own + 2 * noise**2
    evidence = -0.5 * ((noisy - mean) ** 2 / variance + np.log(variance / (2 * noise**2))).sum(axis=1)
    evidence -= 0.5 * (np.log(busier) / HOURS.weekend_ratio_spread) ** 2 + np.log(len(busier))
    likely = np.maximum(mean + own / variance * (noisy - mean), HOURS.least_day * mean)
    peaks, peak_chances = _single_peaks(noisy, noise, count)
    estimate = averaged(np.vstack([likely, peaks]), np.r_[evidence, peak_chances - _squares(noisy, peaks, noise)])
    result: NDArray[np.float64] = estimate / estimate.sum()
    return result


def _single_peaks(
    noisy: NDArray[np.float64], noise: float, count: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A peak of each size at each hour (or day), the rest uniform, and the log prior of each."""
    peak_shares = np.array(HOURS.peak_shares)
    clear = peak_shares[peak_shares * count > HOURS.peak_noise_units * noise]
    bins, size = len(noisy), clear[:, None, None]
    peaks = count * ((1 - size) / bins + size * np.eye(bins)).reshape(-1, bins)
    # The noise has long tails, so an hour with a noisy count below half of the total is not such a peak.
    seen = np.tile(noisy > HOURS.peak_seen * count, len(clear))
    return peaks, np.where(seen, np.log(HOURS.peak_chance / (bins * len(peak_shares))), -np.inf)

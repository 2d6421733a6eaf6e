"""Hours of Saturday and Sunday, which differ from those of the other days.

A week has 168 hours with few trips in each, so single hours are dominated by noise; and with the hours of all days
pooled, Sunday would have a rush hour. The weekend differs most, and smoothly: its hours are those of all days times exp
of a sum of a few waves. The estimate is averaged over the strength of the waves, weighted by evidence; no difference at
all has the largest prior probability.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.week import SATURDAY
from wayveil.synthesis.estimate.settings import WEEKEND_HOURS

Hours = NDArray[np.float64]
WEEKEND = slice(SATURDAY, 7)
_WORKING = slice(0, SATURDAY)
_WAVES = np.repeat(WEEKEND_HOURS.waves_per_day, 2)
"""Frequency of each wave in cycles per day; a cosine and a sine of each."""


def weekend_affinity(
    week: NDArray[np.float64], noise: float, days: NDArray[np.float64], hours: Hours, count: float
) -> NDArray[np.float64]:
    """(7, 24): ratio of each hour's share on that day to its share on all days; 1 if the counts are all noise.

    Parameters
    ----------
    week
        Noisy counts by weekday, Monday first, and hour or part of the day; `noise` is their scale.
    days, hours
        Estimated shares of the weekdays, and of the hours of all days together.
    """
    weekend = float(days[WEEKEND].sum())
    counts = np.concatenate([week[WEEKEND].sum(axis=0), week[_WORKING].sum(axis=0)])
    variance = 2 * noise**2 * np.repeat((2.0, 5.0), week.shape[1])
    log_ratios = [np.zeros(len(hours))]
    evidence = [_log_likelihood(_expected(log_ratios[0], hours, weekend, count), counts, variance)]
    for strength in WEEKEND_HOURS.strengths:
        log_ratio, log_evidence = _fitted(strength, counts, variance, hours, weekend, count)
        log_ratios.append(log_ratio)
        evidence.append(log_evidence)
    weight = np.exp(np.array(evidence) - max(evidence)) * WEEKEND_HOURS.chances
    at_weekend, on_workdays = np.split(_expected(weight @ log_ratios / weight.sum(), hours, weekend, count), 2)
    return np.repeat([_ratio(on_workdays, hours), _ratio(at_weekend, hours)], (5, 2), axis=0)


def _fitted(
    strength: float, counts: Hours, variance: Hours, hours: Hours, weekend: float, count: float
) -> tuple[Hours, float]:
    """The most probable log ratio for a strength (Gauss–Newton), and the log evidence of the strength (Laplace)."""
    waves = _waves(len(hours))
    spread = strength / np.sqrt(_WAVES)
    size = np.zeros(len(waves))
    for _ in range(WEEKEND_HOURS.steps):
        expected = _expected(size @ waves, hours, weekend, count)
        at_weekend = expected[: len(hours)]
        slope = at_weekend * (waves - (waves @ at_weekend / at_weekend.sum())[:, None])
        slopes = in_parts(np.concatenate([slope, -slope], axis=1), len(counts)) / np.sqrt(variance)
        curvature = slopes @ slopes.T + np.diag(spread**-2.0)
        step = np.linalg.solve(
            curvature, slopes @ ((counts - in_parts(expected, len(counts))) / np.sqrt(variance)) - size / spread**2
        )
        size = size + step / max(1.0, float(np.abs(step).max()))
    fit = _log_likelihood(_expected(size @ waves, hours, weekend, count), counts, variance)
    volume = np.linalg.slogdet(curvature * np.outer(spread, spread))[1]
    return size @ waves, float(fit - 0.5 * ((size / spread) ** 2).sum() - 0.5 * volume)


def _expected(log_ratio: Hours, hours: Hours, weekend: float, count: float) -> Hours:
    """Expected trips at each hour of the weekend, then of the other days; the two add up to those of all days."""
    at_weekend = hours * np.exp(np.clip(log_ratio, -WEEKEND_HOURS.most_log_ratio, WEEKEND_HOURS.most_log_ratio))
    at_weekend = np.minimum(weekend * at_weekend / at_weekend.sum(), WEEKEND_HOURS.most_share * hours)
    return count * np.concatenate([at_weekend, hours - at_weekend])


def _log_likelihood(expected: Hours, counts: Hours, variance: Hours) -> float:
    return -0.5 * float(((counts - in_parts(expected, len(counts))) ** 2 / variance).sum())


def in_parts(hours: NDArray[np.float64], parts: int) -> NDArray[np.float64]:
    """Sums of neighbouring hours along the last axis, in `parts` parts of equal length."""
    return np.asarray(hours.reshape(*hours.shape[:-1], parts, -1).sum(axis=-1))


def _ratio(part: Hours, hours: Hours) -> Hours:
    """Ratio of the part's shares to those of all days."""
    result: Hours = np.divide(part / max(part.sum(), 1e-300), hours, out=np.ones_like(hours), where=hours > 0)
    return result


def _waves(bins: int) -> NDArray[np.float64]:
    angle = 2 * np.pi * np.outer(_WAVES, (np.arange(bins) + 0.5) / bins)
    return np.where(np.arange(len(_WAVES))[:, None] % 2 == 0, np.cos(angle), np.sin(angle))

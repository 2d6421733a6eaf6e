"""weekend: how the hours of Saturday and Sunday differ from those of the other days.

A week has 168 hours, and few trips in each: one by one they drown in the noise, and every day would get the hours of
all of them, Sunday its rush hour. What differs most is the weekend, and it differs smoothly: exp of a few waves of the
day times the hours of all days. How strong these waves may be is averaged over by evidence; that they are none at all
is the likeliest before anything was heard.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.week import SATURDAY

Hours = NDArray[np.float64]
WEEKEND = slice(SATURDAY, 7)
_WORKING = slice(0, SATURDAY)
_WAVES = np.repeat((1, 2, 3, 4), 2)
"""Turns a day of each wave, a cosine and a sine of each."""
_STRENGTHS = (0.1, 0.3, 0.6, 1.2)
_CHANCES = (0.4, 0.25, 0.2, 0.1, 0.05)
"""Of no difference, and of differences of these strengths."""
_STEPS = 12
_MOST = 0.98
"""At no hour are more of all trips the weekend's."""


def weekend_affinity(
    week: NDArray[np.float64], noise: float, days: NDArray[np.float64], hours: Hours, count: float
) -> NDArray[np.float64]:
    """(7, 24): how much likelier each hour is on that day than on all days; 1 where nothing was heard.

    Parameters
    ----------
    week
        Noisy counts by weekday, Monday first, and hour or part of the day, and the scale of their noise.
    days, hours
        Estimated shares of the weekdays, and of the hours of all days together.
    """
    weekend = float(days[WEEKEND].sum())
    seen = np.concatenate([week[WEEKEND].sum(axis=0), week[_WORKING].sum(axis=0)])
    variance = 2 * noise**2 * np.repeat((2.0, 5.0), week.shape[1])
    log_ratios = [np.zeros(len(hours))]
    evidence = [_log_likelihood(_expected(log_ratios[0], hours, weekend, count), seen, variance)]
    for strength in _STRENGTHS:
        log_ratio, one = _fitted(strength, seen, variance, hours, weekend, count)
        log_ratios.append(log_ratio)
        evidence.append(one)
    weight = np.exp(np.array(evidence) - max(evidence)) * _CHANCES
    there, other = np.split(_expected(weight @ log_ratios / weight.sum(), hours, weekend, count), 2)
    return np.repeat([_ratio(other, hours), _ratio(there, hours)], (5, 2), axis=0)


def _fitted(
    strength: float, seen: Hours, variance: Hours, hours: Hours, weekend: float, count: float
) -> tuple[Hours, float]:
    """The likeliest log ratio of that strength (Gauss–Newton), and the logarithm of its evidence (Laplace)."""
    waves = _waves(len(hours))
    spread = strength / np.sqrt(_WAVES)
    size = np.zeros(len(waves))
    for _ in range(_STEPS):
        expected = _expected(size @ waves, hours, weekend, count)
        there = expected[: len(hours)]
        slope = there * (waves - (waves @ there / there.sum())[:, None])
        slopes = in_parts(np.concatenate([slope, -slope], axis=1), len(seen)) / np.sqrt(variance)
        curvature = slopes @ slopes.T + np.diag(spread**-2.0)
        step = np.linalg.solve(
            curvature, slopes @ ((seen - in_parts(expected, len(seen))) / np.sqrt(variance)) - size / spread**2
        )
        size = size + step / max(1.0, float(np.abs(step).max()))
    fit = _log_likelihood(_expected(size @ waves, hours, weekend, count), seen, variance)
    volume = np.linalg.slogdet(curvature * np.outer(spread, spread))[1]
    return size @ waves, float(fit - 0.5 * ((size / spread) ** 2).sum() - 0.5 * volume)


def _expected(log_ratio: Hours, hours: Hours, weekend: float, count: float) -> Hours:
    """Trips at each hour of the weekend, then of the other days; together those of all days."""
    there = hours * np.exp(np.clip(log_ratio, -4.0, 4.0))
    there = np.minimum(weekend * there / there.sum(), _MOST * hours)
    return count * np.concatenate([there, hours - there])


def _log_likelihood(expected: Hours, seen: Hours, variance: Hours) -> float:
    return -0.5 * float(((seen - in_parts(expected, len(seen))) ** 2 / variance).sum())


def in_parts(hours: NDArray[np.float64], parts: int) -> NDArray[np.float64]:
    """Sums of neighbouring hours, along the last axis: so many parts of equal length."""
    return np.asarray(hours.reshape(*hours.shape[:-1], parts, -1).sum(axis=-1))


def _ratio(part: Hours, hours: Hours) -> Hours:
    """The part's shares over those of all days."""
    return np.divide(part / max(part.sum(), 1e-300), hours, out=np.ones_like(hours), where=hours > 0)


def _waves(bins: int) -> NDArray[np.float64]:
    angle = 2 * np.pi * np.outer(_WAVES, (np.arange(bins) + 0.5) / bins)
    return np.where(np.arange(len(_WAVES))[:, None] % 2 == 0, np.cos(angle), np.sin(angle))

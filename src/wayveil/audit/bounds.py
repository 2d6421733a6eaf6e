"""Statistical bounds from many runs: Clopper–Pearson intervals, and a lower bound on ε."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.999
"""Default confidence level of every bound: one false alarm in a thousand."""
_MOST_THRESHOLDS = 512
"""Largest number of thresholds that are tried; more take time and hardly improve the bound."""


@dataclass(frozen=True)
class Rate:
    """A share of successes with its exact two-sided interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bound:
    """With the stated confidence, the method does not satisfy any ε below `epsilon`."""

    epsilon: float
    confidence: float
    runs: int
    """Runs on each of the two datasets; half of them chose the event, the other half gave the bound."""
    event: str
    """What the output shows more often on one dataset than on the other."""
    likely: Rate
    """How often the event happened on the dataset that it points to."""
    unlikely: Rate
    """How often it happened on the neighbour."""


def lower(successes: NDArray[np.integer] | int, trials: int, alpha: float) -> NDArray[np.float64]:
    """One-sided Clopper–Pearson: P(true rate < lower) ≤ alpha."""
    from scipy.special import betaincinv

    k = np.asarray(successes, float)
    return np.where(k > 0, betaincinv(np.maximum(k, 1), trials - k + 1, alpha), 0.0)


def upper(successes: NDArray[np.integer] | int, trials: int, alpha: float) -> NDArray[np.float64]:
    """One-sided Clopper–Pearson: P(true rate > upper) ≤ alpha."""
    return 1.0 - lower(trials - np.asarray(successes), trials, alpha)


def rate(successes: int, trials: int, confidence: float = CONFIDENCE) -> Rate:
    """successes / trials with its two-sided Clopper–Pearson interval."""
    alpha = (1.0 - confidence) / 2
    if trials < 1:
        return Rate(0.0, 0.0, 1.0)
    return Rate(successes / trials, float(lower(successes, trials, alpha)), float(upper(successes, trials, alpha)))


def epsilon_bound(
    without: NDArray[np.floating],
    with_canary: NDArray[np.floating],
    *,
    confidence: float = CONFIDENCE,
    names: Sequence[str] = (),
) -> Bound:
    """ε ≥ ln(p_low / q_high), where p and q are the probabilities of one event on two neighbouring datasets.

    Pure ε-DP says P(E | D') ≤ e^ε · P(E | D) for every event E and in both directions. The first half of the runs
    chooses E: which statistic, which threshold, above or below it, in which direction. The second half, which is
    independent of that choice, counts E; p_low and q_high are one-sided Clopper–Pearson bounds at half the error each
    (Bonferroni), so the bound holds with the stated confidence however the event was found.

    Parameters
    ----------
    without, with_canary
        (runs,) or (runs, statistics): statistics of the output of each run, on either dataset.

    Privacy
    -------
    Not private (trusted side only).
    """
    zero, one = (np.asarray(s, float).reshape(len(s), -1) for s in (without, with_canary))
    runs = min(len(zero), len(one))
    if runs < 4 or zero.shape[1] != one.shape[1]:
        raise ValueError("an audit needs at least four runs on each dataset, with the same statistics of each")
    if not (np.isfinite(zero).all() and np.isfinite(one).all()):
        raise ValueError("the statistics of an audit must be finite numbers")
    half = runs // 2
    alpha = (1.0 - confidence) / 2
    statistic, threshold, above, towards_one = _choose(zero[:half], one[:half], alpha)
    held_zero, held_one = zero[half:runs, statistic], one[half:runs, statistic]
    trials = runs - half
    hits = [int(((held > threshold) if above else (held <= threshold)).sum()) for held in (held_zero, held_one)]
    likely, unlikely = (hits[1], hits[0]) if towards_one else (hits[0], hits[1])
    name = names[statistic] if names else f"statistic {statistic + 1}"
    more = "with the canary" if towards_one else "without the canary"
    event = f"{name} {'above' if above else 'at most'} {threshold:.6g}, more often {more}"
    # rate() splits 1 - confidence over its two sides, so each side used here has half of the error.
    rates = rate(likely, trials, confidence), rate(unlikely, trials, confidence)
    return Bound(_ratio(rates[0].low, rates[1].high), confidence, runs, event, *rates)


def _ratio(p_low: float, q_high: float) -> float:
    return max(0.0, math.log(p_low / q_high)) if p_low > 0 else 0.0


def _choose(zero: NDArray[np.float64], one: NDArray[np.float64], alpha: float) -> tuple[int, float, bool, bool]:
    """The event that would give the largest bound on these runs."""
    best, chosen = -math.inf, (0, 0.0, True, True)
    half = len(zero)
    lows = lower(np.arange(half + 1), half, alpha)  # computed once per count, because the inverse beta function is slow
    for statistic in range(zero.shape[1]):
        thresholds = _thresholds(np.concatenate([zero[:, statistic], one[:, statistic]]))
        if not len(thresholds):
            continue
        counts = [half - np.searchsorted(np.sort(side[:, statistic]), thresholds, side="right") for side in (zero, one)]
        for above in (True, False):
            k0, k1 = counts if above else (half - counts[0], half - counts[1])
            for towards_one, p, q in ((True, k1, k0), (False, k0, k1)):
                gain = np.log(np.maximum(lows[p], 1e-300) / (1.0 - lows[half - q]))
                at = int(np.argmax(gain))
                if gain[at] > best:
                    best, chosen = float(gain[at]), (statistic, float(thresholds[at]), above, towards_one)
    return chosen


def _thresholds(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Halfway between neighbouring values, so that rounding of the last digit does not matter."""
    distinct = np.unique(values)
    middle: NDArray[np.float64] = (distinct[1:] + distinct[:-1]) / 2
    if len(middle) <= _MOST_THRESHOLDS:
        return middle
    tail = _MOST_THRESHOLDS // 8
    even = np.linspace(0, len(middle) - 1, _MOST_THRESHOLDS).astype(int)
    return np.take(middle, np.unique(np.r_[np.arange(tail), even, len(middle) - 1 - np.arange(tail)]))

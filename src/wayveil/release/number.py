"""The number of trajectories, from all answers of a release together.

Most questions count every trajectory once, spread over their values. The sum of their noisy values is therefore a noisy
count, too, and with few values and a large share of ε it has less noise than the answer to the count itself.

Privacy: free (post-processing).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from wayveil.core.positive import positive_mean
from wayveil.privacy.unit import Unit
from wayveil.questions.answer import Answer
from wayveil.questions.count import Count
from wayveil.questions.norm_estimates import Noisy, trajectories_per_unit
from wayveil.questions.norms import NormBins
from wayveil.release.release import Release

ROUNDED_OFF = 0.05
"""Relative standard deviation of a sum whose weights are rounded towards zero: a trajectory of 10,000 points loses 8 %
of its weight in the occupancy, and one of 100 points 0.05 %."""
_FINE = 1 << 10
"""Least resolution of questions whose weights are fractions, which are rounded."""
_DRAWS = 40
"""Draws of `kept_error`; the error of a standard deviation from 40 draws is about 11 %."""
_MEAN_OF_NORMAL = math.sqrt(2 / math.pi)
"""Mean absolute value of a normal variable with the standard deviation 1."""


@dataclass(frozen=True)
class Number:
    """An estimated number of trajectories and the standard deviation of its error."""

    value: float
    sd: float

    @property
    def noise(self) -> float:
        """The scale of the Laplace noise that has this standard deviation."""
        return self.sd / math.sqrt(2)

    @property
    def mean_error(self) -> float:
        """The expected absolute error; the sum of many noise terms is nearly normal."""
        return _MEAN_OF_NORMAL * self.sd


def estimate_number(release: Release) -> Number:
    """The mean of all noisy counts, weighted by their precision, given that the true number is positive.

    Privacy: free (post-processing).

    Examples
    --------
    >>> import wayveil
    >>> release = wayveil.read_release("rides.release.json")  # doctest: +SKIP
    >>> estimate_number(release).value  # doctest: +SKIP
    """
    counts = [total_of(answer) for answer in release.answers if _counts_all(answer)]
    first = weighted_mean(counts)
    # The rounding error is a share of the number, which a first mean estimates.
    missing = ROUNDED_OFF * positive_mean(first.value, first.sd)
    rounded = [answer.question.resolution >= _FINE for answer in release.answers if _counts_all(answer)]
    last = weighted_mean(
        [Number(one.value, math.hypot(one.sd, missing if off else 0.0)) for one, off in zip(counts, rounded)]
    )
    value = positive_mean(last.value, last.sd)
    if Count.name not in release or release.unit != "user":
        return Number(value, last.sd)
    return Number(value, math.hypot(last.sd, value * kept_error(release[Count.name], release.max_per_user)))


@lru_cache(maxsize=16)
def kept_error(count: Answer, max_per_user: int) -> float:
    """Relative standard error of the share of the count that clipping is estimated to keep; 0 without clipping.

    The share follows from a noisy histogram of the trajectories per user. Here the same noise is added to the estimated
    histogram `_DRAWS` times, with a fixed seed; the shares that follow vary about as much as the estimated share errs.

    Privacy: free (post-processing).
    """
    clipping = count.clipping
    if clipping is None or clipping.norms is None or clipping.norms_scale is None:
        return 0.0
    bins, bound = NormBins.of(Count, Unit.user(max_per_user)), clipping.bound / clipping.resolution
    sd, random = clipping.norms_scale, np.random.default_rng(0)
    units = trajectories_per_unit(bins, Noisy(clipping.norms, sd)).units
    again = (np.rint(units + random.normal(0.0, sd, len(units))).astype(np.int64) for _ in range(_DRAWS))
    return float(np.std([trajectories_per_unit(bins, Noisy(drawn, sd)).kept(bound) for drawn in again]) / clipping.kept)


def _counts_all(answer: Answer) -> bool:
    """Whether the answer's total is a count of its own.

    An answer whose bound came from noisy norms was scaled to the count, so its total adds nothing new. Optional answers
    are left out, because they add little.
    """
    clipped = answer.clipping is not None and answer.clipping.norms is not None
    return answer.name == Count.name or (answer.question.adds_up and not answer.question.optional and not clipped)


def total_of(answer: Answer) -> Number:
    """The number of trajectories that an answer counts, over all its values."""
    counts = answer.counts
    return Number(float(counts.sum()), math.sqrt(2 * counts.size) * answer.noise)


def weighted_mean(numbers: list[Number]) -> Number:
    """The mean of independent estimates of one number, weighted by their precision."""
    precision = [1 / number.sd**2 for number in numbers]
    whole = sum(precision)
    return Number(sum(p * number.value for p, number in zip(precision, numbers)) / whole, 1 / math.sqrt(whole))

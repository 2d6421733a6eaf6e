"""The number of trajectories, from all answers of a release together.

Most questions count every trajectory once, spread over their values. The sum of their noisy values is therefore a noisy
count, too, and with few values and a large share of ε it has less noise than the answer to the count itself.

Privacy: free (post-processing).
"""

import math
from dataclasses import dataclass

from wayveil.core.positive import positive_mean
from wayveil.questions.answer import Answer
from wayveil.questions.count import Count
from wayveil.release.release import Release

ROUNDED_OFF = 0.05
"""Relative standard deviation of a sum whose weights are rounded towards zero: a trajectory of 10,000 points loses 8 %
of its weight in the occupancy, and one of 100 points 0.05 %."""
_FINE = 1 << 10
"""Resolution from which the weights of a question are fractions that are rounded."""


@dataclass(frozen=True)
class Number:
    """An estimated number of trajectories and the standard deviation of its error."""

    value: float
    sd: float

    @property
    def noise(self) -> float:
        """The scale of the Laplace noise that has this standard deviation."""
        return self.sd / math.sqrt(2)


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
    return Number(positive_mean(last.value, last.sd), last.sd)


def _counts_all(answer: Answer) -> bool:
    """Whether the answer's total is a count of its own.

    If its bound came from noisy norms, it was scaled to the count. Optional answers are left out; they add little.
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

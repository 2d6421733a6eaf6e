"""Trajectories of a single point: their number, their contribution to other answers, and their positions.

A single point has no sampling interval. The release counts it in the lowest bin of `mean_interval`, which contains no
other trajectories. Its length, displacement, duration and speed are zero, so it is also in the lowest bins of those
answers. Without these counts, the release describes the trajectories of several points.

Privacy: free (post-processing).
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.pyramid import Field
from wayveil.questions.answer import Answer
from wayveil.questions.mean_interval import MeanInterval
from wayveil.release import Release
from wayveil.release.number import Number, estimate_number, total_of, weighted_mean
from wayveil.synthesis.trips.draw import shuffled
from wayveil.synthesis.trips.settings import ONE_POINT

_ZERO = ("length", "displacement", "duration", "mean_speed")
"""Answers with one count per trajectory and enough of the budget to confirm that many have the value zero."""
_LOWERED = (
    "count",
    *_ZERO,
    "duration/spikes",
    "top_speed",
    "median_interval",
    "displacement_length",
    "length_duration",
)
"""Answers that count a single point in their first value."""


def one_point_share(release: Release) -> float:
    """The share of trajectories with a single point: 0, 1, or in between if both kinds are significant.

    Single points are assumed to exist only if their own count and the lowest bins of length, displacement, duration and
    speed are all `clear_sd` standard deviations above zero. In that case, trajectories of several points are assumed to
    exist only if their estimated number is as significant. So noise alone creates neither kind.
    """
    interval = release[MeanInterval.name]
    single = _first(interval)
    if not (_clear(single) and all(_clear(_first(release[name])) for name in _ZERO)):
        return 0.0
    everyone = weighted_mean([total_of(release[name]) for name in ("count", *_ZERO)])
    rest = interval.counts[1:]
    several = weighted_mean(
        [
            Number(everyone.value - single.value, math.hypot(everyone.sd, single.sd)),
            Number(float(rest.sum()), math.sqrt(2 * len(rest)) * interval.noise),
            total_of(release["gap_ratio"]),  # a single point has no gap
        ]
    )
    return single.value / (single.value + several.value) if _clear(several) else 1.0


def without_one_point(release: Release, share: float) -> Release:
    """The release without the single points: their number is subtracted from the first value of each answer.

    The bin of single points is removed from the mean intervals. The answers about places do not change, because they
    describe all trajectories together.
    """
    number = share * estimate_number(release).value if share else 0.0
    return replace(release, answers=tuple(_without(answer, number) for answer in release.answers))


def _without(answer: Answer, number: float) -> Answer:
    question = answer.question
    if isinstance(question, MeanInterval):
        answer = answer.as_one_draw()
        return replace(answer, question=MeanInterval(Bins(question.bins.edges[1:])), noisy=answer.noisy[1:])
    if not number or answer.name not in _LOWERED:
        return answer
    answer = answer.as_one_draw()
    noisy = answer.noisy.copy()
    noisy[0] -= round(number * answer.resolution)
    return replace(answer, noisy=noisy)


def with_one_point(displacement: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Shares of displacements with the single points, which are in the first bin."""
    shares = (1 - share) * displacement
    shares[0] += share
    return shares


def moving_flows(
    flows: NDArray[np.float64], share: float, regions: NDArray[np.int64], ends: Field
) -> NDArray[np.float64]:
    """Shares of trips between regions without the single points, which start and end in the same region."""
    stay = np.bincount(regions.ravel(), ends.ravel(), minlength=len(flows))
    left = np.maximum(flows - share * np.diag(stay / stay.sum()), 1e-3 * flows)
    return np.asarray(left / left.sum())


def one_point_cells(starts: Field, ends: Field, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Cells of `count` single points, drawn from the density of starts and ends."""
    return shuffled((starts + ends).ravel(), count, random)


def _clear(number: Number) -> bool:
    return number.value > ONE_POINT.clear_sd * number.sd


def _first(answer: Answer) -> Number:
    """The number of trajectories that the first value of an answer counts."""
    return Number(float(answer.counts.ravel()[0]), math.sqrt(2) * answer.noise)

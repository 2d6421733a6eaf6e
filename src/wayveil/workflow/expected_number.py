"""The expected error of the number of trips, from the noise of the answers from which it will be estimated.

The mechanism of `measure` runs on a made-up dataset: without noise where only the sizes of the answers matter, and with
simulated noise for a clipped count, because its clipping bound and correction follow from noisy answers.

Privacy: free (public values only).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.positive import positive_mean
from wayveil.core.scope import Scope
from wayveil.measurement.draw import draw_release
from wayveil.measurement.gaussian import draw_clipped_release, draw_count, first_query
from wayveil.privacy.mechanism import Cost, Mechanism
from wayveil.privacy.noise import Noisy, SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet
from wayveil.questions.norms import NormBins, UnitQuery, clipped_resolution, guessed_norm
from wayveil.questions.question import Question, size_of
from wayveil.release.number import estimate_number, total_of

Sums = NDArray[np.int64]

DRAWS = 200
"""Draws of a clipped count; their mean error is then off by about 5 %."""


@dataclass(frozen=True)
class People:
    """Users whose numbers of trips are geometrically distributed; at most `most` trips of each user are used."""

    users: float
    trips: float
    most: int

    @property
    def _p_another(self) -> float:
        """Probability that a user has another trip."""
        return max(1 - self.users / self.trips, 0.0)

    def used(self, most: float) -> float:
        """The number of trips, with at most `most` of each user: the sum of P(K > k) over k below `most`."""
        return self.users * float((self._p_another ** np.arange(math.floor(most))).sum())

    def histogram(self, bins: NormBins) -> Sums:
        """The number of users in each bin of their number of trips."""
        above = self._p_another ** np.floor(bins.edges)
        above[-1] = 0.0  # nobody has more than `most`
        return np.rint(self.users * -np.diff(above)).astype(np.int64)


def expected_number_error(cost: Cost, unit: Unit, scope: Scope, trips: float, people: People | None) -> float:
    """The mean error of the estimated number of trips, relative to the number of those that are used.

    `people` are None at trajectory level.
    """
    if cost.rho is not None and people is not None:
        return _error_of_clipped(cost, unit, people)
    made_up = _MadeUp(scope, round(trips), unit)
    mechanism = Mechanism(cost, unit, _NoNoise())
    if cost.rho is None:
        release = draw_release(mechanism, made_up)
    else:
        (first,) = made_up.sums([first_query(unit)])
        release = draw_clipped_release(mechanism, made_up, scope, first)
    return estimate_number(release).mean_error / trips


def _error_of_clipped(cost: Cost, unit: Unit, people: People) -> float:
    """The error with clipped users: only the count estimates the number of trips; other answers are scaled to it."""
    mechanism = Mechanism(cost, unit, SeededNoise(0))
    counted = _Counted(people)
    (first,) = counted.sums([first_query(unit)])
    numbers = [total_of(draw_count(mechanism, counted, first)[0]) for _ in range(DRAWS)]
    used = people.used(people.most)
    return float(np.mean([abs(positive_mean(one.value, one.sd) / used - 1) for one in numbers]))


@dataclass(frozen=True)
class _Counted:
    """The made-up users, for whom only the count is queried."""

    people: People

    def sums(self, queries: Sequence[UnitQuery], progress: Progress = quiet) -> list[Sums]:
        return [self._sum(query) for query in queries]

    def _sum(self, query: UnitQuery) -> Sums:
        if query.bound is None:
            return self.people.histogram(query.bins)
        resolution = clipped_resolution(query.question)
        return np.array([round(self.people.used(query.bound / resolution) * resolution)], np.int64)


@dataclass(frozen=True)
class _MadeUp:
    """Trips that are spread evenly over the values of every question."""

    scope: Scope
    trips: int
    unit: Unit

    def sums_of(self, question: Question, progress: Progress = quiet) -> Sums:
        return _spread(self.trips * question.resolution, size_of(question))

    def sums(self, queries: Sequence[UnitQuery], progress: Progress = quiet) -> list[Sums]:
        """The sums for Gaussian noise at trajectory level, where every norm equals its public guess."""
        return [self._sum(query) for query in queries]

    def _sum(self, query: UnitQuery) -> Sums:
        if query.bound is not None:
            return _spread(self.trips * clipped_resolution(query.question), query.size)
        bin_of_all = np.searchsorted(query.bins.edges, guessed_norm(query.question, 1.0)) - 1
        return np.bincount([bin_of_all], minlength=query.size).astype(np.int64) * self.trips


def _spread(total: int, size: int) -> Sums:
    """A sum that is nearly even over all values."""
    return np.full(size, total // size, np.int64) + (np.arange(size) < total % size)


class _NoNoise:
    """The scales of the noise without the noise. Its output is not private; it sees made-up data only."""

    private: ClassVar[bool] = False

    def laplace(self, sums: Sums, sensitivity: int, epsilon: Fraction) -> Noisy:
        return Noisy(sums, float(sensitivity / epsilon), epsilon, False)

    def gaussian(self, sums: Sums, l2_sensitivity: float, rho: Fraction) -> Noisy:
        return Noisy(sums, l2_sensitivity / math.sqrt(2 * rho), Fraction(0), False, rho)

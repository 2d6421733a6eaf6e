"""The norm of what one unit adds to an answer, and the bound to which it is clipped.

In the Gaussian mode the noise of a question follows the L2 bound B_q on what one unit adds to its answer. The bound is
chosen without the exact data: each unit adds one count to one logarithmic bin of its norm, a histogram of
sensitivity 1 that gets noise of its own. If that noise hides it, a guess from public values is used.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wayveil.privacy.clipping import LARGEST_VALUE, UnitVectors, clip_l2, squared_norms
from wayveil.privacy.unit import Unit
from wayveil.questions.count import Count
from wayveil.questions.field import Blocks
from wayveil.questions.question import Question, size_of

Floats = NDArray[np.float64]

LEAST_RESOLUTION = 1 << 16
"""Least number of integer units per trajectory: rounding towards zero then removes little of a clipped vector."""
CENTRE_PARTS = 16
"""A centre is what 1/16 of a trajectory is expected to add: a clipped vector has a whole multiple of it, so clipping
rounds the number of trajectories that is subtracted to sixteenths."""
WEIGHT_PARTS = 16
"""Weights of values are whole sixteenths."""
LARGEST_WEIGHT = 1 << 9
"""Largest weight, in these units."""


@dataclass(frozen=True)
class NormSettings:
    """How bounds are chosen; set by hand and checked on two simulated datasets with one or two draws each."""

    part: Fraction = Fraction(1, 64)
    """Share of a question's ρ for the histogram of its norms."""
    part_of_count: Fraction = Fraction(1, 4)
    """The same for the count, whose norms are the numbers of trajectories a user has: all guesses follow from them."""
    bias: float = 0.2
    """Error due to clipping, as a share of the clipped amount; for the count it is 1."""
    first: Fraction = Fraction(3, 8)
    """Share of a centred question's ρ for the first draw and its norms. It must not be small, because noise in the
    centre adds to the norms of the second draw. Where the first draw has a centre, too, little of this ρ is lost."""
    left: float = 1 / 8
    """Part of `shared_norm` that remains with a centre: less remained for simulated drivers who serve the same city,
    more for simulated people with places of their own."""


SETTINGS = NormSettings()
_STEPS = 4
"""Bins of norms per octave."""
_LOWEST_OCTAVE = -6
"""The lowest edge is 2^-6 of a trajectory; smaller norms are in the first bin."""


def clipped_resolution(question: Question) -> int:
    """Integer units per trajectory in which contributions are clipped and added up; a multiple of the resolution."""
    return max(question.resolution, LEAST_RESOLUTION)


def public_bound(question: type[Question] | Question, unit: Unit) -> float | None:
    """The bound in trajectories where it is known beforehand: one trajectory that counts once has norm 1.

    What a user adds to a question about people has norm 1 at most, too.
    """
    return 1.0 if question.about_people or (unit.kind == "trajectory" and question.one_hot) else None


def norms_part(question: type[Question] | Question, unit: Unit) -> Fraction:
    """Share of the question's ρ for the histogram of its norms."""
    if public_bound(question, unit) is not None:
        return Fraction(0)
    return SETTINGS.part_of_count if question.name == Count.name else SETTINGS.part


def is_centred(question: type[Question] | Question, unit: Unit, trajectories: float) -> bool:
    """Whether the shared part of a contribution is expected to exceed the individual part, for units of `trajectories`.

    The question is then measured twice: the second draw measures the difference from a centre that the first draw
    gives.
    """
    return can_be_centred(question, unit) and (trajectories - 1) * question.shared_norm > question.own_norm


def can_be_centred(question: type[Question] | Question, unit: Unit) -> bool:
    """Whether the question may be measured twice: at user level, if its values add up to a count of trajectories.

    The count itself is not, because it scales the centre, nor are questions about people.
    """
    return unit.kind == "user" and question.adds_up and not question.about_people and question.name != Count.name


def can_be_weighted(question: Question, unit: Unit) -> bool:
    """Whether the values of a second draw have weights: only for coarse blocks, if the largest values remain exact.

    This depends on public numbers alone, so that no unit can cause an overflow. The cells of a `Detail` already have
    weights by block; weights by value made busy cells worse.
    """
    largest = LARGEST_WEIGHT * clipped_resolution(question) * unit.max_per_user
    return isinstance(question, Blocks) and largest < LARGEST_VALUE


def sums_part(question: type[Question] | Question, unit: Unit, centred: bool, second: bool = False) -> Fraction:
    """Share of the question's ρ for one draw of its sums."""
    whole = Fraction(1)
    if centred:
        whole = 1 - SETTINGS.first if second else SETTINGS.first
    return whole - norms_part(question, unit)


def guessed_norm(question: type[Question] | Question, trajectories: float, centred: bool = False) -> float:
    """sqrt(k·a + k·(k − 1)·b) for a unit of k trajectories, in trajectories.

    a is the usual squared norm of one trajectory, b the usual inner product of two trajectories of one user, or with a
    centre the part of it that remains.
    """
    if question.about_people:
        return 1.0
    k = max(trajectories, 1.0)
    shared = question.shared_norm * (SETTINGS.left if centred else 1.0)
    return math.sqrt(k * question.own_norm + k * (k - 1) * shared)


@dataclass(frozen=True)
class NormBins:
    """Bins of the norm in trajectories, four per octave, up to the most trajectories that a unit can have.

    For the count, whose norms are whole numbers, there are two per octave.
    """

    most: int
    whole: bool = False

    @classmethod
    def of(cls, question: type[Question] | Question, unit: Unit) -> "NormBins":
        """The bins for one question."""
        return cls(unit.sensitivity, question.name == Count.name)

    @cached_property
    def edges(self) -> Floats:
        """Ascending; a norm equal to an edge belongs to the bin below it."""
        if self.whole:
            steps = math.ceil(2 * math.log2(self.most))
            numbers = np.unique(np.rint(2.0 ** (np.arange(steps + 1) / 2)))
            return np.array([0.5, *numbers[numbers < self.most], float(self.most)])
        steps = math.ceil(_STEPS * math.log2(self.most) - 1e-9)
        edges = 2.0 ** (np.arange(_STEPS * _LOWEST_OCTAVE, steps + 1) / _STEPS)
        edges[-1] = self.most
        return edges

    @cached_property
    def middles(self) -> Floats:
        """Typical norm in each bin; for whole numbers, their mean."""
        if self.whole:
            lower = np.floor(self.edges[:-1]) + 1
            return np.asarray((lower + self.edges[1:]) / 2)
        return np.asarray(np.sqrt(self.edges[1:] * self.edges[:-1]))

    def __len__(self) -> int:
        return len(self.edges) - 1

    def histogram(self, vectors: UnitVectors, resolution: int) -> NDArray[np.int64]:
        """The number of units in each bin; a unit that adds nothing is in none.

        Privacy: not private (trusted side only). One unit moves one value by one.
        """
        squared = np.array([float(norm) for norm in squared_norms(vectors)], np.float64)
        norm = np.sqrt(squared[squared > 0]) / resolution
        index = np.searchsorted(self.edges * (1 + 1e-9), norm, side="left") - 1
        return np.bincount(np.clip(index, 0, len(self) - 1), minlength=len(self)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Centre:
    """What a part of a trajectory, one in CENTRE_PARTS, is expected to add to each value, in integer units.

    Privacy: free (post-processing of noisy answers).
    """

    values: NDArray[np.int64]
    weights: NDArray[np.int64] | None = None
    """Factors of the differences before they are clipped, in units of 1/WEIGHT_PARTS; None: all are one."""

    @classmethod
    def of(cls, shares: Floats, question: Question, weights: Floats | None = None) -> "Centre":
        """The centre of trajectories that add `shares` on average."""
        values = np.rint(shares * (clipped_resolution(question) / CENTRE_PARTS)).astype(np.int64)
        if weights is None:
            return cls(values)
        return cls(values, np.clip(np.rint(weights * WEIGHT_PARTS), 1, LARGEST_WEIGHT).astype(np.int64))

    def shares(self, question: Question) -> Floats:
        """What one trajectory is expected to add, in trajectories."""
        return np.asarray(self.values * (CENTRE_PARTS / clipped_resolution(question)), np.float64)

    def resolution(self, question: Question) -> int:
        """Integer units per trajectory in which differences of weight one are clipped and added up."""
        return clipped_resolution(question) * (1 if self.weights is None else WEIGHT_PARTS)

    def difference(self, vectors: UnitVectors, trajectories: NDArray[np.int64]) -> UnitVectors:
        """Each unit's weighted difference from what its trajectories are expected to add.

        Privacy: not private (trusted side only). A unit's result depends on its own vector alone.
        """
        multiple = CENTRE_PARTS * trajectories
        if self.weights is None:
            return vectors.minus(self.values, multiple)
        return vectors.times(self.weights).minus(self.weights * self.values, multiple)


@dataclass(frozen=True)
class UnitQuery:
    """What is added up over units for one question: clipped vectors, or without a bound a histogram of norms.

    A unit with n > c trajectories counts as c of them: its Σ φ(T) is multiplied by c/n. With a centre, what k
    trajectories are expected to add is subtracted from the vector of a unit that counts as k, and each difference is
    multiplied by the weight of its value.
    """

    question: Question
    bins: NormBins
    bound: int | None = None
    centre: Centre | None = None

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.bins) if self.bound is None else size_of(self.question)

    def of(self, vectors: UnitVectors, trajectories: NDArray[np.int64]) -> NDArray[np.int64]:
        """The exact sum over the units; `trajectories` is the number of trajectories of each.

        Privacy: not private (trusted side only). One unit moves it by at most `bound` in L2, or by one count.
        """
        if not self.question.about_people:
            vectors = vectors.counted_as(self.bins.most, trajectories)
            trajectories = np.minimum(trajectories, self.bins.most)
        if self.centre is not None:
            vectors = self.centre.difference(vectors, trajectories)
        if self.bound is None:
            centre = self.centre or Centre(np.zeros(0, np.int64))
            return self.bins.histogram(vectors, centre.resolution(self.question))
        return clip_l2(vectors, self.bound).sums(size_of(self.question))

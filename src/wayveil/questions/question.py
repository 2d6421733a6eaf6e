"""Question: a quantity that is measured on each trajectory, at a chosen size.

A question maps one trajectory T to a vector φ(T) of integers with ‖φ(T)‖₁ ≤ `resolution`. Its exact answer is Σ φ(T),
so adding or removing one trajectory moves the answer by at most `resolution` in L1, however many cells, points or
trajectories there are (docs/explanation/method.md, Lemma 1). Each question is a frozen object that owns everything
about itself: its name, the rule for its size, its features, its JSON form and its meaning in words. Its share of ε
stands in the catalogue (`wayveil.questions.catalogue`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid, base_grid
from wayveil.core.positive import positive_mean
from wayveil.core.scope import Scope
from wayveil.privacy.fixedpoint import exact_bincount
from wayveil.privacy.unit import Unit

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared
    from wayveil.questions.answer import Answer

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Features:
    """Sparse features: trajectory `row[k]` has the integer `weight[k]` at position `column[k]`."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    weight: NDArray[np.int64]


class Query(Protocol):
    """What an engine adds up.

    For every trajectory Σ |weight| ≤ `resolution`, and its features depend on nothing but itself and public values.
    """

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def resolution(self) -> int: ...

    def features(self, batch: "Prepared") -> Features: ...


@dataclass(frozen=True, eq=False)
class Context:
    """What may decide the size of a question: public values, the noise to come, and earlier noisy answers.

    Privacy: free (post-processing of noisy answers).
    """

    scope: Scope
    noise: Mapping[str, float]
    """Scale of each question's noise, in trajectories."""
    group_signals: Mapping[str, float]
    """Signal of each budget group as a whole, in noise units, before its share is divided."""
    answers: Mapping[str, "Answer"]
    """The noisy answers so far, by question."""
    gaussian: bool = False
    """Whether the noise is Gaussian, so that L2 norms count instead of L1 norms."""
    grid: Grid = field(init=False)
    _results: dict[Callable[["Context"], Any], Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", base_grid(self.scope))

    @property
    def count(self) -> float:
        """The noisy number of trajectories, corrected because it cannot be negative; at least one."""
        return noisy_number(self.answers["count"])

    def signal(self, name: str) -> float:
        """m̃·ε_v / c: the signal of the whole answer to a question, in noise units."""
        return self.count / self.noise[name]

    def once(self, function: Callable[["Context"], Result]) -> Result:
        """function(self), computed once; for values that several questions derive from the same answers."""
        if function not in self._results:
            self._results[function] = function(self)
        result: Result = self._results[function]
        return result


@dataclass(frozen=True, eq=False)
class Frame:
    """What is known when the JSON form of a question is read: the scope, its grid and the questions before it."""

    scope: Scope
    grid: Grid
    earlier: Mapping[str, "Question"]


class Question(ABC):
    """One question; subclasses are frozen dataclasses whose fields are its chosen size."""

    name: ClassVar[str]
    meaning: ClassVar[str]
    """What it asks, in words for the reader of a release."""
    resolution: ClassVar[int]
    """Bound on the L1 norm of one trajectory's features."""
    quantity: ClassVar[str]
    """What it is about. Questions about the same quantity are estimated together. By default the name up to a '/'."""
    budget_group: ClassVar[str]
    """Questions of one group share its ε in a way that the noisy count decides. By default its own name."""
    needs: ClassVar[tuple[str, ...]] = ("count",)
    """The earlier answers that decide its size."""
    optional: ClassVar[bool] = False
    """Whether the noisy count may decide that it is not asked."""
    one_hot: ClassVar[bool] = False
    """Whether every trajectory adds `resolution` to exactly one value, so that its L2 norm is that, too."""
    about_people: ClassVar[bool] = False
    """Whether it is asked of all trajectories of a user together (`wayveil.questions.people`)."""
    adds_up: ClassVar[bool] = True
    """Whether the values of one trajectory add up to `resolution`, so that all values together are a count."""
    own_norm: ClassVar[float] = 1.0
    shared_norm: ClassVar[float] = 0.13
    """Usual squared L2 norm of one trajectory's φ/R, and usual inner product of two trajectories of one user: public
    guesses from simulated cities, for the Gaussian mode."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            cls.quantity = getattr(cls, "quantity", cls.name.partition("/")[0])
            cls.budget_group = getattr(cls, "budget_group", cls.name)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer."""

    @abstractmethod
    def features(self, batch: "Prepared") -> Features:
        """φ(T) of each trajectory of a batch."""

    @classmethod
    @abstractmethod
    def finest(cls, scope: Scope) -> "Question | None":
        """The question whose exact sums are added up while the data is read; None if noisy answers must come first."""

    @classmethod
    @abstractmethod
    def sized(cls, context: Context) -> Self:
        """The question at the size that the context decides."""

    @classmethod
    def summed(cls, context: Context) -> "Question":
        """The question whose exact sums `pooled` turns into those of the sized one."""
        finest = cls.finest(context.scope)
        assert finest is not None
        return finest

    @abstractmethod
    def pooled(self, summed: Any, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """The exact sums of this question from those of `summed`; equal to adding up its own features."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Its size as plain values."""

    @classmethod
    @abstractmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        """The inverse of `to_json`; ValueError, KeyError or TypeError for anything that `to_json` does not write."""

    @classmethod
    def example(cls, scope: Scope) -> "Question":
        """The question at a size that depends on the scope alone: for the audit and for tests."""
        example = cls.finest(scope)
        assert isinstance(example, cls)
        return example

    @classmethod
    def part_of_group(cls, signal: float, grid: Grid, gaussian: bool = False) -> Fraction:
        """Its part of its budget group's ε, from the group's signal in noise units; zero: it is not asked.

        With Gaussian noise (and ρ instead of ε) a part p of the group has √p of its signal, else p.
        """
        return Fraction(1)

    @classmethod
    def sensitivity(cls, unit: Unit) -> int:
        """By how many times `resolution` one unit can move the exact sums, in L1."""
        return 1 if cls.about_people else unit.sensitivity

    def words(self) -> str:
        """What it asks, and at which size."""
        return self.meaning

    @property
    def noise_range(self) -> tuple[float, float]:
        """The least and the most noise of one value, as factors of the answer's noise."""
        return 1.0, 1.0


def noisy_number(count: "Answer") -> float:
    """The posterior mean of the number of trajectories, given the answer to the count; at least one."""
    return max(positive_mean(float(count.counts[0]), math.sqrt(2) * count.noise), 1.0)


def size_of(query: Query) -> int:
    """Number of values in the answer."""
    return int(np.prod(query.shape, dtype=np.int64))


def one_hot(column: NDArray[np.int64]) -> Features:
    """Each trajectory adds 1 at one position: L1 norm 1."""
    return Features(np.arange(len(column)), column, np.ones(len(column), np.int64))


def batch_sums(queries: Sequence[Query], batch: "Prepared") -> list[NDArray[np.int64]]:
    """Σ φ(T) over one batch, for each query, in exact integers."""
    sums = []
    for query in queries:
        features = query.features(batch)
        sums.append(exact_bincount(features.column, features.weight, size_of(query)))
    return sums


def exact_sums(queries: Sequence[Query], batches: Iterable["Prepared"]) -> list[NDArray[np.int64]]:
    """Σ φ(T) over all batches; equal for every partition of the data, because integers add exactly.

    Privacy: not private (trusted side only); `measure` adds the noise.
    """
    totals = [np.zeros(size_of(query), np.int64) for query in queries]
    for batch in batches:
        for total, part in zip(totals, batch_sums(queries, batch)):
            total += part
    return totals

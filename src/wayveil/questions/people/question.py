"""Base class of questions about all trajectories of a user: a small table, to which each user adds at most one.

One user's vector has the L1 norm one where the noise is Laplace noise. Gaussian noise needs a bound on its L2 norm
alone, so the vector then has the L2 norm one, and everything in it is larger: equal entries in n cells add n^(-1/2)
each instead of 1/n.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions.people.trips_of_people import Integers, PeopleTrips
from wayveil.questions.question import Context, Features, Frame, Question, size_of

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

PEOPLE_PREFIX = "people/"
TRIP_CLASSES = Bins((1, 2, 4, 9, 21, 1 << 30))
"""Classes of people by number of trips, for other questions: 1, 2–3, 4–8, 9–20, more."""


@dataclass(frozen=True)
class PersonQuestion(Question):
    """φ(u) is a function of all used trajectories of one user, with ‖φ(u)‖₁ or ‖φ(u)‖₂ ≤ `resolution`.

    It is proportional to the number of entries that the user has in each cell of the table, rounded towards zero.
    """

    scope: Scope
    norm: int = 1
    """1 or 2: which norm is bounded."""
    about_people: ClassVar[bool] = True
    optional: ClassVar[bool] = True
    adds_up: ClassVar[bool] = False
    of_everybody: ClassVar[bool] = False
    """Whether every user with a trip contributes to the table."""
    resolution: ClassVar[int] = 1 << 16

    @abstractmethod
    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        """(person, column) of each entry; a person's entries have equal weight."""

    def person_features(self, batch: "Prepared", unit: NDArray[np.int64], units: int) -> Features:
        """φ(u) of each user of a batch that has all their trajectories; `unit` numbers the user of each trajectory."""
        found = self._cells(PeopleTrips.of(batch, unit, units, self.scope))
        # Rounding errors of floats are below one part in 2^40. The L1 norm and the squared L2 norm are integers, so
        # with R = 2^16 they are at most R and R²: R²·(1 + 2^-40)² < R² + 1.
        return Features(found.person, found.column, np.floor(found.share * self.resolution).astype(np.int64))

    def table(self, trips: PeopleTrips) -> NDArray[np.float64]:
        """Σ φ(u) / `resolution` of synthetic people, without rounding.

        Privacy: free if the trips are synthetic.
        """
        found = self._cells(trips)
        sums = np.bincount(found.column, weights=found.share, minlength=size_of(self))
        return np.asarray(sums.reshape(self.shape), np.float64)

    def _cells(self, trips: PeopleTrips) -> "_Cells":
        person, column = self.entries(trips)
        key, number = np.unique(person * size_of(self) + column, return_counts=True)
        person, column = np.divmod(key, size_of(self))
        whole = np.bincount(person, weights=number**self.norm, minlength=trips.people)
        return _Cells(person, column, number / (whole if self.norm == 1 else np.sqrt(whole))[person])

    def features(self, batch: "Prepared") -> Features:
        """φ of each trajectory as if it were a user's only one."""
        return self.person_features(batch, np.arange(len(batch)), len(batch))

    @classmethod
    def finest(cls, scope: Scope) -> "Question | None":
        """None: it is not a sum over trajectories."""
        return None

    @classmethod
    def example(cls, scope: Scope) -> "Question":
        return cls(scope)

    @classmethod
    def sized(cls, context: Context) -> Self:
        return cls(context.scope, 2 if context.gaussian else 1)

    @classmethod
    def summed(cls, context: Context) -> "Question":
        return cls(context.scope, 2 if context.gaussian else 1)

    def pooled(self, summed: Any, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        return sums

    def to_json(self) -> dict[str, Any]:
        return {"norm": self.norm} if self.norm != 1 else {}

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        norm = parameters.get("norm", 1)
        if type(norm) is not int or norm not in (1, 2):
            raise ValueError("norm")
        return cls(frame.scope, norm)


def trip_class(trips: PeopleTrips) -> Integers:
    """The class of each person's number of trips; a person without trips is in the first."""
    return TRIP_CLASSES.index(trips.trips.astype(np.float64))


def everybody(trips: PeopleTrips) -> Integers:
    """The people who have a trip."""
    return np.flatnonzero(trips.trips)


@dataclass(frozen=True, eq=False)
class _Cells:
    """What people add to the cells of a table, before it is rounded; no pair of person and column occurs twice."""

    person: Integers
    column: Integers
    share: NDArray[np.float64]
    """Of norm one for each person."""

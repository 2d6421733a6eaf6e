"""Base class of questions about all trajectories of a user: a small table, to which each user adds at most one."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions.people.trips_of_people import Integers, PeopleTrips
from wayveil.questions.question import Context, Features, Frame, Question

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

PEOPLE_PREFIX = "people/"
TRIP_CLASSES = Bins((1, 2, 4, 9, 21, 1 << 30))
"""Classes of people by number of trips, for other questions: 1, 2–3, 4–8, 9–20, more."""


@dataclass(frozen=True)
class PersonQuestion(Question):
    """φ(u) is a function of all used trajectories of one user, with ‖φ(u)‖₁ ≤ `resolution`.

    A user who has several entries in the table divides `resolution` among them by integer division.
    """

    scope: Scope
    about_people: ClassVar[bool] = True
    optional: ClassVar[bool] = True
    adds_up: ClassVar[bool] = False
    of_everybody: ClassVar[bool] = False
    """Whether everybody who has a trip adds to it, so that its values together are the number of people."""
    resolution: ClassVar[int] = 1 << 16

    @abstractmethod
    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        """(person, column) of each entry; a person's entries have equal weight."""

    def person_features(self, batch: "Prepared", unit: NDArray[np.int64], units: int) -> Features:
        """φ(u) of each user of a batch that has all their trajectories; `unit` numbers the user of each trajectory."""
        person, column = self.entries(PeopleTrips.of(batch, unit, units, self.scope))
        number = np.bincount(person, minlength=units)
        return Features(person, column, self.resolution // number[person])

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
        return cls(context.scope)

    @classmethod
    def summed(cls, context: Context) -> "Question":
        return cls(context.scope)

    def pooled(self, summed: Any, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        return sums

    def to_json(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_json(cls, parameters: dict[str, Any], frame: Frame) -> Self:
        return cls(frame.scope)


def trip_class(trips: PeopleTrips) -> Integers:
    """The class of each person's number of trips; a person without trips is in the first."""
    return TRIP_CLASSES.index(trips.trips.astype(np.float64))


def everybody(trips: PeopleTrips) -> Integers:
    """The people who have a trip."""
    return np.flatnonzero(trips.trips)

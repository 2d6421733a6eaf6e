"""Trips, people and their wishes during the assignment.

Privacy: free (post-processing).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.people.trips_of_people import PLACE_M

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TripTable:
    """The trips of a shard: starts and ends in metres, times of day, and kind of day."""

    x0: Floats
    y0: Floats
    x1: Floats
    y1: Floats
    tod_s: Floats
    """Seconds between the local midnight before the departure and the departure."""
    duration_s: Floats
    weekend: Floats

    def __len__(self) -> int:
        return len(self.x0)


@dataclass
class Person:
    """Where a person is and has been, during the assignment."""

    places: list[tuple[float, float]] = field(default_factory=list)
    """Position of each known place, in the order of the first visits."""
    visits: list[int] = field(default_factory=list)
    """Number of visits to each known place."""
    legs: dict[tuple[int, int], int] = field(default_factory=dict)
    """The trip with which the person first went from one place to another."""
    cells: dict[tuple[int, int], int] = field(default_factory=dict)
    """Number of the place in each visited square of the grid of places."""
    at: int = -1
    """Number of the current place; −1 before the first trip."""
    here: tuple[float, float] = (np.nan, np.nan)
    """Where the last trip ended."""
    free_utc: float = -np.inf
    """Earliest time at which the person can leave again."""

    def place_at(self, x: float, y: float) -> int:
        """The number of the place at this position, which is added if it is new."""
        number = self.cells.setdefault((int(x // PLACE_M), int(y // PLACE_M)), len(self.places))
        if number == len(self.places):
            self.places.append((x, y))
            self.visits.append(0)
        return number

    def some_place(self, drawn: float) -> int:
        """A known place other than the current one, drawn by visits; −1 if there is none. `drawn` is in [0, 1)."""
        whole = sum(self.visits) - self.visits[self.at]
        at = drawn * whole
        for k, visits in enumerate(self.visits):
            if k != self.at and visits:
                at -= visits
                if at < 0:
                    return k
        return -1


@dataclass(frozen=True)
class Assigned:
    """One trip of a person, as assigned."""

    person: int
    trip: int
    """The trip that gives the departure, and the route unless the person repeats an earlier leg."""
    route: int
    """The trip that gives the route."""
    reverse: bool
    """Whether that route is travelled backwards."""
    start: tuple[float, float]
    end: tuple[float, float]
    depart_utc: float


@dataclass(frozen=True, eq=False)
class Wishes:
    """What people want to do next, one row per person."""

    person: Integers
    slot: Integers
    """Index of the planned trip."""
    midnight: Floats
    tod_s: Floats
    """Wanted departure, in seconds after midnight."""
    weekend: Floats
    free_utc: Floats
    here: Floats
    """(n, 2) where the person is; NaN before the first trip."""
    continues: NDArray[np.bool_]
    """Whether the trip should start there."""
    target: Integers
    """The known place to go to, or −1."""
    there: Floats
    """(n, 2) the position of that place; NaN if there is none."""
    earlier: Integers
    """The person's earlier trip between these places, in either direction, or −1."""
    on_time: NDArray[np.bool_]
    """Whether the trip that the slot holds departs at the wanted time."""

    def __len__(self) -> int:
        return len(self.person)

    def take(self, rows: NDArray[np.generic]) -> "Wishes":
        """The wishes in these rows."""
        return Wishes(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

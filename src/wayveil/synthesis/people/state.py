"""Trips, people and what has been assigned so far.

Privacy: free (post-processing).
"""

from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.people.trips_of_people import PLACE_M
from wayveil.synthesis.people.estimate import Habits
from wayveil.synthesis.people.plan import Calendar, Plans
from wayveil.synthesis.people.settings import SETTINGS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Position = tuple[float, float]

_ROWS = 1 << 20
"""Larger than the number of squares in a column of the grid of places."""


def square_of(x: Floats, y: Floats) -> Integers:
    """Number of the square of the grid of places that contains each position."""
    return np.asarray((x // PLACE_M) * _ROWS + y // PLACE_M, np.int64)


@dataclass(frozen=True, eq=False)
class TripTable:
    """The trips of a shard: starts and ends in metres, times of day, and kind of day."""

    start: Floats
    """(n, 2)."""
    end: Floats
    """(n, 2)."""
    tod_s: Floats
    """Seconds between the local midnight before the departure and the departure."""
    duration_s: Floats
    weekend: Floats

    def __len__(self) -> int:
        return len(self.tod_s)


@dataclass(frozen=True, eq=False)
class Task:
    """The assignment to solve: which trip becomes which planned trip of people with these habits."""

    trips: TripTable
    plans: Plans
    habits: Habits
    calendar: Calendar
    fastest_mps: float

    def least_gap_s(self, end: Floats, start: Floats) -> Floats:
        """Minimum time between the end of one trip and the start of the next; (…, 2) positions, NaN for no trip."""
        apart = np.fmax(np.hypot(start[..., 0] - end[..., 0], start[..., 1] - end[..., 1]), 0.0)  # NaN counts as 0
        return np.asarray(SETTINGS.least_stay_s + SETTINGS.travel_reserve * apart / self.fastest_mps)

    def in_time(self, trip: Integers, midnight: Floats, free_utc: Floats, here: Floats) -> Flags:
        """Whether people reach the start of these trips early enough."""
        earliest = free_utc + self.least_gap_s(here, self.trips.start[trip])
        return np.asarray(midnight + self.trips.tod_s[trip] >= earliest)


@dataclass(slots=True)
class Person:
    """Where a person is and has been, during the assignment."""

    places: list[Position] = field(default_factory=list)
    """Position of each known place, in the order of the first visits."""
    visits: list[int] = field(default_factory=list)
    """Number of visits to each known place."""
    legs: dict[tuple[int, int], int] = field(default_factory=dict)
    """The trip with which the person first went from one place to another."""
    squares: dict[int, int] = field(default_factory=dict)
    """Number of the place in each visited square of the grid of places."""
    at: int = -1
    """Number of the current place; −1 before the first trip."""
    here: Position = (np.nan, np.nan)
    """Where the last trip ended."""
    free_utc: float = -np.inf
    """Earliest time at which the person can leave again."""

    def visit(self, x: float, y: float) -> int:
        """Count a visit at this position and return the number of its place; a new place is added."""
        square = int(x // PLACE_M) * _ROWS + int(y // PLACE_M)
        number = self.squares.setdefault(square, len(self.places))
        if number == len(self.places):
            self.places.append((x, y))
            self.visits.append(0)
        self.visits[number] += 1
        return number

    def some_place(self, drawn: float) -> int:
        """A known place other than the current one, drawn in proportion to visits; −1 if there is none.

        `drawn` is a uniform random number in [0, 1).
        """
        whole = sum(self.visits) - self.visits[self.at]
        at = drawn * whole
        for k, visits in enumerate(self.visits):
            if k != self.at and visits:
                at -= visits
                if at < 0:
                    return k
        return -1


class Leg(NamedTuple):
    """One trip of a person, as assigned."""

    person: int
    trip: int
    """The trip that gives the departure, and the route unless the person repeats an earlier leg."""
    route: int
    """The trip that gives the route."""
    reverse: bool
    """Whether that route is travelled backwards."""
    start: Position
    """The start, or the place that it moves to."""
    end: Position
    start_moves: bool
    end_moves: bool
    depart_utc: float


@dataclass(frozen=True, eq=False)
class AssignedTrips:
    """The columns of all legs, sorted by person and time; see `Leg`."""

    person: Integers
    trip: Integers
    route: Integers
    reverse: Flags
    start: Floats
    """(n, 2)."""
    end: Floats
    start_moves: Flags
    end_moves: Flags
    depart_utc: Floats

    def __len__(self) -> int:
        return len(self.person)

    @classmethod
    def of(cls, legs: list[Leg]) -> "AssignedTrips":
        """The columns of legs that may be in any order."""
        columns = [_column(column, len(legs)) for column in zip(*legs)]
        order = np.lexsort((columns[-1], columns[0]))
        return cls(*(column[order] for column in columns))


def _column(values: tuple[Any, ...], count: int) -> NDArray[Any]:
    """The values as an array; positions as rows of it."""
    if isinstance(values[0], tuple):
        return np.fromiter(chain.from_iterable(values), np.float64, 2 * count).reshape(-1, 2)
    return np.fromiter(values, type(values[0]), count)


class Chains:
    """The state of the assignment: which planned trip (slot) holds which trip, and what people have done so far."""

    def __init__(self, task: Task, random: np.random.Generator) -> None:
        weekend_of_slot = task.calendar.weekend[task.plans.date]
        self.trip_of = _random_trips(weekend_of_slot, task.trips.weekend, random)
        """Trip that each slot holds."""
        self.slot_of = np.argsort(self.trip_of)
        """Slot that holds each trip."""
        self.unassigned = np.ones(len(task.trips), bool)
        self.people = [Person() for _ in range(len(task.plans))]
        self.legs: list[Leg] = []
        """Legs in the order in which they were assigned."""

    def exchange(self, slot: int, trip: int) -> None:
        """Give the trip to this slot, and the trip of this slot to the slot that held it."""
        other, previous = self.slot_of[trip], self.trip_of[slot]
        self.trip_of[slot], self.trip_of[other] = trip, previous
        self.slot_of[trip], self.slot_of[previous] = slot, other

    def swap(self, one: Integers, other: Integers) -> None:
        """Exchange the trips of pairs of slots; no slot is in two pairs."""
        slots = np.r_[one, other]
        self.trip_of[slots] = self.trip_of[np.r_[other, one]]
        self.slot_of[self.trip_of[slots]] = slots


def _random_trips(weekend_of_slot: Flags, weekend_of_trip: Floats, random: np.random.Generator) -> Integers:
    """A random trip for each slot, from the same kind of day where there are enough such trips."""
    slots, trips = random.permutation(len(weekend_of_slot)), random.permutation(len(weekend_of_trip))
    slots = slots[np.argsort(weekend_of_slot[slots], kind="stable")]
    trips = trips[np.argsort(weekend_of_trip[trips], kind="stable")]
    result = np.empty(len(slots), np.int64)
    result[slots] = trips
    return result

"""PeopleTrips: starts and ends of each person's trips, in order of time.

Evaluation uses the same class, so that it compares the quantities that are measured.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.scope import Scope

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PLACE_M = 500.0
"""Side of the square cells that count as one place."""
CONTINUOUS_M = 300.0
"""A trip that starts within this distance of the previous trip's end continues it."""
DAY_S = 86_400.0


@dataclass(frozen=True, eq=False)
class PeopleTrips:
    """Trips sorted by person and time; every column has one value per trip.

    Trips of a person are sorted by all recorded values, so that the order does not depend on the order in a file.

    Privacy: not private (trusted side only), unless the trips are synthetic.
    """

    people: int
    person: Integers
    x0: Floats
    y0: Floats
    x1: Floats
    y1: Floats
    t0: Floats
    t1: Floats
    local0_s: Floats
    """Local seconds since Monday of the departure."""
    local1_s: Floats
    """The same of the arrival."""
    place_columns: int
    """Number of places in a row of the scope's box."""

    @classmethod
    def of(cls, batch: "Prepared", person: Integers, people: int, scope: Scope) -> "PeopleTrips":
        """The trips of a batch; `person` numbers the person of each trajectory."""
        first, last = batch.first, batch.last
        columns = (batch.x_m[first], batch.y_m[first], batch.x_m[last], batch.y_m[last])
        return cls.sorted(people, person, *columns, batch.t_utc[first], batch.t_utc[last], scope)

    @classmethod
    def sorted(
        cls, people: int, person: Integers, x0: Floats, y0: Floats, x1: Floats, y1: Floats, t0: Floats, t1: Floats,
        scope: Scope,
    ) -> "PeopleTrips":  # fmt: skip
        """The trips sorted by person and time; the arguments may be in any order."""
        order = np.lexsort((y1, x1, y0, x0, t1, t0, person))
        x0, y0, x1, y1, t0, t1 = (column[order] for column in (x0, y0, x1, y1, t0, t1))
        local0_s, local1_s = scope.local_seconds(t0), scope.local_seconds(t1)
        columns = int(scope.width_m // PLACE_M) + 1
        return cls(people, person[order], x0, y0, x1, y1, t0, t1, local0_s, local1_s, columns)

    def __len__(self) -> int:
        return len(self.person)

    @cached_property
    def trips(self) -> Integers:
        """Number of trips of each person."""
        return np.bincount(self.person, minlength=self.people).astype(np.int64)

    @cached_property
    def later(self) -> Integers:
        """Positions of the trips that have an earlier one of the same person."""
        return 1 + np.flatnonzero(self.person[1:] == self.person[:-1])

    @cached_property
    def gap_s(self) -> Floats:
        """Time between each later trip and the end of the previous one, at least zero."""
        return np.maximum(self.t0[self.later] - self.t1[self.later - 1], 0.0)

    @cached_property
    def apart_m(self) -> Floats:
        """Distance of each later trip's start from the end of the previous one."""
        here, before = self.later, self.later - 1
        return np.hypot(self.x0[here] - self.x1[before], self.y0[here] - self.y1[before])

    @cached_property
    def day(self) -> Integers:
        """Number of the local day of each departure; equal numbers are the same day of the same week."""
        week = np.rint((self.t0 - self.local0_s + 3 * DAY_S) / (7 * DAY_S))  # a whole number except for the UTC offset
        return (7 * week + self.local0_s // DAY_S).astype(np.int64)

    @cached_property
    def active_days(self) -> tuple[Integers, Integers]:
        """(person, number of trips) of each day on which the person travels."""
        new = np.ones(len(self), bool)
        new[1:] = (self.person[1:] != self.person[:-1]) | (self.day[1:] != self.day[:-1])
        first = np.flatnonzero(new)
        return self.person[first], np.diff(np.r_[first, len(self)])

    @cached_property
    def days(self) -> Integers:
        """Number of active days of each person."""
        return np.bincount(self.active_days[0], minlength=self.people).astype(np.int64)

    def place(self, x: Floats, y: Floats) -> Integers:
        """The place of each position."""
        return (np.floor(y / PLACE_M) * self.place_columns + np.floor(x / PLACE_M)).astype(np.int64)

    @cached_property
    def start_place(self) -> Integers:
        """Place of each start."""
        return self.place(self.x0, self.y0)

    @cached_property
    def end_place(self) -> Integers:
        """Place of each end."""
        return self.place(self.x1, self.y1)

    @cached_property
    def ranked(self) -> "RankedPlaces":
        """Each person's places by how often trips start or end there."""
        return RankedPlaces.of(self)

    @cached_property
    def gyration_m(self) -> Floats:
        """Radius of gyration of each person's starts and ends: root mean square distance from their centre."""
        number = np.maximum(2 * self.trips, 1)
        mean = [(self._sum(a) + self._sum(b)) / number for a, b in ((self.x0, self.x1), (self.y0, self.y1))]
        squared = sum(
            self._sum((column - centre[self.person]) ** 2)
            for centre, pair in zip(mean, ((self.x0, self.x1), (self.y0, self.y1)))
            for column in pair
        )
        return np.asarray(np.sqrt(squared / number))

    def _sum(self, values: Floats) -> Floats:
        return np.bincount(self.person, weights=values, minlength=self.people).astype(np.float64)

    @cached_property
    def repeats(self) -> Integers:
        """For each trip: 1 if it repeats an earlier pair of places of the person, 2 if it reverses one, else 0."""
        visited = np.unique(
            np.tile(self.person, 2) * (1 << 32) + np.r_[self.start_place, self.end_place], return_inverse=True
        )[1]
        start, end = visited[: len(self)], visited[len(self) :]
        span = 2 * len(self)
        code = np.unique(np.r_[start * span + end, end * span + start], return_inverse=True)[1]
        forward, backward = code[: len(self)], code[len(self) :]
        seen = np.full(int(code.max(initial=-1)) + 1, len(self))
        np.minimum.at(seen, forward, np.arange(len(self)))
        at = np.arange(len(self))
        return np.where(seen[forward] < at, 1, np.where(seen[backward] < at, 2, 0))


@dataclass(frozen=True, eq=False)
class RankedPlaces:
    """Places of all people, sorted by person and then by the number of visits, most first."""

    person: Integers
    place: Integers
    visits: Integers
    rank: Integers
    """0 for a person's most frequent place."""
    start_rank: Integers
    """Rank of the place where each trip starts, in the order of the trips."""
    end_rank: Integers

    @classmethod
    def of(cls, trips: PeopleTrips) -> "RankedPlaces":
        """Ties go to the lower place number."""
        person = np.tile(trips.person, 2)
        place = np.r_[trips.start_place, trips.end_place]
        span = int(place.max(initial=0)) + 1
        key, where, visits = np.unique(person * span + place, return_inverse=True, return_counts=True)
        owner = key // span
        order = np.lexsort((key, -visits, owner))
        rank = np.empty(len(key), np.int64)
        rank[order] = ragged.ranks(np.bincount(owner, minlength=trips.people))
        of_visit = rank[where]
        return cls(
            owner[order], (key % span)[order], visits[order], rank[order],
            of_visit[: len(trips)], of_visit[len(trips) :],
        )  # fmt: skip

    def count(self, people: int) -> Integers:
        """Number of places of each person."""
        return np.bincount(self.person, minlength=people).astype(np.int64)

"""How trips follow each other: where the next one starts, how long the stay is, and which pairs of places repeat."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wayveil.core.bins import Bins
from wayveil.questions.people.question import PersonQuestion
from wayveil.questions.people.trips_of_people import CONTINUOUS_M, Integers, PeopleTrips

GAPS_H = Bins((0.0, 0.5, 1.5, 3.0, 5.0, 7.0, 9.0, 11.0, 14.0, 20.0, 30.0, 72.0, 1e9))
"""Time between two trips, in hours."""
PARTS_OF_DAY = 4
"""Parts of six hours, by the local time at which a stay begins."""
KINDS = ("new", "repeat", "reverse")


@dataclass(frozen=True)
class Continuity(PersonQuestion):
    """φ(u) = 1/(k − 1) at (gap, starts within 300 m of the previous end) of each trip but the first."""

    name: ClassVar[str] = "people/continuity"
    meaning: ClassVar[str] = "how often a trip starts where the previous one ended, by the time between them"

    @property
    def shape(self) -> tuple[int, ...]:
        return len(GAPS_H), 2

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        near = (trips.apart_m <= CONTINUOUS_M).astype(np.int64)
        return trips.person[trips.later], 2 * GAPS_H.index(trips.gap_s / 3600) + near


@dataclass(frozen=True)
class Stays(PersonQuestion):
    """φ(u) = 1/(k − 1) at (part of the day in which the stay begins, gap) of each stay between two trips."""

    name: ClassVar[str] = "people/stays"
    meaning: ClassVar[str] = "how long people stay between two trips, by part of the day"

    @property
    def shape(self) -> tuple[int, ...]:
        return PARTS_OF_DAY, len(GAPS_H)

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        part = part_of_day(trips.local1_s[trips.later - 1])
        return trips.person[trips.later], part * len(GAPS_H) + GAPS_H.index(trips.gap_s / 3600)


@dataclass(frozen=True)
class Repetition(PersonQuestion):
    """φ(u) = 1/(k − 1) at: new pair of places, repeated pair, reversed pair, of each trip but the first."""

    name: ClassVar[str] = "people/repetition"
    meaning: ClassVar[str] = "how often a trip repeats or reverses an earlier pair of places of the same person"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(KINDS),)

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        return trips.person[trips.later], trips.repeats[trips.later]


def part_of_day(local_s: np.ndarray) -> Integers:
    """The part of the day of local seconds."""
    return np.minimum((local_s % 86_400.0) * PARTS_OF_DAY // 86_400.0, PARTS_OF_DAY - 1).astype(np.int64)

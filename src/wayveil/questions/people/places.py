"""Which places people return to: their most frequent ones, how many there are, and how far apart they are."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wayveil.core.bins import Bins
from wayveil.questions.people.question import TRIP_CLASSES, PersonQuestion, everybody, trip_class
from wayveil.questions.people.trips_of_people import PLACE_M, Integers, PeopleTrips

DISTANCES_KM = Bins((0.0, 0.75, 1.5, 2.5, 4.0, 7.0, 12.0, 1e9))
"""Distance between the two most frequent places."""
PLACES_SHARE = Bins((0.0, 0.12, 0.2, 0.3, 0.42, 0.55, 0.72, 0.88, 1.01))
"""Number of places divided by the number of starts and ends."""
GYRATION_KM = Bins((0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.75, 5.5, 6.5, 8.0, 11.0, 1e9))
"""Radius of gyration of a person's starts and ends."""


@dataclass(frozen=True)
class Anchors(PersonQuestion):
    """φ(u) = 1/2k at (class of k, start or end, rank 1, 2 or lower of the place) of each start and end."""

    name: ClassVar[str] = "people/anchors"
    meaning: ClassVar[str] = "how often trips start or end at a person's most frequent place, and at the second"
    of_everybody: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        return len(TRIP_CLASSES), 2, 3

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        of_class = 6 * trip_class(trips)[trips.person]
        start, end = (np.minimum(rank, 2) for rank in (trips.ranked.start_rank, trips.ranked.end_rank))
        return np.tile(trips.person, 2), np.r_[of_class + start, of_class + 3 + end]


@dataclass(frozen=True)
class AnchorDistance(PersonQuestion):
    """φ(u) = 1 at the distance between the two most frequent places; nothing for a person with one place."""

    name: ClassVar[str] = "people/anchor_distance"
    meaning: ClassVar[str] = "how far apart a person's two most frequent places are"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(DISTANCES_KM),)

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        ranked = trips.ranked
        second = np.flatnonzero(ranked.rank == 1)
        row = [ranked.place[at] // trips.place_columns for at in (second, second - 1)]
        column = [ranked.place[at] % trips.place_columns for at in (second, second - 1)]
        apart_m = PLACE_M * np.hypot(row[0] - row[1], column[0] - column[1])
        return ranked.person[second], DISTANCES_KM.index(apart_m / 1000)


@dataclass(frozen=True)
class Places(PersonQuestion):
    """φ(u) = 1 at (class of the number of trips, places divided by starts and ends)."""

    name: ClassVar[str] = "people/places"
    meaning: ClassVar[str] = "how many different places people visit, by their number of trips"
    of_everybody: ClassVar[bool] = True
    one_hot: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        return len(TRIP_CLASSES), len(PLACES_SHARE)

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        who = everybody(trips)
        share = trips.ranked.count(trips.people)[who] / (2 * trips.trips[who])
        return who, trip_class(trips)[who] * len(PLACES_SHARE) + PLACES_SHARE.index(share)


@dataclass(frozen=True)
class Gyration(PersonQuestion):
    """φ(u) = 1 at the bin of the radius of gyration of all starts and ends."""

    name: ClassVar[str] = "people/gyration"
    meaning: ClassVar[str] = "how far people get around (radius of gyration)"
    of_everybody: ClassVar[bool] = True
    one_hot: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(GYRATION_KM),)

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        who = everybody(trips)
        return who, GYRATION_KM.index(trips.gyration_m[who] / 1000)

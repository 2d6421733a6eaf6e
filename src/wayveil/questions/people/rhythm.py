"""How many trips people make, on how many days, and how many a day."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wayveil.core.bins import Bins
from wayveil.questions.people.question import TRIP_CLASSES, PersonQuestion, everybody, trip_class
from wayveil.questions.people.trips_of_people import Integers, PeopleTrips

TRIPS = Bins((1, 2, 3, 4, 6, 9, 14, 20, 30, 45, 70, 150, 1 << 30))
"""Trips of a person."""
DAYS_SHARE = Bins((0.0, 0.18, 0.28, 0.36, 0.45, 0.55, 0.75, 1.01))
"""Active days divided by trips."""
DAY_TRIPS = Bins((1, 2, 3, 4, 5, 7, 10, 1 << 30))
"""Trips on one active day."""


@dataclass(frozen=True)
class TripsPerPerson(PersonQuestion):
    """φ(u) = 1 at the bin of the number of trips."""

    name: ClassVar[str] = "people/trips"
    meaning: ClassVar[str] = "how many trips people make"
    of_everybody: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(TRIPS),)

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        who = everybody(trips)
        return who, TRIPS.index(trips.trips[who].astype(np.float64))


@dataclass(frozen=True)
class ActiveDays(PersonQuestion):
    """φ(u) = 1 at (class of the number of trips, active days divided by trips)."""

    name: ClassVar[str] = "people/days"
    meaning: ClassVar[str] = "on how many days people travel"
    of_everybody: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        return len(TRIP_CLASSES), len(DAYS_SHARE)

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        who = everybody(trips)
        share = DAYS_SHARE.index(trips.days[who] / trips.trips[who])
        return who, trip_class(trips)[who] * len(DAYS_SHARE) + share


@dataclass(frozen=True)
class TripsPerDay(PersonQuestion):
    """φ(u) = 1/d at the number of trips on each of the d active days."""

    name: ClassVar[str] = "people/day_trips"
    meaning: ClassVar[str] = "how many trips people make on a day on which they travel"
    of_everybody: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(DAY_TRIPS),)

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        person, number = trips.active_days
        return person, DAY_TRIPS.index(number.astype(np.float64))

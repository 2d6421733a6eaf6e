"""How many trips people make, on how many days, and how many a day."""

import datetime as dt
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions.people.question import TRIP_CLASSES, PersonQuestion, everybody, trip_class
from wayveil.questions.people.trips_of_people import Integers, PeopleTrips

TRIPS = Bins((1, 2, 3, 4, 6, 9, 14, 20, 30, 45, 70, 150, 1 << 30))
"""Trips of a person."""
DAYS_SHARE = Bins((0.0, 0.18, 0.28, 0.36, 0.45, 0.55, 0.75, 1.01))
"""Active days divided by trips."""
DAY_TRIPS = Bins((1, 2, 3, 4, 5, 7, 10, 1 << 30))
"""Trips on one active day."""
MOST_DATES = 32
"""Maximum number of columns of `Dates`; where the scope has more days, a column is a whole number of weeks."""
_MONDAY = dt.date(1969, 12, 29)
"""The date of day 0 of `PeopleTrips.day`."""


@dataclass(frozen=True)
class TripsPerPerson(PersonQuestion):
    """φ(u) = 1 at the bin of the number of trips."""

    name: ClassVar[str] = "people/trips"
    meaning: ClassVar[str] = "how many trips people make"
    of_everybody: ClassVar[bool] = True
    one_hot: ClassVar[bool] = True

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
    one_hot: ClassVar[bool] = True

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


@dataclass(frozen=True)
class Dates(PersonQuestion):
    """φ(u) is proportional to the number of trips on each date, or in each run of weeks."""

    name: ClassVar[str] = "people/dates"
    meaning: ClassVar[str] = "on which dates people travel"
    of_everybody: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        return (-(-days_of(self.scope) // days_per_column(self.scope)),)

    def entries(self, trips: PeopleTrips) -> tuple[Integers, Integers]:
        if self.scope.first_day is None:
            return trips.person, trips.day % 7
        day = np.clip(trips.day - (self.scope.first_day - _MONDAY).days, 0, days_of(self.scope) - 1)
        return trips.person, day // days_per_column(self.scope)


def days_of(scope: Scope) -> int:
    """Number of days of the scope; seven if it names none."""
    if scope.first_day is None or scope.last_day is None:
        return 7
    return (scope.last_day - scope.first_day).days + 1


def days_per_column(scope: Scope) -> int:
    """Days that are one column of `Dates`."""
    days = days_of(scope)
    return 1 if days <= MOST_DATES else 7 * -(-days // (7 * MOST_DATES))

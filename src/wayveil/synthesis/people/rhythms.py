"""Tables that are expected of people with different rhythms: on which days and at which hours a person travels.

Trips are dealt to people at random, but a person travels only on some days and at hours of their own. All trips
together keep their hours, and on average their dates. Noisy answers are compared with the tables that follow
(`tables`).

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.scope import Scope
from wayveil.questions.people.trips_of_people import PeopleTrips
from wayveil.synthesis.people.estimate import PeopleModel
from wayveil.synthesis.people.numbers import draw_numbers
from wayveil.synthesis.people.plan import Calendar
from wayveil.synthesis.people.state import Integers, TripTable
from wayveil.synthesis.people.tables import OF_TIMES, USED, Tables

DAYS = (1.0, 0.7, 0.5)
"""Shares of the days on which a person may travel."""
HOURS = (1.0, 0.6, 0.35)
"""Lengths of the part of the day in which a person travels, as shares of all trips."""
MOST_PEOPLE = 500
"""Maximum number of people for tables of people with a rhythm."""
_TRIES = 12
"""Dates that are drawn for a trip, at most, until one is a day on which its person may travel."""


def expected_tables(
    trips: TripTable, day: Integers, model: PeopleModel, scope: Scope, random: np.random.Generator
) -> list[Tables]:
    """The tables of each rhythm; the first are those of people without one, with the tables that are not about times.

    `day` is the day of each trip.
    """
    count = len(trips)
    numbers = draw_numbers(model.trips, count, model.people_of(count), random)
    questions = model.questions(scope)
    deal = Deal.of(trips, day, scope)
    found: list[Tables] = []
    for share_of_days in DAYS:
        for share_of_hours in HOURS:
            if found and not model.measured:
                return found
            some = numbers[:MOST_PEOPLE] if found else numbers
            people = deal.people(some, share_of_days, share_of_hours, random)
            scale = model.number / len(some) if model.measured else 1.0
            asked = OF_TIMES if found else USED
            found.append({name: questions[name].table(people) * scale for name in asked})
    return found


@dataclass(frozen=True, eq=False)
class Deal:
    """Trips that are dealt to people."""

    trips: TripTable
    scope: Scope
    calendar: Calendar
    chance: NDArray[np.float64]
    """Share of trips on each day."""
    by_hour: tuple[Integers, Integers]
    """Trips on working days and on weekends, each sorted by hour; all trips where there are none."""

    @classmethod
    def of(cls, trips: TripTable, day: Integers, scope: Scope) -> "Deal":
        calendar, order = Calendar.of(scope), np.argsort(trips.tod_s, kind="stable")
        kinds = [order[trips.weekend[order] == kind] for kind in (False, True)]
        working, weekend = (some if len(some) else order for some in kinds)
        chance = np.bincount(day, minlength=len(calendar.midnight)) / len(trips)
        return cls(trips, scope, calendar, chance, (working, weekend))

    def people(
        self, numbers: Integers, share_of_days: float, share_of_hours: float, random: np.random.Generator
    ) -> PeopleTrips:
        """People with these numbers of trips, who travel on a share of the days and in a part of the day."""
        owner, trips, days = ragged.owners(numbers), self.trips, len(self.chance)
        travels = random.random((len(numbers), days)) < share_of_days
        date = random.choice(days, len(owner), p=self.chance)
        for _ in range(_TRIES):
            other = np.flatnonzero(~travels[owner, date])
            date[other] = random.choice(days, len(other), p=self.chance)
        hour = (random.random(len(numbers))[owner] + share_of_hours * random.random(len(owner))) % 1
        chosen = np.empty(len(owner), np.int64)
        for kind, offered in enumerate(self.by_hour):  # the k-th trip by hour to the k-th wish
            slots = np.flatnonzero(self.calendar.weekend[date] == kind)
            slots = slots[np.argsort(hour[slots])]
            chosen[slots] = offered[np.arange(len(slots)) * len(offered) // max(len(slots), 1)]
        t0 = self.calendar.midnight[date] + trips.tod_s[chosen]
        x0, y0 = trips.start[chosen].T
        x1, y1 = trips.end[chosen].T
        return PeopleTrips.sorted(len(numbers), owner, x0, y0, x1, y1, t0, t0 + trips.duration_s[chosen], self.scope)

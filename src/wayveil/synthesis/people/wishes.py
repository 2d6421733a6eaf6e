"""What people want to do next: when they leave, whether they start where they are, and which known place they go to.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np

from wayveil.core import ragged
from wayveil.questions.people.chains import GAPS_H, part_of_day
from wayveil.questions.people.places import PLACES_SHARE
from wayveil.questions.people.question import TRIP_CLASSES
from wayveil.questions.people.trips_of_people import DAY_S
from wayveil.synthesis.people.estimate import coupled
from wayveil.synthesis.people.plan import value_in
from wayveil.synthesis.people.state import Chains, Flags, Floats, Integers, Task, square_of


@dataclass(frozen=True, eq=False)
class Wishes:
    """What people want to do next, one row per person."""

    person: Integers
    slot: Integers
    """Index of the planned trip."""
    midnight: Floats
    tod_s: Floats
    """Wanted departure, in seconds after midnight."""
    first_s: Floats
    """Earliest departure with which the stay before the trip is in the wanted bin or a longer one."""
    weekend: Floats
    free_utc: Floats
    here: Floats
    """(n, 2) where the person is; NaN before the first trip."""
    continues: Flags
    """Whether the trip should start where the person is."""
    target: Integers
    """The known place to go to, or −1."""
    there: Floats
    """(n, 2) the position of that place; NaN if there is none."""
    earlier: Integers
    """The person's earlier trip between these places, in either direction, or −1."""
    on_time: Flags
    """Whether the trip that the slot holds departs at the wanted time."""

    def __len__(self) -> int:
        return len(self.person)

    def take(self, rows: Integers) -> "Wishes":
        """The wishes in these rows."""
        return Wishes(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Aims:
    """What does not change during the assignment: departures of all trips, and how many places people should visit."""

    sorted_tod_s: Floats
    places: Floats
    """Number of places that each person should visit; infinite if the trips first assigned visit few enough."""
    share_of_new: Floats
    """Share of starts and ends at new places in the trips that each person holds at first."""
    ends_at_first: float
    """Probability that the last trip of a day ends at the first place."""

    @classmethod
    def of(cls, task: Task, chains: Chains, random: np.random.Generator) -> "Aims":
        """The aims of people, given the trips first assigned to them."""
        plans, trips, each = task.plans, task.trips, task.plans.trips
        squares = np.r_[square_of(*trips.start.T)[chains.trip_of], square_of(*trips.end.T)[chains.trip_of]]
        owner = np.tile(ragged.owners(each), 2)
        order = np.lexsort((squares, owner))
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(owner[order]) > 0) | (np.diff(squares[order]) != 0)
        share = np.bincount(owner[order][new], minlength=len(each)) / (2 * each)
        bins = PLACES_SHARE.index(share)
        wanted = coupled(task.habits.places, TRIP_CLASSES.index(each.astype(np.float64)), bins, random)
        places = np.maximum(np.rint(value_in(PLACES_SHARE, wanted, random) * 2 * each), 1.0)
        mean_day = len(plans.size) / max(int((plans.rank == 0).sum()), 1)
        at_first = min(task.habits.ends_at_first * mean_day, 1.0)
        return cls(np.sort(trips.tod_s), np.where(wanted < bins, places, np.inf), share, at_first)

    def departures_before(self, since_midnight_s: Floats) -> Floats:
        """Share of a day's trips that depart before these times, plus one for each whole day."""
        days, tod_s = np.divmod(since_midnight_s, DAY_S)
        return np.asarray(days + np.searchsorted(self.sorted_tod_s, tod_s) / len(self.sorted_tod_s))


def next_wishes(task: Task, aims: Aims, chains: Chains, slot: Integers, random: np.random.Generator) -> Wishes:
    """What the person of each slot wants to do next: when, from where, and where to."""
    plans = task.plans
    who = np.searchsorted(plans.offsets, slot, side="right") - 1
    people = [chains.people[one] for one in who.tolist()]
    here, free = np.array([person.here for person in people]), np.array([person.free_utc for person in people])
    midnight = task.calendar.midnight[plans.date[slot]]
    arrived = Arrived(midnight, free, here, plans.size[slot] - plans.rank[slot])
    tod_s, first_s, on_time, gap = _departures(task, aims, chains.trip_of[slot], arrived, random)
    begun = np.isfinite(free)
    continues = begun & (random.random(len(who)) < task.habits.continuous[gap])
    new = aims.places[who] - np.array([len(person.places) for person in people])
    left = (plans.offsets[who + 1] - slot) * np.where(continues, 1.0, 2.0)
    p_new = new / (left * aims.share_of_new[who])
    last, drawn = plans.rank[slot] == plans.size[slot] - 1, random.random((3, len(who)))
    goes_home = begun & last & (drawn[0] < aims.ends_at_first)
    goes_back = begun & (drawn[1] >= p_new)
    target, earlier = np.full((2, len(who)), -1)
    there = np.full((len(who), 2), np.nan)
    for k in np.flatnonzero(goes_home | goes_back).tolist():
        person = people[k]
        if goes_home[k] and person.at != 0:
            target[k] = 0
        elif goes_back[k]:
            target[k] = person.some_place(drawn[2, k])
        if target[k] >= 0:
            there[k] = person.places[target[k]]
            legs, between = person.legs, (person.at, int(target[k]))
            earlier[k] = legs.get(between, legs.get(between[::-1], -1))
    weekend = task.calendar.weekend[plans.date[slot]].astype(np.float64)
    return Wishes(who, slot, midnight, tod_s, first_s, weekend, free, here, continues, target, there, earlier, on_time)


@dataclass(frozen=True, eq=False)
class Arrived:
    """When and where people are, before their next trip."""

    midnight: Floats
    free_utc: Floats
    here: Floats
    trips_left: Integers
    """Trips that are planned for the rest of the day, including the next one."""


def _departures(
    task: Task, aims: Aims, trip: Integers, arrived: Arrived, random: np.random.Generator
) -> tuple[Floats, Floats, Flags, Integers]:
    """Times of the next departures, the earliest with stays as long, whether they are those held, and bins of stays."""
    tod_s, begun, midnight = task.trips.tod_s[trip], np.isfinite(arrived.free_utc), arrived.midnight
    since = np.where(begun, arrived.free_utc - midnight, 0.0)
    supply = aims.departures_before(since[:, None] + np.asarray(GAPS_H.edges) * 3600)
    # The first of n departures drawn at random is before the q-th quantile with probability 1 − (1 − q)ⁿ.
    left = arrived.trips_left
    inside = 1 - (1 - np.clip(supply, 0.0, 1.0)) ** left[:, None]
    room = np.diff(inside) / np.maximum(np.diff(supply) * left[:, None], 1e-300)
    gap = GAPS_H.index(np.maximum(tod_s - since, 0.0) / 3600)
    drawn = task.habits.stays.bins(part_of_day(since % DAY_S), gap, random, room)
    new = begun & ((drawn != gap) | ~task.in_time(trip, midnight, arrived.free_utc, arrived.here))
    at = np.arange(len(trip))
    first = inside[at, drawn] + random.random(len(trip)) * (inside[at, drawn + 1] - inside[at, drawn])
    rank = ((1 - (1 - first) ** (1 / left)) * len(aims.sorted_tod_s)).astype(np.int64)
    tod_s = np.where(new, aims.sorted_tod_s[np.minimum(rank, len(aims.sorted_tod_s) - 1)], tod_s)
    first_s = np.where(begun, since + np.asarray(GAPS_H.edges)[drawn] * 3600, -np.inf)
    return tod_s, first_s, ~new, np.where(begun, drawn, 0)

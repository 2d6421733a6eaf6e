"""Assignment of trips to the plans of people, in order of time.

A slot is a planned trip of a person. At first, each slot holds a trip drawn at random. In rounds, each person makes one
trip after the other: either the trip that the slot holds, or an unassigned trip in exchange for it that starts where
the person is, at a suitable hour, and ends at a place that the person should visit, known or new. So trips are
assigned, not invented. If no trip fits a leg that the person has travelled before, that leg replaces another trip of
similar length and hour.

Privacy: free (post-processing).
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.progress import Progress, quiet
from wayveil.questions.people.chains import GAPS_H, part_of_day
from wayveil.questions.people.places import PLACES_SHARE
from wayveil.questions.people.question import TRIP_CLASSES
from wayveil.questions.people.trips_of_people import CONTINUOUS_M, DAY_S, PLACE_M
from wayveil.synthesis.people.estimate import Habits
from wayveil.synthesis.people.plan import Plans, value_in
from wayveil.synthesis.people.state import Assigned, Person, TripTable, Wishes

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class AssignSettings:
    """Settings of the assignment; set by hand on the simulated city."""

    snap_m: float = 600.0
    """Maximum distance by which a start or end is moved, to the place where the person is or goes."""
    repeat_m: float = 1_500.0
    """A leg that the person has travelled before may replace a trip whose start and end are at most this far away."""
    hour_m: float = 1_000.0
    """Distance that is as bad as a departure one hour too early or too late."""
    other_kind_of_day_m: float = 30_000.0
    """Distance that is as bad as a working-day trip on a weekend, or the reverse."""
    nearest: int = 16
    """Candidate trips for each leg."""
    tries: int = 4
    """Attempts to match a person, because another person may take the best candidate."""
    min_unassigned: float = 0.7
    """A search tree is rebuilt when a smaller share of its trips than this is still unassigned."""
    min_stay_s: float = 60.0
    """Minimum time between two trips of a person."""
    travel_reserve: float = 2.0
    """Safety factor on the time that the straight line between two trips takes at top speed."""


SETTINGS = AssignSettings()


class Assignment:
    """Assigns trips in rounds, by exchanges; each round assigns at most one trip to each person."""

    def __init__(
        self,
        trips: TripTable,
        plans: Plans,
        habits: Habits,
        midnight: Floats,
        weekend: NDArray[np.bool_],
        fastest_mps: float,
        random: np.random.Generator,
    ) -> None:
        self._trips, self._plans, self._habits, self._random = trips, plans, habits, random
        self._midnight, self._weekend, self._fastest_mps = midnight, weekend.astype(np.float64), fastest_mps
        self._unassigned = np.ones(len(trips), bool)
        self._sorted_tod = np.sort(trips.tod_s)
        self._trip_of = _random_trips(self._weekend[plans.date], trips.weekend, random)
        self._slot_of = np.argsort(self._trip_of)
        self._places, self._share_of_new = self._wanted_places()
        mean_day = float(len(plans.size) / max(int((plans.rank == 0).sum()), 1))
        self._p_end_at_first = min(habits.ends_at_first * mean_day, 1.0)
        self._trees: dict[str, tuple[cKDTree, Integers]] = {}
        self.people = [Person() for _ in range(len(plans))]
        self.assigned: list[Assigned] = []

    def run(self, progress: Progress = quiet) -> None:
        """All rounds. The trips of a person are spread evenly over the rounds, in their order."""
        each = self._plans.trips
        rounds = int(each.max(initial=0))
        share = (ragged.ranks(each) + np.repeat(self._random.random(len(each)), each)) / np.repeat(each, each)
        round_of = np.minimum((share * rounds).astype(np.int64), rounds - 1)
        order = self._random.permutation(len(round_of))
        order = order[np.argsort(round_of[order], kind="stable")]
        last = np.cumsum(np.bincount(round_of, minlength=rounds))
        for number, slots in enumerate(np.split(order, last[:-1])):
            self._round(slots)
            progress("people", (number + 1) / rounds)
        self._insert_leftovers()

    def _wanted_places(self) -> tuple[Floats, Floats]:
        """How many places each person should visit, and the share of new places in the trips held at first.

        The number is infinite where the trips held at first have no more places than wanted. The share is that of
        starts and ends at a place where the person has not been before.
        """
        trips, each = self._trips, self._plans.trips
        of_end = [
            np.r_[one[self._trip_of], other[self._trip_of]] // PLACE_M
            for one, other in ((trips.x0, trips.x1), (trips.y0, trips.y1))
        ]
        person = np.tile(ragged.owners(each), 2)
        different = np.unique(np.column_stack([person, *of_end]), axis=0)[:, 0].astype(np.int64)
        share = np.bincount(different, minlength=len(each)) / (2 * each)
        bins = PLACES_SHARE.index(share)
        wanted = self._habits.places.bins(TRIP_CLASSES.index(each.astype(np.float64)), bins, self._random)
        places = np.maximum(np.rint(value_in(PLACES_SHARE, wanted, self._random) * 2 * each), 1.0)
        return np.where(wanted < bins, places, np.inf), share

    def _round(self, slots: Integers) -> None:
        self._put_earliest_first(slots)
        wishes = self._wishes(slots)
        waiting = np.ones(len(wishes), bool)
        self._keep(wishes, waiting, wishes.on_time & ~wishes.continues & (wishes.target < 0))
        # Best first: trips that fit at both ends, at the start, at the end.
        for kind, wanted in (
            ("both", wishes.continues & (wishes.target >= 0)),
            ("start", wishes.continues),
            ("end", wishes.target >= 0),
        ):
            self._match(wishes, waiting, wanted, kind)
        self._keep(wishes, waiting, wishes.on_time)
        self._match(wishes, waiting, waiting.copy(), "any")
        self._keep(wishes, waiting, waiting.copy())

    def _insert_leftovers(self) -> None:
        """Insert each trip that a person could not make in order of time between other trips, on any day with room."""
        plans, trips = self._plans, self._trips
        slots = np.flatnonzero(self._unassigned[self._trip_of])
        owner = np.searchsorted(plans.offsets, slots, side="right") - 1
        of_person: dict[int, list[Assigned]] = {who: [] for who in owner.tolist()}
        for one in self.assigned:
            if one.person in of_person:
                of_person[one.person].append(one)
        for who, slot in zip(owner.tolist(), slots.tolist()):
            trip = int(self._trip_of[slot])
            start, end = (trips.x0[trip], trips.y0[trip]), (trips.x1[trip], trips.y1[trip])
            days = np.flatnonzero(self._weekend == trips.weekend[trip])
            days = np.r_[plans.date[slot], self._random.permutation(days)]
            leave = self._midnight[days] + trips.tod_s[trip]
            room = np.ones(len(days), bool)
            for one in of_person[who]:
                arrives = one.depart_utc + trips.duration_s[one.route]
                before = leave + trips.duration_s[trip] + self._min_gap_s(end, one.start) <= one.depart_utc
                room &= before | (leave >= arrives + self._min_gap_s(one.end, start))
            if room.any():
                one = Assigned(who, trip, trip, False, start, end, float(leave[room.argmax()]))
                of_person[who].append(one)
                self.assigned.append(one)

    def _min_gap_s(self, here: tuple[float, float], there: tuple[float, float]) -> float:
        """Minimum time between the end of one trip and the start of the next."""
        apart = float(np.hypot(there[0] - here[0], there[1] - here[1]))
        return SETTINGS.min_stay_s + SETTINGS.travel_reserve * apart / self._fastest_mps

    def _put_earliest_first(self, slots: Integers) -> None:
        """Give each of these slots the earliest of the trips that the slots of the rest of its day hold."""
        number = self._plans.size[slots] - self._plans.rank[slots]
        of_day = np.repeat(slots, number) + ragged.ranks(number)
        order = np.lexsort((self._trips.tod_s[self._trip_of[of_day]], ragged.owners(number)))
        for slot, trip in zip(slots.tolist(), self._trip_of[of_day[order[np.cumsum(number) - number]]].tolist()):
            self._exchange(slot, trip)

    def _exchange(self, slot: int, trip: int) -> None:
        """Give the trip to this slot, and the trip of this slot to the slot that held it."""
        other, previous = self._slot_of[trip], self._trip_of[slot]
        self._trip_of[slot], self._trip_of[other] = trip, previous
        self._slot_of[trip], self._slot_of[previous] = slot, other

    def _wishes(self, slot: Integers) -> Wishes:
        """What the person of each slot wants to do next: when, from where, and where to."""
        plans, random = self._plans, self._random
        who = np.searchsorted(plans.offsets, slot, side="right") - 1
        midnight = self._midnight[plans.date[slot]]
        people = [self.people[one] for one in who.tolist()]
        here = np.array([person.here for person in people])
        free = np.array([person.free_utc for person in people])
        left_today = plans.size[slot] - plans.rank[slot]
        tod_s, on_time, gap = self._hours(self._trip_of[slot], midnight, free, here, left_today)
        begun = np.isfinite(free)
        continues = begun & (random.random(len(who)) < self._habits.continuous[gap])
        remaining = plans.offsets[who + 1] - slot
        new = self._places[who] - np.array([len(person.places) for person in people])
        p_new = new / (remaining * np.where(continues, 1.0, 2.0) * self._share_of_new[who])
        last, drawn = plans.rank[slot] == plans.size[slot] - 1, random.random((3, len(who)))
        target, earlier = np.full((2, len(who)), -1)
        there = np.full((len(who), 2), np.nan)
        for k in np.flatnonzero(begun).tolist():
            person = people[k]
            if last[k] and person.at != 0 and drawn[0, k] < self._p_end_at_first:
                target[k] = 0
            elif drawn[1, k] >= p_new[k]:
                target[k] = person.some_place(drawn[2, k])
            if target[k] >= 0:
                there[k] = person.places[target[k]]
                legs, between = person.legs, (person.at, int(target[k]))
                earlier[k] = legs.get(between, legs.get(between[::-1], -1))
        weekend = self._weekend[plans.date[slot]]
        return Wishes(who, slot, midnight, tod_s, weekend, free, here, continues, target, there, earlier, on_time)

    def _hours(
        self, trip: Integers, midnight: Floats, free: Floats, here: Floats, remaining: Integers
    ) -> tuple[Floats, NDArray[np.bool_], Integers]:
        """Time of day of the next departure, whether it is that of the trip held, and the bin of the stay before it.

        `remaining` is the number of trips that are planned for the rest of the day.
        """
        tod_s, begun = self._trips.tod_s[trip], np.isfinite(free)
        arrived = np.where(begun, free, midnight)
        edges = (arrived - midnight)[:, None] + np.asarray(GAPS_H.edges) * 3600
        supply = self._departures(edges)
        # The first of n departures drawn at random is before the q-th quantile with probability 1 − (1 − q)ⁿ.
        inside = 1 - (1 - np.clip(supply, 0.0, 1.0)) ** remaining[:, None]
        room = np.diff(inside) / np.maximum(np.diff(supply) * remaining[:, None], 1e-300)
        gap_s = midnight + tod_s - arrived
        gap = GAPS_H.index(np.maximum(gap_s, 0.0) / 3600)
        refused = begun & ~self._in_time(trip, midnight, free, here)
        part = part_of_day((arrived - midnight) % DAY_S)
        drawn = self._habits.stays.bins(part, gap, self._random, room)
        new = begun & ((drawn != gap) | refused)
        at = np.arange(len(trip))
        first = inside[at, drawn] + self._random.random(len(trip)) * (inside[at, drawn + 1] - inside[at, drawn])
        rank = ((1 - (1 - first) ** (1 / remaining)) * len(self._sorted_tod)).astype(np.int64)
        tod_s = np.where(new, self._sorted_tod[np.minimum(rank, len(self._sorted_tod) - 1)], tod_s)
        return tod_s, ~new, np.where(begun, drawn, 0)

    def _departures(self, since_midnight_s: Floats) -> Floats:
        """Share of a day's trips that depart before these times, plus one for each whole day."""
        days, tod_s = np.divmod(since_midnight_s, DAY_S)
        return np.asarray(days + np.searchsorted(self._sorted_tod, tod_s) / len(self._sorted_tod))

    def _in_time(self, trip: Integers, midnight: Floats, free: Floats, here: Floats) -> NDArray[np.bool_]:
        """Whether people can make the trips as they are: whether they reach the start early enough."""
        apart = np.nan_to_num(np.hypot(self._trips.x0[trip] - here[..., 0], self._trips.y0[trip] - here[..., 1]))
        earliest = free + SETTINGS.min_stay_s + SETTINGS.travel_reserve * apart / self._fastest_mps
        return np.asarray(midnight + self._trips.tod_s[trip] >= earliest)

    def _keep(self, wishes: Wishes, waiting: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> None:
        """Let the waiting people who want that make the trips that their slots hold, where they can."""
        trip = self._trip_of[wishes.slot]
        possible = self._in_time(trip, wishes.midnight, wishes.free_utc, wishes.here)
        for row in np.flatnonzero(waiting & wanted & possible).tolist():
            self._take(wishes, row, int(trip[row]), "any")
            waiting[row] = False

    def _match(self, wishes: Wishes, waiting: NDArray[np.bool_], wanted: NDArray[np.bool_], kind: str) -> None:
        """Exchange the trips of as many of these people as possible for nearby ones, nearest first.

        `kind` says what must be near the wish: "both" ends, the "start", the "end", or only the hour ("any").
        """
        rows = np.flatnonzero(waiting & wanted)
        if len(rows) == 0 or not self._unassigned.any():
            return
        some = wishes.take(rows)
        tree, which = self._tree(kind)
        number = min(SETTINGS.nearest * (4 if kind == "any" else 1), len(which))
        distance, found = tree.query(self._query(some, kind), k=np.arange(1, number + 1))
        trip = which[found]
        possible, near = self._possible(some, trip, kind)
        for _ in range(SETTINGS.tries):
            free = possible & self._unassigned[trip] & waiting[rows, None]
            able = np.flatnonzero(free.any(axis=1))
            if len(able) == 0:
                break
            best = free[able].argmax(axis=1)
            for k in np.argsort(distance[able, best], kind="stable").tolist():
                row, one = int(able[k]), int(trip[able[k], best[k]])
                if self._unassigned[one]:
                    self._exchange(int(some.slot[row]), one)
                    self._take(some, row, one, kind if near[row, best[k]] else "repeat")
                    waiting[rows[row]] = False

    def _tree(self, kind: str) -> "tuple[cKDTree, Integers]":
        """A search tree of the unassigned trips; it is rebuilt only when many of its trips have been assigned."""
        from scipy.spatial import cKDTree

        known = self._trees.get(kind)
        if known is None or self._unassigned[known[1]].mean() < SETTINGS.min_unassigned:
            left = np.flatnonzero(self._unassigned)
            trips = self._trips
            start, end = (np.column_stack(pair)[left] for pair in ((trips.x0, trips.y0), (trips.x1, trips.y1)))
            columns = _features(trips.tod_s[left], trips.weekend[left], start, end, kind)
            known = self._trees[kind] = cKDTree(columns), left
        return known

    def _query(self, wishes: Wishes, kind: str) -> Floats:
        return _features(wishes.tod_s, wishes.weekend, wishes.here, wishes.there, kind)

    def _possible(self, wishes: Wishes, trip: Integers, kind: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which trips the people can make, and which of them have ends near enough to be moved.

        A leg that the person has travelled before may replace a trip farther away.
        """
        trips = self._trips
        here, midnight, free = wishes.here[:, None], wishes.midnight[:, None], wishes.free_utc[:, None]
        apart = np.zeros(trip.shape)
        if kind in ("both", "start"):
            apart = np.hypot(trips.x0[trip] - here[..., 0], trips.y0[trip] - here[..., 1])
            feasible = midnight + trips.tod_s[trip] >= free + SETTINGS.min_stay_s
        else:
            feasible = self._in_time(trip, midnight, free, here)
        if kind in ("both", "end"):
            away = np.hypot(trips.x1[trip] - wishes.there[:, :1], trips.y1[trip] - wishes.there[:, 1:])
            apart = np.maximum(apart, away)
        near = apart <= SETTINGS.snap_m
        repeats = (wishes.earlier[:, None] >= 0) & (apart <= SETTINGS.repeat_m) & (kind == "both")
        return feasible & (trips.weekend[trip] == wishes.weekend[:, None]) & (near | repeats), near

    def _take(self, wishes: Wishes, row: int, trip: int, kind: str) -> None:
        """Assign a trip to a person and move the ends that `kind` names; "repeat" uses the route of an earlier trip."""
        trips, number = self._trips, int(wishes.person[row])
        person, wanted = self.people[number], int(wishes.target[row])
        depart = float(wishes.midnight[row] + trips.tod_s[trip])
        route = int(wishes.earlier[row]) if kind == "repeat" else trip
        reverse = kind == "repeat" and (person.at, wanted) not in person.legs
        start = float(trips.x0[trip]), float(trips.y0[trip])
        end = float(trips.x1[trip]), float(trips.y1[trip])
        if kind in ("both", "start", "repeat"):
            origin, start = person.at, _beside(person.here, start)
        else:
            origin = person.place_at(*start)
            person.visits[origin] += 1
        here = end
        if kind in ("both", "end", "repeat"):
            target, here = wanted, person.places[wanted]
            end = _beside(here, end)
        else:
            target = person.place_at(*end)
        person.visits[target] += 1
        if kind != "repeat":
            person.legs.setdefault((origin, target), route)
        person.at, person.here = target, here
        person.free_utc = depart + float(trips.duration_s[route])
        self._unassigned[trip] = False
        self.assigned.append(Assigned(number, trip, route, reverse, start, end, depart))


def _beside(place: tuple[float, float], wanted: tuple[float, float]) -> tuple[float, float]:
    """A position near a place and inside its square, towards the wanted one; two such are at most 300 m apart."""
    apart = math.hypot(wanted[0] - place[0], wanted[1] - place[1])
    share = CONTINUOUS_M / 2 / (CONTINUOUS_M / 2 + apart)
    x, y = (
        min(max(here + share * (there - here), here // PLACE_M * PLACE_M + 1), here // PLACE_M * PLACE_M + PLACE_M - 1)
        for here, there in zip(place, wanted)
    )
    return x, y


def _random_trips(weekend_of_slot: Floats, weekend_of_trip: Floats, random: np.random.Generator) -> Integers:
    """A trip for each slot, at random; on the same kind of day, as far as there are enough of them."""
    slots, trips = random.permutation(len(weekend_of_slot)), random.permutation(len(weekend_of_trip))
    slots = slots[np.argsort(weekend_of_slot[slots], kind="stable")]
    trips = trips[np.argsort(weekend_of_trip[trips], kind="stable")]
    result = np.empty(len(slots), np.int64)
    result[slots] = trips
    return result


def _features(tod_s: Floats, weekend: Floats, start: Floats, end: Floats, kind: str) -> Floats:
    """Coordinates in which the nearest trips are searched; hours and kinds of day are converted to metres."""
    columns = [(tod_s / 3600 * SETTINGS.hour_m)[:, None], (weekend * SETTINGS.other_kind_of_day_m)[:, None]]
    if kind in ("both", "start"):
        columns.append(start)
    if kind in ("both", "end"):
        columns.append(end)
    return np.hstack(columns)

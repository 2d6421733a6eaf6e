"""Assignment of trips to the plans of people, in order of time.

In each round, every person gets one more trip: an unassigned trip that starts where the person is, at a suitable hour,
and ends at a place that the person is to visit, known or new. So trips are assigned, not invented. If no trip is left
for a leg that the person has travelled before, that leg replaces another trip of similar length and hour.

Privacy: free (post-processing).
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil.progress import Progress, quiet
from wayveil.questions.people.chains import GAPS_H, part_of_day
from wayveil.questions.people.trips_of_people import DAY_S, PLACE_M
from wayveil.synthesis.people.estimate import Habits
from wayveil.synthesis.people.plan import Plans

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class AssignSettings:
    """Settings of the assignment; set by hand on the simulated city."""

    snap_m: float = 600.0
    """A start or end is moved by at most this much to the place where the person is or goes."""
    hour_m: float = 500.0
    """Distance that is as bad as a departure one hour too early or too late."""
    octave_m: float = 800.0
    """Distance that is as bad as half or twice the length, where a repeated leg replaces another trip."""
    other_kind_of_day_m: float = 30_000.0
    """Distance that is as bad as a working-day trip on a weekend, or the reverse."""
    nearest: int = 16
    """Candidate trips for each leg."""
    tries: int = 4
    """Attempts to match a person, because another person may take the best candidate."""
    stale: float = 0.7
    """A search tree is rebuilt when less than this share of its trips is unassigned."""
    least_stay_s: float = 60.0
    """Minimum time between two trips of a person."""


SETTINGS = AssignSettings()


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
    visits: list[int] = field(default_factory=list)
    legs: dict[tuple[int, int], int] = field(default_factory=dict)
    """The trip that first went from one place to another."""
    cells: dict[tuple[int, int], int] = field(default_factory=dict)
    """Place number by square of the grid of places."""
    at: int = -1
    here: tuple[float, float] = (np.nan, np.nan)
    """Where the last trip ended."""
    free_utc: float = -np.inf
    """Earliest time at which the person can leave again."""

    def place_at(self, x: float, y: float) -> int:
        """The number of the place at this position, which may be new."""
        number = self.cells.setdefault((int(x // PLACE_M), int(y // PLACE_M)), len(self.places))
        if number == len(self.places):
            self.places.append((x, y))
            self.visits.append(0)
        return number

    def some_place(self, drawn: float) -> int:
        """A known place other than the current one, drawn by its visits; -1 if there is none. `drawn` is in [0, 1)."""
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
    """One trip of a person: its departure, its route, and its start and end."""

    person: int
    trip: int
    """The trip that gives the departure, and the route unless it repeats a leg."""
    way: int
    """The trip that gives the route."""
    reverse: bool
    start: tuple[float, float]
    end: tuple[float, float]
    depart_utc: float


@dataclass(frozen=True, eq=False)
class Wishes:
    """What people want to do next, one row per person."""

    person: Integers
    midnight: Floats
    tod_s: Floats
    weekend: Floats
    free_utc: Floats
    here: Floats
    """(n, 2) where the person is; NaN before the first trip."""
    continues: NDArray[np.bool_]
    """Whether the trip must start here."""
    target: Integers
    """The known place to go to, or -1."""
    there: Floats
    """(n, 2) its position; NaN if there is none."""
    own: Integers
    """The person's earlier trip between these places, in either direction, or -1."""

    def __len__(self) -> int:
        return len(self.person)

    def take(self, rows: NDArray[np.generic]) -> "Wishes":
        """Some of the rows."""
        return Wishes(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


class Assignment:
    """The assignment, in rounds; in each, every person with planned trips left gets one."""

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
        self._left = np.ones(len(trips), bool)
        self._sorted_tod = np.sort(trips.tod_s)
        self._length = np.log2(np.maximum(np.hypot(trips.x1 - trips.x0, trips.y1 - trips.y0), 50.0))
        mean_day = float(len(plans.size) / max(int((plans.rank == 0).sum()), 1))
        self._p_home_last = min(habits.ends_at_first * mean_day, 1.0)
        self._trees: dict[str, tuple[cKDTree, Integers]] = {}
        self.people = [Person() for _ in range(len(plans))]
        self.assigned: list[Assigned] = []

    @property
    def left(self) -> Integers:
        """The trips that are not assigned yet."""
        return np.flatnonzero(self._left)

    def run(self, progress: Progress = quiet) -> None:
        """All rounds, in the order of each person's trips."""
        each = np.diff(self._plans.offsets)
        for round_ in range(int(each.max(initial=0))):
            if not self._left.any():
                break
            self._round(self._random.permutation(np.flatnonzero(each > round_)), round_)
            progress("people", 1 - float(self._left.mean()))

    def _round(self, active: Integers, round_: int) -> None:
        leg = self._plans.offsets[active] + round_
        wishes = self._wishes(active, leg, self._plans.date[leg])
        waiting = self._serve(wishes)
        # A person without a trip on that day travels on the next day, if nothing is planned for it.
        following = np.where(
            leg + 1 < self._plans.offsets[active + 1],
            self._plans.date[np.minimum(leg + 1, len(self._plans.date) - 1)],
            len(self._midnight),
        )
        late = np.flatnonzero(waiting & (self._plans.date[leg] + 1 < following))
        if len(late):
            self._serve(self._wishes(active[late], leg[late], self._plans.date[leg[late]] + 1, late=True))

    def _serve(self, wishes: Wishes) -> NDArray[np.bool_]:
        """Try all kinds of match in turn; return whether each person is still without a trip."""
        waiting = np.ones(len(wishes), bool)
        for kind in ("both", "repeat", "start", "end", "any"):
            rows = np.flatnonzero(waiting & self._wants(wishes, kind))
            if len(rows) and self._left.any():
                waiting[rows[self._match(wishes.take(rows), kind)]] = False
        return waiting

    def _wishes(self, active: Integers, leg: Integers, date: Integers, late: bool = False) -> Wishes:
        plans, random = self._plans, self._random
        rank, size = (0 * plans.rank[leg] if late else plans.rank[leg]), plans.size[leg]
        midnight = self._midnight[date]
        people = [self.people[one] for one in active.tolist()]
        free = np.array([person.free_utc for person in people])
        at = random.beta(rank + 1, np.maximum(size - rank, 1))
        tod_s = self._sorted_tod[(at * len(self._sorted_tod)).astype(np.int64) % len(self._sorted_tod)]
        again = np.flatnonzero((rank > 0) & (free >= midnight))  # not if the previous planned trip was not assigned
        tod_s[again] = self._next_hours(free[again] - midnight[again], tod_s[again])
        gap_h = np.maximum(midnight + tod_s - free, 0.0) / 3600
        begun = np.isfinite(free)
        gap = GAPS_H.index(np.where(begun, gap_h, 0.0))
        continues = begun & (random.random(len(active)) < self._habits.continuous[gap])
        remaining = plans.offsets[active + 1] - leg
        new = plans.places[active] - np.array([len(person.places) for person in people])
        p_new = new / (remaining * np.where(continues, 1.0, 2.0) * np.maximum(plans.new_places[active], 0.05))
        last, drawn = rank == size - 1, random.random((3, len(active)))
        target = np.full(len(active), -1)
        for k in np.flatnonzero(begun).tolist():
            person = people[k]
            if last[k] and person.at != 0 and drawn[0, k] < self._p_home_last:
                target[k] = 0
            elif drawn[1, k] >= p_new[k]:
                target[k] = person.some_place(drawn[2, k])
        here, there = np.full((2, len(active), 2), np.nan)
        own = np.full(len(active), -1)
        for k in np.flatnonzero(begun).tolist():
            person = people[k]
            here[k] = person.here
            if target[k] >= 0:
                there[k] = person.places[target[k]]
                legs, between = person.legs, (person.at, int(target[k]))
                own[k] = legs.get(between, legs.get(between[::-1], -1))
        return Wishes(active, midnight, tod_s, self._weekend[date], free, here, continues, target, there, own)

    def _next_hours(self, arrived_s: Floats, usual_s: Floats) -> Floats:
        """Departures after stays of estimated lengths that end on the same day; the usual ones where none does."""
        edges = np.asarray(GAPS_H.edges) * 3600
        room = np.clip((DAY_S - arrived_s[:, None] - edges[:-1]) / np.diff(edges), 0.0, 1.0)
        weight = self._habits.stays[part_of_day(arrived_s % DAY_S)] * room
        running = np.cumsum(weight, axis=1)
        known = running[:, -1] > 0
        one = (running <= self._random.random(len(arrived_s))[:, None] * running[:, -1:]).sum(axis=1)
        one = np.minimum(one, len(edges) - 2)
        last = np.minimum(edges[one + 1], DAY_S - arrived_s)
        stay_s = edges[one] + self._random.random(len(arrived_s)) * np.maximum(last - edges[one], 0.0)
        return np.where(known, arrived_s + stay_s, np.maximum(usual_s, arrived_s))

    def _wants(self, wishes: Wishes, kind: str) -> NDArray[np.bool_]:
        if kind == "both":
            return wishes.continues & (wishes.target >= 0)
        if kind == "repeat":
            return wishes.continues & (wishes.own >= 0)
        if kind == "start":
            return wishes.continues
        return wishes.target >= 0 if kind == "end" else np.ones(len(wishes), bool)

    def _match(self, wishes: Wishes, kind: str) -> Integers:
        """Match as many of these people as possible to trips of one kind, best first; return the matched rows."""
        tree, which = self._tree(kind)
        number = min(SETTINGS.nearest * (4 if kind == "any" else 1), len(which))
        distance, found = tree.query(self._query(wishes, kind), k=np.arange(1, number + 1))
        trip = which[found]
        possible = self._possible(wishes, trip, kind)
        done = np.zeros(len(wishes), bool)
        for _ in range(SETTINGS.tries):
            free = possible & self._left[trip]
            rows = np.flatnonzero(~done & free.any(axis=1))
            if len(rows) == 0:
                break
            best = free[rows].argmax(axis=1)
            order = np.argsort(distance[rows, best], kind="stable")
            for row, column in zip(rows[order].tolist(), best[order].tolist()):
                one = int(trip[row, column])
                if self._left[one]:
                    self._take(wishes, row, one, kind)
                    done[row] = True
        return np.flatnonzero(done)

    def _tree(self, kind: str) -> "tuple[cKDTree, Integers]":
        """A search tree of the unassigned trips; it is rebuilt only when many of its trips have been taken."""
        from scipy.spatial import cKDTree

        known = self._trees.get(kind)
        if known is None or self._left[known[1]].mean() < SETTINGS.stale:
            left = self.left
            known = self._trees[kind] = cKDTree(self._features(left, kind)), left
        return known

    def _features(self, which: Integers, kind: str) -> Floats:
        trips = self._trips
        columns = [trips.tod_s[which] / 3600 * SETTINGS.hour_m, trips.weekend[which] * SETTINGS.other_kind_of_day_m]
        if kind in ("both", "start"):
            columns += [trips.x0[which], trips.y0[which]]
        if kind in ("both", "end"):
            columns += [trips.x1[which], trips.y1[which]]
        if kind == "repeat":
            columns += [self._length[which] * SETTINGS.octave_m]
        return np.column_stack(columns)

    def _query(self, wishes: Wishes, kind: str) -> Floats:
        columns = [wishes.tod_s / 3600 * SETTINGS.hour_m, wishes.weekend * SETTINGS.other_kind_of_day_m]
        if kind in ("both", "start"):
            columns += [wishes.here[:, 0], wishes.here[:, 1]]
        if kind in ("both", "end"):
            columns += [wishes.there[:, 0], wishes.there[:, 1]]
        if kind == "repeat":
            columns += [self._length[wishes.own] * SETTINGS.octave_m]
        return np.column_stack(columns)

    def _possible(self, wishes: Wishes, trip: Integers, kind: str) -> NDArray[np.bool_]:
        """Which trips the people can make: those that leave late enough, with ends that are near enough to be moved."""
        trips = self._trips
        depart = wishes.midnight[:, None] + trips.tod_s[trip]
        apart = np.hypot(trips.x0[trip] - wishes.here[:, :1], trips.y0[trip] - wishes.here[:, 1:])
        ride_s = 0.0 if kind in ("both", "start", "repeat") else 2 * np.nan_to_num(apart) / self._fastest_mps
        good = depart >= wishes.free_utc[:, None] + SETTINGS.least_stay_s + ride_s
        if kind in ("both", "start"):
            good &= apart <= SETTINGS.snap_m
        if kind in ("both", "end"):
            away = np.hypot(trips.x1[trip] - wishes.there[:, :1], trips.y1[trip] - wishes.there[:, 1:])
            good &= away <= SETTINGS.snap_m
        return np.asarray(good)

    def _take(self, wishes: Wishes, row: int, trip: int, kind: str) -> None:
        trips, number = self._trips, int(wishes.person[row])
        person, wanted = self.people[number], int(wishes.target[row])
        depart = float(wishes.midnight[row] + trips.tod_s[trip])
        way = int(wishes.own[row]) if kind == "repeat" else trip
        reverse = kind == "repeat" and (person.at, wanted) not in person.legs
        if kind in ("both", "start", "repeat"):
            origin, start = person.at, person.here
        else:
            start = float(trips.x0[trip]), float(trips.y0[trip])
            origin = person.place_at(*start)
            person.visits[origin] += 1
        if kind in ("both", "end", "repeat"):
            target, end = wanted, person.places[wanted]
        else:
            end = float(trips.x1[trip]), float(trips.y1[trip])
            target = person.place_at(*end)
        person.visits[target] += 1
        if kind != "repeat":
            person.legs.setdefault((origin, target), way)
        person.at, person.here = target, end
        person.free_utc = depart + float(trips.duration_s[way])
        self._left[trip] = False
        self.assigned.append(Assigned(number, trip, way, reverse, start, end, depart))

"""Assignment of trips to the plans of people, in order of time.

A slot is a planned trip of a person on a given day. At first, each slot holds a trip drawn at random (`Chains`). Then
each person makes one trip after the other: either the trip that the slot holds, or an unassigned trip in exchange for
it that starts where the person is, at a suitable hour, and ends at a place that the person should visit, known or new.
So trips are assigned, not invented. If a trip is close to a leg that the person has travelled before, but too far from
it to be moved, it gets the route of that leg. After the last round, trips that a person could not make in order of time
are inserted between the others.

Privacy: free (post-processing).
"""

import numpy as np

from wayveil.core import ragged
from wayveil.progress import Progress, quiet
from wayveil.synthesis.people.plan import Plans
from wayveil.synthesis.people.ranges import arrange_ranges
from wayveil.synthesis.people.search import AT_END, AT_START, Search
from wayveil.synthesis.people.state import AssignedTrips, Chains, Flags, Floats, Integers, Leg, Position, Task
from wayveil.synthesis.people.wishes import Aims, Wishes, next_wishes


def assign(task: Task, random: np.random.Generator, progress: Progress = quiet) -> AssignedTrips:
    """The trips as chains of people; each round assigns at most one trip to each person."""
    chains = Chains(task, random)
    arrange_ranges(task, chains, random)
    aims, search = Aims.of(task, chains, random), Search(task, chains)
    rounds = _rounds(task.plans, random)
    for number, slots in enumerate(rounds, 1):
        _put_earliest_first(task, chains, slots)
        wishes = next_wishes(task, aims, chains, slots, random)
        _make_trips(task, chains, search, wishes)
        progress("people", number / len(rounds))
    _insert_leftovers(task, chains, random)
    return AssignedTrips.of(chains.legs)


def _rounds(plans: Plans, random: np.random.Generator) -> list[Integers]:
    """The slots of each round; those of a person are spread evenly over the rounds, in their order."""
    each = plans.trips
    rounds = int(each.max(initial=0))
    share = (ragged.ranks(each) + np.repeat(random.random(len(each)), each)) / np.repeat(each, each)
    round_of = np.minimum((share * rounds).astype(np.int64), rounds - 1)
    order = random.permutation(len(round_of))
    order = order[np.argsort(round_of[order], kind="stable")]
    return np.split(order, np.cumsum(np.bincount(round_of, minlength=rounds))[:-1])


def _put_earliest_first(task: Task, chains: Chains, slots: Integers) -> None:
    """Give each of these slots the earliest of the trips that it and the later slots of its day hold."""
    number = task.plans.size[slots] - task.plans.rank[slots]
    of_day = np.repeat(slots, number) + ragged.ranks(number)
    order = np.lexsort((task.trips.tod_s[chains.trip_of[of_day]], ragged.owners(number)))
    earliest = chains.trip_of[of_day[order[np.cumsum(number) - number]]]
    for slot, trip in zip(slots.tolist(), earliest.tolist()):
        if chains.trip_of[slot] != trip:
            chains.exchange(slot, trip)


def _make_trips(task: Task, chains: Chains, search: Search, wishes: Wishes) -> None:
    """Assign each person's next trip: the trip that the slot holds, if it suits, otherwise the best exchange."""
    waiting = np.ones(len(wishes), bool)
    goes_back = wishes.target >= 0
    _keep(task, chains, wishes, waiting, wishes.on_time & ~wishes.continues & ~goes_back)
    for kind, wanted in (("both", wishes.continues & goes_back), ("start", wishes.continues), ("end", goes_back)):
        _exchange(task, chains, search, wishes, waiting, np.flatnonzero(waiting & wanted), kind)
    _keep(task, chains, wishes, waiting, wishes.on_time)
    _exchange(task, chains, search, wishes, waiting, np.flatnonzero(waiting), "any")
    _keep(task, chains, wishes, waiting, np.ones(len(wishes), bool))


def _keep(task: Task, chains: Chains, wishes: Wishes, waiting: Flags, wanted: Flags) -> None:
    """Assign the trips that their slots hold to the waiting people who want them and can make them."""
    trip = chains.trip_of[wishes.slot]
    possible = task.in_time(trip, wishes.midnight, wishes.free_utc, wishes.here)
    for row in np.flatnonzero(waiting & wanted & possible).tolist():
        _take(task, chains, wishes, row, int(trip[row]), "any")
        waiting[row] = False


def _exchange(
    task: Task, chains: Chains, search: Search, wishes: Wishes, waiting: Flags, rows: Integers, kind: str
) -> None:
    """Exchange the trips of the people in these rows for trips that suit them, where there are any; nearest first."""
    if len(rows) == 0 or not chains.unassigned.any():
        return
    some = wishes.take(rows)
    found = search.candidates(some, kind)
    left = np.arange(len(rows))
    while True:
        free = found.possible[left] & chains.unassigned[found.trip[left]]
        able = free.any(axis=1)
        left, free = left[able], free[able]
        if len(left) == 0:
            return
        best = (free * (1 + found.preference[left])).argmax(axis=1)
        trips = found.trip[left, best].tolist()
        taken = np.zeros(len(left), bool)
        for k in np.argsort(found.distance[left, best], kind="stable").tolist():
            if chains.unassigned[trips[k]]:
                row = int(left[k])
                chains.exchange(int(some.slot[row]), trips[k])
                _take(task, chains, some, row, trips[k], kind if found.near[row, best[k]] else "repeat")
                taken[k] = True
        waiting[rows[left[taken]]] = False
        left = left[~taken]


def _take(task: Task, chains: Chains, wishes: Wishes, row: int, trip: int, kind: str) -> None:
    """Assign a trip to a person and move the ends that `kind` names; "repeat" uses the route of an earlier trip."""
    trips, number, repeats = task.trips, int(wishes.person[row]), kind == "repeat"
    person = chains.people[number]
    depart = float(wishes.midnight[row] + trips.tod_s[trip])
    route = int(wishes.earlier[row]) if repeats else trip
    start_moves, end_moves = repeats or kind in AT_START, repeats or kind in AT_END
    if start_moves:
        origin, start = person.at, person.here
    else:
        start = _position(trips.start, trip)
        origin = person.visit(*start)
    target = int(wishes.target[row])
    reverse = repeats and (origin, target) not in person.legs
    end = person.places[target] if end_moves else _position(trips.end, trip)
    target = person.visit(*end)
    if not repeats:
        person.legs.setdefault((origin, target), route)
    person.at, person.here = target, end
    person.free_utc = depart + float(trips.duration_s[route])
    chains.unassigned[trip] = False
    chains.legs.append(Leg(number, trip, route, reverse, start, end, start_moves, end_moves, depart))


def _insert_leftovers(task: Task, chains: Chains, random: np.random.Generator) -> None:
    """Insert each trip that a person could not make in order of time between other trips, on any day with room."""
    plans, trips, calendar = task.plans, task.trips, task.calendar
    slots = np.flatnonzero(chains.unassigned[chains.trip_of])
    owner = np.searchsorted(plans.offsets, slots, side="right") - 1
    wanted = set(owner.tolist())
    of_person: dict[int, list[tuple[float, float, Position, Position]]] = {}
    for leg in chains.legs:
        if leg.person in wanted:
            arrive = leg.depart_utc + float(trips.duration_s[leg.route])
            of_person.setdefault(leg.person, []).append((leg.depart_utc, arrive, leg.start, leg.end))
    for who, slot in zip(owner.tolist(), slots.tolist()):
        trip = int(chains.trip_of[slot])
        days = np.flatnonzero(calendar.weekend == trips.weekend[trip])
        days = np.r_[plans.date[slot], random.permutation(days)]
        leaves = calendar.midnight[days] + trips.tod_s[trip]
        arrives = leaves + trips.duration_s[trip]
        room = np.ones(len(days), bool)
        if others := of_person.get(who):
            left, arrived, starts, ends = (np.array(column) for column in zip(*others))
            before = arrives[:, None] + task.least_gap_s(trips.end[trip], starts) <= left
            room = (before | (leaves[:, None] >= arrived + task.least_gap_s(ends, trips.start[trip]))).all(axis=1)
        if room.any():
            first = int(room.argmax())
            start, end = _position(trips.start, trip), _position(trips.end, trip)
            of_person.setdefault(who, []).append((float(leaves[first]), float(arrives[first]), start, end))
            chains.legs.append(Leg(who, trip, trip, False, start, end, False, False, float(leaves[first])))


def _position(positions: Floats, number: int) -> Position:
    return float(positions[number, 0]), float(positions[number, 1])

"""Candidates for an exchange: the unassigned trips that are nearest to a wish.

`kind` says what must be near the wish: "both" ends, the "start", the "end", or only the hour ("any").

Privacy: free (post-processing).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wayveil.synthesis.people.settings import SETTINGS
from wayveil.synthesis.people.state import Chains, Flags, Floats, Integers, Task, square_of
from wayveil.synthesis.people.wishes import Wishes

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

AT_START, AT_END = ("both", "start"), ("both", "end")


@dataclass(frozen=True, eq=False)
class Candidates:
    """Trips for each wish, nearest first; all arrays have the shape (wishes, trips)."""

    trip: Integers
    distance: Floats
    possible: Flags
    """Whether the person can make the trip and it may serve the wish."""
    near: Flags
    """Whether the ends are near enough to be moved; otherwise the person travels an earlier leg again."""
    preference: Integers
    """2 if the trip ends at a known place of a person who wants to go to one, and 1 more if ends that are moved stay in
    their squares, so that fewer trips change from zone to zone."""


class Search:
    """Search trees of unassigned trips; each is rebuilt only when many of its trips have been assigned."""

    def __init__(self, task: Task, chains: Chains) -> None:
        self._task, self._chains = task, chains
        self._start_square, self._end_square = square_of(*task.trips.start.T), square_of(*task.trips.end.T)
        self._trees: dict[str, tuple[cKDTree, Integers]] = {}

    def candidates(self, wishes: Wishes, kind: str) -> Candidates:
        """The nearest trips to each wish."""
        tree, which = self._tree(kind)
        number = min(SETTINGS.nearest, len(which))
        query = _coordinates(wishes.tod_s, wishes.weekend, wishes.here, wishes.there, kind)
        distance, found = tree.query(query, k=np.arange(1, number + 1), eps=SETTINGS.tolerance)
        trip = which[found]
        possible, near = self._possible(wishes, trip, kind)
        preference = self._in_square(wishes, trip, kind).astype(np.int64)
        if kind == "start":
            preference += 2 * self._known(wishes, trip)
        return Candidates(trip, distance, possible, near, preference)

    def _tree(self, kind: str) -> "tuple[cKDTree, Integers]":
        from scipy.spatial import cKDTree

        unassigned, trips = self._chains.unassigned, self._task.trips
        known = self._trees.get(kind)
        if known is None or unassigned[known[1]].mean() < SETTINGS.least_unassigned:
            left = np.flatnonzero(unassigned)
            columns = _coordinates(trips.tod_s[left], trips.weekend[left], trips.start[left], trips.end[left], kind)
            known = self._trees[kind] = cKDTree(columns, balanced_tree=False, compact_nodes=False), left
        return known

    def _possible(self, wishes: Wishes, trip: Integers, kind: str) -> tuple[Flags, Flags]:
        """Which trips the people can make, and which of them have ends near enough to be moved."""
        trips = self._task.trips
        midnight, free, here = wishes.midnight[:, None], wishes.free_utc[:, None], wishes.here[:, None]
        apart = np.zeros(trip.shape)
        if kind in AT_START:
            apart = _distance(trips.start[trip], here)
            feasible = midnight + trips.tod_s[trip] >= free + SETTINGS.least_stay_s
        else:
            feasible = self._task.in_time(trip, midnight, free, here)
        if kind in AT_END:
            apart = np.maximum(apart, _distance(trips.end[trip], wishes.there[:, None]))
        near = apart <= SETTINGS.snap_m
        feasible &= trips.tod_s[trip] >= wishes.first_s[:, None]
        repeats = (wishes.earlier[:, None] >= 0) & (apart <= SETTINGS.repeat_m) & (kind == "both")
        return feasible & (trips.weekend[trip] == wishes.weekend[:, None]) & (near | repeats), near

    def _in_square(self, wishes: Wishes, trip: Integers, kind: str) -> Flags:
        """Whether the ends that are moved stay in the squares of the grid of places where they are."""
        inside = np.ones(trip.shape, bool)
        if kind in AT_START:
            inside &= self._start_square[trip] == square_of(*wishes.here.T)[:, None]
        if kind in AT_END:
            inside &= self._end_square[trip] == square_of(*wishes.there.T)[:, None]
        return inside

    def _known(self, wishes: Wishes, trip: Integers) -> Flags:
        """Which trips end at a known place other than the current one, for people who want to go to one."""
        squares = [self._chains.people[who].squares for who in wishes.person.tolist()]
        owner = np.repeat(np.arange(len(squares)), [len(some) for some in squares])
        known = np.fromiter((square for some in squares for square in some), np.int64, len(owner))
        span = int(self._end_square.max(initial=0)) + 1
        of_trip = self._end_square[trip]
        there = np.isin(of_trip + span * np.arange(len(trip))[:, None], known + span * owner)
        return np.asarray(there & (wishes.target >= 0)[:, None] & (of_trip != square_of(*wishes.here.T)[:, None]))


def _distance(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.hypot(one[..., 0] - other[..., 0], one[..., 1] - other[..., 1]))


def _coordinates(tod_s: Floats, weekend: Floats, start: Floats, end: Floats, kind: str) -> Floats:
    """Coordinates in which the nearest trips are searched; hours and kinds of day are converted to metres."""
    columns = [(tod_s / 3600 * SETTINGS.hour_m)[:, None], (weekend * SETTINGS.other_kind_of_day_m)[:, None]]
    if kind in AT_START:
        columns.append(start)
    if kind in AT_END:
        columns.append(end)
    return np.hstack(columns)

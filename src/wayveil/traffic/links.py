"""A road map as links between junctions, for counting traffic on each.

A road of the map is cut where another road touches it, so that the traffic is constant along each link, except for
trips that start or end on it. Links keep the number of their road.

Privacy: free (the map is public).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SNAP_M = 0.5
"""Vertices closer than about this are the same place."""


@dataclass(frozen=True, eq=False)
class Links:
    """Links between junctions; link e owns the vertices `offsets[e]:offsets[e + 1]`, in metres of the scope."""

    offsets: Ints
    x_m: Floats
    y_m: Floats
    road: Ints
    """Row of the road map."""
    part: Ints
    """Which part of the road it is, from 0."""
    tail: Ints
    head: Ints
    """Junction at the first and at the last vertex."""
    oneway: NDArray[np.bool_]
    junctions: int

    def __len__(self) -> int:
        return len(self.road)

    @property
    def along_m(self) -> Floats:
        """Distance of each vertex from the first vertex of its link."""
        step = np.hypot(np.diff(self.x_m, prepend=self.x_m[:1]), np.diff(self.y_m, prepend=self.y_m[:1]))
        step[self.offsets[:-1]] = 0.0
        running = np.cumsum(step)
        return np.asarray(running - running[self.offsets[:-1]][ragged.owners(np.diff(self.offsets))])

    @property
    def length_m(self) -> Floats:
        """Length of each link."""
        return np.asarray(self.along_m[self.offsets[1:] - 1])


def links_of(roads: RoadMap, scope: Scope) -> Links:
    """The roads with a vertex inside the scope's box, cut at their junctions."""
    x_m, y_m = scope.to_metres(roads.lon, roads.lat)
    inside = (x_m >= 0) & (x_m <= scope.width_m) & (y_m >= 0) & (y_m <= scope.height_m)
    owner = ragged.owners(np.diff(roads.offsets))
    touched = np.bincount(owner[inside], minlength=len(roads)) > 0
    keep = touched[owner]
    x_m, y_m, owner = x_m[keep], y_m[keep], owner[keep]
    key = np.rint(x_m / _SNAP_M).astype(np.int64) * (1 << 32) + np.rint(y_m / _SNAP_M).astype(np.int64)
    place = np.unique(key, return_inverse=True)[1]
    repeated = np.r_[False, (place[1:] == place[:-1]) & (owner[1:] == owner[:-1])]
    x_m, y_m, owner, place = x_m[~repeated], y_m[~repeated], owner[~repeated], place[~repeated]
    return _cut(x_m, y_m, owner, place, roads.oneway == 1)


def _cut(x_m: Floats, y_m: Floats, owner: Ints, place: Ints, oneway: NDArray[np.bool_]) -> Links:
    """Cut roads at their ends, at places that they share with others, and at places that they pass twice."""
    changes = owner[1:] != owner[:-1]
    is_end = np.r_[True, changes] | np.r_[changes, True]
    junction = np.bincount(place) > 1
    junction[place[is_end]] = True
    at = np.flatnonzero(junction[place])
    same = owner[at[1:]] == owner[at[:-1]]
    begin, end = at[:-1][same], at[1:][same]
    offsets = ragged.offsets_of(end - begin + 1)
    vertex = np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], np.diff(offsets))
    names, node = np.unique(np.r_[place[begin], place[end]], return_inverse=True)
    road = owner[begin]
    first = np.r_[True, road[1:] != road[:-1]] if len(road) else np.zeros(0, bool)
    part = np.arange(len(road)) - np.flatnonzero(first)[np.cumsum(first) - 1] if len(road) else road
    tail, head = np.split(node, 2)
    return Links(offsets, x_m[vertex], y_m[vertex], road, part, tail, head, oneway[road], len(names))

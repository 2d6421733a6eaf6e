"""The nearest road of each point of a trip."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import ROAD_CLASSES, RoadMap, clip_roads
from wayveil.core.scope import Scope
from wayveil.evaluation.paths import Paths
from wayveil.evaluation.trips.settings import SETTINGS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Matched:
    """One value for each point."""

    road: Ints
    """Road of the map; -1 where the map has none within reach."""
    distance_m: Floats
    """NaN where there is no road."""
    heading: Floats
    """Direction of the road in radians, along its polyline."""
    angle: Floats
    """Between the trip's and the road's direction, from 0 to π."""
    one_way: NDArray[np.bool_]
    class_name: NDArray[np.str_]

    def first(self, count: int) -> "Matched":
        """The first `count` points."""
        return Matched(*(getattr(self, field.name)[:count] for field in fields(self)))


class RoadIndex:
    """The straight pieces of a road map in a spatial index.

    Privacy: free (the map is public).
    """

    def __init__(self, roads: RoadMap, scope: Scope) -> None:
        import shapely

        roads = clip_roads(roads, scope)
        x_m, y_m = scope.to_metres(roads.lon, roads.lat)
        owner = ragged.owners(np.diff(roads.offsets))
        begin = np.flatnonzero((owner[1:] == owner[:-1]) & ((np.diff(x_m) != 0) | (np.diff(y_m) != 0)))
        ends = np.stack([np.c_[x_m[begin], y_m[begin]], np.c_[x_m[begin + 1], y_m[begin + 1]]], axis=1)
        self._road = owner[begin]
        self._heading = np.arctan2(*(ends[:, 1] - ends[:, 0]).T[::-1])
        self._one_way = roads.oneway == 1
        self._class_name = np.array(ROAD_CLASSES)[roads.road_class]
        self._tree = shapely.STRtree(shapely.linestrings(ends))

    def match(self, paths: Paths) -> Matched:
        """The nearest road of each point, within reach."""
        import shapely

        points = shapely.points(paths.x_m, paths.y_m)
        (point, piece), distance = self._tree.query_nearest(
            points, max_distance=SETTINGS.road_reach_m, return_distance=True, all_matches=False
        )
        count = len(points)
        road, distance_m, heading = np.full(count, -1), np.full(count, np.nan), np.zeros(count)
        road[point], distance_m[point], heading[point] = self._road[piece], distance, self._heading[piece]
        angle = np.abs((_headings(paths) - heading + np.pi) % (2 * np.pi) - np.pi)
        return Matched(road, distance_m, heading, angle, self._one_way[road] & (road >= 0), self._class_name[road])


def _headings(paths: Paths) -> Floats:
    """Direction of each trip at each point: from the point before to the point after."""
    point = np.arange(len(paths.x_m))
    before = np.maximum(point - 1, paths.first[paths.owner])
    after = np.minimum(point + 1, paths.last[paths.owner])
    return np.arctan2(paths.y_m[after] - paths.y_m[before], paths.x_m[after] - paths.x_m[before])

"""A public road map as frozen columns; reading one from a file is in `wayveil.io.roads`."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.scope import Scope
from wayveil.errors import InputError

ROAD_CLASSES = ("motorway", "trunk", "primary", "secondary", "tertiary", "residential", "service", "path", "unknown")
"""From the widest to the narrowest; OpenStreetMap's link classes count as the class that they link to."""
_CLASS_OF = {
    "unclassified": "residential", "living_street": "residential", "road": "unknown", "track": "path",
    "footway": "path", "cycleway": "path", "pedestrian": "path", "steps": "path", "bridleway": "path",
    "busway": "service", "expressway": "trunk", "freeway": "motorway", "highway": "motorway",
    "arterial": "primary", "collector": "tertiary", "local": "residential", "street": "residential",
}  # fmt: skip


def road_class_of(name: str) -> str | None:
    """The element of ROAD_CLASSES for an OpenStreetMap class or a similar name; None for other words."""
    text = name.strip().lower().removesuffix("_link")
    text = _CLASS_OF.get(text, text)
    return text if text in ROAD_CLASSES else None


@dataclass(frozen=True, eq=False)
class RoadMap:
    """Polylines in degrees with class, direction flag and speed limit; road i owns `offsets[i]:offsets[i + 1]`."""

    offsets: NDArray[np.int64]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    road_class: NDArray[np.int8]
    """(n,) index into ROAD_CLASSES."""
    oneway: NDArray[np.int8]
    """(n,) 1 = only along the polyline, 0 = both ways, -1 = not known."""
    maxspeed_kmh: NDArray[np.float64]
    """(n,) NaN where not known."""
    name: NDArray[np.object_] | None = None
    """(n,) names of the streets as text, empty where a street has none; None if the map has no names."""

    def __post_init__(self) -> None:
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.lon):
            raise InputError("A road map's offsets must start at 0 and end at the number of vertices.")
        if (np.diff(self.offsets) < 2).any():
            raise InputError("Each road needs at least two vertices.")
        for column in (self.road_class, self.oneway, self.maxspeed_kmh, self.name):
            if column is not None and len(column) != len(self.offsets) - 1:
                raise InputError("A road map needs one class, direction, speed and name for each road.")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"RoadMap({len(self)} roads)"


def roads_digest(roads: RoadMap) -> str:
    """SHA-256 over the columns: equal for equal maps from different files; the key of cached road networks.

    Names are left out: no network depends on them.

    Privacy: free (the map is public).
    """
    columns = (
        (roads.offsets, "<i8"), (roads.lon, "<f8"), (roads.lat, "<f8"),
        (roads.road_class, "i1"), (roads.oneway, "i1"), (roads.maxspeed_kmh, "<f8"),
    )  # fmt: skip
    digest = hashlib.sha256(b"wayveil roads 1")
    for column, kind in columns:
        values = np.ascontiguousarray(column, dtype=kind)
        digest.update(len(values).to_bytes(8, "little"))
        digest.update(values.tobytes())
    return digest.hexdigest()


def check_inside(roads: RoadMap, scope: Scope) -> None:
    """Raise InputError if no road lies inside the scope, as with the map of another city.

    Privacy: free (the map is public).
    """
    if len(clip_roads(roads, scope)) == 0:
        raise InputError("No road of the map lies inside the scope; give the map of the same city, or none.")


def clip_roads(roads: RoadMap, scope: Scope) -> RoadMap:
    """The parts of the roads inside the scope's box, cut at its border; a road that leaves and returns becomes two.

    Privacy: free (the map is public).
    """
    x, y = scope.to_metres(roads.lon, roads.lat)
    inside = (x >= 0) & (x <= scope.width_m) & (y >= 0) & (y <= scope.height_m)
    if inside.all():
        return roads
    owner = ragged.owners(np.diff(roads.offsets))
    first = np.flatnonzero(owner[1:] == owner[:-1])  # segment k goes from vertex first[k] to first[k] + 1
    enter, leave = _inside_share(x[first], y[first], x[first + 1], y[first + 1], scope.width_m, scope.height_m)
    keep = leave > enter
    first, enter, leave = first[keep], enter[keep], leave[keep]
    if len(first) == 0:
        return _take(roads, np.zeros(0, np.int64), np.zeros(1, np.int64), np.empty(0), np.empty(0))
    joined = (first[1:] == first[:-1] + 1) & (owner[first[1:]] == owner[first[:-1]])
    joined &= (leave[:-1] == 1.0) & (enter[1:] == 0.0)
    begins = np.r_[True, ~joined]
    # The vertices of a run of joined segments are the start of the first segment and the end of each.
    run = np.cumsum(begins) - 1
    place = np.arange(len(first)) + run
    vertices = len(first) + run[-1] + 1
    lon, lat = np.empty(vertices), np.empty(vertices)
    for share, at, which in ((enter[begins], place[begins], first[begins]), (leave, place + 1, first)):
        for out, column in ((lon, roads.lon), (lat, roads.lat)):
            a, b = column[which], column[which + 1]
            step = (b - a + 180.0) % 360.0 - 180.0  # the short way round at the antimeridian; latitudes differ less
            moved = np.where(share == 0.0, a, np.where(share == 1.0, b, a + share * step))
            out[at] = np.where(np.abs(moved) > 180.0, moved - np.sign(moved) * 360.0, moved)
    offsets = np.r_[place[begins], vertices]
    return _take(roads, owner[first[begins]], offsets, lon, lat)


def _take(
    roads: RoadMap,
    which: NDArray[np.int64],
    offsets: NDArray[np.int64],
    lon: NDArray[np.float64],
    lat: NDArray[np.float64],
) -> RoadMap:
    name = None if roads.name is None else roads.name[which]
    return RoadMap(offsets, lon, lat, roads.road_class[which], roads.oneway[which], roads.maxspeed_kmh[which], name)


def _inside_share(
    x0: NDArray[np.float64],
    y0: NDArray[np.float64],
    x1: NDArray[np.float64],
    y1: NDArray[np.float64],
    width_m: float,
    height_m: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of each segment at which it enters and leaves the box [0, width] × [0, height] (Liang and Barsky)."""
    enter, leave = np.zeros(len(x0)), np.ones(len(x0))
    for start, step, extent in ((x0, x1 - x0, width_m), (y0, y1 - y0, height_m)):
        for p, q in ((-step, start), (step, extent - start)):
            with np.errstate(divide="ignore", invalid="ignore"):
                r = q / p
            enter = np.where(p < 0, np.maximum(enter, r), enter)
            leave = np.where(p > 0, np.minimum(leave, r), leave)
            leave = np.where((p == 0) & (q < 0), -1.0, leave)
    return enter, leave

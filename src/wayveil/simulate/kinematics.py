"""Speeds along a route: limits, corners, red lights, and bounded acceleration between them."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import ROAD_CLASSES
from wayveil.simulate.drive import SHORTEST_M, Drives, limit_mps, traffic_share
from wayveil.simulate.routes import Router, free_speed_mps

_PIECE_M = 20.0
"""Longest piece of a route with one speed at each end."""
_ACCELERATION, _BRAKING, _LATERAL = 1.5, 2.0, 2.0
"""Accelerations that drivers use in towns, in m/s²."""
_CORNER_M = 10.0
"""Distance from a corner at which a turn begins; with the lateral acceleration it gives 16 km/h at a right angle."""
_LIGHT_CHANCE, _RED_S = 0.3, (5.0, 45.0)
"""Chance of a red light at a junction of main roads, and how long it lasts."""
_SLOWEST_MPS = 0.5
"""Minimum mean speed on a piece, so that the time for one between two stops is finite."""


def move(
    router: Router,
    offsets: NDArray[np.int64],
    arcs: NDArray[np.int64],
    depart_hour: NDArray[np.float64],
    rng: np.random.Generator,
) -> Drives:
    """Positions and times along each route, like `drive`, with a speed that changes continuously.

    v² ≤ v_j² + 2·a·|s − s_j| for every place j with a speed limit v_j: two running minima over all trips at once. A
    trip begins and ends at rest, so nothing passes from one trip to the next.
    """
    streets, n = router.city.streets, len(offsets) - 1
    trip, edge, back = ragged.owners(np.diff(offsets)), router.arcs.edge[arcs], router.arcs.back[arcs]
    good = np.bincount(trip, streets.length_m[edge], n) >= SHORTEST_M
    kept = good[trip]
    trip, edge, back = trip[kept], edge[kept], back[kept]
    if len(trip) == 0:
        return Drives(np.zeros(n + 1, np.int64), np.zeros((0, 2)), np.zeros(0))
    mps = free_speed_mps(streets)[edge] * traffic_share(depart_hour, streets.road_class[edge], trip)
    mps *= np.clip(rng.normal(0.98, 0.09, n), 0.75, 1.08)[trip] * np.clip(rng.normal(1, 0.12, len(edge)), 0.6, 1.15)
    mps = np.minimum(mps, 0.9 * limit_mps(streets, edge))
    main = streets.road_class[edge] <= ROAD_CLASSES.index("tertiary")
    red = main & (streets.road_class[edge] > 0) & (rng.random(len(edge)) < _LIGHT_CHANCE)

    # Vertices of the routes: all of the first arc, and of later arcs all but the first, which they share.
    count = np.diff(streets.offsets)[edge]
    arc, k = ragged.owners(count), ragged.ranks(count)
    first_arc = np.r_[True, trip[1:] != trip[:-1]]
    kept = (k > 0) | first_arc[arc]
    last = kept & (k == count[arc] - 1)
    vertex = np.where(back[arc], streets.offsets[edge[arc] + 1] - 1 - k, streets.offsets[edge[arc]] + k)[kept]
    arc, stops = arc[kept], (red[arc] & last)[kept]
    xy, owner = streets.xy[vertex], trip[arc]

    cap_mps = np.minimum(mps[arc], _corner_mps(xy, owner))
    cap_mps[1:] = np.minimum(cap_mps[1:], np.where(owner[1:] == owner[:-1], mps[arc[1:]], np.inf))
    ends = np.r_[True, owner[1:] != owner[:-1]] | np.r_[owner[1:] != owner[:-1], True]
    cap_mps[ends | stops] = 0.0
    stops &= ~ends
    xy, cap_mps, owner, stops = _cut(xy, cap_mps, mps[arc], owner, stops)
    return _timed(xy, cap_mps, owner, np.where(stops, rng.uniform(*_RED_S, len(stops)), 0.0), n)


def _corner_mps(xy: NDArray[np.float64], owner: NDArray[np.int64]) -> NDArray[np.float64]:
    """The speed at which the turn at each vertex has the lateral acceleration `_LATERAL`; infinite at the ends."""
    speed = np.full(len(xy), np.inf)
    step = np.diff(xy, axis=0)
    heading = np.arctan2(step[:, 1], step[:, 0])
    turn = np.abs((np.diff(heading) + np.pi) % (2 * np.pi) - np.pi)
    inner = owner[2:] == owner[:-2]
    radius_m = _CORNER_M / np.maximum(np.tan(turn / 2), 1e-6)
    speed[1:-1][inner] = np.sqrt(_LATERAL * np.maximum(radius_m, 0.0))[inner]
    return speed


def _cut(
    xy: NDArray[np.float64],
    cap_mps: NDArray[np.float64],
    mps: NDArray[np.float64],
    owner: NDArray[np.int64],
    stops: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """The columns with a vertex at least every `_PIECE_M`; `mps` is the speed on the piece that ends at a vertex."""
    step = np.diff(xy, axis=0, prepend=xy[:1])
    step[np.r_[True, owner[1:] != owner[:-1]]] = 0.0
    pieces = np.maximum(np.ceil(np.hypot(*step.T) / _PIECE_M), 1).astype(np.int64)
    whole, rank = ragged.owners(pieces), ragged.ranks(pieces)
    left = 1 - (rank + 1) / pieces[whole]
    at_vertex = left < 1e-9
    return (
        xy[whole] - left[:, None] * step[whole],
        np.where(at_vertex, cap_mps[whole], mps[whole]),
        owner[whole],
        at_vertex & stops[whole],
    )


def _timed(
    xy: NDArray[np.float64], cap_mps: NDArray[np.float64], owner: NDArray[np.int64], wait_s: NDArray[np.float64], n: int
) -> Drives:
    new_trip = np.r_[True, owner[1:] != owner[:-1]]
    step = np.hypot(*np.diff(xy, axis=0, prepend=xy[:1]).T)
    step[new_trip] = 0.0
    along_m = np.cumsum(step)
    squared = np.minimum.accumulate(cap_mps**2 - 2 * _ACCELERATION * along_m) + 2 * _ACCELERATION * along_m
    squared = np.minimum.accumulate((squared + 2 * _BRAKING * along_m)[::-1])[::-1] - 2 * _BRAKING * along_m
    speed = np.sqrt(np.maximum(squared, 0.0))
    seconds = step / np.maximum((speed + np.r_[0.0, speed[:-1]]) / 2, _SLOWEST_MPS)
    # The vertex of a stop occurs twice: on arrival and on departure.
    times = 1 + (wait_s > 0)
    source, again = ragged.owners(times), ragged.ranks(times) == 1
    seconds = np.where(again, wait_s[source], seconds[source])
    corners = ragged.offsets_of(np.bincount(owner[source], minlength=n))
    total = np.cumsum(seconds)
    before = np.r_[0.0, total][corners[:-1]]
    return Drives(corners, xy[source], total - np.repeat(before, np.diff(corners)))

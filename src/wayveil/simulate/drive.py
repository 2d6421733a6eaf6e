"""From routes to GPS points: speeds, waiting at junctions, irregular sampling, noise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import ROAD_CLASSES
from wayveil.simulate.routes import Router, free_speed_mps
from wayveil.simulate.streets import LIMIT_KMH, Streets

SHORTEST_M = 400.0
"""Shortest route of a trip."""
LONGEST_S = 5000.0
"""Longest duration of a trip; below `people._LOOKAHEAD_S`, the time for which a route avoids areas that will close."""
# The numbers below are invented, in the range of phones and taxis.
MOST_POINTS = 400
"""Maximum number of points of a trajectory."""
_INTERVALS_S, _INTERVAL_SHARES = (8.0, 20.0, 40.0, 60.0), (0.07, 0.28, 0.38, 0.27)
"""Sampling intervals, and their shares of the trips."""
_KNOT_S = 25.0
"""Seconds between two independent GPS errors."""
_NOISE_M, _MOST_NOISE_M = 3.5, 11.0
"""Standard deviation and limit of GPS errors."""

Fixes = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""Offsets, x, y and seconds after departure of the recorded points of several trips."""


@dataclass(frozen=True, eq=False)
class Drives:
    """The time and position of each trip at the corners of its route; positions are linear in between."""

    offsets: NDArray[np.int64]
    """Corners of each trip; rejected trips have none."""
    xy: NDArray[np.float64]
    at_s: NDArray[np.float64]
    """Seconds after the departure."""

    @property
    def duration_s(self) -> NDArray[np.float64]:
        """Duration of each trip, 0 for a rejected one."""
        last = np.maximum(self.offsets[1:] - 1, 0)
        return np.where(np.diff(self.offsets) > 0, self.at_s[last] if len(self.at_s) else 0.0, 0.0)


def drive(
    router: Router,
    offsets: NDArray[np.int64],
    arcs: NDArray[np.int64],
    depart_hour: NDArray[np.float64],
    rng: np.random.Generator,
) -> Drives:
    """Corners of each route and the times at which a trip passes them; short and empty routes are rejected."""
    streets = router.city.streets
    n = len(offsets) - 1
    trip = ragged.owners(np.diff(offsets))
    edge, back = router.arcs.edge[arcs], router.arcs.back[arcs]
    length = np.bincount(trip, streets.length_m[edge], n)
    good = length >= SHORTEST_M
    mask = good[trip]
    trip, edge, back = trip[mask], edge[mask], back[mask]

    mps = free_speed_mps(streets)[edge] * traffic_share(depart_hour, streets.road_class[edge], trip)
    mps *= np.clip(rng.normal(0.98, 0.09, n), 0.75, 1.08)[trip] * np.clip(rng.normal(1, 0.12, len(edge)), 0.6, 1.15)
    mps = np.minimum(mps, 0.93 * limit_mps(streets, edge))
    # Waiting: at a quarter of the junctions of main roads, and for two seconds elsewhere.
    main = streets.road_class[edge] <= ROAD_CLASSES.index("tertiary")
    wait = np.where(main & (rng.random(len(edge)) < 0.25), rng.gamma(2.0, 9.0, len(edge)), 2.0)
    wait[streets.road_class[edge] == 0] = 0.0

    # Every arc adds its vertices except the first, and its last vertex again after the wait.
    count = np.diff(streets.offsets)[edge]
    arc, k = ragged.owners(count), ragged.ranks(count)
    vertex = np.where(back[arc], streets.offsets[edge[arc] + 1] - 1 - k, streets.offsets[edge[arc]] + k)
    xy = streets.xy[vertex]
    step = np.hypot(*np.diff(xy, axis=0, prepend=xy[:1]).T)
    seconds = np.where(k == 0, 0.0, step / mps[arc])
    first_arc = np.r_[True, trip[1:] != trip[:-1]] if len(trip) else np.zeros(0, bool)
    # vertex 0 of a later arc is the last one of the previous arc, where the trip waits
    seconds = np.where((k == 0) & ~first_arc[arc], np.r_[0.0, wait[:-1]][arc] if len(wait) else 0.0, seconds)
    owner = trip[arc]
    corners = ragged.offsets_of(np.bincount(owner, minlength=n))
    total = np.cumsum(seconds)
    at_s = total - np.repeat(np.r_[0.0, total][corners[:-1]] if len(total) else np.zeros(n), np.diff(corners))
    return Drives(corners, xy, at_s)


def limit_mps(streets: Streets, edge: NDArray[np.int64]) -> NDArray[np.float64]:
    """Speed limit of each edge."""
    by_class = np.array([LIMIT_KMH.get(name, 30.0) for name in ROAD_CLASSES]) / 3.6
    limit: NDArray[np.float64] = by_class[streets.road_class[edge]]
    return limit


def traffic_share(
    hour: NDArray[np.float64], road_class: NDArray[np.int8], trip: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Share of the free-flow speed by hour: rush hours slow down main roads most."""
    rush = np.exp(-(((hour - 8.2) / 1.1) ** 2)) + np.exp(-(((hour - 17.8) / 1.5) ** 2))
    loss = np.where(road_class <= ROAD_CLASSES.index("secondary"), 0.42, 0.2)
    return 1.0 - rush[trip] * loss


def sample(drives: Drives, which: NDArray[np.int64], rng: np.random.Generator, dense: bool = False) -> Fixes:
    """The GPS points of the trips `which`, at whole seconds.

    With `dense`, points are about ten seconds apart instead of at the device's own interval.
    """
    begin = drives.at_s[drives.offsets[which]]
    duration = drives.duration_s[which]
    # Devices are switched on a little after the start and off a little before the end of the route.
    start = begin + np.floor(rng.uniform(0, 6, len(which)))
    stop = np.maximum(duration - rng.uniform(0, 6, len(which)), start + 30)
    interval = rng.choice(_INTERVALS_S, len(which), p=_INTERVAL_SHARES) * np.exp(rng.normal(0, 0.1, len(which)))
    interval = np.maximum(interval, (stop - start) / (MOST_POINTS - 20))
    if dense:
        interval = np.maximum(8.0, (stop - start) / (MOST_POINTS - 20))
    most_fixes = np.ceil((stop - start) / interval * 1.6).astype(int) + 3
    owner = ragged.owners(most_fixes)
    gap = np.exp(rng.normal(0, 0.02 if dense else 0.22, len(owner)))
    if not dense:
        gap *= np.where(rng.random(len(owner)) < 0.03, rng.uniform(1.5, 3.5, len(owner)), 1.0)  # lost fixes
    gap = np.maximum(np.floor(gap * interval[owner]), 1.0)
    first = ragged.offsets_of(most_fixes)
    elapsed_s = np.cumsum(gap) - gap
    at = start[owner] + elapsed_s - np.repeat(elapsed_s[first[:-1]], most_fixes)
    keep = at <= stop[owner]
    # Add a last fix at the end, unless there is one.
    ends = np.floor(stop)
    at, owner = np.r_[at[keep], ends], np.r_[owner[keep], np.arange(len(which))]
    order = np.lexsort((at, owner))
    at, owner = at[order], owner[order]
    fresh = np.r_[True, (owner[1:] != owner[:-1]) | (at[1:] > at[:-1])]
    at, owner = at[fresh], owner[fresh]
    offsets = ragged.offsets_of(np.bincount(owner, minlength=len(which)))
    x, y = positions(drives, which, owner, at)
    noise = drift(owner, at, len(which), rng)
    return offsets, x + noise[0], y + noise[1], at


def positions(
    drives: Drives, which: NDArray[np.int64], owner: NDArray[np.int64], at: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions (x, y) at the given seconds after departure; `owner` is a position in `which`."""
    # One interpolation for all trips: each trip has its own interval on a common time axis.
    offsets, corner = ragged.take(drives.offsets, which)
    stretch = 4 * LONGEST_S
    clock = drives.at_s[corner] + ragged.owners(np.diff(offsets)) * stretch
    # numpy.interp needs sorted times; waits of zero seconds repeat a time, which is harmless.
    now = np.clip(at, 0, drives.duration_s[which][owner]) + owner * stretch
    return np.interp(now, clock, drives.xy[corner, 0]), np.interp(now, clock, drives.xy[corner, 1])


def drift(
    owner: NDArray[np.int64], at: NDArray[np.float64], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Drifting GPS error: normal at knots every 25 s, linear in between, clipped to a street's width."""
    sigma = _NOISE_M * np.exp(rng.normal(-0.1, 0.35, n))
    knot = np.floor(at / _KNOT_S).astype(np.int64)
    share = at / _KNOT_S - knot
    first = np.zeros(n, np.int64)
    last = np.zeros(n, np.int64)
    np.maximum.at(last, owner, knot + 2)
    place = ragged.offsets_of(last - first)
    result = []
    for _ in range(2):
        values = rng.normal(size=place[-1] + 1)
        at_knot = place[owner] + knot
        error = values[at_knot] * (1 - share) + values[at_knot + 1] * share
        result.append(np.clip(sigma[owner] * error, -_MOST_NOISE_M, _MOST_NOISE_M))
    return result[0], result[1]

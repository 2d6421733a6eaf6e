"""Simulated traffic: trips between hot spots on perturbed shortest paths, sampled as GPS devices do.

A tree of shortest paths from one root serves many trips, because a part of a shortest path is a shortest path: the
destination is a node of the tree, the origin one of its ancestors, both drawn by how attractive they are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra
from streets import LOCAL, Array, Streets

_SPEED_MPS = np.array([24.0, 13.0, 7.5])
MOST_POINTS_EACH = 500


@dataclass(frozen=True, eq=False)
class Trips:
    """Polylines of trips with the time at each vertex; trip k owns `offsets[k]:offsets[k + 1]`."""

    offsets: NDArray[np.int64]
    xy: Array
    t_s: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def duration_s(self) -> Array:
        return self.t_s[self.offsets[1:] - 1]


@dataclass(frozen=True, eq=False)
class Points:
    """Sampled positions: point i belongs to trip `trip[i]`; points of a trip are in order of time."""

    trip: NDArray[np.int64]
    xy: Array


def attraction(streets: Streets, random: np.random.Generator) -> Array:
    """How strongly each junction draws trip ends: heavy-tailed hot spots over a background."""
    xy = streets.xy
    spots = int(random.integers(3, 80))
    place = xy[random.integers(0, len(xy), spots)]
    pull = streets.centres[random.integers(0, len(streets.centres), spots)]
    place = place + random.uniform(0, 0.8, (spots, 1)) * (pull - place)
    size = random.pareto(random.uniform(0.8, 2.0), spots) + 0.1
    reach = np.exp(random.uniform(np.log(0.004), np.log(0.12), spots)) * streets.radius_m
    heat = np.zeros(len(xy))
    for where, weight, width in zip(place, size, reach):
        near = np.exp(-0.5 * ((xy - where) ** 2).sum(axis=1) / width**2)
        heat += weight * near / max(near.sum(), 1e-9)
    share = random.uniform(0.15, 0.95)
    uneven = random.gamma(random.uniform(0.3, 3.0), size=len(xy))
    return (share * heat / heat.sum() + (1 - share) / len(xy)) * uneven


def at_few_places(heat: Array, random: np.random.Generator) -> Array:
    """Single junctions of any class that draw a large part of the trips: stations, halls, car parks, large houses."""
    chosen = random.integers(0, len(heat), int(np.exp(random.uniform(np.log(10), np.log(400)))))
    spikes = np.bincount(chosen, random.pareto(random.uniform(0.9, 2.0), len(chosen)) + 0.1, minlength=len(heat))
    share = random.uniform(0.1, 0.7)
    return share * spikes / spikes.sum() + (1 - share) * heat / heat.sum()


def route_trips(streets: Streets, heat: Array, count: int, random: np.random.Generator, untidy: bool = False) -> Trips:
    """`count` trips on shortest paths of randomly perturbed travel times, with congestion that stays where it is.

    `untidy` trips end at places beside the streets and are in some cities partly made on foot.
    """
    roots = int(np.clip(count / 50, 20, 130))
    slow = np.exp(random.normal(0, random.uniform(0.1, 0.6), len(streets.edges)))
    faster = random.uniform(0.0, 1.6)
    seconds = streets.length_m / (_SPEED_MPS[streets.road_class] / _SPEED_MPS[LOCAL]) ** faster / _SPEED_MPS[LOCAL]
    u, v = streets.edges.T
    size = len(streets.xy)
    ends = np.r_[u, v], np.r_[v, u]
    spread = np.exp(random.uniform(np.log(0.05), np.log(0.8)))
    wander = np.exp(random.uniform(np.log(0.08), np.log(1.5))) * streets.radius_m
    far = random.uniform(0.5, 3.0)
    pieces = []
    chosen = random.choice(size, roots, p=_mixed(heat, 0.5))
    for root in chosen.tolist():
        cost = seconds * slow**0.5 * np.exp(random.normal(0, spread, len(seconds)))
        graph = csr_matrix((np.r_[cost, cost], ends), shape=(size, size))
        _, before = dijkstra(graph, indices=root, return_predecessors=True)
        pieces.append(_sub_paths(before, streets.xy, heat, wander, far, count // roots + 1, random))
    length = np.concatenate([piece[0] for piece in pieces])
    nodes = np.concatenate([piece[1] for piece in pieces])
    offsets = np.r_[0, np.cumsum(length)]
    return _timed(streets, slow, seconds, offsets, nodes, random, untidy)


def _sub_paths(before, xy, heat, wander, far, count, random) -> tuple[NDArray, NDArray]:
    """Lengths and nodes of trips on one tree, each from an ancestor to a node."""
    reachable = np.flatnonzero(before >= 0)
    if len(reachable) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    last = random.choice(reachable, count, p=heat[reachable] / heat[reachable].sum())
    chain, node = [last], last
    while (before[node] >= 0).any() and len(chain) < 1500:
        node = np.where(before[node] >= 0, before[node], node)
        chain.append(node)
    chain = np.stack(chain, axis=1)
    moved = np.hypot(*(xy[chain] - xy[last][:, None]).transpose(2, 0, 1))
    at_root = np.r_[np.zeros((1, count), bool), (chain[:, 1:] == chain[:, :-1]).T].T
    score = np.log(heat[chain] + 1e-300) - moved / (wander * random.pareto(2.0, (count, 1)) + 0.3 * wander)
    score = score + far * np.log(moved + 0.1 * wander) + random.gumbel(size=chain.shape)
    score[at_root] = -np.inf
    score[:, 0] = -np.inf
    first = score.argmax(axis=1)
    first = np.maximum(first, 1)
    backwards = random.random(count) < 0.5
    length = first + 1
    step = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    row = np.repeat(np.arange(count), length)
    position = np.where(backwards[row], step, first[row] - step)
    return length, chain[row, position]


def _timed(streets, slow, seconds, offsets, nodes, random, untidy) -> Trips:
    """Travel times along the chains, waiting at junctions, and ends that lie off the road and last for a while."""
    count = len(offsets) - 1
    trip = np.repeat(np.arange(count), np.diff(offsets))
    xy = _off_road(streets.xy[nodes], offsets, trip, random)
    size = len(streets.xy)
    key = np.minimum(*streets.edges.T) * size + np.maximum(*streets.edges.T)
    order = np.argsort(key)
    a, b = nodes[:-1], nodes[1:]
    wanted = np.minimum(a, b) * size + np.maximum(a, b)
    found = order[np.clip(np.searchsorted(key[order], wanted), 0, len(key) - 1)]
    pace = np.exp(random.normal(0, 0.25, count)) * (5.0 if streets.kind == "campus" else 1.0)
    if untidy:
        walks = random.random(count) < random.choice([0.0, 0.0, random.uniform(0, 1)])
        aside = random.uniform(5, 40) * (0.4 if streets.kind == "campus" else 1.0)
        xy = xy + np.where(walks[trip], aside, 0.0)[:, None] * random.normal(size=xy.shape)  # paths, yards, squares
        pace = np.where(walks, 5.0 * np.exp(random.normal(0, 0.15, count)), pace)
    dt = np.r_[0.0, (seconds * slow)[found]] * pace[trip]
    wait = random.random(size) < random.uniform(0, 0.3)
    dt += np.where(wait[nodes] & (random.random(len(nodes)) < 0.5), random.exponential(25.0, len(nodes)), 0.0)
    first = offsets[:-1]
    dt[first] = 0.0
    off_road = random.uniform(0, 70) * (0.4 if streets.kind == "campus" else 1.0)
    if untidy:
        places = _places(streets, random)
        head, tail = (_way_to_a_place(places, nodes[ends], streets, random) for ends in (first, offsets[1:] - 1))
    else:
        head, tail = (random.normal(0, off_road, (count, 2)) for _ in range(2))
    stay = random.random() < 0.5
    rest = [random.exponential(random.uniform(30, 600), count) * (random.random(count) < 0.5) * stay for _ in range(2)]
    # Two more vertices on each side: where the stay begins, and where the way to the road begins.
    at = np.r_[offsets[1:], offsets[1:], first, first]  # a tail goes in before the next trip's head
    begin, end = xy[first] + head, xy[offsets[1:] - 1] + tail
    walk = np.hypot(*head.T) / 3 + 1, np.hypot(*tail.T) / 3 + 1
    added_xy = np.concatenate([end, end, begin, begin])
    dt[first] = walk[0]
    added_dt = np.concatenate([walk[1], rest[1], np.zeros(count), rest[0]])
    xy, dt = np.insert(xy, at, added_xy, axis=0), np.insert(dt, at, added_dt)
    offsets = offsets + 4 * np.arange(count + 1)
    total = np.cumsum(dt)
    start = np.repeat(total[offsets[:-1]], np.diff(offsets))
    return Trips(offsets, xy, total - start)


def _places(streets: Streets, random: np.random.Generator, each: int = 3) -> Array:
    """(each, junctions, 2): points of interest 10 to 80 m beside a street at the junction, whatever its class."""
    scale = 0.4 if streets.kind == "campus" else 1.0
    u, v = streets.edges.T
    places = []
    for _ in range(each):
        order = random.permutation(len(u))
        other = np.arange(len(streets.xy))
        other[u[order]], other[v[order]] = v[order], u[order]  # of several streets the last one counts
        along = (streets.xy[other] - streets.xy) * random.uniform(0, 0.6, (len(other), 1))
        across = along[:, ::-1] * [1, -1] / np.maximum(np.hypot(*along.T), 1.0)[:, None]
        aside = random.uniform(10, 80, len(other)) * random.choice([-1, 1], len(other)) * scale
        places.append(streets.xy + along + across * aside[:, None])
    return np.stack(places)


def _way_to_a_place(places: Array, node: NDArray, streets: Streets, random: np.random.Generator) -> Array:
    """From each trip's last junction to one of its places; the first of them draws the most."""
    which = np.minimum(random.geometric(random.uniform(0.4, 0.9), len(node)) - 1, len(places) - 1)
    entrance = random.normal(0, random.uniform(2, 25), (len(node), 2))
    return places[which, node] - streets.xy[node] + entrance


def _off_road(xy: Array, offsets: NDArray, trip: NDArray, random: np.random.Generator) -> Array:
    """In some cities part of the trips leave the streets (on foot, by rail): a bent line between the same ends."""
    count = len(offsets) - 1
    if random.random() < 0.65:
        return xy
    leaves = random.random(count) < random.uniform(0, 0.5)
    done = (np.arange(len(xy)) - offsets[trip]) / np.maximum(np.diff(offsets)[trip] - 1, 1)
    begin, end = xy[offsets[:-1]], xy[offsets[1:] - 1]
    sideways = (end - begin)[:, ::-1] * [1, -1] * random.normal(0, 0.12, (count, 1))
    bent = begin[trip] + done[:, None] * (end - begin)[trip] + np.sin(np.pi * done)[:, None] * sideways[trip]
    return np.where(leaves[trip][:, None], bent, xy)


def sample_points(
    trips: Trips, chosen: NDArray[np.int64], interval_s: float, noise_m: float, random: np.random.Generator
) -> Points:
    """GPS fixes of the chosen trips every `interval_s` seconds, first and last position included."""
    duration = trips.duration_s[chosen]
    each = np.clip(np.ceil(duration / interval_s), 1, MOST_POINTS_EACH - 1).astype(np.int64) + 1
    trip = np.repeat(np.arange(len(chosen)), each)
    step = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
    gap = np.minimum(interval_s * np.exp(random.normal(0, 0.05, len(chosen))), duration / np.maximum(each - 1, 1))
    shift = random.uniform(0, 1, len(chosen))
    when = (step + np.where((step > 0) & (step < (each - 1)[trip]), shift[trip] - 0.5, 0.0)) * gap[trip]
    when = np.clip(np.where(step == (each - 1)[trip], duration[trip], when), 0.0, duration[trip])
    return _fixes(trips, trip, chosen[trip], when, noise_m, random)


def sample_hours(
    trips: Trips, day: NDArray[np.int64], count: int, window_s: float, interval_s: float, noise_m: float,
    random: np.random.Generator,
) -> Points:  # fmt: skip
    """Windows cut out of vehicles that make the trips of `day` one after the other: they begin and end anywhere."""
    begin = np.r_[0.0, np.cumsum(trips.duration_s[day])]
    window = np.minimum(window_s * np.exp(random.normal(0, 0.1, count)), 0.9 * begin[-1])
    start = random.uniform(0, 1, count) * (begin[-1] - window)
    each = np.clip(window / interval_s, 1, MOST_POINTS_EACH - 1).astype(np.int64) + 1
    trip = np.repeat(np.arange(count), each)
    step = np.arange(len(trip)) - np.repeat(np.cumsum(each) - each, each)
    when = start[trip] + (step + random.uniform(0, 0.9, len(trip))) * (window / each)[trip]
    leg = np.clip(np.searchsorted(begin, when, side="right") - 1, 0, len(day) - 1)
    return _fixes(trips, trip, day[leg], when - begin[leg], noise_m, random)


def _fixes(
    trips: Trips, trip: NDArray[np.int64], route: NDArray[np.int64], when: Array, noise_m: float,
    random: np.random.Generator,
) -> Points:  # fmt: skip
    """Positions on the routes at the given seconds, with the errors of GPS devices."""
    span = trips.duration_s.max() + 10.0
    axis = trips.t_s + np.repeat(np.arange(len(trips)) * span, np.diff(trips.offsets))
    clock = when + route * span
    xy = np.stack([np.interp(clock, axis, trips.xy[:, i]) for i in range(2)], axis=1)
    lane = random.normal(0, 0.5 * noise_m, (int(trip.max(initial=0)) + 1, 2))  # errors of one device hang together
    wild = np.zeros(len(xy))
    if random.random() < 0.3:  # reflections: a few fixes lie far off
        wild = np.where(random.random(len(xy)) < random.uniform(0, 0.06), random.uniform(50, 600), 0.0)
    error = random.normal(0, 1, xy.shape) * (noise_m + wild)[:, None]
    return Points(trip, xy + error + lane[trip])


def _mixed(weight: Array, share: float) -> Array:
    return share * weight / weight.sum() + (1 - share) / len(weight)

"""Which links a trip uses: points are matched to the nearest link and joined by shortest paths on the network.

A step between two points is matched if both lie close to a link and the shortest path between them is not much longer
than the straight line. Other steps are gaps: they add to no link, and their share of the distance is reported.

Privacy: free (post-processing, if the trips are synthetic).
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.progress import Progress, quiet
from wayveil.traffic.links import Links

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class MatchSettings:
    """How points are matched."""

    reach_m: float = 60.0
    """Points further from every link are not matched: this exceeds the error of a typical GPS receiver in a city."""
    wrong_way_m: float = 10.0
    """A link across the direction of travel counts as this much further away, one against it as twice that."""
    detour: float = 1.6
    slack_m: float = 150.0
    """A path longer than `detour` times the straight line plus `slack_m` is rejected: a street is probably missing."""
    longest_m: float = 5_000.0
    """Longer steps are gaps: between points so far apart many paths are equally likely."""
    links_at_once: int = 64
    """Links from which shortest paths are searched at once; bounds memory."""
    tile_m: float = 1_000.0
    """Steps that start within a square of at least this side are searched together."""


SETTINGS = MatchSettings()


@dataclass(frozen=True, eq=False)
class Drives:
    """Distance and time of trips on links; one row for each step and link."""

    trip: Ints
    link: Ints
    forward: NDArray[np.bool_]
    """Whether it was driven from the first to the last vertex of the link."""
    distance_m: Floats
    duration_s: Floats
    t_utc: Floats
    """Time at which the step began."""
    matched_share: float
    """Share of the straight-line distance of all steps that was matched."""


@dataclass(frozen=True, eq=False)
class _OnLinks:
    """The link of each point (-1: none) and its distance along it."""

    link: Ints
    along_m: Floats


def match_trips(
    links: Links, offsets: Ints, x_m: Floats, y_m: Floats, t_utc: Floats, progress: Progress = quiet
) -> Drives:
    """The links that trips use; positions are in metres of the scope."""
    owner = ragged.owners(np.diff(offsets))
    on = _nearest(links, owner, x_m, y_m)
    begin = np.flatnonzero(owner[1:] == owner[:-1])
    straight = np.hypot(x_m[begin + 1] - x_m[begin], y_m[begin + 1] - y_m[begin])
    moving = straight > 0.0
    begin, straight = begin[moving], straight[moving]
    usable = (on.link[begin] >= 0) & (on.link[begin + 1] >= 0) & (straight <= SETTINGS.longest_m)
    steps = begin[usable]
    step, link, forward, distance = _paths(links, on, steps, straight[usable], progress)
    whole = np.bincount(step, distance, minlength=max(len(x_m), 1))
    duration = (t_utc[step + 1] - t_utc[step]) * distance / np.maximum(whole[step], 1e-9)
    done = np.zeros(len(x_m), bool)
    done[step] = True
    share = float(straight[done[begin]].sum() / max(float(straight.sum()), 1e-9)) if len(begin) else 0.0
    return Drives(owner[step], link, forward, distance, duration, t_utc[step], share)


def _nearest(links: Links, owner: Ints, x_m: Floats, y_m: Floats) -> _OnLinks:
    """The link of each point: the nearest, with a penalty on links across or against the direction of travel."""
    import shapely

    count = len(x_m)
    best_link, best_along = np.full(count, -1, np.int64), np.zeros(count)
    if len(links) == 0 or count == 0:
        return _OnLinks(best_link, best_along)
    of_vertex = ragged.owners(np.diff(links.offsets))
    first = np.flatnonzero(of_vertex[1:] == of_vertex[:-1])
    ends = np.stack([np.c_[links.x_m[first], links.y_m[first]], np.c_[links.x_m[first + 1], links.y_m[first + 1]]], 1)
    tree = shapely.STRtree(shapely.linestrings(ends))
    along_of_vertex = links.along_m
    point = np.arange(count)
    same_before = np.r_[False, owner[1:] == owner[:-1]]
    before = np.where(same_before, point - 1, point)
    after = np.where(np.r_[same_before[1:], False], point + 1, point)
    travel = np.c_[x_m[after] - x_m[before], y_m[after] - y_m[before]]
    for start in range(0, count, 1 << 15):
        part = slice(start, min(start + (1 << 15), count))
        near, piece = tree.query(shapely.points(x_m[part], y_m[part]), predicate="dwithin", distance=SETTINGS.reach_m)
        near = near + start
        a, b = ends[piece, 0], ends[piece, 1]
        along = b - a
        length = np.maximum(np.hypot(*along.T), 1e-9)
        share = np.clip(((np.c_[x_m[near], y_m[near]] - a) * along).sum(axis=1) / length**2, 0.0, 1.0)
        foot = a + share[:, None] * along
        distance = np.hypot(x_m[near] - foot[:, 0], y_m[near] - foot[:, 1])
        speed = np.hypot(*travel[near].T)
        cosine = (travel[near] * along).sum(axis=1) / np.maximum(speed * length, 1e-9)
        link = of_vertex[first[piece]]
        turned = np.where(links.oneway[link], 1 - cosine, 1 - np.abs(cosine))
        cost = distance + SETTINGS.wrong_way_m * np.where(speed > 0, turned, 0.0)
        ranked = np.lexsort((link, cost, near))
        chosen = ranked[np.r_[True, near[ranked][1:] != near[ranked][:-1]]] if len(ranked) else ranked
        best_link[near[chosen]] = link[chosen]
        best_along[near[chosen]] = along_of_vertex[first[piece[chosen]]] + share[chosen] * length[chosen]
    return _OnLinks(best_link, best_along)


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps from a place on one link to a place on another."""

    number: Ints
    """Index of the point at which each begins."""
    here: Ints
    there: Ints
    at_m: Floats
    to_m: Floats
    limit_m: Floats
    """Longest path that is accepted."""

    def __len__(self) -> int:
        return len(self.number)

    def take(self, index: NDArray[np.generic]) -> "_Steps":
        """Some of them."""
        return _Steps(*(getattr(self, field.name)[index] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class _Network:
    """Links with their lengths, and the graph of their junctions."""

    links: Links
    length_m: Floats
    graph: Any
    """Sparse matrix of the metres from one junction to the next."""
    x_m: Floats
    y_m: Floats
    """Positions of the junctions."""
    code: Any
    """Sparse matrix of 1 + 2·link + (1 if against its direction), for the shortest link between two junctions."""

    @classmethod
    def of(cls, links: Links) -> "_Network":
        """The network of all links."""
        from scipy.sparse import csr_matrix

        length, both = links.length_m, ~links.oneway
        tail, head = np.r_[links.tail, links.head[both]], np.r_[links.head, links.tail[both]]
        code = np.r_[2 * np.arange(len(links)), 2 * np.flatnonzero(both) + 1]
        metres = np.maximum(np.r_[length, length[both]], 1e-3)
        order = np.lexsort((metres, head, tail))
        tail, head, code, metres = tail[order], head[order], code[order], metres[order]
        first = np.r_[True, (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])][: len(tail)]
        place, size = (tail[first], head[first]), (links.junctions, links.junctions)
        graph, codes = csr_matrix((metres[first], place), size), csr_matrix((code[first] + 1, place), size)
        x_m, y_m = np.zeros(links.junctions), np.zeros(links.junctions)
        for node, vertex in ((links.tail, links.offsets[:-1]), (links.head, links.offsets[1:] - 1)):
            x_m[node], y_m[node] = links.x_m[vertex], links.y_m[vertex]
        return cls(links, length, graph, x_m, y_m, codes)

    def around(self, nodes: Ints, margin_m: float) -> Ints:
        """Junctions in the bounding box of some junctions, with a margin."""
        inside = np.ones(len(self.x_m), bool)
        for at in (self.x_m, self.y_m):
            inside &= (at >= at[nodes].min() - margin_m) & (at <= at[nodes].max() + margin_m)
        return np.flatnonzero(inside)


Found = tuple[Ints, Ints, NDArray[np.bool_], Floats]
"""(step, link, forward, metres)."""


def _paths(links: Links, on: _OnLinks, number: Ints, straight: Floats, progress: Progress) -> Found:
    """All links on the path of each step that has one."""
    network = _Network.of(links)
    steps = _Steps(
        number, on.link[number], on.link[number + 1], on.along_m[number], on.along_m[number + 1],
        SETTINGS.detour * straight + SETTINGS.slack_m,
    )  # fmt: skip
    ahead = steps.to_m - steps.at_m
    direct = (steps.here == steps.there) & ((ahead >= 0) | ~links.oneway[steps.here])
    found = [(number[direct], steps.here[direct], ahead[direct] >= 0, np.abs(ahead[direct]))]
    rest = steps.take(~direct)
    done = 0
    for batch in _batches(network, rest):
        found.extend(_search(network, batch))
        done += len(batch)
        progress("matching trips to streets", done / len(rest))
    step, link, forward, metres = (np.concatenate(column) for column in zip(*found))
    keep = metres > 0
    return step[keep], link[keep], forward[keep], metres[keep]


def _batches(network: _Network, steps: _Steps) -> Iterator[_Steps]:
    """Runs of steps of similar length that start on few different links, close to each other.

    A search then needs a small part of the network, and steps from the same link share it.
    """
    if len(steps) == 0:
        return
    size = np.rint(np.log2(steps.limit_m))
    node = network.links.tail[steps.here]
    tile_m = np.maximum(2.0**size, SETTINGS.tile_m)
    column, row = (np.floor(at[node] / tile_m) for at in (network.x_m, network.y_m))
    order = np.lexsort((steps.here, column, row, size))
    steps, tile = steps.take(order), np.c_[size, row, column][order]
    moved = np.r_[True, (tile[1:] != tile[:-1]).any(axis=1)]
    other = np.cumsum(np.r_[True, steps.here[1:] != steps.here[:-1]])
    begin = np.flatnonzero(moved)
    run = (other - np.repeat(other[begin], np.diff(np.r_[begin, len(other)]))) // SETTINGS.links_at_once
    edges = np.flatnonzero(np.r_[moved | np.r_[False, run[1:] != run[:-1]], True])
    for first, last in pairwise(edges.tolist()):
        yield steps.take(np.arange(first, last))


def _search(network: _Network, steps: _Steps) -> list[Found]:
    """The paths of some steps: off the first link at one of its ends, and onto the last at one of its ends."""
    from scipy.sparse.csgraph import dijkstra

    links, length = network.links, network.length_m
    here, there = steps.here, steps.there
    # Junction and metres, with and against the direction of the link.
    out = (
        (links.head[here], length[here] - steps.at_m),
        (links.tail[here], np.where(links.oneway[here], np.inf, steps.at_m)),
    )
    into = (
        (links.tail[there], steps.to_m),
        (links.head[there], np.where(links.oneway[there], np.inf, length[there] - steps.to_m)),
    )
    limit = float(steps.limit_m.max())
    near = network.around(np.concatenate([out[0][0], out[1][0], into[0][0], into[1][0]]), limit)
    place = np.full(links.junctions, -1)
    place[near] = np.arange(len(near))
    sources, row = np.unique(place[np.r_[out[0][0], out[1][0]]], return_inverse=True)
    rows, ends = np.split(row, 2), [place[node] for node, _ in into]
    metres, previous = dijkstra(
        network.graph[near][:, near], indices=sources, limit=limit, return_predecessors=True
    )
    ways = [(k, j) for k in range(2) for j in range(2)]
    totals = np.stack([out[k][1] + metres[rows[k], ends[j]] + into[j][1] for k, j in ways])
    best, good = totals.argmin(axis=0), totals.min(axis=0) <= steps.limit_m
    found: list[Found] = []
    for number, (k, j) in enumerate(ways):
        taken = np.flatnonzero(good & (best == number))
        step, forward = steps.number[taken], np.ones(len(taken), bool)
        found.append((step, here[taken], forward & (k == 0), out[k][1][taken]))
        found.append((step, there[taken], forward & (j == 0), into[j][1][taken]))
        for at, before, after in _walk_back(previous, rows[k][taken], sources, ends[j][taken]):
            code = np.asarray(network.code[near[before], near[after]]).ravel().astype(np.int64) - 1
            found.append((step[at], code // 2, code % 2 == 0, length[code // 2]))
    return found


def _walk_back(
    previous: NDArray[np.int32], row: Ints, sources: Ints, node: Ints
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """(step, junction, next junction), from the last to the first, for all steps at once."""
    step = np.arange(len(row))
    while (going := node != sources[row]).any():
        row, node, step = row[going], node[going], step[going]
        before = previous[row, node].astype(np.int64)
        yield step, before, node
        node = before

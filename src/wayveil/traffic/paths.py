"""Shortest paths between places on links, for many short steps at once.

Privacy: free (post-processing, if the trips are synthetic).
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.progress import Progress
from wayveil.traffic.links import Links

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PathSettings:
    """How paths are searched, and how long they may be."""

    detour: float = 1.6
    """A path longer than this many times the straight line plus `slack_m` is rejected: a street is probably missing."""
    slack_m: float = 150.0
    """See `detour`."""
    first: tuple[tuple[float, float], ...] = ((1.15, 30.0), (1.35, 80.0))
    """Detours and slacks that are tried first: most shortest paths are within them, and the search is faster."""
    tile_m: float = 1_000.0
    """Steps that start within a square of at least this side are searched together."""
    labels_at_once: int = 1 << 22
    """Pairs of a step and a junction that are searched at once; bounds memory (20 bytes each)."""


SETTINGS = PathSettings()


@dataclass(frozen=True, eq=False)
class OnLinks:
    """The link of each point (-1: none), its distance along it, and the place on it."""

    link: Ints
    along_m: Floats
    place: Floats
    """(n, 2) metres of the scope."""


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps from a place on one link to a place on another."""

    point: Ints
    """Index of the point at which each begins."""
    from_link: Ints
    to_link: Ints
    from_m: Floats
    """Where it begins, as a distance along its first link."""
    to_m: Floats
    """Where it ends, as a distance along its last link."""
    goal: Floats
    """(n, 2) where it ends."""
    limit_m: Floats
    """Longest path that is accepted."""

    def __len__(self) -> int:
        return len(self.point)

    def take(self, index: NDArray[np.generic]) -> "_Steps":
        """Some of the steps."""
        return _Steps(*(getattr(self, field.name)[index] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class _Network:
    """The graph of the junctions; of several links between the same two, it keeps the shortest."""

    links: Links
    length_m: Floats
    """Length of each link."""
    place: Floats
    """(n, 2) positions of the junctions."""
    metres: Any
    """Sparse matrix of the metres from one junction to the next."""
    key: Ints
    """size·tail + head of each entry of the matrix, ascending."""
    code: Ints
    """2·link + (1 if against its direction) of each entry."""

    @classmethod
    def of(cls, links: Links) -> "_Network":
        """The network of all links."""
        from scipy.sparse import csr_matrix

        size, length, both = links.junctions, links.length_m, ~links.oneway
        tail, head = np.r_[links.tail, links.head[both]], np.r_[links.head, links.tail[both]]
        code = np.r_[2 * np.arange(len(links)), 2 * np.flatnonzero(both) + 1]
        metres = np.maximum(length[code // 2], 1e-3)
        order = np.lexsort((metres, head, tail))
        key = (size * tail + head)[order]
        order = order[np.r_[True, key[1:] != key[:-1]][: len(key)]]
        place = np.zeros((size, 2))
        for node, vertex in ((links.tail, links.offsets[:-1]), (links.head, links.offsets[1:] - 1)):
            place[node] = np.c_[links.x_m[vertex], links.y_m[vertex]]
        matrix = csr_matrix((metres[order], (tail[order], head[order])), (size, size))
        return cls(links, length, place, matrix, (size * tail + head)[order], code[order])

    def link_between(self, tail: Ints, head: Ints) -> Ints:
        """2·link + (1 if against its direction) between neighbouring junctions."""
        return self.code[np.searchsorted(self.key, len(self.place) * tail + head)]


@dataclass(frozen=True, eq=False)
class _Labels:
    """What is known of pairs of a step and a junction; allocated once, because that costs more than a search."""

    metres: Floats
    """Infinite between two searches."""
    previous: NDArray[np.int32]
    """The junction before; -1 and -2 mean the two ends of the first link."""
    slot: NDArray[np.int32]
    """Index of the edge that won, where several reach the same pair in one round."""

    @classmethod
    def of(cls, size: int) -> "_Labels":
        """Labels for this many pairs."""
        return cls(np.full(size, np.inf), np.zeros(size, np.int32), np.zeros(size, np.int32))


Found = tuple[Ints, Ints, NDArray[np.bool_], Floats]
"""(step, link, forward, metres)."""


def find_paths(links: Links, on: OnLinks, point: Ints, straight: Floats, progress: Progress) -> Found:
    """All links on the path of each step that has one."""
    network, labels = _Network.of(links), _Labels.of(max(SETTINGS.labels_at_once, links.junctions))
    rest = _Steps(
        point, on.link[point], on.link[point + 1], on.along_m[point], on.along_m[point + 1], on.place[point + 1],
        SETTINGS.detour * straight + SETTINGS.slack_m,
    )  # fmt: skip
    ahead = rest.to_m - rest.from_m
    direct = (rest.from_link == rest.to_link) & ((ahead >= 0) | ~links.oneway[rest.from_link])
    found = [(point[direct], rest.from_link[direct], ahead[direct] >= 0, np.abs(ahead[direct]))]
    rest, straight = rest.take(~direct), straight[~direct]
    limits = (*SETTINGS.first, (SETTINGS.detour, SETTINGS.slack_m))
    for stage, (detour, slack_m) in enumerate(limits):
        limited = replace(rest, limit_m=np.minimum(detour * straight + slack_m, rest.limit_m))
        missed, done = [np.zeros(0, np.int64)], 0
        for index, batch in _batches(network, limited):
            good = np.zeros(len(batch), bool)
            for part, paths in _search(network, batch, labels):
                found.extend(paths)
                good[part] = True
            missed.append(index[~good])
            done += len(batch)
            progress("matching trips to streets", (stage + done / len(limited)) / len(limits))
        again = np.concatenate(missed)
        rest, straight = rest.take(again), straight[again]
    step, link, forward, metres = (np.concatenate(column) for column in zip(*found))
    keep = metres > 0
    return step[keep], link[keep], forward[keep], metres[keep]


def _batches(network: _Network, steps: _Steps) -> Iterator[tuple[Ints, _Steps]]:
    """Steps of similar length from the same square, and their indices: a search then needs only part of the network."""
    if len(steps) == 0:
        return
    size = np.rint(np.log2(steps.limit_m))
    tile_m = np.maximum(2.0**size, SETTINGS.tile_m)
    tile = np.c_[size, np.floor(network.place[network.links.tail[steps.from_link]] / tile_m[:, None])]
    order = np.lexsort(tile.T)
    begin = np.flatnonzero(np.r_[True, (tile[order][1:] != tile[order][:-1]).any(axis=1)])
    for first, last in pairwise([*begin.tolist(), len(steps)]):
        yield order[first:last], steps.take(order[first:last])


@dataclass(frozen=True, eq=False)
class _Ends:
    """The junctions at which a path may leave its first link, or enter its last, and the metres on that link."""

    node: Ints
    """(2, n); first with the direction of the link, then against it."""
    metres: Floats
    """(2, n); infinite against the direction of a one-way street."""


def _ends(network: _Network, steps: _Steps) -> tuple[_Ends, _Ends]:
    links, first, last = network.links, steps.from_link, steps.to_link
    ahead_m, back_m = network.length_m[first] - steps.from_m, np.where(links.oneway[first], np.inf, steps.from_m)
    back_last_m = np.where(links.oneway[last], np.inf, network.length_m[last] - steps.to_m)
    return (
        _Ends(np.stack([links.head[first], links.tail[first]]), np.stack([ahead_m, back_m])),
        _Ends(np.stack([links.tail[last], links.head[last]]), np.stack([steps.to_m, back_last_m])),
    )


def _search(network: _Network, steps: _Steps, labels: _Labels) -> Iterator[tuple[Ints, list[Found]]]:
    """The paths of some steps: positions of the steps that have one, and the links on them."""
    out, into = _ends(network, steps)
    ends = network.place[np.concatenate([*out.node, *into.node])]
    # A path leaves the box around its ends by at most half of what it is longer than the straight line.
    span = np.hypot(*(network.place[out.node[0]] - network.place[into.node[0]]).T)
    around = network.length_m[steps.from_link] + network.length_m[steps.to_link]
    margin_m = float((steps.limit_m + around - span).max()) / 2
    inside = (network.place >= ends.min(axis=0) - margin_m) & (network.place <= ends.max(axis=0) + margin_m)
    near = np.flatnonzero(inside.all(axis=1))
    place = np.full(len(inside), -1)
    place[near] = np.arange(len(near))
    local = network.metres[near][:, near]
    at_once = max(SETTINGS.labels_at_once // len(near), 1)
    for start in range(0, len(steps), at_once):
        part = np.arange(start, min(start + at_once, len(steps)))
        chosen = steps.take(part)
        begin, end = (_Ends(place[ends.node[:, part]], ends.metres[:, part]) for ends in (out, into))
        total, entry, previous = _shortest(local, network.place[near], chosen, begin, end, labels)
        good = np.flatnonzero(total <= chosen.limit_m)
        left, (at, before, after) = _walk_back(previous, good, end.node[entry[good], good])
        code = network.link_between(near[before], near[after])
        step = chosen.point[good]
        yield part[good], [
            (step, chosen.from_link[good], left == 0, begin.metres[left, good]),
            (step, chosen.to_link[good], entry[good] == 0, end.metres[entry[good], good]),
            (step[at], code // 2, code % 2 == 0, network.length_m[code // 2]),
        ]


def _shortest(
    graph: Any, place: Floats, steps: _Steps, out: _Ends, into: _Ends, labels: _Labels
) -> tuple[Floats, Ints, NDArray[np.int32]]:
    """Of each step: metres of the shortest path, the end at which it enters the last link, and previous junctions.

    Bellman-Ford for all steps at once. A junction is left out if the metres to it and the straight line from it to the
    goal are longer than the longest accepted path, or than the shortest known one. The previous junctions are an array
    of (steps, junctions), valid until the next search.
    """
    count, size = len(steps), len(place)
    metres, slot = labels.metres[: count * size], labels.slot
    previous = labels.previous[: count * size]
    row, each = size * np.arange(count), np.arange(count)
    frontier = np.zeros(0, np.int64)
    for end in range(2):
        label = row + out.node[end]
        better = out.metres[end] < metres[label]
        metres[label[better]], previous[label[better]] = out.metres[end][better], -1 - end
        frontier = np.union1d(frontier, label[better])
    limit = steps.limit_m + _TOLERANCE_M
    reached = [frontier]
    degree = np.diff(graph.indptr)
    while len(frontier):
        step, node = np.divmod(frontier, size)
        edges = degree[node]
        source = np.repeat(np.arange(len(frontier)), edges)
        edge = np.arange(len(source)) + np.repeat(graph.indptr[node] - np.cumsum(edges) + edges, edges)
        head, of_step = graph.indices[edge], step[source]
        length = metres[frontier][source] + graph.data[edge]
        label = row[of_step] + head
        kept = np.flatnonzero(length < metres[label])
        source, head, of_step, length, label = source[kept], head[kept], of_step[kept], length[kept], label[kept]
        left = place[head] - steps.goal[of_step]
        kept = np.flatnonzero(length + np.hypot(left[:, 0], left[:, 1]) <= limit[of_step])
        source, length, label = source[kept], length[kept], label[kept]
        np.minimum.at(metres, label, length)
        kept = np.flatnonzero(length == metres[label])
        source, label = source[kept], label[kept]
        slot[label] = np.arange(len(label))  # one of several equal paths
        kept = slot[label] == np.arange(len(label))
        frontier = label[kept]
        previous[frontier] = node[source[kept]]
        reached.append(frontier)
        totals = metres[row + into.node] + into.metres
        limit = np.minimum(limit, totals.min(axis=0) + _TOLERANCE_M)
    totals = metres[row + into.node] + into.metres
    entry = totals.argmin(axis=0)
    metres[np.concatenate(reached)] = np.inf
    return totals[entry, each], entry, previous.reshape(count, size)


_TOLERANCE_M = 1.0
"""Ends of links at the same junction may be this far apart."""


def _walk_back(previous: NDArray[np.int32], row: Ints, node: Ints) -> tuple[Ints, tuple[Ints, Ints, Ints]]:
    """The end of the first link at which each path leaves it, and (path, junction, next junction) of all its links."""
    path, left = np.arange(len(row)), np.zeros(len(row), np.int64)
    passed = [(path[:0], node[:0], node[:0])]
    while len(path):
        before = previous[row, node].astype(np.int64)
        over = before < 0
        left[path[over]] = -1 - before[over]
        row, path, node, before = row[~over], path[~over], node[~over], before[~over]
        passed.append((path, before, node))
        node = before
    at, tail, head = (np.concatenate(column) for column in zip(*passed))
    return left, (at, tail, head)

"""Which links a trip uses: points are matched to the nearest link and joined by shortest paths on the network.

A step between two points is matched if both lie close to a link and the shortest path between them is not much longer
than the straight line. Other steps are gaps: they add to no link, and their share of the distance is reported.

Privacy: free (post-processing, if the trips are synthetic).
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
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
    first: tuple[tuple[float, float], ...] = ((1.15, 30.0), (1.35, 80.0))
    """Detours and slacks that are tried first: most shortest paths are so short, and finding them needs less work."""
    longest_m: float = 5_000.0
    """Longer steps are gaps: between points so far apart many paths are equally likely."""
    close_m: float = 5.0
    """Links are looked for near the point first, and up to `reach_m` only if none is within this distance."""
    tile_m: float = 1_000.0
    """Steps that start within a square of at least this side are searched together."""
    labels_at_once: int = 1 << 22
    """Pairs of a step and a junction that are searched at once; bounds memory (20 bytes each)."""


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
    """The link of each point (-1: none), its distance along it, and the place on it."""

    link: Ints
    along_m: Floats
    place: Floats
    """(n, 2) metres of the scope."""


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


@dataclass(frozen=True, eq=False)
class _Pieces:
    """The straight pieces of all links."""

    link: Ints
    begin: Floats
    """(n, 2) first end."""
    along: Floats
    """(n, 2) from the first end to the last."""
    along_m: Floats
    """Distance of the first end along the link."""
    oneway: NDArray[np.bool_]

    @classmethod
    def of(cls, links: Links) -> "_Pieces":
        """The pieces between the vertices of each link."""
        of_vertex = ragged.owners(np.diff(links.offsets))
        first = np.flatnonzero(of_vertex[1:] == of_vertex[:-1])
        begin, end = (np.c_[links.x_m[at], links.y_m[at]] for at in (first, first + 1))
        return cls(of_vertex[first], begin, end - begin, links.along_m[first], links.oneway[of_vertex[first]])


def _nearest(links: Links, owner: Ints, x_m: Floats, y_m: Floats) -> _OnLinks:
    """The link of each point: the nearest, with a penalty on links across or against the direction of travel.

    The penalty is at most 2·wrong_way_m, so the best link is at most that much further away than the nearest. Where one
    is within `close_m`, the first, narrow search has therefore found the best.
    """
    import shapely

    count = len(x_m)
    on = _OnLinks(np.full(count, -1, np.int64), np.zeros(count), np.zeros((count, 2)))
    if len(links) == 0 or count == 0:
        return on
    pieces = _Pieces.of(links)
    tree = shapely.STRtree(shapely.linestrings(np.stack([pieces.begin, pieces.begin + pieces.along], 1)))
    point = np.arange(count)
    same_before = np.r_[False, owner[1:] == owner[:-1]]
    before = np.where(same_before, point - 1, point)
    after = np.where(np.r_[same_before[1:], False], point + 1, point)
    where = np.c_[x_m, y_m]
    travel = where[after] - where[before]
    rest = point
    for reach_m in (min(SETTINGS.close_m + 2 * SETTINGS.wrong_way_m, SETTINGS.reach_m), SETTINGS.reach_m):
        sure = np.zeros(count, bool)
        for start in range(0, len(rest), 1 << 15):
            part = rest[start : start + (1 << 15)]
            low, high = where[part] - reach_m, where[part] + reach_m
            row, piece = tree.query(shapely.box(*low.T, *high.T))
            near = part[row]
            sure[_choose(on, pieces, near, piece, where[near], travel[near], reach_m)] = True
        rest = rest[~sure[rest]]
    return on


def _choose(
    on: _OnLinks, pieces: _Pieces, near: Ints, piece: Ints, where: Floats, travel: Floats, reach_m: float
) -> Ints:
    """Set the link of each point to that of its cheapest piece within reach; the points with a piece close by."""
    along = pieces.along[piece]
    square = np.maximum((along**2).sum(axis=1), 1e-18)
    share = np.clip(((where - pieces.begin[piece]) * along).sum(axis=1) / square, 0.0, 1.0)
    distance = np.hypot(*(where - pieces.begin[piece] - share[:, None] * along).T)
    kept = distance <= reach_m
    near, piece, along, square = near[kept], piece[kept], along[kept], square[kept]
    share, distance, travel = share[kept], distance[kept], travel[kept]
    length, speed = np.sqrt(square), np.hypot(*travel.T)
    cosine = (travel * along).sum(axis=1) / np.maximum(speed * length, 1e-9)
    turned = np.where(pieces.oneway[piece], 1 - cosine, 1 - np.abs(cosine))
    cost = distance + SETTINGS.wrong_way_m * np.where(speed > 0, turned, 0.0)
    ranked = np.lexsort((pieces.link[piece], cost, near))
    chosen = ranked[np.r_[True, near[ranked][1:] != near[ranked][:-1]]] if len(ranked) else ranked
    on.link[near[chosen]] = pieces.link[piece[chosen]]
    on.along_m[near[chosen]] = pieces.along_m[piece[chosen]] + share[chosen] * length[chosen]
    on.place[near[chosen]] = pieces.begin[piece[chosen]] + share[chosen, None] * along[chosen]
    return np.unique(near[distance <= SETTINGS.close_m])


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps from a place on one link to a place on another."""

    number: Ints
    """Index of the point at which each begins."""
    here: Ints
    there: Ints
    at_m: Floats
    to_m: Floats
    goal: Floats
    """(n, 2) where it ends."""
    limit_m: Floats
    """Longest path that is accepted."""

    def __len__(self) -> int:
        return len(self.number)

    def take(self, index: NDArray[np.generic]) -> "_Steps":
        """Some of them."""
        return _Steps(*(getattr(self, field.name)[index] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class _Network:
    """The graph of the junctions; of links between the same two, the shortest."""

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
    """What is known of pairs of a step and a junction; made once, because clearing it costs more than a search."""

    metres: Floats
    """Infinite between two searches."""
    previous: NDArray[np.int32]
    """The junction before; -1 and -2 mean the two ends of the first link."""
    slot: NDArray[np.int32]

    @classmethod
    def of(cls, size: int) -> "_Labels":
        """Room for so many pairs."""
        return cls(np.full(size, np.inf), np.zeros(size, np.int32), np.zeros(size, np.int32))


Found = tuple[Ints, Ints, NDArray[np.bool_], Floats]
"""(step, link, forward, metres)."""


def _paths(links: Links, on: _OnLinks, number: Ints, straight: Floats, progress: Progress) -> Found:
    """All links on the path of each step that has one."""
    network, labels = _Network.of(links), _Labels.of(max(SETTINGS.labels_at_once, links.junctions))
    rest = _Steps(
        number, on.link[number], on.link[number + 1], on.along_m[number], on.along_m[number + 1], on.place[number + 1],
        SETTINGS.detour * straight + SETTINGS.slack_m,
    )  # fmt: skip
    ahead = rest.to_m - rest.at_m
    direct = (rest.here == rest.there) & ((ahead >= 0) | ~links.oneway[rest.here])
    found = [(number[direct], rest.here[direct], ahead[direct] >= 0, np.abs(ahead[direct]))]
    rest, straight = rest.take(~direct), straight[~direct]
    limits = (*SETTINGS.first, (SETTINGS.detour, SETTINGS.slack_m))
    for turn, (detour, slack_m) in enumerate(limits):
        limited = replace(rest, limit_m=np.minimum(detour * straight + slack_m, rest.limit_m))
        missed, done = [np.zeros(0, np.int64)], 0
        for index, batch in _batches(network, limited):
            good = np.zeros(len(batch), bool)
            for part, paths in _search(network, batch, labels):
                found.extend(paths)
                good[part] = True
            missed.append(index[~good])
            done += len(batch)
            progress("matching trips to streets", (turn + done / len(limited)) / len(limits))
        again = np.concatenate(missed)
        rest, straight = rest.take(again), straight[again]
    step, link, forward, metres = (np.concatenate(column) for column in zip(*found))
    keep = metres > 0
    return step[keep], link[keep], forward[keep], metres[keep]


def _batches(network: _Network, steps: _Steps) -> Iterator[tuple[Ints, _Steps]]:
    """Steps of similar length from the same square, with their positions: a search then needs a part of the network."""
    if len(steps) == 0:
        return
    size = np.rint(np.log2(steps.limit_m))
    tile_m = np.maximum(2.0**size, SETTINGS.tile_m)
    tile = np.c_[size, np.floor(network.place[network.links.tail[steps.here]] / tile_m[:, None])]
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
    links, here, there = network.links, steps.here, steps.there
    back = np.where(links.oneway[here], np.inf, steps.at_m)
    back_there = np.where(links.oneway[there], np.inf, network.length_m[there] - steps.to_m)
    return (
        _Ends(np.stack([links.head[here], links.tail[here]]), np.stack([network.length_m[here] - steps.at_m, back])),
        _Ends(np.stack([links.tail[there], links.head[there]]), np.stack([steps.to_m, back_there])),
    )


def _search(network: _Network, steps: _Steps, labels: _Labels) -> Iterator[tuple[Ints, list[Found]]]:
    """The paths of some steps: positions of the steps that have one, and the links on them."""
    out, into = _ends(network, steps)
    ends = network.place[np.concatenate([*out.node, *into.node])]
    # A path leaves the box around its ends by at most half of what it is longer than the straight line.
    span = np.hypot(*(network.place[out.node[0]] - network.place[into.node[0]]).T)
    around = network.length_m[steps.here] + network.length_m[steps.there]
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
        step = chosen.number[good]
        yield part[good], [
            (step, chosen.here[good], left == 0, begin.metres[left, good]),
            (step, chosen.there[good], entry[good] == 0, end.metres[entry[good], good]),
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

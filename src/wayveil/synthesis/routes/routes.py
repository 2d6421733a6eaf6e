"""Routes: cheapest paths between given ends, with a detour through a hub if the drawn length is longer.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import Polylines, joined, step_lengths
from wayveil.synthesis.routes.graph import RouteGraph
from wayveil.synthesis.routes.settings import ROUTES
from wayveil.synthesis.routes.trees import NodeTrees, Paths, Trees


@dataclass(frozen=True, eq=False)
class Hubs:
    """Busy places: roots of the trees of cheapest paths, and intermediate points of detours."""

    node: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    mass: NDArray[np.float64]
    outward: Trees
    """Cheapest paths from each hub."""
    inward: NodeTrees | None = None
    """Cheapest paths to each hub; None if all edges go both ways."""

    def followed_by(self, others: "Hubs") -> "Hubs":
        """These hubs and then the others."""
        inward = None
        if self.inward is not None and others.inward is not None:
            inward = self.inward.followed_by(others.inward)
        return Hubs(
            np.concatenate([self.node, others.node]),
            np.concatenate([self.x_m, others.x_m]),
            np.concatenate([self.y_m, others.y_m]),
            np.concatenate([self.mass, others.mass]),
            self.outward.followed_by(others.outward),
            inward,
        )

    def paths(self, hub: NDArray[np.int64], node: NDArray[np.int64], to_hub: NDArray[np.bool_]) -> Paths:
        """Paths between hubs and nodes: from the node where `to_hub` holds, from the hub elsewhere."""
        groups = [(self.outward, np.flatnonzero(~to_hub)), (self.inward or self.outward, np.flatnonzero(to_hub))]
        found = [trees.paths(hub[some], node[some]) for trees, some in groups]
        place = np.empty(len(hub), np.int64)
        place[np.concatenate([some for _, some in groups])] = np.arange(len(hub))
        counts = np.concatenate([np.diff(offsets) for offsets, _ in found])
        offsets, at = ragged.take(ragged.offsets_of(counts), place)
        # The trees give paths from the hub; those to it are turned around.
        counts = np.diff(offsets)
        turned = np.flatnonzero(np.repeat(to_hub, counts))
        at[turned] = at[(offsets[:-1] + offsets[1:] - 1)[ragged.owners(counts)[turned]] - turned]
        return offsets, np.concatenate([nodes for _, nodes in found])[at]


def choose_vias(
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    end: tuple[NDArray[np.float64], NDArray[np.float64]],
    length_m: NDArray[np.float64],
    hubs: Hubs,
    detour: float,
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """(n,) the hub that each route passes through, −1 for none, so that it has about the given length.

    Trips that are longer than a cheapest path pass through a hub near the ellipse of places, with the ends as foci, for
    which the detour has the drawn length. `detour` is the ratio of a cheapest path to the straight line.
    """
    vias = np.full(len(length_m), -1, np.int64)
    straight = np.hypot(start[0] - end[0], start[1] - end[1])
    longer = np.flatnonzero(length_m > ROUTES.detour_from * detour * straight + ROUTES.detour_from_m)
    attraction = np.log(hubs.mass).astype(np.float32)
    for first in range(0, len(longer), ROUTES.hub_block):
        part = longer[first : first + ROUTES.hub_block]
        goal = length_m[part, None].astype(np.float32)
        score = _distances(hubs, start[0][part], start[1][part])
        score += _distances(hubs, end[0][part], end[1][part])
        score *= np.float32(detour)
        score -= goal
        score /= ROUTES.length_spread * goal + np.float32(ROUTES.length_spread_m)
        score *= score
        score *= np.float32(-0.5)
        score += attraction
        score -= score.max(axis=1, keepdims=True)
        np.exp(score, out=score)
        cumulative = np.cumsum(score, axis=1, out=score)
        level = random.random(len(part), dtype=np.float32) * cumulative[:, -1]
        vias[part] = (cumulative <= level[:, None]).sum(axis=1).clip(max=len(attraction) - 1)
    return vias


def _distances(hubs: Hubs, x_m: NDArray[np.float64], y_m: NDArray[np.float64]) -> NDArray[np.float32]:
    """Metres from each position to each hub; in single precision, because a few metres do not matter."""
    dx = x_m[:, None].astype(np.float32) - hubs.x_m.astype(np.float32)
    dy = y_m[:, None].astype(np.float32) - hubs.y_m.astype(np.float32)
    dx *= dx
    dy *= dy
    dx += dy
    return np.sqrt(dx, out=dx)


def route(
    graph: RouteGraph,
    hubs: Hubs,
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    end: tuple[NDArray[np.float64], NDArray[np.float64]],
    vias: NDArray[np.int64],
) -> tuple[Polylines, NDArray[np.int64]]:
    """Find the polylines from start to end, and the node at each vertex.

    A route has legs from its start to a hub nearby, from there to its via (if any), and on to its end, along the trees
    of the hub and of the via. Where a leg doubles back on the previous one, both are shortened to the point where they
    part, so that no route goes back and forth. The node is −1 where a vertex is the start, the end, or inside an edge's
    shape.
    """
    n = len(vias)
    hub = _hub_on_the_way(hubs, start, end)
    around_m = ROUTES.around_hub * np.hypot(hubs.x_m[hub] - start[0], hubs.y_m[hub] - start[1])
    near_start, with_via = graph.nearest(*start), np.flatnonzero(vias >= 0)
    # The legs: to the hub, to the via if there is one, to the end.
    owner = np.r_[np.arange(n), with_via, np.arange(n)]
    root = np.r_[hub, hub[with_via], np.where(vias >= 0, vias, hub)]
    target = np.r_[near_start, hubs.node[vias[with_via]], graph.nearest(*end)]
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    offsets, nodes = hubs.paths(root[order], target[order], to_hub=order < n)
    count = np.diff(offsets)
    kept = _without_spurs(offsets, nodes, owner)
    path_owner, nodes = np.repeat(owner, count)[kept], nodes[kept]
    parts = []
    for first in range(0, n, ROUTES.trips_block):
        some = slice(first, min(first + ROUTES.trips_block, n))
        own = slice(*np.searchsorted(path_owner, [some.start, some.stop]))
        ends = [(x[some], y[some]) for x, y in (start, end)]
        parts.append(_join(graph, path_owner[own] - first, nodes[own], around_m[some], *ends))
    return joined([lines for lines, _ in parts]), np.concatenate([node for _, node in parts])


def _hub_on_the_way(
    hubs: Hubs,
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    end: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[np.int64]:
    """The hub h with the least a·|h − start| + |h − end|, a > 1: on the way, preferably near the start."""
    best = np.empty(len(start[0]), np.int64)
    for first in range(0, len(best), ROUTES.hub_block):
        part = slice(first, first + ROUTES.hub_block)
        near = _distances(hubs, start[0][part], start[1][part])
        near *= np.float32(ROUTES.hub_nearness)
        near += _distances(hubs, end[0][part], end[1][part])
        best[part] = near.argmin(axis=1)
    return best


def _without_spurs(offsets: NDArray[np.int64], nodes: NDArray[np.int64], owner: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which nodes remain when the stretch that two consecutive legs of a route share is removed from both."""
    count = np.diff(offsets)
    before = np.flatnonzero(owner[1:] == owner[:-1])
    shared = np.minimum(count[before], count[before + 1])
    rank, row = ragged.ranks(shared), ragged.owners(shared)
    same = nodes[offsets[1:][before][row] - 1 - rank] == nodes[offsets[before + 1][row] + rank]
    # Seen from the node where the legs meet, both legs begin with that stretch; its farthest node is kept.
    back = np.minimum.reduceat(np.where(same, shared[row], rank), ragged.offsets_of(shared)[:-1]) - 1
    cut_start, cut_end = np.zeros(len(count), np.int64), np.zeros(len(count), np.int64)
    cut_start[before + 1] = back
    cut_end[before] = np.minimum(back, count[before] - 1 - cut_start[before])
    place = ragged.ranks(count)
    result: NDArray[np.bool_] = (place >= np.repeat(cut_start, count)) & (place < np.repeat(count - cut_end, count))
    return result


def _join(
    graph: RouteGraph,
    owner: NDArray[np.int64],
    nodes: NDArray[np.int64],
    around_m: NDArray[np.float64],
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    end: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[Polylines, NDArray[np.int64]]:
    """Node paths to polylines: insert edge shapes, cut off what lies beyond the trip's start and end, attach both."""
    differs = np.ones(len(nodes), bool)
    differs[1:] = (owner[1:] != owner[:-1]) | (nodes[1:] != nodes[:-1])
    owner, x, y, node = _with_shapes(graph, owner[differs], nodes[differs])
    path_offsets = np.searchsorted(owner, np.arange(len(around_m) + 1))
    first, last = _between_ends(x, y, path_offsets, around_m, start, end)
    place, count = np.arange(len(x)), np.diff(path_offsets)
    keep = (place >= np.repeat(first, count)) & (place <= np.repeat(last, count))
    offsets = ragged.offsets_of(last - first + 3)
    inner = np.ones(offsets[-1], bool)
    inner[offsets[:-1]] = inner[offsets[1:] - 1] = False
    all_x, all_y, all_node = np.empty(offsets[-1]), np.empty(offsets[-1]), np.full(offsets[-1], -1, np.int64)
    all_x[offsets[:-1]], all_y[offsets[:-1]] = start
    all_x[offsets[1:] - 1], all_y[offsets[1:] - 1] = end
    all_x[inner], all_y[inner], all_node[inner] = x[keep], y[keep], node[keep]
    return Polylines(offsets, all_x, all_y), all_node


def _between_ends(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    offsets: NDArray[np.int64],
    around_m: NDArray[np.float64],
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    end: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The last vertex beside the start, in the first `around_m` metres of each path, and the first one beside its end.

    A path begins at the node nearest to the start. That node, or the hub, may lie in the wrong direction; then the path
    passes the start again. It ends at the node nearest to the end, and may have passed the end before.
    """
    count = np.diff(offsets)
    along = np.cumsum(step_lengths(offsets, x, y))
    from_start = along - np.repeat(along[offsets[:-1]], count)
    beside = _beside(x, y, offsets, start, from_start > np.repeat(np.maximum(around_m, ROUTES.node_m), count))
    first = np.maximum.reduceat(np.where(beside, np.arange(len(x)), -1), offsets[:-1])
    to_end = np.repeat(along[offsets[1:] - 1], count) - along
    before = np.arange(len(x)) < np.repeat(first, count)
    beside = _beside(x, y, offsets, end, (to_end > ROUTES.node_m) | before)
    return first, np.minimum.reduceat(np.where(beside, np.arange(len(x)), len(x)), offsets[:-1])


def _beside(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    offsets: NDArray[np.int64],
    place: tuple[NDArray[np.float64], NDArray[np.float64]],
    excluded: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Which vertices, of those not excluded, are within a block of their path's place, or else nearest to it."""
    count = np.diff(offsets)
    apart = np.hypot(x - np.repeat(place[0], count), y - np.repeat(place[1], count))
    apart[excluded] = np.inf
    result: NDArray[np.bool_] = apart <= np.repeat(
        np.maximum(np.minimum.reduceat(apart, offsets[:-1]), ROUTES.beside_m), count
    )
    return result


def _with_shapes(
    graph: RouteGraph, owner: NDArray[np.int64], nodes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Insert the interior vertices of the edges between consecutive nodes; straight edges have none."""
    x, y = graph.x_m[nodes], graph.y_m[nodes]
    if len(graph.shape_x_m) == 0 or len(nodes) < 2:
        return owner, x, y, nodes
    found, hit = graph.edges_between(nodes[:-1], nodes[1:])
    hit &= owner[1:] == owner[:-1]
    extra = np.where(hit, np.diff(graph.shape_offsets)[found], 0)
    offsets = ragged.offsets_of(np.r_[extra + 1, 1])
    all_x, all_y = np.empty(offsets[-1]), np.empty(offsets[-1])
    all_node = np.full(offsets[-1], -1, np.int64)
    all_x[offsets[:-1]], all_y[offsets[:-1]], all_node[offsets[:-1]] = x, y, nodes
    edge, rank = ragged.owners(extra), ragged.ranks(extra)
    source = graph.shape_offsets[:-1][found[edge]] + rank
    target = offsets[:-1][edge] + 1 + rank
    all_x[target], all_y[target] = graph.shape_x_m[source], graph.shape_y_m[source]
    return np.repeat(owner, np.diff(offsets)), all_x, all_y, all_node

"""Routes: cheapest paths between drawn ends, with detours through hubs where the drawn length asks for more.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.polylines import Polylines, joined, step_lengths
from wayveil.pyramid import Field
from wayveil.regions import cut_regions, label_regions
from wayveil.synthesis.graph import RouteGraph

HUB_DEPTH = 8
_BLOCK = 1 << 9
"""Positions whose distances to all hubs stay in the processor's cache."""
_TRIPS = 1 << 11
"""Trips whose routes are put together at a time, for the same reason."""
_HEAD_M = 4_000.0


@dataclass(frozen=True, eq=False)
class Hubs:
    """Busy places that routes start from, and pass through when they make a detour."""

    node: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    mass: NDArray[np.float64]
    predecessor: NDArray[np.int32]
    """(hubs, nodes) trees of cheapest paths."""


def find_hubs(graph: RouteGraph, grid: Grid, occupancy: Field, ends: Field, most_depth: int = HUB_DEPTH) -> Hubs:
    """The busiest cell of each of 2^depth (256) regions of equal mass, as nodes of the graph, with their trees."""
    mass = occupancy / occupancy.sum() + ends / ends.sum()
    depth = min(most_depth, max(1, int(np.log2(max(2, min(grid.cells, graph.nodes) // 4)))))
    region = label_regions(grid, cut_regions(mass, depth)).ravel()
    busiest = np.zeros(2**depth)
    np.maximum.at(busiest, region, mass.ravel())
    found = np.flatnonzero(mass.ravel() == busiest[region])
    cell = found[np.unique(region[found], return_index=True)[1]]
    x, y = (cell % grid.columns + 0.5) * grid.cell_m, (cell // grid.columns + 0.5) * grid.cell_m
    node, member = np.unique(graph.nearest(x, y), return_inverse=True)
    share = np.bincount(region, occupancy.ravel(), minlength=2**depth)[region[cell]]
    busy = np.asarray(np.bincount(member, share), np.float64) + 1e-12
    return Hubs(node, graph.x_m[node], graph.y_m[node], busy, graph.trees_from(node))


def choose_vias(
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    end: tuple[NDArray[np.float64], NDArray[np.float64]],
    length_m: NDArray[np.float64],
    hubs: Hubs,
    detour: float,
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """(n, 3) hubs to pass through, −1 for none, so that the route comes close to the wanted length.

    `detour` is how much longer a cheapest path is than the straight line. A little excess takes one hub chosen for its
    position on an ellipse around the ends; a lot of it takes two free hubs first.
    """
    n = len(length_m)
    vias = np.full((n, 3), -1, np.int64)
    straight = np.hypot(start[0] - end[0], start[1] - end[1])
    need = np.flatnonzero(length_m > 1.12 * detour * straight + 100.0)
    wander = need[length_m[need] > 2.2 * detour * straight[need] + 6_000.0]
    at_x, at_y, left = start[0].copy(), start[1].copy(), length_m.copy()
    hub_x, hub_y = hubs.x_m.astype(np.float32), hubs.y_m.astype(np.float32)
    attraction = np.log(hubs.mass).astype(np.float32)

    def reach(part: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float32]:
        # Single precision: a hub's position matters to a few metres.
        across = x[part, None].astype(np.float32) - hub_x
        along = y[part, None].astype(np.float32) - hub_y
        across *= across
        along *= along
        across += along
        np.sqrt(across, out=across)
        across *= np.float32(detour)
        return across

    def drawn(score: NDArray[np.float32]) -> NDArray[np.int64]:
        """A hub for each row with probability ∝ mass · exp(score)."""
        score += attraction
        score -= score.max(axis=1, keepdims=True)
        np.exp(score, out=score)
        cumulative = np.cumsum(score, axis=1, out=score)
        level = random.random(len(score), dtype=np.float32) * cumulative[:, -1]
        return (cumulative <= level[:, None]).sum(axis=1).clip(max=len(attraction) - 1)

    for leg, share in ((0, 0.30), (1, 0.35)):
        for part in _chunks(wander):
            out, back = reach(part, at_x, at_y), reach(part, end[0], end[1])
            budget = left[part, None].astype(np.float32)
            goal = budget * np.float32(share)
            too_far = np.maximum(0, (out + back) / budget - np.float32(0.9))
            score = np.float32(-0.5) * ((out - goal) / (np.float32(0.25) * goal)) ** 2 - 50 * too_far
            via = drawn(score)
            vias[part, leg] = via
            left[part] -= out[np.arange(len(part)), via]
            at_x[part], at_y[part] = hubs.x_m[via], hubs.y_m[via]
    for part in _chunks(need):
        score = reach(part, at_x, at_y)
        score += reach(part, end[0], end[1])
        goal = left[part, None]
        score -= goal.astype(np.float32)
        score /= (0.04 * np.abs(goal) + 50.0).astype(np.float32)
        score *= score
        score *= np.float32(-0.5)
        vias[part, 2] = drawn(score)
    return vias


def _chunks(index: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [index[k : k + _BLOCK] for k in range(0, len(index), _BLOCK)]


def route(
    graph: RouteGraph,
    hubs: Hubs,
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    end: tuple[NDArray[np.float64], NDArray[np.float64]],
    vias: NDArray[np.int64],
) -> tuple[Polylines, NDArray[np.int64]]:
    """Polylines from start to end along the trees of the nearest hub and of each via; and the node at each vertex.

    The node is −1 where a vertex is the start, the end, or inside an edge's shape.
    """
    n = len(vias)
    hub = _nearest_hub(hubs, *start)
    owners, trees, targets, legs = [], [], [], []
    for leg in range(vias.shape[1]):
        going = np.flatnonzero(vias[:, leg] >= 0)
        owners.append(going)
        trees.append(hub[going])
        targets.append(hubs.node[vias[going, leg]])
        legs.append(np.full(len(going), leg))
        hub[going] = vias[going, leg]
    owners.append(np.arange(n))
    trees.append(hub)
    targets.append(graph.nearest(*end))
    legs.append(np.full(n, vias.shape[1]))
    owner, tree, target, turn = (np.concatenate(part) for part in (owners, trees, targets, legs))
    order = np.lexsort((turn, owner))
    offsets, nodes = _walk(hubs.predecessor, tree[order], target[order])
    path_owner = np.repeat(owner[order], np.diff(offsets))
    parts = []
    for first in range(0, n, _TRIPS):
        some = slice(first, min(first + _TRIPS, n))
        own = slice(*np.searchsorted(path_owner, [some.start, some.stop]))
        ends = [(x[some], y[some]) for x, y in (start, end)]
        parts.append(_join(graph, path_owner[own] - first, nodes[own], some.stop - first, *ends))
    return joined([lines for lines, _ in parts]), np.concatenate([node for _, node in parts])


def _nearest_hub(hubs: Hubs, x_m: NDArray[np.float64], y_m: NDArray[np.float64]) -> NDArray[np.int64]:
    """argmin over the hubs h of |h|² − 2·h·p, which is the square of the distance but for |p|²."""
    places = np.stack([hubs.x_m, hubs.y_m])
    square = (places**2).sum(axis=0)
    nearest = np.empty(len(x_m), np.int64)
    for first in range(0, len(x_m), _BLOCK):
        part = slice(first, first + _BLOCK)
        apart = np.stack([x_m[part], y_m[part]], axis=1) @ (-2.0 * places)
        apart += square
        nearest[part] = apart.argmin(axis=1)
    return nearest


def _walk(
    predecessor: NDArray[np.int32], tree: NDArray[np.int64], target: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Nodes from each tree's root to its target, all walks one step at a time."""
    before_of = predecessor.ravel()
    active, current, base = np.arange(len(tree)), target, tree * predecessor.shape[1]
    count = np.zeros(len(tree), np.int64)
    visits = []
    while len(active):
        visits.append((active, current))
        count[active] += 1
        before = before_of[base + current]
        going = np.flatnonzero(before >= 0)
        active, current, base = active[going], before[going], base[going]
    offsets = np.r_[0, np.cumsum(count)]
    path = np.empty(offsets[-1], np.int64)
    for back, (walker, node) in enumerate(visits):
        path[offsets[walker + 1] - 1 - back] = node
    return offsets, path


def _join(
    graph: RouteGraph,
    owner: NDArray[np.int64],
    nodes: NDArray[np.int64],
    n: int,
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    end: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[Polylines, NDArray[np.int64]]:
    """Node paths to polylines: edge shapes put in, the head cut where it passes the start, both ends attached."""
    fresh = np.ones(len(nodes), bool)
    fresh[1:] = (owner[1:] != owner[:-1]) | (nodes[1:] != nodes[:-1])
    owner, x, y, node = _with_shapes(graph, owner[fresh], nodes[fresh])
    begin = np.searchsorted(owner, np.arange(n + 1))
    cut = _passing(x, y, begin, start)
    keep = np.arange(len(x)) >= np.repeat(cut, np.diff(begin))
    offsets = np.r_[0, np.cumsum(begin[1:] - cut + 2)]
    inner = np.ones(offsets[-1], bool)
    inner[offsets[:-1]] = inner[offsets[1:] - 1] = False
    all_x, all_y, all_node = np.empty(offsets[-1]), np.empty(offsets[-1]), np.full(offsets[-1], -1, np.int64)
    all_x[offsets[:-1]], all_y[offsets[:-1]] = start
    all_x[offsets[1:] - 1], all_y[offsets[1:] - 1] = end
    all_x[inner], all_y[inner], all_node[inner] = x[keep], y[keep], node[keep]
    return Polylines(offsets, all_x, all_y), all_node


def _passing(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    offsets: NDArray[np.int64],
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[np.int64]:
    """The vertex of each path's first four kilometres that is nearest to its start."""
    count = np.diff(offsets)
    along = step_lengths(offsets, x, y)
    np.cumsum(along, out=along)
    along -= np.repeat(along[offsets[:-1]], count)
    apart = x - np.repeat(start[0], count)
    apart *= apart
    apart_y = y - np.repeat(start[1], count)
    apart_y *= apart_y
    apart += apart_y
    apart[along > _HEAD_M] = np.inf
    nearest = np.flatnonzero(apart == np.repeat(np.minimum.reduceat(apart, offsets[:-1]), count))
    return nearest[np.searchsorted(nearest, offsets[:-1])]


def _with_shapes(
    graph: RouteGraph, owner: NDArray[np.int64], nodes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Interior vertices of the edges between consecutive nodes put in; straight edges stay as they are."""
    x, y = graph.x_m[nodes], graph.y_m[nodes]
    if len(graph.shape_x_m) == 0 or len(nodes) < 2:
        return owner, x, y, nodes
    found, hit = graph.edges_between(nodes[:-1], nodes[1:])
    hit &= owner[1:] == owner[:-1]
    extra = np.where(hit, np.diff(graph.shape_offsets)[found], 0)
    offsets = np.r_[0, np.cumsum(np.r_[extra + 1, 1])]
    all_x, all_y = np.empty(offsets[-1]), np.empty(offsets[-1])
    all_node = np.full(offsets[-1], -1, np.int64)
    all_x[offsets[:-1]], all_y[offsets[:-1]], all_node[offsets[:-1]] = x, y, nodes
    edge = np.repeat(np.arange(len(extra)), extra)
    rank = np.arange(len(edge)) - np.repeat(np.r_[0, np.cumsum(extra)[:-1]], extra)
    source = graph.shape_offsets[:-1][found[edge]] + rank
    target = offsets[:-1][edge] + 1 + rank
    all_x[target], all_y[target] = graph.shape_x_m[source], graph.shape_y_m[source]
    return np.repeat(owner, np.diff(offsets)), all_x, all_y, all_node

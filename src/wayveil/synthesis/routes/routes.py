"""Routes: cheapest paths between drawn ends, with detours through hubs if the drawn length is longer.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, joined, step_lengths
from wayveil.core.pyramid import Field
from wayveil.core.regions import cut_regions, label_regions
from wayveil.synthesis.routes.graph import RouteGraph
from wayveil.synthesis.routes.settings import ROUTES


@dataclass(frozen=True, eq=False)
class Hubs:
    """Busy places: roots of the shortest-path trees, and intermediate points of detours."""

    node: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    mass: NDArray[np.float64]
    predecessor: NDArray[np.int32]
    """(hubs, nodes) trees of cheapest paths."""


def find_hubs(graph: RouteGraph, grid: Grid, passage: Field, ends: Field, most_depth: int = ROUTES.hub_depth) -> Hubs:
    """The busiest cell of each of 2^depth (256) regions of equal mass, as nodes of the graph, with their trees."""
    mass = passage / passage.sum() + ends / ends.sum()
    depth = min(most_depth, max(1, int(np.log2(max(2, min(grid.cells, graph.nodes) // 4)))))
    region = label_regions(grid, cut_regions(mass, depth)).ravel()
    busiest = np.zeros(2**depth)
    np.maximum.at(busiest, region, mass.ravel())
    found = np.flatnonzero(mass.ravel() == busiest[region])
    cell = found[np.unique(region[found], return_index=True)[1]]
    x, y = (cell % grid.columns + 0.5) * grid.cell_m, (cell // grid.columns + 0.5) * grid.cell_m
    node, member = np.unique(graph.nearest(x, y), return_inverse=True)
    share = np.bincount(region, passage.ravel(), minlength=2**depth)[region[cell]]
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
    """(n, 3) hubs to pass through, −1 for none, so that the route has about the given length.

    `detour` is the ratio of a cheapest path to the straight line. For a small excess length, one hub is drawn near an
    ellipse around the ends; for a large one, two free hubs are drawn first.
    """
    n = len(length_m)
    vias = np.full((n, 3), -1, np.int64)
    straight = np.hypot(start[0] - end[0], start[1] - end[1])
    need = np.flatnonzero(length_m > ROUTES.detour_from * detour * straight + ROUTES.detour_from_m)
    wander = need[length_m[need] > ROUTES.wander_from * detour * straight[need] + ROUTES.wander_from_m]
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
        result: NDArray[np.int64] = (cumulative <= level[:, None]).sum(axis=1).clip(max=len(attraction) - 1)
        return result

    for leg, share in enumerate(ROUTES.wander_shares):
        for part in _chunks(wander):
            out, back = reach(part, at_x, at_y), reach(part, end[0], end[1])
            budget = left[part, None].astype(np.float32)
            goal = budget * np.float32(share)
            too_far = np.maximum(0, (out + back) / budget - np.float32(ROUTES.wander_most))
            score = (
                np.float32(-0.5) * ((out - goal) / (np.float32(ROUTES.wander_spread) * goal)) ** 2
                - np.float32(ROUTES.wander_penalty) * too_far
            )
            via = drawn(score)
            vias[part, leg] = via
            left[part] -= out[np.arange(len(part)), via]
            at_x[part], at_y[part] = hubs.x_m[via], hubs.y_m[via]
    for part in _chunks(need):
        score = reach(part, at_x, at_y)
        score += reach(part, end[0], end[1])
        goal = left[part, None]
        score -= goal.astype(np.float32)
        score /= (ROUTES.length_spread * np.abs(goal) + ROUTES.length_spread_m).astype(np.float32)
        score *= score
        score *= np.float32(-0.5)
        vias[part, 2] = drawn(score)
    return vias


def _chunks(index: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [index[k : k + ROUTES.hub_block] for k in range(0, len(index), ROUTES.hub_block)]


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
    for first in range(0, n, ROUTES.trips_block):
        some = slice(first, min(first + ROUTES.trips_block, n))
        own = slice(*np.searchsorted(path_owner, [some.start, some.stop]))
        ends = [(x[some], y[some]) for x, y in (start, end)]
        parts.append(_join(graph, path_owner[own] - first, nodes[own], some.stop - first, *ends))
    return joined([lines for lines, _ in parts]), np.concatenate([node for _, node in parts])


def _nearest_hub(hubs: Hubs, x_m: NDArray[np.float64], y_m: NDArray[np.float64]) -> NDArray[np.int64]:
    """argmin over the hubs h of |h|² − 2·h·p, the squared distance minus |p|²."""
    places = np.stack([hubs.x_m, hubs.y_m])
    square = (places**2).sum(axis=0)
    nearest = np.empty(len(x_m), np.int64)
    for first in range(0, len(x_m), ROUTES.hub_block):
        part = slice(first, first + ROUTES.hub_block)
        apart = np.stack([x_m[part], y_m[part]], axis=1) @ (-2.0 * places)
        apart += square
        nearest[part] = apart.argmin(axis=1)
    return nearest


def _walk(
    predecessor: NDArray[np.int32], tree: NDArray[np.int64], target: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Nodes from each tree's root to its target; all paths are followed together, one step at a time."""
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
    offsets = ragged.offsets_of(count)
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
    """Node paths to polylines: insert edge shapes, cut the first part where it passes the start, attach both ends."""
    differs = np.ones(len(nodes), bool)
    differs[1:] = (owner[1:] != owner[:-1]) | (nodes[1:] != nodes[:-1])
    owner, x, y, node = _with_shapes(graph, owner[differs], nodes[differs])
    begin = np.searchsorted(owner, np.arange(n + 1))
    cut = _passing(x, y, begin, start)
    keep = np.arange(len(x)) >= np.repeat(cut, np.diff(begin))
    offsets = ragged.offsets_of(begin[1:] - cut + 2)
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
    """The vertex nearest to the trip's start, within the first four kilometres of each path."""
    count = np.diff(offsets)
    along = step_lengths(offsets, x, y)
    np.cumsum(along, out=along)
    along -= np.repeat(along[offsets[:-1]], count)
    apart = x - np.repeat(start[0], count)
    apart *= apart
    apart_y = y - np.repeat(start[1], count)
    apart_y *= apart_y
    apart += apart_y
    apart[along > ROUTES.head_m] = np.inf
    nearest = np.flatnonzero(apart == np.repeat(np.minimum.reduceat(apart, offsets[:-1]), count))
    return nearest[np.searchsorted(nearest, offsets[:-1])]


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

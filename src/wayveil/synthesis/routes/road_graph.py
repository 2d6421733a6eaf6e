"""A hybrid graph for routes: the roads of a map, and blocks of the grid where the map has no coverage.

Privacy: free (built from estimates and a public map).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, lengths, step_lengths
from wayveil.core.pyramid import Field, pool
from wayveil.synthesis.routes.graph import RouteGraph, block_centres, grid_graph, relative_density, travel_cost
from wayveil.synthesis.routes.road_features import cover_side, uncovered_blocks
from wayveil.synthesis.routes.road_network import RoadNetwork
from wayveil.synthesis.routes.settings import ROADS


@dataclass(frozen=True, eq=False)
class _Edges:
    """Directed edges, with the road that gives each its shape (−1 for none) and whether it runs backwards along it."""

    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    cost: NDArray[np.float64]
    road: NDArray[np.int64]
    backwards: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Positions, and whether a node stands for a block of the grid, within which it may lie anywhere."""

    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    loose: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Ground:
    """The grid with its density, which determines the costs."""

    grid: Grid
    density: Field
    relative: Field
    background: float


def network_graph(network: RoadNetwork, grid: Grid, density: Field) -> RouteGraph:
    """Directed edges along the roads, cheaper where the density is high; one-way roads in their direction only.

    The graph is strongly connected: roads without a way back are left out, and so are islands, unless blocks of the
    grid connect them to the rest.

    Privacy: free (built from estimates and a public map).
    """
    if len(network) == 0:
        return grid_graph(grid, density)
    ground = _Ground(grid, density, *relative_density(density))
    roads = _road_edges(network, ground)
    nodes = len(network.x_m)
    used = _worth_keeping(network, roads, nodes)
    for _ in range(2):  # roads removed in the first pass leave uncovered blocks, which the second pass fills
        places, edges = _with_blocks(network, roads, used, ground)
        reached = _largest_part(edges, len(places.x_m))
        if not (used & ~reached[:nodes]).any():
            break
        used = used & reached[:nodes]
    return _assemble(network, places, _cheapest(edges, len(places.x_m)), reached, grid)


def _road_edges(network: RoadNetwork, ground: _Ground) -> _Edges:
    """Both directions of each road, or one of a one-way road; the cost depends on the mean density along the road."""
    grid, relative, background = ground.grid, ground.relative, ground.background
    x, y = network.vertex_x_m, network.vertex_y_m
    step = step_lengths(network.offsets, x, y)
    middle = grid.index(x - 0.5 * np.diff(x, prepend=x[:1]), y - 0.5 * np.diff(y, prepend=y[:1]))
    length = ragged.sums(step, network.offsets)
    mean = ragged.sums(step * relative.ravel()[middle], network.offsets) / np.maximum(length, 1e-9)
    cost = (length + 1e-3) * travel_cost(mean, background)
    both = np.flatnonzero(~network.oneway)
    road = np.r_[np.arange(len(network)), both]
    backwards = np.r_[np.zeros(len(network), bool), np.ones(len(both), bool)]
    at_border = _border_links(network, grid)
    links = len(at_border)
    return _Edges(
        np.r_[network.tail, network.head[both], at_border[:, 0]],
        np.r_[network.head, network.tail[both], at_border[:, 1]],
        np.r_[cost[road], np.full(links, ROADS.border_cost_m * _highest_cost(background))],
        np.r_[road, np.full(links, -1)],
        np.r_[backwards, np.zeros(links, bool)],
    )


def _highest_cost(background: float) -> float:
    """Cost per metre at zero density."""
    return float(travel_cost(np.zeros(1), background)[0])


def _border_links(network: RoadNetwork, grid: Grid) -> NDArray[np.int64]:
    """Pairs of nearby nodes, in both directions, where roads leave the scope; they may be connected outside it."""
    from scipy.spatial import cKDTree

    x, y = network.x_m, network.y_m
    edge = np.minimum(np.minimum(x, grid.width_m - x), np.minimum(y, grid.height_m - y)) < 1.0
    at = np.flatnonzero(edge)
    if len(at) < 2:
        return np.empty((0, 2), np.int64)
    pairs = at[cKDTree(np.c_[x[at], y[at]]).query_pairs(ROADS.border_m, output_type="ndarray")]
    return np.concatenate([pairs, pairs[:, ::-1]])


def _worth_keeping(network: RoadNetwork, edges: _Edges, nodes: int) -> NDArray[np.bool_]:
    """Nodes of the strongly connected parts with two kilometres of road or more, and of the largest part."""
    part = _strong_parts(edges.tail, edges.head, nodes)
    length = lengths(Polylines(network.offsets, network.vertex_x_m, network.vertex_y_m))
    inside = part[network.tail] == part[network.head]
    road_m = np.bincount(part[network.tail[inside]], length[inside], minlength=part.max() + 1)
    if road_m.max() == 0:  # every road is a one-way street without a way back
        return np.zeros(nodes, bool)
    result: NDArray[np.bool_] = ((road_m >= ROADS.min_island_m) | (road_m == road_m.max()))[part]
    return result


def _strong_parts(tail: NDArray[np.int64], head: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Number of the strongly connected part of each node."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    links = coo_matrix((np.ones(len(tail), np.int8), (tail, head)), shape=(nodes, nodes))
    result: NDArray[np.int64] = connected_components(links, directed=True, connection="strong")[1].astype(np.int64)
    return result


def _largest_part(edges: _Edges, nodes: int) -> NDArray[np.bool_]:
    """Marks the nodes of the largest strongly connected part."""
    part = _strong_parts(edges.tail, edges.head, nodes)
    result: NDArray[np.bool_] = part == np.bincount(part).argmax()
    return result


def _with_blocks(
    network: RoadNetwork, roads: _Edges, used: NDArray[np.bool_], ground: _Ground
) -> tuple[_Nodes, _Edges]:
    """Nodes and edges of the used roads and of the blocks they do not cover; blocks are joined to roads nearby."""
    grid = ground.grid
    kept = np.flatnonzero(used[roads.tail] & used[roads.head])
    kept_roads = np.unique(roads.road[kept])
    covering = np.zeros(len(network), bool)
    covering[kept_roads[kept_roads >= 0]] = True
    vertex = np.repeat(covering, np.diff(network.offsets))
    bare = uncovered_blocks(network.vertex_x_m[vertex], network.vertex_y_m[vertex], grid)
    side = cover_side(grid)
    block_x, block_y = (v.reshape(bare.shape)[bare] for v in block_centres(grid, ground.density, side))
    per_metre = ROADS.off_road_cost * travel_cost(pool(ground.relative, side)[bare] / side**2, ground.background)
    nodes = len(network.x_m)
    number = np.full(bare.shape, -1)
    number[bare] = np.arange(bare.sum())

    rows, columns = bare.shape
    tails, heads = [], []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        a = number[: rows - down, max(0, -right) : columns - max(0, right)].ravel()
        b = number[down:, max(0, right) : columns + min(0, right)].ravel()
        both = (a >= 0) & (b >= 0)
        tails.append(a[both] + nodes)
        heads.append(b[both] + nodes)
    near_block, near_road = _nearest_road(
        network, used, block_x, block_y, max(ROADS.join_m, ROADS.join_blocks * side * grid.cell_m)
    )
    tail, head = np.concatenate([*tails, near_block + nodes]), np.concatenate([*heads, near_road])
    x, y = np.r_[network.x_m, block_x], np.r_[network.y_m, block_y]
    length = np.hypot(x[tail] - x[head], y[tail] - y[head]) + 1.0
    at_head = np.where(head >= nodes, head - nodes, tail - nodes)
    cost = length * 0.5 * (per_metre[tail - nodes] + per_metre[at_head])
    extra = 2 * len(tail)
    edges = _Edges(
        np.r_[roads.tail[kept], tail, head],
        np.r_[roads.head[kept], head, tail],
        np.r_[roads.cost[kept], cost, cost],
        np.r_[roads.road[kept], np.full(extra, -1)],
        np.r_[roads.backwards[kept], np.zeros(extra, bool)],
    )
    return _Nodes(x, y, np.r_[np.zeros(nodes, bool), np.ones(len(block_x), bool)]), edges


def _nearest_road(
    network: RoadNetwork, used: NDArray[np.bool_], x: NDArray[np.float64], y: NDArray[np.float64], furthest_m: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Blocks with a road node within `furthest_m`, and the nearest such node of each."""
    from scipy.spatial import cKDTree

    node = np.flatnonzero(used)
    if len(node) == 0 or len(x) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    distance, nearest = cKDTree(np.c_[network.x_m[node], network.y_m[node]]).query(np.c_[x, y])
    near = np.flatnonzero(distance <= furthest_m)
    return near, node[np.asarray(nearest, np.int64)[near]]


def _cheapest(edges: _Edges, nodes: int) -> _Edges:
    """Only the cheapest of parallel edges, and no edge from a node to itself."""
    order = np.lexsort((edges.cost, edges.head, edges.tail))
    tail, head = edges.tail[order], edges.head[order]
    first = np.r_[True, (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])] & (tail != head)
    keep = order[first]
    return _Edges(edges.tail[keep], edges.head[keep], edges.cost[keep], edges.road[keep], edges.backwards[keep])


def _assemble(
    network: RoadNetwork, nodes: _Nodes, edges: _Edges, reached: NDArray[np.bool_], grid: Grid
) -> RouteGraph:
    """The graph of the reached nodes, renumbered; the shape of each edge follows its direction."""
    number = np.cumsum(reached) - 1
    keep = np.flatnonzero(reached[edges.tail] & reached[edges.head])
    road = edges.road[keep]
    inner = np.where(road >= 0, np.diff(network.offsets)[road] - 2, 0)
    offsets = ragged.offsets_of(inner)
    edge, rank = ragged.owners(inner), ragged.ranks(inner)
    backwards = edges.backwards[keep][edge]
    first, last = network.offsets[:-1][road[edge]] + 1, network.offsets[1:][road[edge]] - 2
    vertex = np.where(backwards, last - rank, first + rank)
    return RouteGraph(
        x_m=nodes.x_m[reached],
        y_m=nodes.y_m[reached],
        tail=number[edges.tail[keep]],
        head=number[edges.head[keep]],
        cost=edges.cost[keep],
        shape_offsets=offsets,
        shape_x_m=network.vertex_x_m[vertex],
        shape_y_m=network.vertex_y_m[vertex],
        loose=nodes.loose[reached],
        block_m=cover_side(grid) * grid.cell_m,
    )

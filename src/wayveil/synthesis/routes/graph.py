"""Graphs for finding routes: nodes with positions in metres, directed edges with a cost and a shape.

Privacy: free (built from estimates and public maps).
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines
from wayveil.core.pyramid import Field, pool
from wayveil.synthesis.routes.settings import GRAPH, ROUTES


@dataclass(frozen=True, eq=False)
class RouteGraph:
    """Nodes, directed edges, and the shape of each edge between its nodes."""

    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    cost: NDArray[np.float64]
    shape_offsets: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    """Edge e has the interior vertices `shape_x_m[shape_offsets[e]:shape_offsets[e + 1]]`; a straight edge has none."""
    shape_x_m: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    shape_y_m: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    loose: NDArray[np.bool_] | None = None
    """Marks nodes that represent a whole block of the grid: a path may pass anywhere inside the block."""
    block_m: float = 0.0
    blocks: tuple[int, int] | None = None
    """(rows, columns) if there is exactly one node per block of a grid, in row-major order."""

    @property
    def nodes(self) -> int:
        return len(self.x_m)

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(np.c_[self.x_m, self.y_m])

    def nearest(self, x_m: NDArray[np.floating], y_m: NDArray[np.floating]) -> NDArray[np.int64]:
        """The node nearest to each position."""
        if self.blocks is not None:
            return self._nearest_of_blocks(x_m, y_m, *self.blocks)
        return np.asarray(self._tree.query(np.c_[x_m, y_m])[1], np.int64)

    def _nearest_of_blocks(
        self, x_m: NDArray[np.floating], y_m: NDArray[np.floating], rows: int, columns: int
    ) -> NDArray[np.int64]:
        """`nearest` on a grid: search the block of each position and all blocks up to two away.

        That suffices: the node of a position's own block is at most √2 block sides away, and nodes three blocks away
        are at least two sides away.
        """
        row = np.clip(y_m // self.block_m, 0, rows - 1).astype(np.int64)
        column = np.clip(x_m // self.block_m, 0, columns - 1).astype(np.int64)
        best = row * columns + column
        least_squared = (self.x_m[best] - x_m) ** 2 + (self.y_m[best] - y_m) ** 2
        for down, right in np.ndindex(5, 5):
            node = np.clip(row + down - 2, 0, rows - 1) * columns + np.clip(column + right - 2, 0, columns - 1)
            squared = (self.x_m[node] - x_m) ** 2 + (self.y_m[node] - y_m) ** 2
            closer = squared < least_squared
            best[closer], least_squared[closer] = node[closer], squared[closer]
        result: NDArray[np.int64] = best
        return result

    def reweighted(self, grid: Grid, multiplier: Field) -> "RouteGraph":
        """The same graph with each edge's cost multiplied by the field's value at the edge's midpoint."""
        middle_x = 0.5 * (self.x_m[self.tail] + self.x_m[self.head])
        middle_y = 0.5 * (self.y_m[self.tail] + self.y_m[self.head])
        return replace(self, cost=self.cost * multiplier.ravel()[grid.index(middle_x, middle_y)])

    @cached_property
    def edges_ending(self) -> NDArray[np.int64]:
        """The edges, sorted by the node at which they end."""
        return np.argsort(self.head, kind="stable")

    @cached_property
    def first_ending(self) -> NDArray[np.int64]:
        """Position in `edges_ending` of the first edge that ends at each node."""
        return np.searchsorted(self.head[self.edges_ending], np.arange(self.nodes))

    @cached_property
    def _by_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Keys of (tail, head) in ascending order, and the edges in that order."""
        key = self.tail * self.nodes + self.head
        order = np.argsort(key, kind="stable")
        return key[order], order

    def edges_between(
        self, tail: NDArray[np.int64], head: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The edge from each tail to each head, and whether there is one."""
        keys, order = self._by_ends
        wanted = tail * self.nodes + head
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return order[at], keys[at] == wanted


def cost_per_metre(graph: RouteGraph) -> float:
    """Median cost per metre of the edges; one metre is added to their lengths, so that none is zero."""
    length = np.hypot(graph.x_m[graph.head] - graph.x_m[graph.tail], graph.y_m[graph.head] - graph.y_m[graph.tail])
    return float(np.median(graph.cost / (length + 1.0)))


def streets_of(graph: RouteGraph) -> NDArray[np.int64]:
    """A street number for each edge; edges in line with each other have the same number.

    Random factors on costs are drawn per street, because independent factors of edges would make routes zigzag. Edges
    of about the same direction are grouped by rectangles of `street_m`, long in that direction and narrow across it.
    """
    dx, dy = (position[graph.head] - position[graph.tail] for position in (graph.x_m, graph.y_m))
    middle_x, middle_y = (0.5 * (position[graph.head] + position[graph.tail]) for position in (graph.x_m, graph.y_m))
    axis = np.rint(np.arctan2(dy, dx) / np.pi * ROUTES.directions).astype(np.int64) % ROUTES.directions
    cos, sin = np.cos(axis * np.pi / ROUTES.directions), np.sin(axis * np.pi / ROUTES.directions)
    long_m, wide_m = ROUTES.street_m
    lengthwise = np.floor((middle_x * cos + middle_y * sin) / long_m).astype(np.int64)
    crosswise = np.floor((middle_y * cos - middle_x * sin) / wide_m).astype(np.int64)
    key = axis
    for part in (lengthwise, crosswise):
        part -= part.min(initial=0)
        key = key * (part.max(initial=0) + 1) + part
    return np.asarray(np.unique(key, return_inverse=True)[1], np.int64)


def edge_lines(graph: RouteGraph) -> Polylines:
    """The shape of each edge, from its tail to its head."""
    offsets = ragged.offsets_of(np.diff(graph.shape_offsets) + 2)
    x, y = np.empty(offsets[-1]), np.empty(offsets[-1])
    first, last = offsets[:-1], offsets[1:] - 1
    inner = np.ones(len(x), bool)
    inner[first] = inner[last] = False
    for line, nodes, shapes in ((x, graph.x_m, graph.shape_x_m), (y, graph.y_m, graph.shape_y_m)):
        line[first], line[last], line[inner] = nodes[graph.tail], nodes[graph.head], shapes
    return Polylines(offsets, x, y)


def relative_density(density: Field) -> tuple[Field, float]:
    """Density relative to its mean at points drawn from it, and a small background value for empty places."""
    total = max(float(density.sum()), 1e-300)
    typical = max(float((density**2).sum()) / total, 1e-300)
    return density / typical, GRAPH.background * total / density.size / typical


def travel_cost(relative: NDArray[np.float64], background: float) -> NDArray[np.float64]:
    """Cost per metre: (ρ + ρ₀)^−½, at most 30. Busy places are cheap, so that routes pass through them."""
    return np.minimum((relative + background + 1e-9) ** -GRAPH.density_power, GRAPH.max_cost)


def grid_graph(grid: Grid, density: Field) -> RouteGraph:
    """Blocks of the grid, each joined to its eight neighbours; a block's node is the centroid of its density."""
    side = block_side(grid)
    relative, background = relative_density(density)
    blocks = pool(relative, side) / side**2
    node_x, node_y = block_centres(grid, density, side)
    block_cost = travel_cost(blocks, background).ravel()
    rows, columns = blocks.shape
    index = np.arange(rows * columns).reshape(rows, columns)
    tails, heads = [], []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        tails.append(index[: rows - down, max(0, -right) : columns - max(0, right)].ravel())
        heads.append(index[down:, max(0, right) : columns + min(0, right)].ravel())
    tail, head = np.concatenate(tails), np.concatenate(heads)
    length = np.hypot(node_x[tail] - node_x[head], node_y[tail] - node_y[head]) + 1.0
    cost = length * 0.5 * (block_cost[tail] + block_cost[head])
    edges = 2 * len(tail)
    return RouteGraph(
        x_m=node_x,
        y_m=node_y,
        tail=np.r_[tail, head],
        head=np.r_[head, tail],
        cost=np.r_[cost, cost],
        shape_offsets=np.zeros(edges + 1, np.int64),
        loose=np.ones(len(node_x), bool),
        block_m=side * grid.cell_m,
        blocks=blocks.shape,
    )


def block_side(grid: Grid) -> int:
    """Side of a routing block in base cells: the least of 2, 4, 8 … with at most about `GRAPH.max_nodes` blocks."""
    side = 2
    while (grid.columns // side) * (grid.rows // side) > GRAPH.max_nodes:
        side *= 2
    return side


def block_centres(grid: Grid, density: Field, side: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centroid of each block, weighted by squared density: on a street rather than in the middle of the block."""
    weight = density**2 / max(float((density**2).max()), 1e-300) + 1e-12
    total = pool(weight, side)
    x = pool(weight * (np.arange(grid.columns) + 0.5)[None, :], side) / total * grid.cell_m
    y = pool(weight * (np.arange(grid.rows) + 0.5)[:, None], side) / total * grid.cell_m
    return np.minimum(x.ravel(), grid.width_m), np.minimum(y.ravel(), grid.height_m)

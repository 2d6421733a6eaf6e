"""Trees of cheapest paths between some roots and all nodes of a graph, with or without a cost of turns.

Privacy: free (post-processing).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.synthesis.routes.graph import RouteGraph, cost_per_metre, edge_lines
from wayveil.synthesis.routes.settings import ROUTES

Paths = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Offsets and nodes of paths, each from the root of its tree to a node."""

_NO_EDGE = 255
"""Rank that stands for no edge; fewer than 255 edges end at each node."""
_ROOTS_AT_ONCE = 16
"""Roots whose distances to all edges are in memory at the same time."""


class Trees(ABC):
    """Cheapest paths from roots, one tree per root."""

    @abstractmethod
    def paths(self, row: NDArray[np.int64], node: NDArray[np.int64]) -> Paths:
        """The paths in the given trees to the given nodes."""

    @abstractmethod
    def followed_by(self, others: Self) -> Self:
        """These trees and then the others."""


@dataclass(frozen=True, eq=False)
class NodeTrees(Trees):
    """Cheapest paths if turns cost nothing; each row is a tree."""

    predecessor: NDArray[np.int32]
    """(trees, nodes) the node before each node; negative at the root and where there is no path."""

    def paths(self, row: NDArray[np.int64], node: NDArray[np.int64]) -> Paths:
        before, base = self.predecessor.ravel(), row * self.predecessor.shape[1]
        return _traced(node, lambda path, at: before[base[path] + at])

    def followed_by(self, others: Self) -> Self:
        return replace(self, predecessor=np.concatenate([self.predecessor, others.predecessor]))


@dataclass(frozen=True, eq=False)
class TurnTrees(Trees):
    """Cheapest paths if turns cost something: trees of directed edges, because a turn depends on two edges.

    An edge is stored as its rank among the edges that end at the same node, which takes one byte.
    """

    graph: RouteGraph
    root: NDArray[np.int64]
    before: NDArray[np.uint8]
    """(trees, edges) rank of the edge before each edge."""
    last: NDArray[np.uint8]
    """(trees, nodes) rank of the last edge on the path to each node."""

    def paths(self, row: NDArray[np.int64], node: NDArray[np.int64]) -> Paths:
        tail, first, ending = self.graph.tail, self.graph.first_ending, self.graph.edges_ending

        def edge_of(rank: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.where(rank == _NO_EDGE, -1, ending[np.minimum(first[at] + rank, len(ending) - 1)])

        offsets, edges = _traced(
            edge_of(self.last[row, node], node), lambda path, at: edge_of(self.before[row[path], at], tail[at])
        )
        # A path consists of the root and of the heads of its edges.
        counts = np.diff(offsets)
        whole = ragged.offsets_of(counts + 1)
        nodes = np.empty(whole[-1], np.int64)
        nodes[np.arange(len(edges)) + ragged.owners(counts) + 1] = self.graph.head[edges]
        nodes[whole[:-1]] = self.root[row]
        return whole, nodes

    def followed_by(self, others: Self) -> Self:
        return replace(
            self,
            root=np.concatenate([self.root, others.root]),
            before=np.concatenate([self.before, others.before]),
            last=np.concatenate([self.last, others.last]),
        )


def trees_from(graph: RouteGraph, roots: NDArray[np.int64]) -> Trees:
    """Cheapest paths from each root to all nodes.

    On a map, a right angle costs as much as `ROUTES.turn_m` metres: without a cost of turns, noise in the density makes
    routes change between parallel streets. On a grid, turns cost nothing: blocks do not show where a path turns.
    """
    if graph.blocks is not None:
        return NodeTrees(_predecessors(graph, roots))
    return _turn_trees(graph, roots)


def trees_to(graph: RouteGraph, roots: NDArray[np.int64]) -> NodeTrees:
    """Cheapest paths from all nodes to each root, each listed from the root; turns cost nothing."""
    return NodeTrees(_predecessors(graph, roots, backwards=True))


def _predecessors(graph: RouteGraph, roots: NDArray[np.int64], backwards: bool = False) -> NDArray[np.int32]:
    ends = (graph.head, graph.tail) if backwards else (graph.tail, graph.head)
    matrix = _matrix(graph.cost, ends, graph.nodes)
    result: NDArray[np.int32] = _dijkstra(matrix, roots)[1]
    return result


def _turn_trees(graph: RouteGraph, roots: NDArray[np.int64]) -> TurnTrees:
    """Dijkstra's algorithm on a graph with one state per directed edge, and one per root."""
    edges, count = len(graph.tail), len(roots)
    tree, leaving = _edges_leaving(graph, roots)
    before, after = _turns(graph)
    turn_cost = ROUTES.turn_m * cost_per_metre(graph) * _sharpness(graph, before, after)
    matrix = _matrix(
        np.r_[graph.cost[after] + turn_cost, graph.cost[leaving]],
        (np.r_[before, edges + tree], np.r_[after, leaving]),
        edges + count,
    )
    rank = np.empty(edges + count, np.uint8)
    rank[graph.edges_ending] = np.arange(edges) - graph.first_ending[graph.head[graph.edges_ending]]
    rank[edges:] = _NO_EDGE
    result = TurnTrees(graph, roots, np.empty((count, edges), np.uint8), np.empty((count, graph.nodes), np.uint8))
    for first in range(0, count, _ROOTS_AT_ONCE):
        some = slice(first, min(first + _ROOTS_AT_ONCE, count))
        cost, predecessor = _dijkstra(matrix, np.arange(edges + some.start, edges + some.stop))
        result.before[some] = rank[np.where(predecessor < 0, edges, predecessor)[:, :edges]]
        result.last[some] = _cheapest_ending(graph, cost[:, :edges])
    result.last[np.arange(count), roots] = _NO_EDGE
    return result


def _cheapest_ending(graph: RouteGraph, cost: NDArray[np.float64]) -> NDArray[np.uint8]:
    """(trees, nodes) rank of the cheapest edge that ends at each node."""
    number = np.diff(np.r_[graph.first_ending, len(graph.head)])
    best = cost[:, graph.edges_ending[np.minimum(graph.first_ending, len(graph.head) - 1)]]
    result = np.zeros(best.shape, np.uint8)
    for rank in range(1, number.max()):
        node = np.flatnonzero(number > rank)
        other = cost[:, graph.edges_ending[graph.first_ending[node] + rank]]
        cheaper = other < best[:, node]
        result[:, node] = np.where(cheaper, rank, result[:, node])
        best[:, node] = np.where(cheaper, other, best[:, node])
    return result


def _turns(graph: RouteGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of edges that follow each other, without U-turns."""
    before, after = _edges_leaving(graph, graph.head)
    onwards = graph.tail[before] != graph.head[after]
    return before[onwards], after[onwards]


def _edges_leaving(graph: RouteGraph, node: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The edges that leave each of the given nodes: the position in `node`, and the edge."""
    order = np.argsort(graph.tail, kind="stable")
    offsets = np.searchsorted(graph.tail[order], np.arange(graph.nodes + 1))
    own, at = ragged.take(offsets, node)
    return ragged.owners(np.diff(own)), order[at]


def _sharpness(graph: RouteGraph, before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.float64]:
    """1 − cos θ of each turn by θ: 0 straight ahead, 1 for a right angle; 0 in a block, where paths are unknown."""
    lines = edge_lines(graph)
    first, last = lines.offsets[:-1], lines.offsets[1:] - 1

    def direction(step: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.arctan2(np.diff(lines.y_m)[step], np.diff(lines.x_m)[step])

    sharpness = 1 - np.cos(direction(first)[after] - direction(last - 1)[before])
    if graph.loose is not None:
        sharpness[graph.loose[graph.head[before]]] = 0.0
    return sharpness


def _traced(
    last: NDArray[np.int64], before: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.integer[Any]]]
) -> Paths:
    """Follow all paths back from their last states at once, one step at a time, until the state is negative."""
    active, current = np.flatnonzero(last >= 0), last[last >= 0].astype(np.int64)
    count = np.zeros(len(last), np.int64)
    visits = []
    while len(active):
        visits.append((active, current))
        count[active] += 1
        previous = before(active, current)
        unfinished = np.flatnonzero(previous >= 0)
        active, current = active[unfinished], previous[unfinished].astype(np.int64)
    offsets = ragged.offsets_of(count)
    states = np.empty(offsets[-1], np.int64)
    for back, (path, state) in enumerate(visits):
        states[offsets[path + 1] - 1 - back] = state
    return offsets, states


def _matrix(cost: NDArray[np.float64], ends: tuple[NDArray[np.int64], NDArray[np.int64]], size: int) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix((cost, ends), shape=(size, size))


def _dijkstra(matrix: Any, roots: NDArray[np.int64]) -> Any:
    from scipy.sparse.csgraph import dijkstra

    return dijkstra(matrix, directed=True, indices=roots, return_predecessors=True)

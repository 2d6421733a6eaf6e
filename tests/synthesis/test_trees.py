"""Trees of cheapest paths, with and without a cost of turns."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayveil.core.grid import Grid
from wayveil.synthesis.routes.graph import RouteGraph, cost_per_metre, grid_graph
from wayveil.synthesis.routes.settings import ROUTES
from wayveil.synthesis.routes.trees import NodeTrees, TurnTrees, trees_from, trees_to


def graph_of(x, y, edges, cost=None):
    tail, head = np.array(edges, np.int64).T
    x, y = np.array(x, float), np.array(y, float)
    cost = np.hypot(x[tail] - x[head], y[tail] - y[head]) + 1.0 if cost is None else np.array(cost, float)
    return RouteGraph(x, y, tail, head, cost, np.zeros(len(tail) + 1, np.int64))


def street_grid(side):
    """Streets of a square town with blocks of 100 m; all edges go both ways."""
    edges = []
    for row in range(side):
        for column in range(side):
            node = row * side + column
            edges += [(node, node + 1)] * (column + 1 < side) + [(node, node + side)] * (row + 1 < side)
    x, y = np.meshgrid(np.arange(side) * 100.0, np.arange(side) * 100.0)
    return graph_of(x.ravel(), y.ravel(), edges + [edge[::-1] for edge in edges])


def path(trees, node, row=0):
    offsets, nodes = trees.paths(np.array([row]), np.array([node]))
    assert offsets.tolist() == [0, len(nodes)]
    return nodes.tolist()


def price(graph, nodes):
    """Cost of the edges and turns of a path."""
    cost = {(t, h): c for t, h, c in zip(graph.tail.tolist(), graph.head.tolist(), graph.cost.tolist(), strict=True)}
    total = sum(cost[step] for step in pairwise(nodes))
    for a, b, c in zip(nodes, nodes[1:], nodes[2:], strict=False):
        into, out = (
            np.array([graph.x_m[q] - graph.x_m[p], graph.y_m[q] - graph.y_m[p]]) for p, q in ((a, b), (b, c))
        )
        cosine = into @ out / np.linalg.norm(into) / np.linalg.norm(out)
        total += ROUTES.turn_m * cost_per_metre(graph) * (1 - cosine)
    return total


def simple_paths(graph, start, end, walked=()):
    walked = (*walked, start)
    if start == end:
        yield list(walked)
        return
    for head in graph.head[graph.tail == start].tolist():
        if head not in walked:
            yield from simple_paths(graph, head, end, walked)


def test_blocks_of_a_grid_have_no_turns():
    trees = trees_from(grid_graph(Grid(100.0, 8, 8, 800.0, 800.0), np.ones((8, 8))), np.array([0]))
    assert isinstance(trees, NodeTrees)
    assert path(trees, 15) == [0, 5, 10, 15] and path(trees, 0) == [0]


def test_a_path_changes_streets_once_instead_of_often():
    graph = street_grid(5)
    noise = np.exp(0.1 * np.random.default_rng(0).standard_normal(len(graph.cost)))
    nodes = path(trees_from(replace(graph, cost=graph.cost * noise), np.array([0])), 24)
    steps = np.diff(nodes)
    assert nodes[0] == 0 and nodes[-1] == 24 and (np.diff(steps) != 0).sum() == 1


def test_a_path_to_its_own_root_is_the_root():
    trees = trees_from(street_grid(3), np.array([4, 0]))
    assert path(trees, 4, row=0) == [4] and path(trees, 0, row=1) == [0]


def test_joined_trees_have_the_same_paths():
    graph = street_grid(4)
    both = trees_from(graph, np.array([0, 5])).followed_by(trees_from(graph, np.array([15])))
    alone = trees_from(graph, np.array([0, 5, 15]))
    assert isinstance(both, TurnTrees)
    for row in range(3):
        for node in range(16):
            assert price(graph, path(both, node, row)) == pytest.approx(price(graph, path(alone, node, row)))


def test_one_way_streets_are_followed_in_their_direction():
    """A ring 0-1-2-3 in one direction only."""
    graph = graph_of([0, 100, 100, 0], [0, 0, 100, 100], [(0, 1), (1, 2), (2, 3), (3, 0)])
    assert path(trees_from(graph, np.array([0])), 3) == [0, 1, 2, 3]
    assert path(trees_to(graph, np.array([0])), 3) == [0, 3]  # backwards: from 3 to 0


@given(
    seed=st.integers(0, 10_000),
    nodes=st.integers(3, 6),
    extra=st.integers(0, 8),
)
def test_no_path_is_cheaper_when_turns_are_counted(seed, nodes, extra):
    random = np.random.default_rng(seed)
    ring = [(k, (k + 1) % nodes) for k in range(nodes)]
    pairs = {tuple(random.choice(nodes, 2, replace=False).tolist()) for _ in range(extra)}
    edges = sorted(set(ring) | pairs)
    graph = graph_of(*random.uniform(0, 1000, (2, nodes)), edges, random.uniform(10, 1000, len(edges)))
    trees = trees_from(graph, np.arange(nodes))
    for start in range(nodes):
        for end in range(nodes):
            found = path(trees, end, row=start)
            best = min(price(graph, nodes) for nodes in simple_paths(graph, start, end))
            assert found[0] == start and found[-1] == end and price(graph, found) <= best + 1e-6

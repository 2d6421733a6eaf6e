"""Shortest routes through the city: shortest-path trees of the destinations, followed for many trips at once."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import ROAD_CLASSES
from wayveil.simulate.city import City
from wayveil.simulate.streets import Streets

FREE_KMH = {"motorway": 68.0, "primary": 51.0, "secondary": 43.0, "tertiary": 37.0, "residential": 24.0}
"""Free-flow speed by class, below the speed limit."""
DRIVER_TYPES = 2
"""Number of driver types with different route costs."""
KEEP_AWAY_M = 25.0
"""Drivers stay this far from a closed area, so that GPS noise does not put them inside."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """The streets by direction: arc a runs from `start[a]` to `end[a]` along `edge[a]`, reversed if `back[a]`."""

    nodes: int
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    edge: NDArray[np.int64]
    back: NDArray[np.bool_]
    key: NDArray[np.int64]
    """start · nodes + end, sorted."""

    def find(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
        """The arc between two neighbouring nodes."""
        return np.searchsorted(self.key, start * self.nodes + end)


def arcs_of(streets: Streets) -> Arcs:
    """Both directions of each street, but only one of a one-way street."""
    edges = np.arange(len(streets))
    both = edges[~streets.oneway]
    start, end = np.r_[streets.start, streets.end[both]], np.r_[streets.end, streets.start[both]]
    edge, back = np.r_[edges, both], np.r_[np.zeros(len(edges), bool), np.ones(len(both), bool)]
    nodes = len(streets.node_xy)
    key = start * nodes + end
    order = np.argsort(key, kind="stable")
    return Arcs(nodes, start[order], end[order], edge[order], back[order], key[order])


@dataclass(frozen=True, eq=False)
class Router:
    """Shortest-path trees to and from the anchors, by closed areas and driver type.

    A tree is computed at first use.
    """

    city: City
    arcs: Arcs
    anchors: NDArray[np.int64]
    """(anchors,) their nodes."""
    blocked: NDArray[np.bool_]
    """(closures, edges) whether an edge comes too near to a closed area."""
    cost_s: NDArray[np.float64]
    """(driver types, edges) seconds, junctions included."""
    _trees: dict[tuple[int, int], tuple[NDArray[np.int32], NDArray[np.int32]]] = field(default_factory=dict)

    def trees(self, closed: int, driver_type: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(before, after), each (anchors, nodes): previous node on the route from an anchor, next node on that to it.

        Bit k of `closed` is set if closure k applies. -9999 if there is no route.
        """
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import dijkstra

        if (closed, driver_type) not in self._trees:
            arcs, is_closed = self.arcs, np.zeros(len(self.city.streets), bool)
            for k in range(len(self.blocked)):
                if closed >> k & 1:
                    is_closed |= self.blocked[k]
            open_arcs = ~is_closed[arcs.edge]
            cost = self.cost_s[driver_type][arcs.edge][open_arcs]
            start, end = arcs.start[open_arcs], arcs.end[open_arcs]
            pair = []
            for a, b in ((start, end), (end, start)):
                graph = csr_matrix((cost, (a, b)), (arcs.nodes, arcs.nodes))
                pair.append(dijkstra(graph, indices=self.anchors, return_predecessors=True)[1])
            self._trees[closed, driver_type] = (pair[0], pair[1])
        return self._trees[closed, driver_type]


def make_router(city: City, anchors: NDArray[np.int64], rng: np.random.Generator) -> Router:
    """A router with its costs: seconds on empty streets, slightly perturbed for each driver type."""
    import shapely

    streets = city.streets
    lines = shapely.linestrings(streets.xy, indices=ragged.owners(np.diff(streets.offsets)))
    blocked = np.array(
        [shapely.intersects(lines, closure.polygon.buffer(KEEP_AWAY_M)) for closure in city.closures], dtype=bool
    ).reshape(len(city.closures), len(streets))
    seconds = streets.length_m / free_speed_mps(streets)
    # 8 s per junction, so that routes do not zigzag through small streets; 25 s on a motorway, for its ramps
    junction = np.where(streets.road_class == 0, 25.0, 8.0)
    cost = np.array([(seconds + junction) * np.exp(rng.normal(0, 0.22, len(streets))) for _ in range(DRIVER_TYPES)])
    return Router(city, arcs_of(streets), anchors, blocked, cost)


def free_speed_mps(streets: Streets) -> NDArray[np.float64]:
    """(edges,) speed on an empty street."""
    return np.array([FREE_KMH.get(name, 20.0) for name in ROAD_CLASSES])[streets.road_class] / 3.6


def walk(
    router: Router,
    anchor: NDArray[np.int64],
    node: NDArray[np.int64],
    to_anchor: NDArray[np.bool_],
    closed: NDArray[np.int64],
    driver_type: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Routes between an anchor (by its number) and a node for many trips: (offsets, arcs); no arcs if unreachable."""
    n = len(anchor)
    here = node.astype(np.int64).copy()
    goal = router.anchors[anchor]
    columns = [here.copy()]
    groups = [
        (rows, router.trees(int(c), int(t))[1 if outward else 0])
        for c, t, outward in {tuple(g) for g in zip(closed.tolist(), driver_type.tolist(), to_anchor.tolist())}
        if len(rows := np.flatnonzero((closed == c) & (driver_type == t) & (to_anchor == outward)))
    ]
    active = np.ones(n, bool)
    while active.any():
        onward = np.full(n, -1, np.int64)
        for rows, tree in groups:
            walking = rows[active[rows]]
            onward[walking] = tree[anchor[walking], here[walking]]
        onward[here == goal] = -1
        active &= onward >= 0
        here = np.where(active, onward, here)
        columns.append(np.where(active, here, -1))
    visited = np.column_stack(columns[:-1]) if len(columns) > 1 else np.column_stack(columns)
    arrived = here == goal
    count = np.where(arrived, (visited >= 0).sum(axis=1) - 1, 0)
    # routes from an anchor were followed backwards
    row, k, offsets = ragged.owners(count), ragged.ranks(count), ragged.offsets_of(count)
    backwards = ~to_anchor[row]
    first = np.where(backwards, visited[row, count[row] - k], visited[row, k])
    second = np.where(backwards, visited[row, count[row] - k - 1], visited[row, k + 1])
    return offsets, router.arcs.find(first, second)

"""DP-Star (Gursoy, Liu, Truex, Yu: IEEE TMC 2019), reimplemented from the paper.

Trajectories are reduced to characteristic points by minimum description length. The model consists of an adaptive grid,
the distribution of trips (pairs of start leaf and end leaf), a first-order Markov chain, and for each trip the median
number of cells by the exponential mechanism. Each walk gets a trip and a length from the exponential distribution with
that median; its steps are drawn by P(next | current) · P(end in the remaining steps).

The authors choose a median for each pair of leaves; here there is one for each pair of coarse cells, because most pairs
of leaves have no trajectory. Only the published mode chooses medians by the exponential mechanism; the default mode
uses report noisy max. Negative trip counts are cut at zero in the published mode, because its utility scores are then
closest to those of the authors' own code.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.bridges import Chain, bridge
from wayveil.baselines.grid import Routes, TwoLevelGrid, draw_systematic, norm_sub, trace, uniform_grid
from wayveil.baselines.markov import Edges
from wayveil.baselines.mechanism import Features, by_trajectory
from wayveil.baselines.method import Method, Run
from wayveil.baselines.sequences import drawn_points
from wayveil.baselines.simplify import characteristic
from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ACROSS = 6
"""Cells of the coarse grid in each direction."""
MOST_SPLITS = 4
"""Maximum number of fine cells along the side of a coarse one."""
VISITS_PER_LEAF = 10.0
"""Constant c of adaptive grids (Qardaji, Yang, Li: ICDE 2013): a coarse cell of noisy count N is split into
sqrt(N ε / c) parts in each direction."""
LONGEST = 24
"""Maximum number of cells of a route; larger numbers are reduced to it."""
_SHARES = {"grid": "1", "trips": "3", "mobility": "4", "lengths": "1"}


def _make(run: Run) -> Trajectories:
    count = run.count()
    data = characteristic(*run.data)
    grid = _grid(run, data, count)
    routes = trace(*data, grid, 0.5 * float(min(grid.rectangles[2].min(), grid.rectangles[3].min())))
    leaves, everyone = grid.leaves, np.arange(len(routes))
    trips = run.mechanism.sums(
        "trips", Features(everyone, routes.start * leaves + routes.end, np.ones(len(routes))), leaves**2
    )
    trips = np.maximum(trips, 0.0) if run.published else norm_sub(trips, count)
    edges = Edges.of(*grid.neighbours, leaves)
    flow = _mobility(run, routes, edges)
    pair = draw_systematic(trips, run.size(count), run.rng)
    start, end = pair // leaves, pair % leaves
    typical = _medians(run, routes, grid)[grid.cell_of_leaf[start] * ACROSS**2 + grid.cell_of_leaf[end]]
    cells = _numbers_of_cells(edges, leaves, start, end, np.ceil(run.rng.exponential(typical / np.log(2.0))))
    visited = bridge(_chain(edges, flow, leaves), start, end, cells, LONGEST, run.rng)
    visited[cells == 1, 1] = visited[cells == 1, 0]
    return drawn_points(run, grid, visited)


def _grid(run: Run, data: tuple[Ints, Floats, Floats], count: float) -> TwoLevelGrid:
    """Coarse cells, split according to a noisy count: each trajectory divides a weight of 1 among its points' cells."""
    offsets, x_m, y_m = data
    coarse = uniform_grid(run.box, ACROSS)
    owner = ragged.owners(np.diff(offsets))
    visits = norm_sub(run.mechanism.sums("grid", by_trajectory(owner, coarse.locate(x_m, y_m)), ACROSS**2), count)
    splits = np.round(np.sqrt(visits * run.mechanism.epsilon("grid") / VISITS_PER_LEAF))
    return TwoLevelGrid(run.box, ACROSS, np.clip(splits, 1, MOST_SPLITS).astype(np.int64))


def _mobility(run: Run, routes: Routes, edges: Edges) -> Floats:
    """Weight of each step between touching leaves; each trajectory's steps weigh 1 together."""
    owner, source, target = routes.moves()
    edge = edges.find(source, target)
    known = edge >= 0
    noisy = run.mechanism.sums("mobility", by_trajectory(owner[known], edge[known]), max(len(edges.source), 1))
    return np.maximum(noisy[: len(edges.source)], 0.0) + 1e-6


def _medians(run: Run, routes: Routes, grid: TwoLevelGrid) -> Floats:
    """(coarse pairs,) median number of cells: the score of k is −|number of shorter − number of longer trajectories|.

    One trajectory changes the scores of its own pair, each by at most 1.
    """
    coarse = grid.cell_of_leaf
    pair = coarse[routes.start] * ACROSS**2 + coarse[routes.end]
    size = np.minimum(routes.size, LONGEST) - 1
    table = np.bincount(pair * LONGEST + size, minlength=ACROSS**4 * LONGEST).reshape(-1, LONGEST)
    below = np.cumsum(table, axis=1) - table
    longer = table.sum(1, keepdims=True) - table - below
    chosen = run.mechanism.choose("lengths", -np.abs(below - longer), 1)
    return 1.0 + chosen.astype(np.float64)


def _chain(edges: Edges, flow: Floats, leaves: int) -> Chain:
    width = max(int(edges.degree.max(initial=1)), 1)
    exists = np.arange(width)[None] < edges.degree[:, None]
    target, weight = np.zeros((leaves, width), np.int64), np.zeros((leaves, width))
    target[exists], weight[exists] = edges.target, flow
    weight /= np.maximum(weight.sum(1, keepdims=True), 1e-12)
    return Chain(target, weight)


def _numbers_of_cells(edges: Edges, leaves: int, start: Ints, end: Ints, drawn: Floats) -> Ints:
    """The drawn numbers of cells, but at least those of a shortest route."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import shortest_path

    graph = csr_matrix((np.ones(len(edges.source)), (edges.source, edges.target)), shape=(leaves, leaves))
    hops = shortest_path(graph, unweighted=True)[start, end] + 1
    cells = np.clip(np.maximum(drawn, np.where(np.isfinite(hops), hops, 1)), 1, LONGEST).astype(np.int64)
    # Leaving a cell and coming back takes three cells.
    return np.where((start == end) & (cells == 2), 1, cells)


dp_star = Method(
    name="dp-star",
    reference="Gursoy, Liu, Truex, Yu: IEEE TMC 2019",
    idea="Characteristic points, adaptive grid, trips, Markov chain, and median lengths by the exponential mechanism.",
    protects="one trajectory, added or removed",
    proof="A trajectory weighs at most 1 in four sums and changes one row of scores by 1; the shares add up.",
    leaks="Not private: box and number of trajectories are exact; noise is floating-point.",
    shares={"count": "0.3", **_SHARES},
    published_shares=_SHARES,
    make=_make,
)

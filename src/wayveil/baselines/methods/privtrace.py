"""PrivTrace (Wang, Zhang, Chen, Sun, Backes, Zhang: USENIX Security 2023), reimplemented from the paper.

A two-level grid, a first-order Markov chain with virtual start and end, second-order counts for the states where they
matter, the distribution of trips by a convex fit of the noisy margins, and walks that mix both orders.

As we read it, the paper leaves open how many visits a leaf should have, where the convex fit starts, and how strongly a
walk is drawn towards its end. These three constants (80; 0.7 and 0.5 in `markov`) were chosen so that the published
mode scores like the authors' own code on public data; `research/benchmarks/baseline_fidelity.py` shows how close it
comes. Only the score `relation` remains far off; a finer coarse grid, sized by the number of points, helps but does not
close the gap.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.coordinates import Metres
from wayveil.baselines.grid import Box, Routes, TwoLevelGrid, norm_sub, trace, uniform_grid
from wayveil.baselines.markov import Chain, Edges, SecondOrder, make_chain, trip_distribution, walk
from wayveil.baselines.mechanism import Mechanism, by_trajectory
from wayveil.baselines.method import Method, Run
from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PUBLISHED_SHARES = {"grid": "0.2", "first order": "0.4", "second order": "0.4"}
SOUND_SHARES = {"count": "0.03", "grid": "0.17", "first order": "0.4", "second order": "0.4"}
_TRAJECTORIES_PER_CELL = 500.0
"""Trajectories per coarse cell."""
_VISITS_PER_LEAF = 80.0
"""Noisy visits of a leaf; see above."""
_LEAVES = 1_500.0
"""Approximate limit on the number of leaves: the matrix of the chain is inverted, so it must stay small."""
_MOST_ACROSS, _MOST_SPLITS = 24, 12
"""Limits on coarse cells along a side and on splits of a cell, for the same reason."""
LEAKS = (
    "Not private: box and number of trajectories are exact; the grid's size comes from the exact number; only the "
    "transitions that occur in the raw data are given noise; noise is floating-point."
)


def _make(run: Run) -> Trajectories:
    mechanism, published, rng = run.mechanism, run.published, run.rng
    count = run.count()
    grid = _grid(run.data, run.box, count, mechanism)
    # The authors use the recorded points only, so a transition may skip cells.
    apart_m = np.inf if published else 0.5 * float(min(grid.rectangles[2].min(), grid.rectangles[3].min()))
    routes = trace(*run.data, grid, apart_m)
    run.progress("privtrace", 0.3)
    chain = _first_order(routes, grid, count, mechanism, published)
    second = _second_order(routes, chain, mechanism, published)
    run.progress("privtrace", 0.5)
    offsets, leaf = walk(chain, second, trip_distribution(chain), run.size(count), rng)
    return run.made(offsets, *grid.draw(leaf, rng))


def _grid(data: Metres, box: Box, count: float, mechanism: Mechanism) -> TwoLevelGrid:
    """K = sqrt(m / 500) cells across; cells are split again, by the square root of their noisy visits."""
    offsets, x_m, y_m = data
    across = int(np.clip(round(np.sqrt(count / _TRAJECTORIES_PER_CELL)), 1, _MOST_ACROSS))
    coarse = uniform_grid(box, across)
    owner = ragged.owners(np.diff(offsets))
    visits = norm_sub(mechanism.sums("grid", by_trajectory(owner, coarse.locate(x_m, y_m)), across**2), count)
    visits_per_leaf = max(_VISITS_PER_LEAF, count / _LEAVES)
    splits = np.clip(np.round(np.sqrt(visits / visits_per_leaf)), 1, _MOST_SPLITS).astype(np.int64)
    return TwoLevelGrid(box, across, splits)


def _first_order(routes: Routes, grid: TwoLevelGrid, count: float, mechanism: Mechanism, published: bool) -> Chain:
    """The chain of noisy starts, moves and ends, which weigh 1 together for each trajectory."""
    owner, source, target = routes.moves()
    if published:
        pairs = np.unique(source * grid.leaves + target)
        edges = Edges.of(pairs // grid.leaves, pairs % grid.leaves, grid.leaves)
    else:
        edges = Edges.of(*grid.neighbours, grid.leaves)
    edge = edges.find(source, target)
    known = edge >= 0
    everyone, s = np.arange(len(routes)), grid.leaves
    features = by_trajectory(
        np.concatenate([everyone, everyone, owner[known]]),
        np.concatenate([routes.start, s + routes.end, 2 * s + edge[known]]),
    )
    noisy = mechanism.sums("first order", features, 2 * s + len(edges.source))
    if published:
        occurs = np.bincount(features.bin, minlength=len(noisy)) > 0
        weight = np.zeros(len(noisy))
        weight[occurs] = norm_sub(noisy[occurs], count)
    else:
        weight = norm_sub(noisy, count)
    return make_chain(edges, weight[:s], weight[s : 2 * s], weight[2 * s :])


def _second_order(routes: Routes, chain: Chain, mechanism: Mechanism, published: bool) -> SecondOrder:
    """Counts of (before, at, after) for the chosen states; each trajectory's weigh 1 together."""
    second = SecondOrder.choose(chain, 1.0 / mechanism.epsilon("second order"))
    owner, before, at, after = routes.double_moves()
    code = second.code(before, at, after)
    known = code >= 0
    noisy = mechanism.sums("second order", by_trajectory(owner[known], code[known]), max(second.size, 1))
    if published:
        noisy = np.where(np.bincount(code[known], minlength=len(noisy)) > 0, noisy, 0.0)
    return second.with_counts(noisy[: second.size], chain)


privtrace = Method(
    name="privtrace",
    reference="Wang, Zhang, Chen, Sun, Backes, Zhang: USENIX Security 2023",
    idea="Two-level grid, first-order chain with start and end, second order where it matters, trips by a convex fit.",
    protects="one trajectory, added or removed",
    proof="Each trajectory weighs at most 1 in each of four vectors of sums, and their shares add up to epsilon.",
    leaks=LEAKS,
    shares=SOUND_SHARES,
    published_shares=PUBLISHED_SHARES,
    make=_make,
)

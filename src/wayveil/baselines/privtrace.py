"""PrivTrace (Wang, Zhang, Chen, Sun, Backes, Zhang: USENIX Security 2023), our own code from the paper.

A two-level grid, a first-order Markov chain with virtual start and end, second-order counts for the states where they
matter, the distribution of trips by a convex fit of the noisy margins, and walks that mix both orders.

The paper's text leaves the visits a leaf should have, the start of the convex fit and the walk's pull towards its end
open (or we read it so). These three constants (80; 0.7 and 0.5 in `chain`) were chosen so that the published mode
scores like the authors' own code on public data; `research/benchmarks/baseline_fidelity.py` shows how near it comes.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.coordinates import Metres, from_points, in_metres, output_size
from wayveil.baselines.grid import Box, Routes, TwoLevelGrid, norm_sub, trace, uniform_grid
from wayveil.baselines.markov import Chain, Edges, SecondOrder, make_chain, trip_distribution, walk
from wayveil.baselines.mechanism import (
    Account,
    Features,
    Mechanism,
    by_trajectory,
    published_mechanism,
    sound_mechanism,
)
from wayveil.baselines.result import NO_TIME, ONE_TRAJECTORY, BaselineResult
from wayveil.core import ragged
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.privacy.budget import Number
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.noise import NoiseSource
from wayveil.progress import Progress, quiet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PUBLISHED_SHARES = {"grid": "0.2", "first order": "0.4", "second order": "0.4"}
SOUND_SHARES = {"count": "0.03", "grid": "0.17", "first order": "0.4", "second order": "0.4"}
_TRAJECTORIES_A_CELL = 500.0
_VISITS_A_LEAF, _LEAVES = 80.0, 1_500.0
_MOST_ACROSS, _MOST_SPLITS = 24, 12
_LEAKS = (
    "Not private: box and number of trajectories are exact, the grid's size comes from the exact number, only the "
    "transitions that occur in the raw data are given noise, noise is floating-point."
)


def privtrace(
    trajectories: Trajectories,
    scope: Scope,
    epsilon: Number,
    *,
    published: bool = False,
    seed: int | None = None,
    n: int | None = None,
    noise: NoiseSource | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    progress: Progress = quiet,
) -> BaselineResult:
    """Synthetic trajectories by PrivTrace.

    Parameters
    ----------
    published
        True follows the authors: box and count of the data, noise only on transitions that occur; not private.
        False closes these leaks: the scope's box, a noisy count, noise on every transition between touching cells
        (a set that the noisy grid alone decides), integer noise.
    seed
        Seed of the walks and, in the published mode, of the noise. The noise of the sound mode has no seed.
    n
        Number of trajectories to make; None = the (noisy) count.
    noise
        Source of the sound mode's noise; anything but the default makes the result not private.
    ledger, dataset
        The account that is charged. Without a ledger nothing is recorded, and the caller is responsible for
        composition.

    Privacy: spends `epsilon` for one trajectory (add or remove); with `published`, not private.
    """
    rng = np.random.default_rng(seed)
    account = Account(noise, ledger, dataset)
    mechanism: Mechanism
    if published:
        mechanism = published_mechanism(epsilon, PUBLISHED_SHARES, rng, account)
    else:
        mechanism = sound_mechanism("privtrace", epsilon, SOUND_SHARES, account)
    progress("privtrace", 0.0)
    box, data = in_metres(trajectories, scope, published)
    count = _count(len(data[0]) - 1, mechanism, published)
    grid = _grid(data, box, count, mechanism)
    # The authors look at the sample points only; a transition may then leap over cells.
    apart_m = np.inf if published else 0.5 * float(min(grid.rectangles[2].min(), grid.rectangles[3].min()))
    routes = trace(*data, grid, apart_m)
    progress("privtrace", 0.3)
    chain = _first_order(routes, grid, count, mechanism, published)
    second = _second_order(routes, chain, mechanism, published)
    progress("privtrace", 0.5)
    size = output_size(n, count)
    offsets, leaf = walk(chain, second, trip_distribution(chain), size, rng)
    made = from_points(offsets, *grid.draw(leaf, rng), scope)
    progress("privtrace", 1.0)
    return BaselineResult(
        made, mechanism.private, tuple(mechanism.lines), (_LEAKS if published else ONE_TRAJECTORY, NO_TIME)
    )


def _count(m: int, mechanism: Mechanism, published: bool) -> float:
    if published:
        return float(m)
    everyone = np.arange(m)
    return max(1.0, float(mechanism.sums("count", Features(everyone, everyone * 0, np.ones(m)), 1)[0]))


def _grid(data: Metres, box: Box, count: float, mechanism: Mechanism) -> TwoLevelGrid:
    """K = sqrt(m / 500) cells across; cells with many noisy visits are split again, in proportion to their root."""
    offsets, x_m, y_m = data
    across = int(np.clip(round(np.sqrt(count / _TRAJECTORIES_A_CELL)), 1, _MOST_ACROSS))
    coarse = uniform_grid(box, across)
    owner = ragged.owners(np.diff(offsets))
    visits = norm_sub(mechanism.sums("grid", by_trajectory(owner, coarse.locate(x_m, y_m)), across**2), count)
    a_leaf = max(_VISITS_A_LEAF, count / _LEAVES)  # the chain is inverted, so the leaves stay some thousands at most
    splits = np.clip(np.round(np.sqrt(visits / a_leaf)), 1, _MOST_SPLITS).astype(np.int64)
    return TwoLevelGrid(box, across, splits)


def _first_order(routes: Routes, grid: TwoLevelGrid, count: float, mechanism: Mechanism, published: bool) -> Chain:
    """Starts, moves and ends of each trajectory, which weigh 1 together, over the states and the virtual ends."""
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

"""DPAPT: adaptive cells at each time step and a tree of counts over the steps, reimplemented from its description.

Each trajectory is reduced to T points at equal arc length (T = 2: start and end). Each step has ε/T. Half of it is
spent on counts of coarse cells; dense ones are split (adaptive grids, Qardaji, Yang, Li: ICDE 2013). The other half is
spent on counts of the leaves of this step below each kept node of the previous step; nodes below twice the standard
deviation of the noise are cut. Paths are drawn from the tree.

That ε is halved and that the tree counts leaves is our reading. It was settled by comparison with the scores of an
independent implementation: a tree over the coarse cells has only half of that program's error `trip_1000` at ε = 1.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import TwoLevelGrid, norm_sub, uniform_grid
from wayveil.baselines.mechanism import Features
from wayveil.baselines.method import Method, Run
from wayveil.baselines.records import waypoints
from wayveil.baselines.trees import Level, draw_paths, kept, make_level
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALLEST_ACROSS, LARGEST_ACROSS = 10, 32
"""Smallest and largest number of coarse cells in each direction."""
POINTS_PER_LEAF = 5.0
"""Constant c₂ of adaptive grids: a coarse cell of noisy count N is split into sqrt(N ε / c₂) in each direction."""
MOST_SPLITS = 16
"""Maximum number of fine cells along the side of a coarse one."""


def _make(run: Run, steps: int) -> Trajectories:
    count = run.count()
    x_m, y_m = waypoints(*run.data, steps)
    node, above = np.zeros(run.trajectories, np.int64), np.array([count])
    levels: list[Level] = []
    grids: list[TwoLevelGrid] = []
    for step in range(steps):
        grid = _cells(run, x_m[:, step], y_m[:, step], count, step)
        leaf, size = grid.locate(x_m[:, step], y_m[:, step]), len(above) * grid.leaves
        here = np.flatnonzero(node >= 0)
        features = Features(here, node[here] * grid.leaves + leaf[here], np.ones(len(here)))
        name = f"step {step + 1} tree"
        noisy = run.mechanism.sums(name, features, max(size, 1))[:size]
        code = kept(noisy, 2.0 * np.sqrt(2.0) / run.mechanism.epsilon(name))
        level = make_level(code // grid.leaves, code % grid.leaves, noisy[code], above, grid.leaves)
        levels.append(level)
        grids.append(grid)
        node, above = level.find(node, leaf), level.count
    return _points(run, draw_paths(levels, run.size(count), -1, run.rng), levels, grids)


def _cells(run: Run, x_m: Floats, y_m: Floats, count: float, step: int) -> TwoLevelGrid:
    """The grid of one step: max(10, sqrt(N ε / 10) / 4) coarse cells in each direction, the dense ones split.

    Privacy: spends the share "step i cells".
    """
    name = f"step {step + 1} cells"
    epsilon = run.mechanism.epsilon(name)
    across = int(np.clip(np.ceil(np.sqrt(count * epsilon / 10.0) / 4.0), SMALLEST_ACROSS, LARGEST_ACROSS))
    cell = uniform_grid(run.box, across).locate(x_m, y_m)
    noisy = run.mechanism.sums(name, Features(np.arange(len(cell)), cell, np.ones(len(cell))), across**2)
    noisy = np.maximum(noisy, 0.0) if run.published else norm_sub(noisy, count)
    splits = np.ceil(np.sqrt(noisy * epsilon / POINTS_PER_LEAF))
    return TwoLevelGrid(run.box, across, np.clip(splits, 1, MOST_SPLITS).astype(np.int64))


def _points(run: Run, paths: Ints, levels: list[Level], grids: list[TwoLevelGrid]) -> Trajectories:
    """A point of each step; a path that the tree cuts short continues in a random leaf of that step's counts.

    Privacy: free (post-processing).
    """
    n, steps = paths.shape
    x_m, y_m = np.zeros((2, n, steps))
    for step, (level, grid) in enumerate(zip(levels, grids)):
        weight = np.bincount(level.symbol, level.count, minlength=grid.leaves) + 1e-9
        lost = paths[:, step] < 0
        leaf = paths[:, step].copy()
        leaf[lost] = run.rng.choice(grid.leaves, int(lost.sum()), p=weight / weight.sum())
        x_m[:, step], y_m[:, step] = grid.draw(leaf, run.rng)
    return run.made(np.arange(0, n * steps + 1, steps), x_m.ravel(), y_m.ravel())


def _shares(steps: int, **others: str) -> dict[str, str]:
    rest = (1.0 - sum(float(share) for share in others.values())) / (2 * steps)
    return others | {f"step {i + 1} {kind}": str(rest) for i in range(steps) for kind in ("cells", "tree")}


def dpapt_with(steps: int) -> Method:
    """DPAPT with this many points per trajectory."""
    return Method(
        name="dpapt" if steps == 2 else f"dpapt-{steps}",
        reference="DPAPT (adaptive partition of trajectories at T time steps)",
        idea=f"A tree of counts over {steps} steps on two-level adaptive cells, with epsilon/{steps} for each step.",
        protects="one trajectory, added or removed",
        proof=f"A trajectory is in one cell of each of {2 * steps} counts, and their shares add up to epsilon.",
        leaks="Not private: box and number of trajectories are exact; noise is floating-point.",
        shares=_shares(steps, count="0.03"),
        published_shares=_shares(steps),
        make=partial(_make, steps=steps),
    )


dpapt = dpapt_with(2)
dpapt_4 = dpapt_with(4)
"""With four points; not in the registry, but `wayveil bench` takes it as wayveil.baselines.methods.dpapt:dpapt_4."""

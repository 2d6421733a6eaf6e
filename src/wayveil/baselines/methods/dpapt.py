"""DPAPT: adaptive cells at each time step and a tree of counts over the steps, our own code from its description.

Each trajectory is reduced to T points at equal arc length (T = 2: start and end). Each step has ε/T. Half of it counts,
below each kept node of the step before, the coarse cells of this step; the other half counts the finer cells into which
the dense coarse cells are split (adaptive grids, Qardaji, Yang, Li: ICDE 2013). Paths are read out of the tree, and
each coarse cell is refined by its leaves.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import Box, TwoLevelGrid, norm_sub, uniform_grid
from wayveil.baselines.mechanism import Features
from wayveil.baselines.method import Method, Run
from wayveil.baselines.records import leaf_of_cell, waypoints
from wayveil.baselines.trees import Level, draw_paths, kept, make_level
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALLEST_ACROSS, LARGEST_ACROSS = 10, 32
POINTS_A_LEAF = 5.0
"""Constant c₂ of adaptive grids: a coarse cell of noisy count N is split into sqrt(N ε / c₂) in each direction."""
MOST_SPLITS = 16


def _make(run: Run, steps: int) -> Trajectories:
    count = run.count()
    x_m, y_m = waypoints(*run.data, steps)
    everyone = np.arange(run.trajectories)
    across = _across(count, run.mechanism.epsilon("step 1 coarse"))
    coarse = uniform_grid(run.box, across)
    node, above = np.zeros(run.trajectories, np.int64), np.array([count])
    levels: list[Level] = []
    grids: list[tuple[TwoLevelGrid, Floats]] = []
    for step in range(steps):
        name = f"step {step + 1} coarse"
        cell = coarse.locate(x_m[:, step], y_m[:, step])
        here = node >= 0
        features = Features(everyone[here], node[here] * across**2 + cell[here], np.ones(here.sum()))
        noisy = run.mechanism.sums(name, features, max(len(above) * across**2, 1))
        if step == 0:
            noisy = np.maximum(noisy, 0.0) if run.published else norm_sub(noisy, count)
            code = np.flatnonzero(noisy > 0)
        else:
            code = kept(noisy[: len(above) * across**2], np.sqrt(2.0) / run.mechanism.epsilon(name))
        level = make_level(code // across**2, code % across**2, noisy[code], above, across**2)
        levels.append(level)
        node, above = level.find(node, cell), level.count
        grids.append(_leaves(run, run.box, across, level, x_m[:, step], y_m[:, step], f"step {step + 1} fine"))
    paths = draw_paths(levels, run.size(count), -1, run.rng)
    return _points(run, paths, grids, across)


def _across(count: float, epsilon: float) -> int:
    """m₁ = max(10, sqrt(N ε / 10) / 4) coarse cells in each direction."""
    return int(np.clip(np.ceil(np.sqrt(count * epsilon / 10.0) / 4.0), SMALLEST_ACROSS, LARGEST_ACROSS))


def _leaves(
    run: Run, box: Box, across: int, level: Level, x_m: Floats, y_m: Floats, name: str
) -> tuple[TwoLevelGrid, Floats]:
    """The split grid of one step, by the noisy counts of its coarse cells, and the noisy weights of its leaves."""
    total = np.bincount(level.symbol, level.count, minlength=across**2)
    splits = np.ceil(np.sqrt(np.maximum(total, 0.0) * run.mechanism.epsilon(name) / POINTS_A_LEAF))
    grid = TwoLevelGrid(box, across, np.clip(splits, 1, MOST_SPLITS).astype(np.int64))
    everyone = np.arange(len(x_m))
    noisy = run.mechanism.sums(name, Features(everyone, grid.locate(x_m, y_m), np.ones(len(x_m))), grid.leaves)
    return grid, np.maximum(noisy, 0.0) if run.published else norm_sub(noisy, float(total.sum()))


def _points(run: Run, paths: Ints, grids: list[tuple[TwoLevelGrid, Floats]], across: int) -> Trajectories:
    """A point of each step; a path that the tree cuts short goes on anywhere that the step's leaves are."""
    n, steps = paths.shape
    x_m, y_m = np.zeros((2, n, steps))
    for step, (grid, weight) in enumerate(grids):
        by_cell = np.bincount(grid.cell_of_leaf, weight + 1e-9, minlength=across**2)
        lost = paths[:, step] < 0
        cell = paths[:, step].copy()
        cell[lost] = run.rng.choice(across**2, int(lost.sum()), p=by_cell / by_cell.sum())
        x_m[:, step], y_m[:, step] = grid.draw(leaf_of_cell(grid, weight, cell, run.rng), run.rng)
    return run.made(np.arange(0, n * steps + 1, steps), x_m.ravel(), y_m.ravel())


def _shares(steps: int, **others: str) -> dict[str, str]:
    rest = (1.0 - sum(float(share) for share in others.values())) / steps
    parts = {"coarse": 0.5, "fine": 0.5}
    return others | {f"step {i + 1} {kind}": str(rest * part) for i in range(steps) for kind, part in parts.items()}


def dpapt_with(steps: int) -> Method:
    """DPAPT with this many points of a trajectory."""
    return Method(
        name="dpapt" if steps == 2 else f"dpapt-{steps}",
        reference="DPAPT (adaptive partition of trajectories at T time steps)",
        idea=f"A tree of counts over {steps} time steps on two-level adaptive cells, epsilon/{steps} a step.",
        protects="one trajectory, added or removed",
        proof=f"A trajectory is in one cell of each of {2 * steps} counts, and their shares add up to epsilon.",
        leaks="Not private: box and number of trajectories are exact, noise is floating-point.",
        shares=_shares(steps, count="0.03"),
        published_shares=_shares(steps),
        make=partial(_make, steps=steps),
    )


dpapt = dpapt_with(2)
dpapt_4 = dpapt_with(4)
"""With four points; not in the registry, but `wayveil bench` takes it as wayveil.baselines.methods.dpapt:dpapt_4."""

"""DPT (He, Cormode, Machanavajjhala, Procopiuc, Srivastava: VLDB 2015), reimplemented from the paper.

Grids of several resolutions: each step of a trajectory belongs to the finest grid whose cells are at least as wide as
the step is long. Each grid has a prefix tree of moves (one of eight directions, a change to another grid, or the end);
grids with few noisy steps are dropped, and nodes of the tree below the noise are cut. The next move of a walk depends
on the current cell and the previous move where the tree knows them, otherwise on the cell only. Its weight also depends
on its angle with the previous move.

The authors choose the height and the set of grids by noisy scores; here the height is two moves, and the set is chosen
by the noisy number of steps of each grid.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import TwoLevelGrid, draw_rows, uniform_grid
from wayveil.baselines.mechanism import Features, by_trajectory
from wayveil.baselines.method import Method, Run
from wayveil.baselines.records import waypoints
from wayveil.baselines.resolutions import (
    END,
    FIRST,
    POINTS,
    RESOLUTIONS,
    STATES,
    SYMBOLS,
    Steps,
    grid_of_step,
    locate_in,
    points_in,
    symbols_of,
)
from wayveil.baselines.sequences import neighbour_table
from wayveil.baselines.trees import Level, kept, make_level
from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST = 60
"""Moves of the longest walk."""
STRAIGHT = 1.0
"""A move is weighted by exp(STRAIGHT · cos of its angle with the previous move)."""


def _make(run: Run) -> Trajectories:
    count = run.count()
    grids = [uniform_grid(run.box, across) for across in RESOLUTIONS]
    x_m, y_m = waypoints(*run.data, POINTS)
    use = _chosen_grids(run, grids, x_m, y_m)
    start, steps = symbols_of(grids, x_m, y_m, use)
    everyone = np.arange(len(start))
    starts = run.mechanism.sums("starts", Features(everyone, start, np.ones(len(start))), STATES)
    tree = _tree(run, steps, count)
    state = draw_rows(_above_noise(starts, run.mechanism.epsilon("starts"))[None], run.rng, run.size(count))
    return _walk(run, grids, tree, state)


def _above_noise(noisy: Floats, epsilon: float) -> Floats:
    return np.where(noisy > 2.0 * np.sqrt(2.0) / epsilon, noisy, 0.0)


def _chosen_grids(run: Run, grids: list[TwoLevelGrid], x_m: Floats, y_m: Floats) -> NDArray[np.bool_]:
    """Grids with a noisy share of steps above the noise; the coarsest is always used."""
    side_m = min(run.box.width_m, run.box.height_m)
    length_m = np.hypot(np.diff(x_m, axis=1), np.diff(y_m, axis=1))
    of_step = grid_of_step(side_m, length_m, np.ones(len(grids), bool))
    features = by_trajectory(np.repeat(np.arange(len(x_m)), POINTS - 1), of_step.ravel())
    noisy = run.mechanism.sums("grids", features, len(grids))
    use = noisy > 4.0 / run.mechanism.epsilon("grids") * np.array(RESOLUTIONS) / RESOLUTIONS[0]
    use[0] = True
    return use


def _tree(run: Run, steps: Steps, count: float) -> tuple[Level, Level]:
    """Symbols after each state, and after each (state before, symbol before) that is above the noise.

    Each trajectory's symbols weigh 1 together on each level.
    """
    mechanism = run.mechanism
    noisy = mechanism.sums("first move", by_trajectory(steps.owner, steps.state * SYMBOLS + steps.symbol),
                           STATES * SYMBOLS)  # fmt: skip
    code = kept(noisy, 2.0 / mechanism.epsilon("first move"))
    above = np.bincount(code // SYMBOLS, noisy[code], minlength=STATES).astype(float)
    first = make_level(code // SYMBOLS, code % SYMBOLS, noisy[code], above, SYMBOLS)
    same = steps.owner[1:] == steps.owner[:-1]
    node = first.find(steps.state[:-1], steps.symbol[:-1])
    known = same & (node >= 0)
    features = by_trajectory(steps.owner[1:][known], node[known] * SYMBOLS + steps.symbol[1:][known])
    noisy = mechanism.sums("second move", features, max(len(first) * SYMBOLS, 1))
    code = kept(noisy[: len(first) * SYMBOLS], 2.0 / mechanism.epsilon("second move"))
    above = np.bincount(code // SYMBOLS, noisy[code], minlength=len(first)).astype(float)
    return first, make_level(code // SYMBOLS, code % SYMBOLS, noisy[code], above, SYMBOLS)


def _walk(run: Run, grids: list[TwoLevelGrid], tree: tuple[Level, Level], state: Ints) -> Trajectories:
    """All walkers at once, from symbol to symbol until the end.

    Privacy: free (post-processing).
    """
    first, second = tree
    after_place, after_move = _table(first, STATES), _table(second, max(len(first), 1))
    targets = [neighbour_table(across)[0] for across in RESOLUTIONS]
    inside = [neighbour_table(across)[1] for across in RESOLUTIONS]
    n = len(state)
    grid = np.searchsorted(FIRST, state, side="right") - 1
    cell = state - FIRST[grid]
    owners, points = [np.arange(n)], [points_in(grids, grid, cell, run.rng)]
    walking, node, last = np.arange(n), np.full(n, -1), np.full(n, 4)
    for _ in range(LONGEST):
        here, before = (FIRST[grid] + cell)[walking], node[walking]
        deep = after_move[np.maximum(before, 0)]
        known = (before >= 0) & (deep.sum(1) > 0)
        symbol = _draw_symbols(np.where(known[:, None], deep, after_place[here]), last[walking], run.rng)
        node[walking] = first.find(here, symbol)
        go = symbol < END
        walking, symbol = walking[go], symbol[go]
        if len(walking) == 0:
            break
        change = symbol >= 9
        walkers = walking[change]
        x_m, y_m = points_in(grids, grid[walkers], cell[walkers], run.rng)
        grid[walkers] = symbol[change] - 9
        cell[walkers] = locate_in(grids, grid[walkers], x_m, y_m)
        for r in range(len(grids)):
            walkers, heading = (part[~change & (grid[walking] == r)] for part in (walking, symbol))
            possible = inside[r][cell[walkers], heading]
            cell[walkers] = np.where(possible, targets[r][cell[walkers], heading], cell[walkers])
            last[walkers] = heading
        moved = walking[~change]
        owners.append(moved)
        points.append(points_in(grids, grid[moved], cell[moved], run.rng))
    owner = np.concatenate(owners)
    x_m, y_m = (np.concatenate(column) for column in zip(*points))
    order = np.argsort(owner, kind="stable")
    size = np.bincount(owner, minlength=n)
    rows = np.repeat(order, 1 + (size == 1)[owner[order]])  # a walk without a move gets two points
    return run.made(ragged.offsets_of(np.maximum(size, 2)), x_m[rows], y_m[rows])


def _table(level: Level, nodes: int) -> Floats:
    """(nodes, SYMBOLS) counts of the children of each node."""
    table = np.zeros((nodes, SYMBOLS))
    table[level.parent, level.symbol] = level.count
    return table


def _draw_symbols(weight: Floats, last: Ints, rng: np.random.Generator) -> Ints:
    """A symbol for each row of weights, favouring the direction of the previous move; END for a row without weight."""
    north, east = np.arange(9) // 3 - 1.0, np.arange(9) % 3 - 1.0
    norm = np.maximum(np.hypot(north, east), 1e-9)
    cosine = (north[last, None] * north + east[last, None] * east) / (norm[last, None] * norm)
    weighted = weight.copy()
    weighted[:, :9] *= np.where(last[:, None] == 4, 1.0, np.exp(STRAIGHT * cosine))
    drawn = draw_rows(weighted, rng)
    return np.where(weighted.sum(1) > 0, drawn, END)


_PARTS = {"grids": "0.05", "starts": "0.3", "first move": "0.35", "second move": "0.3"}

dpt = Method(
    name="dpt",
    reference="He, Cormode, Machanavajjhala, Procopiuc, Srivastava: VLDB 2015",
    idea="Grids of several resolutions, chosen by the length of a step; prefix trees of moves; mostly straight walks.",
    protects="one trajectory, added or removed",
    proof="A trajectory weighs at most 1 in each of five vectors of sums, and their shares add up to epsilon.",
    leaks="Not private: box and number of trajectories are exact; noise is floating-point.",
    shares={"count": "0.03", **_PARTS},
    published_shares=_PARTS,
    make=_make,
)

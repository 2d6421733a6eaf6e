"""DPTraj-PM (Wang, Kankanhalli: CoRR 2024), reimplemented from its description.

Trajectories are sequences of touching cells of a uniform grid with an end symbol. A prefix tree counts their first
three cells. A second-order Markov process describes their moves: the next direction, or the end, given the cell and the
previous direction. A walk starts with a segment drawn from the tree and continues by the process; its points are the
centres of its cells.

How much a trajectory weighs in the moves, and how the budget is divided, are our reading, settled by comparing with
the scores of the authors' program. That program spends 1.152 ε, so the noise of the published mode is smaller by this
factor.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import draw_rows, trace, uniform_grid
from wayveil.baselines.mechanism import Features, by_trajectory
from wayveil.baselines.method import Method, Run
from wayveil.baselines.sequences import at_least_two, direction, neighbour_table, padded
from wayveil.baselines.trees import Level, draw_paths, kept, make_level
from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ACROSS = 6
"""Cells of the grid in each direction."""
END = ACROSS**2
"""The end symbol."""
SEGMENT = 3
"""Cells of a first segment: the order of the process plus one."""
LONGEST = 40
"""Cells of the longest walk."""
STAY = 4
"""The direction that no move has; here it is the end of a walk."""
OVERSPENT = 1.152
"""What the authors' program spends, as a multiple of ε."""
_SEGMENTS = {f"segments of {k + 1}": "0.25" for k in range(SEGMENT)}


def _make(run: Run) -> Trajectories:
    count = run.count()
    grid = uniform_grid(run.box, ACROSS)
    routes = trace(*run.data, grid, min(run.box.width_m, run.box.height_m) / (4 * ACROSS))
    rows = padded(routes.offsets, routes.leaf, LONGEST, END)
    levels = _segments(run, rows[:, :SEGMENT], count)
    paths = draw_paths(levels, run.size(count), END, run.rng)
    cells = at_least_two(_walk(run, paths, _moves(run, rows)), grid.leaves, run.rng)
    known = cells >= 0
    west, south, width, height = grid.rectangles
    cell = cells[known]
    return run.made(ragged.offsets_of(known.sum(1)), (west + width / 2)[cell], (south + height / 2)[cell])


def _noisy(run: Run, name: str, features: Features, size: int) -> Floats:
    noisy = run.mechanism.sums(name, features, size)
    if not run.published:
        return noisy
    exact = np.bincount(features.bin, features.value, minlength=size)
    published_noisy: Floats = exact + (noisy - exact) / OVERSPENT
    return published_noisy


def _segments(run: Run, rows: Ints, count: float) -> list[Level]:
    """The prefix tree; a trajectory is in one node of each level.

    Nodes below twice the standard deviation of the noise are cut.

    Privacy: spends the shares "segments of k".
    """
    node, above, levels = np.zeros(len(rows), np.int64), np.array([count]), []
    for depth in range(SEGMENT):
        name, size = f"segments of {depth + 1}", len(above) * (END + 1)
        here = np.flatnonzero((node >= 0) & (rows[:, depth] >= 0))
        features = Features(here, node[here] * (END + 1) + rows[here, depth], np.ones(len(here)))
        noisy = _noisy(run, name, features, max(size, 1))[:size]
        code = kept(noisy, 2.0 * np.sqrt(2.0) / run.mechanism.epsilon(name))
        level = make_level(code // (END + 1), code % (END + 1), noisy[code], above, END + 1)
        levels.append(level)
        node, above = level.find(node, rows[:, depth]), level.count
    return levels


def _moves(run: Run, rows: Ints) -> Floats:
    """(cells, 9, 9) noisy weight of (cell, direction before, direction after); a trajectory's moves weigh 1 together.

    Privacy: spends the share "moves".
    """
    before, at, after = rows[:, :-2].ravel(), rows[:, 1:-1].ravel(), rows[:, 2:].ravel()
    owner = np.repeat(np.arange(len(rows)), LONGEST - 2)
    owner, before, at, after = (part[(after >= 0) & (at < END)] for part in (owner, before, at, after))
    back = direction(before, at, ACROSS)
    onward = np.where(after == END, STAY, direction(at, np.minimum(after, END - 1), ACROSS))
    near = (back >= 0) & (onward >= 0)
    code = ((at * 9 + back) * 9 + onward)[near]
    noisy = _noisy(run, "moves", by_trajectory(owner[near], code), END * 81)
    return np.maximum(noisy, 0.0).reshape(END, 9, 9)


def _walk(run: Run, first: Ints, moves: Floats) -> Ints:
    """(n, LONGEST) cells, -1 after the end.

    Privacy: free (post-processing).
    """
    cells = np.full((len(first), LONGEST), -1, np.int64)
    cells[:, :SEGMENT] = first
    target, exists = neighbour_table(ACROSS)
    exists = exists.copy()
    exists[:, STAY] = True
    moves = np.where(exists[:, None], moves, 0.0)
    walking = np.flatnonzero((first >= 0).all(1))
    for step in range(SEGMENT, LONGEST):
        before, at = cells[walking, step - 2], cells[walking, step - 1]
        weight = moves[at, np.maximum(direction(before, at, ACROSS), 0)]
        unknown = weight.sum(1) <= 0
        weight[unknown] = moves[at[unknown]].sum(1)  # first order where the second is not known
        weight[weight.sum(1) <= 0, STAY] = 1.0
        heading = draw_rows(weight, run.rng)
        walking, at, heading = walking[heading != STAY], at[heading != STAY], heading[heading != STAY]
        if len(walking) == 0:
            break
        cells[walking, step] = target[at, heading]
    return cells


dptraj_pm = Method(
    name="dptraj-pm",
    reference="Wang, Kankanhalli: CoRR 2024",
    idea="A prefix tree of first segments, a second-order Markov process of moves, cell centres as points.",
    protects="one trajectory, added or removed",
    proof="A trajectory is in one node of each of three levels, and its moves weigh 1 together; the shares add up.",
    leaks=(
        "Not private: box and number of trajectories are exact; 1.152 epsilon is spent instead of epsilon; noise is "
        "floating-point."
    ),
    shares={"count": "0.05", **_SEGMENTS, "moves": "0.2"},
    published_shares={**_SEGMENTS, "moves": "0.25"},
    make=_make,
)

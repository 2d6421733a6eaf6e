"""Trajectories as moves on grids of several resolutions; the length of a step determines its grid."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import TwoLevelGrid
from wayveil.baselines.sequences import direction

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RESOLUTIONS = (6, 12, 24)
"""Cells in each direction; the coarsest grid, for the longest steps, comes first."""
POINTS = 13
"""Number of points, at equal arc length, to which a trajectory is reduced."""
END = 9 + len(RESOLUTIONS)
"""The end symbol, the last one."""
SYMBOLS = END + 1
"""Nine directions (4 = stay, which does not occur), a change to each grid, the end."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The symbols of all trajectories: owner, state (grid and cell) before, and the symbol."""

    owner: Ints
    state: Ints
    symbol: Ints


FIRST = np.r_[0, np.cumsum([k**2 for k in RESOLUTIONS])]
"""First state (grid and cell) of each grid."""
STATES = int(FIRST[-1])
"""Number of states: the cells of all resolutions."""


def grid_of_step(side_m: float, length_m: Floats, use: NDArray[np.bool_]) -> Ints:
    """The finest grid in use whose cells are at least as wide as the step is long; else the coarsest in use."""
    grid = np.full(length_m.shape, int(np.flatnonzero(use)[0]))
    for r in np.flatnonzero(use):
        grid = np.where(length_m <= side_m / RESOLUTIONS[r], r, grid)
    return grid


def symbols_of(grids: list[TwoLevelGrid], x_m: Floats, y_m: Floats, use: NDArray[np.bool_]) -> tuple[Ints, Steps]:
    """The first state of each trajectory, and its symbols until the end.

    A step consists of a change to its grid, if the walk is in another one, and a move, if it leaves the cell. A move to
    a cell that does not touch the current one is left out; only steps longer than the coarsest cells make such moves.
    """
    m = len(x_m)
    box = grids[0].box
    length_m = np.hypot(np.diff(x_m, axis=1), np.diff(y_m, axis=1))
    of_step = grid_of_step(min(box.width_m, box.height_m), length_m, use)
    cells = np.stack([grid.locate(x_m.ravel(), y_m.ravel()).reshape(x_m.shape) for grid in grids])
    everyone = np.arange(m)
    at = of_step[:, 0] if m else np.zeros(0, np.int64)
    start = FIRST[at] + cells[at, everyone, 0]
    owners, states, symbols = [], [], []
    for step in range(POINTS - 1):
        now = of_step[:, step]
        changed = now != at
        owners.append(everyone[changed])
        states.append((FIRST[at] + cells[at, everyone, step])[changed])
        symbols.append(9 + now[changed])
        at = now
        before, after = cells[at, everyone, step], cells[at, everyone, step + 1]
        heading = np.full(m, -1)
        for r in np.flatnonzero(use):
            heading = np.where(at == r, direction(before, after, RESOLUTIONS[r]), heading)
        moved = (heading >= 0) & (heading != 4)
        owners.append(everyone[moved])
        states.append((FIRST[at] + before)[moved])
        symbols.append(heading[moved])
    owners.append(everyone)
    states.append(FIRST[at] + cells[at, everyone, -1])
    symbols.append(np.full(m, END))
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    return start, Steps(owner[order], np.concatenate(states)[order], np.concatenate(symbols)[order])


def points_in(grids: list[TwoLevelGrid], grid: Ints, cell: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A uniform point in each cell of each grid. Privacy: free (post-processing)."""
    x_m, y_m = np.zeros((2, len(cell)))
    for r, each in enumerate(grids):
        here = grid == r
        x_m[here], y_m[here] = each.draw(cell[here], rng)
    return x_m, y_m


def locate_in(grids: list[TwoLevelGrid], grid: Ints, x_m: Floats, y_m: Floats) -> Ints:
    """The cell of each position in its grid."""
    cell = np.zeros(len(x_m), np.int64)
    for r, each in enumerate(grids):
        here = grid == r
        cell[here] = each.locate(x_m[here], y_m[here])
    return cell

"""Trajectories as rows of symbols (cells of a grid), and rows of symbols as trajectories."""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import Routes, TwoLevelGrid
from wayveil.baselines.method import Run
from wayveil.core import ragged
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOTHING = -1
"""Fills the rest of a row after the end of its sequence."""


def padded(offsets: Ints, symbol: Ints, longest: int, end: int) -> Ints:
    """(rows, longest) symbols, cut at `longest`; a shorter sequence is followed by `end` once, then by NOTHING."""
    size = np.diff(offsets)
    table = np.full((len(size), longest), NOTHING, np.int64)
    rank, owner = ragged.ranks(size), ragged.owners(size)
    near = rank < longest
    table[owner[near], rank[near]] = symbol[near]
    short = np.flatnonzero(size < longest)
    table[short, size[short]] = end
    return table


def cell_rows(routes: Routes, longest: int, end: int) -> Ints:
    """`padded` for routes on a grid."""
    return padded(routes.offsets, routes.leaf, longest, end)


def drawn_points(run: Run, grid: TwoLevelGrid, cells: Ints) -> Trajectories:
    """A trajectory from each row: a uniform point in each of its cells, or two points if it has only one cell.

    Privacy: free (post-processing).
    """
    cells = at_least_two(cells, grid.leaves, run.rng)
    known = cells >= 0
    offsets = ragged.offsets_of(known.sum(1))
    return run.made(offsets, *grid.draw(cells[known], run.rng))


def at_least_two(cells: Ints, leaves: int, rng: np.random.Generator) -> Ints:
    """The rows, each with at least two cells: a single cell is repeated; an empty row gets a random cell twice."""
    if cells.shape[1] < 2:
        cells = np.column_stack([cells, np.full(len(cells), NOTHING)])
    cells = cells.copy()
    empty = cells[:, 0] < 0
    cells[empty, 0] = rng.integers(0, leaves, int(empty.sum()))
    single = cells[:, 1] < 0
    cells[single, 1] = cells[single, 0]
    return cells


def neighbour_table(across: int) -> tuple[Ints, NDArray[np.bool_]]:
    """(cells, 9): the cell in each direction (4 = stay), and whether it is inside the grid. Row 0 is in the south."""
    cell, heading = np.arange(across**2)[:, None], np.arange(9)[None]
    row, column = cell // across + heading // 3 - 1, cell % across + heading % 3 - 1
    exists = (row >= 0) & (row < across) & (column >= 0) & (column < across)
    return np.where(exists, row * across + column, 0), exists


def direction(source: Ints, target: Ints, across: int) -> Ints:
    """0..8 for a step to a neighbour or to the same cell (4), -1 for a longer one."""
    up, right = target // across - source // across, target % across - source % across
    near = (np.abs(up) <= 1) & (np.abs(right) <= 1)
    return np.where(near, (up + 1) * 3 + right + 1, -1)

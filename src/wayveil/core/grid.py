"""The public grid over a scope: square cells anchored at the south-west corner."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope

_FINEST_CELL_M = 100.0
"""Metres: side of the finest cells in a city."""
_MOST_CELLS = 1 << 20
"""Largest number of cells of the base grid; the cell size doubles until it is not exceeded."""
_FEWEST_ACROSS = 32
"""Least number of cells along the longer side; in a small box the cell size is halved until there are that many."""
_BLOCK = 1 << 14
"""Points converted at once, so that they stay in the cache."""
_MOST_EXACT = 1 << 24
"""Whole numbers up to here are exact in single precision too."""


@dataclass(frozen=True)
class Grid:
    """`rows` × `columns` cells of `cell_m` metres; cell index = row · columns + column, row 0 in the south."""

    cell_m: float
    columns: int
    rows: int
    width_m: float
    height_m: float

    @property
    def cells(self) -> int:
        return self.rows * self.columns

    def index(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.int64]:
        """Cell of each position; positions outside are put into the nearest cell of the border."""
        cell = np.empty(np.shape(x), np.int64)
        flat, x, y = cell.reshape(-1), np.ravel(x), np.ravel(y)
        # Positions are processed in blocks that fit into the processor's cache.
        for first in range(0, len(flat), _BLOCK):
            part = slice(first, first + _BLOCK)
            position = self._place(y[part], self.rows)
            position *= self.columns
            position += self._place(x[part], self.columns)
            flat[part] = position
        return cell

    def _place(self, along_m: NDArray[np.floating], count: int) -> NDArray[np.floating]:
        """Row or column of each coordinate, as a float: faster than an integer, and exact."""
        if self.cells >= _MOST_EXACT:
            along_m = np.asarray(along_m, np.float64)
        place = along_m / self.cell_m
        np.maximum(place, 0, out=place)
        np.minimum(place, count - 1, out=place)
        result: NDArray[np.floating] = np.floor(place, out=place)
        return result


def base_grid(scope: Scope) -> Grid:
    """The finest grid that any query uses: 100 m, coarser for a region, finer for a campus; from the scope only."""
    cell_m = _FINEST_CELL_M
    while _count(scope, cell_m) > _MOST_CELLS:
        cell_m *= 2
    while max(scope.width_m, scope.height_m) / cell_m < _FEWEST_ACROSS and cell_m > 10:
        cell_m /= 2
    return Grid(cell_m, _across(scope.width_m, cell_m), _across(scope.height_m, cell_m), scope.width_m, scope.height_m)


def level_shape(grid: Grid, side: int) -> tuple[int, int]:
    """Rows and columns of blocks of `side` × `side` cells; the last ones may be partly outside."""
    return -(-grid.rows // side), -(-grid.columns // side)


def blocks_of(grid: Grid, side: int) -> Grid:
    """The grid whose cells are the blocks of `side` × `side` cells."""
    rows, columns = level_shape(grid, side)
    return Grid(grid.cell_m * side, columns, rows, grid.width_m, grid.height_m)


def _across(extent_m: float, cell_m: float) -> int:
    return max(1, int(np.ceil(extent_m / cell_m)))


def _count(scope: Scope, cell_m: float) -> int:
    return _across(scope.width_m, cell_m) * _across(scope.height_m, cell_m)

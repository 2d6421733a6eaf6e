"""Starts and ends of the chosen trips, assigned to cells in the proportions of the estimated fields.

Twenty thousand independent draws from a field have a larger error than the field itself: a count of n has an error of
√n. Rounded counts do not add this error. Inside a zone of 10 × 10 cells (1 km) the ends are assigned by largest
remainders; the number of ends in a zone follows from the trips between zones (`pairs`) and does not change.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid, level_shape
from wayveil.core.pyramid import Field
from wayveil.synthesis.trips.draw import apportioned
from wayveil.synthesis.trips.settings import TRIPS

_SIDES = (TRIPS.zone_cells // 2, TRIPS.zone_cells)
"""Sides of blocks in cells: half a zone and a zone. An end that has to move goes to a cell in the smallest block that
has room."""


def assign_to_cells(
    cell: NDArray[np.int64], field: Field, grid: Grid, random: np.random.Generator
) -> NDArray[np.int64]:
    """The cells, with as few as possible changed so that each block holds its ends in the field's proportions.

    Ends that change move to a cell nearby: in the same small block if one has a vacancy there, else in a larger one.
    """
    block = _blocks(grid, _SIDES[-1])
    held = np.bincount(cell, minlength=grid.cells)
    target = apportioned(field.ravel(), block, np.bincount(block[cell], minlength=int(block.max()) + 1), random)
    order = random.permutation(len(cell))
    order = order[np.argsort(cell[order], kind="stable")]
    rank = ragged.ranks(held)
    surplus = random.permutation(order[rank >= target[cell[order]]])
    vacant = random.permutation(ragged.owners(np.maximum(target - held, 0)))
    assigned = cell.copy()
    for side in _SIDES:
        block = _blocks(grid, side)
        moving, free = _paired(block[cell[surplus]], block[vacant])
        assigned[surplus[moving]] = vacant[free]
        surplus, vacant = np.delete(surplus, moving), np.delete(vacant, free)
    return assigned


def _paired(one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions in both lists whose values are equal pair by pair; as many pairs as possible."""
    size = int(max(one.max(initial=-1), other.max(initial=-1))) + 1
    both = np.minimum(np.bincount(one, minlength=size), np.bincount(other, minlength=size))

    def first(values: NDArray[np.int64]) -> NDArray[np.int64]:
        order = np.argsort(values, kind="stable")
        rank = ragged.ranks(np.bincount(values, minlength=size))
        return order[rank < both[values[order]]]

    return first(one), first(other)


def _blocks(grid: Grid, side: int) -> NDArray[np.int64]:
    """Block of each cell."""
    row, column = np.divmod(np.arange(grid.cells), grid.columns)
    result: NDArray[np.int64] = (row // side) * level_shape(grid, side)[1] + column // side
    return result

"""ends: starts and ends of the chosen trips on as many places as the estimated fields ask for, block by block.

Twenty thousand independent draws from a field are further from the truth than the field is: each cell's count is off by
its own root. Counts that are rounded instead of drawn keep the field. Inside a zone of 10 × 10 cells (1 km) the ends
are dealt out by largest remainders; how many there are in the zone is the trips' own affair (`pairs`) and stays.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid, level_shape
from wayveil.pyramid import Field
from wayveil.synthesis.draw import apportioned
from wayveil.synthesis.pairs import ZONE_SIDE

_SIDES = (ZONE_SIDE // 2, ZONE_SIDE)
"""Sides of blocks in cells. Ends are dealt out in the largest; one that has to move finds a place in the smallest that
has one."""


def settle_in_cells(
    cell: NDArray[np.int64], field: Field, grid: Grid, random: np.random.Generator
) -> NDArray[np.int64]:
    """The cells, with as few as possible changed so that each block holds its ends in the field's proportions.

    Those that change go to a place nearby: in the same small block if one is vacant there, else in a larger one.
    """
    block = _blocks(grid, _SIDES[-1])
    held = np.bincount(cell, minlength=grid.cells)
    wanted = apportioned(field.ravel(), block, np.bincount(block[cell], minlength=int(block.max()) + 1), random)
    order = random.permutation(len(cell))
    order = order[np.argsort(cell[order], kind="stable")]
    rank = np.arange(len(cell)) - np.repeat(np.cumsum(held) - held, held)
    surplus = random.permutation(order[rank >= wanted[cell[order]]])
    vacant = random.permutation(np.repeat(np.arange(grid.cells), np.maximum(wanted - held, 0)))
    settled = cell.copy()
    for side in _SIDES:
        block = _blocks(grid, side)
        moving, free = _paired(block[cell[surplus]], block[vacant])
        settled[surplus[moving]] = vacant[free]
        surplus, vacant = np.delete(surplus, moving), np.delete(vacant, free)
    return settled


def _paired(one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions in both lists such that the values there are equal pair by pair, as many pairs as there are."""
    size = int(max(one.max(initial=-1), other.max(initial=-1))) + 1
    both = np.minimum(np.bincount(one, minlength=size), np.bincount(other, minlength=size))

    def first(values: NDArray[np.int64]) -> NDArray[np.int64]:
        order = np.argsort(values, kind="stable")
        count = np.bincount(values, minlength=size)
        rank = np.arange(len(values)) - np.repeat(np.cumsum(count) - count, count)
        return order[rank < both[values[order]]]

    return first(one), first(other)


def _blocks(grid: Grid, side: int) -> NDArray[np.int64]:
    """Block of each cell."""
    row, column = np.divmod(np.arange(grid.cells), grid.columns)
    return (row // side) * level_shape(grid, side)[1] + column // side

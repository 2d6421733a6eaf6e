"""ends: starts and ends of the chosen trips on as many places as the estimated fields ask for, block by block.

Twenty thousand independent draws from a field are further from the truth than the field is: each cell's count is off by
its own root. Counts that are rounded instead of drawn keep the field. Inside a block of 16 × 16 cells (1.6 km) the
ends are dealt out by largest remainders; how many there are in the block is the trips' own affair and stays.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid, level_shape
from wayveil.synthesis.pyramid import Field

_SIDES = (4, 8, 16)
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
    wanted = _rounded(field.ravel(), block, np.bincount(block[cell], minlength=int(block.max()) + 1), random)
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


def _rounded(
    weight: NDArray[np.float64], block: NDArray[np.int64], total: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Whole numbers like the weights that add up to each block's total: largest remainders, ties at random."""
    weight = weight + 1e-12 * max(float(weight.max()), 1e-300)
    share = weight / np.bincount(block, weight)[block] * total[block]
    whole = np.floor(share).astype(np.int64)
    missing = total - np.bincount(block, whole, minlength=len(total)).astype(np.int64)
    # One number to sort by: the block, then the remainder from the largest on, then chance.
    order = np.argsort(block + 0.999 * (whole - share + 1) + 1e-9 * random.random(len(weight)))
    size = np.bincount(block, minlength=len(total))
    rank = np.arange(len(weight)) - np.repeat(np.cumsum(size) - size, size)
    whole[order[rank < missing[block[order]]]] += 1
    return whole


def pair_order(origin: NDArray[np.int64], destination: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
    """A number for each pair of cells such that pairs close in both ends have close numbers (Morton order in 4-D)."""
    axes = (*np.divmod(origin, grid.columns), *np.divmod(destination, grid.columns))
    code = np.zeros(len(origin), np.int64)
    for bit in range(int(max(grid.rows, grid.columns) - 1).bit_length()):
        for place, axis in enumerate(axes):
            code |= ((axis >> bit) & 1) << (4 * bit + place)
    return code

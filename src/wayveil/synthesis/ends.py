"""ends: starts and ends of the chosen trips on as many places as the estimated fields ask for, block by block.

Twenty thousand independent draws from a field are further from the truth than the field is: each cell's count is off by
its own root. Counts that are rounded instead of drawn keep the field. Inside a block of 800 m the ends
are dealt out by largest remainders; how many there are in the block is the trips' own affair and stays.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.synthesis.pyramid import Field

_BLOCK_M = 800.0


def settle_in_cells(
    cell: NDArray[np.int64], field: Field, grid: Grid, random: np.random.Generator
) -> NDArray[np.int64]:
    """The cells, with as few as possible changed so that each block holds its ends in the field's proportions."""
    block = _blocks(grid)
    held = np.bincount(cell, minlength=grid.cells)
    wanted = _rounded(field.ravel(), block, np.bincount(block[cell], minlength=int(block.max()) + 1), random)
    order = random.permutation(len(cell))
    order = order[np.argsort(cell[order], kind="stable")]
    rank = np.arange(len(cell)) - np.repeat(np.cumsum(held) - held, held)
    surplus = order[rank >= wanted[cell[order]]]
    vacant = np.repeat(np.arange(grid.cells), np.maximum(wanted - held, 0))
    vacant = random.permutation(vacant)
    settled = cell.copy()
    settled[surplus[np.argsort(block[cell[surplus]], kind="stable")]] = vacant[np.argsort(block[vacant], kind="stable")]
    return settled


def _blocks(grid: Grid) -> NDArray[np.int64]:
    """Block of each cell."""
    side = max(1, round(_BLOCK_M / grid.cell_m))
    row, column = np.divmod(np.arange(grid.cells), grid.columns)
    return (row // side) * -(-grid.columns // side) + column // side


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

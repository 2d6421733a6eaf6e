"""Low-variance (stratified) sampling from discrete distributions."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid, level_shape
from wayveil.core.pyramid import Field

_BLOCK = 1 << 14
"""Number of draws made at a time; their columns fit into the processor's cache."""


def stratified(weights: NDArray[np.float64], count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """`count` indices in increasing order, index i about count·w_i/Σw times (one random draw per stratum)."""
    cumulative = np.cumsum(weights)
    if not cumulative[-1] > 0:
        cumulative = np.cumsum(np.ones(len(weights)))
    level = (np.arange(count) + random.random(count)) * (cumulative[-1] / max(count, 1))
    result: NDArray[np.int64] = np.minimum(np.searchsorted(cumulative, level, side="right"), len(weights) - 1)
    return result


def shuffled(weights: NDArray[np.float64], count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """`stratified` in random order."""
    return random.permutation(stratified(weights, count, random))


def apportioned(
    weight: NDArray[np.float64], group: NDArray[np.int64], total: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Integers in proportion to the weights that sum to each group's total: largest remainders, ties at random."""
    weight = weight + 1e-12 * max(float(weight.max()), 1e-300)
    share = weight / np.bincount(group, weight)[group] * total[group]
    whole = np.floor(share).astype(np.int64)
    missing = total - np.bincount(group, whole, minlength=len(total)).astype(np.int64)
    # One sort key: the group, then the remainder in descending order, then a random number.
    order = np.argsort(group + 0.999 * (whole - share + 1) + 1e-9 * random.random(len(weight)))
    size = np.bincount(group, minlength=len(total))
    rank = ragged.ranks(size)
    whole[order[rank < missing[group[order]]]] += 1
    return whole


def repeats(index: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each value occurs earlier in the array."""
    again = np.ones(len(index), bool)
    again[np.unique(index, return_index=True)[1]] = False
    return again


def within_groups(
    weights: NDArray[np.float64],
    group_of: NDArray[np.int64],
    target: NDArray[np.int64],
    groups: int,
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """For each group in `target`, an index of that group drawn in proportion to the weights, by stratified sampling."""
    order = np.argsort(group_of, kind="stable")
    cumulative = np.r_[0.0, np.cumsum(weights[order] + 1e-300)]
    first = np.searchsorted(group_of[order], np.arange(groups))
    after = np.searchsorted(group_of[order], np.arange(groups), side="right")
    by_group = np.argsort(target + random.random(len(target)))  # by group, and at random within it
    size = np.bincount(target, minlength=groups)
    rank = np.empty(len(target))
    rank[by_group] = ragged.ranks(size)
    level = (rank + random.random(len(target))) / np.maximum(size[target], 1)
    low, high = cumulative[first[target]], cumulative[after[target]]
    found = np.searchsorted(cumulative, low + level * (high - low), side="right") - 1
    result: NDArray[np.int64] = order[np.clip(found, first[target], np.maximum(after[target] - 1, first[target]))]
    return result


def drawn_columns(table: NDArray[np.float64], row: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """A column for each given row, drawn in proportion to that row of the table."""
    cumulative = np.cumsum(table + 1e-300, axis=1)
    cumulative /= cumulative[:, -1:]
    width = 1 << (table.shape[1] - 1).bit_length()
    padded = np.full((len(table), width), np.inf, np.float32)
    padded[:, : table.shape[1] - 1] = cumulative[:, :-1]
    flat = padded.ravel()
    column = np.empty(len(row), np.int64)
    for start in range(0, len(row), _BLOCK):
        begin = row[start : start + _BLOCK] * width
        level, at = random.random(len(begin), dtype=np.float32), begin.copy()
        half = width // 2
        while half:  # a binary search in all rows at once, without branches and with few jumps in memory
            at += np.where(flat[at + (half - 1)] <= level, half, 0)
            half //= 2
        np.subtract(at, begin, out=column[start : start + _BLOCK])
    return column


def within_blocks(
    weight: Field, side: int, block: NDArray[np.int64], grid: Grid, random: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A position in each given block of `side` × `side` cells, its cell drawn in proportion to `weight`."""
    rows, columns = level_shape(grid, side)
    padded = np.zeros((rows * side, columns * side))
    padded[: grid.rows, : grid.columns] = weight
    inner = padded.reshape(rows, side, columns, side).transpose(0, 2, 1, 3).reshape(rows * columns, side * side)
    cell = drawn_columns(inner, block, random)
    down, right = np.divmod(np.arange(rows * columns), columns)
    within = np.arange(side * side)
    positions = []
    for corner, inside, end in ((right, within % side, grid.width_m), (down, within // side, grid.height_m)):
        at = random.random(len(block))
        at += (corner * float(side))[block]
        at += inside.astype(float)[cell]
        at *= grid.cell_m
        positions.append(np.minimum(at, end, out=at))
    return positions[0], positions[1]


def within_bins(
    fine: NDArray[np.float64],
    edges: NDArray[np.float64],
    coarse_of_fine: NDArray[np.int64],
    coarse_bin: NDArray[np.int64],
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """A value in each given coarse bin, distributed like the fine histogram."""
    groups = int(max(coarse_of_fine.max(), coarse_bin.max(initial=0))) + 1
    present = np.bincount(coarse_of_fine, minlength=groups) > 0
    if not present.all():  # for a coarse bin without a fine one, use the nearest that has one
        nearest = np.abs(np.flatnonzero(present)[None, :] - np.arange(groups)[:, None]).argmin(axis=1)
        coarse_bin = np.flatnonzero(present)[nearest][coarse_bin]
    index = within_groups(fine, coarse_of_fine, coarse_bin, groups, random)
    return edges[index] + random.random(len(index)) * (edges[index + 1] - edges[index])

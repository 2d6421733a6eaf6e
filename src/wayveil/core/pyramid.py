"""Coarser and finer versions of a field: sums of blocks, repetition, bilinear interpolation, shifts."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float64]
Number = TypeVar("Number", np.float64, np.int64)


def pool(field: NDArray[Number], side: int) -> NDArray[Number]:
    """Sum of each side × side block; the last row and column of blocks may be partly outside."""
    if side == 1:
        return field
    rows, columns = field.shape
    by_row = np.add.reduceat(field, np.arange(0, rows, side), axis=0)
    return np.add.reduceat(by_row, np.arange(0, columns, side), axis=1)


def spread(field: Field, side: int, shape: tuple[int, int]) -> Field:
    """Each cell repeated side × side times, cut to `shape`; unlike an inverse of `pool`, values are not divided."""
    if side == 1:
        return field
    return np.repeat(np.repeat(field, side, axis=0)[: shape[0]], side, axis=1)[:, : shape[1]]


def interpolate(field: Field, side: int, shape: tuple[int, int]) -> Field:
    """Bilinear interpolation between the centres of blocks, constant beyond the outermost ones."""
    return _stretch(_stretch(field, side, shape[0]).T, side, shape[1]).T


def _stretch(field: Field, side: int, length: int) -> Field:
    position = (np.arange(length) + 0.5) / side - 0.5
    below = np.floor(position).astype(int)
    weight = (position - below)[:, None]
    low, high = (np.clip(index, 0, len(field) - 1) for index in (below, below + 1))
    result: Field = (1 - weight) * field[low] + weight * field[high]
    return result


def shifted(field: Field, down: int, right: int) -> Field:
    """field[i − down, j − right], zero where that is outside."""
    result = np.zeros_like(field)
    rows, columns = field.shape
    source = field[max(0, -down) : rows - max(0, down), max(0, -right) : columns - max(0, right)]
    result[max(0, down) : rows - max(0, -down), max(0, right) : columns - max(0, -right)] = source
    return result

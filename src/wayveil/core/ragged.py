"""Ragged arrays: rows of different lengths in one flat column.

A list of n rows is stored as one flat column of all their elements, row after row, and n + 1 offsets that say where
each row begins. Row i owns the elements `column[offsets[i]:offsets[i + 1]]`; `offsets[0]` is 0 and `offsets[-1]` is the
number of elements. Several columns (x, y, t) may share one array of offsets. Row counts are `np.diff(offsets)`.

    rows      [[a, b, c], [d], [e, f]]
    column    a b c d e f
    counts    3, 1, 2
    offsets   0, 3, 4, 6
    owners    0 0 0 1 2 2     (row of each element)
    ranks     0 1 2 0 0 1     (place of each element in its row)

Trajectories, tracks, polylines, roads and routes are all stored this way.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]

CACHED = 1 << 15
"""Elements processed at a time: a few columns of this many floats (256 kB each) fit into the processor's cache.

In `physical_times`, blocks of this size took a third of the time that whole arrays took.
"""


class Rows:
    """Base of classes whose columns share one array `offsets`."""

    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def first(self) -> Ints:
        """Position of the first element of each row."""
        return self.offsets[:-1]

    @property
    def last(self) -> Ints:
        """Position of the last element of each row; no row may be empty."""
        return self.offsets[1:] - 1


def offsets_of(counts: ArrayLike) -> Ints:
    """Offsets of rows with the given numbers of elements."""
    counts = np.asarray(counts)
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def owners(counts: NDArray[np.integer[Any]]) -> Ints:
    """Row of each element."""
    return np.repeat(np.arange(len(counts)), counts)


def ranks(counts: NDArray[np.integer[Any]]) -> Ints:
    """Place of each element in its row, from 0."""
    offsets = offsets_of(counts)
    result = np.arange(offsets[-1])
    result -= np.repeat(offsets[:-1], counts)
    return result


def take(offsets: Ints, index: NDArray[np.integer[Any]]) -> tuple[Ints, Ints]:
    """Offsets of the rows at `index` (repeats allowed), and the positions of their elements in the old column."""
    begin = offsets[index]
    counts = offsets[index + 1] - begin
    taken = offsets_of(counts)
    position = np.repeat(begin - taken[:-1], counts)
    position += np.arange(taken[-1])
    return taken, position


def join(parts: Iterable[Ints]) -> Ints:
    """Offsets of all rows of several ragged arrays, given the offsets of each, for their columns end to end."""
    return offsets_of(np.concatenate([np.zeros(0, np.int64), *(np.diff(offsets) for offsets in parts)]))


def sums(column: NDArray[Any], offsets: Ints) -> NDArray[Any]:
    """Sum of each row; no row may be empty."""
    # reduceat gives an empty row the first element of the next one, and fails without rows.
    return np.add.reduceat(column, offsets[:-1]) if len(offsets) > 1 else np.zeros(0, column.dtype)


def runs(offsets: Ints, elements: int = CACHED) -> Iterator[tuple[int, int]]:
    """(first, last) of successive runs of whole rows, each with about `elements` elements at most."""
    first = 0
    while first < len(offsets) - 1:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + elements, side="right")) - 1)
        yield first, last
        first = last

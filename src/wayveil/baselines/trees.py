"""Trees of symbols: levels of children with counts, which many walkers draw from or look up at once.

Privacy: free (post-processing); the counts are outputs of the mechanism. The candidates are all symbols below each
kept node, not only those that occur, so that the tree's shape depends on noisy counts only.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_NODES = 4_000
"""Nodes kept on a level, the largest noisy counts first; bounds time and memory, and is public."""


@dataclass(frozen=True, eq=False)
class Level:
    """Children of the nodes of the level above, sorted by (parent, symbol)."""

    parent: Ints
    symbol: Ints
    count: Floats
    parents: int
    symbols: int

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def _first(self) -> Ints:
        return np.searchsorted(self.parent, np.arange(self.parents + 1))

    @cached_property
    def _cumulative(self) -> Floats:
        return np.concatenate([np.zeros(1), np.cumsum(self.count)])

    def find(self, parent: Ints, symbol: Ints) -> Ints:
        """Node of each (parent, symbol), -1 where there is none."""
        if len(self) == 0:
            return np.full(len(parent), -1)
        key = self.parent * self.symbols + self.symbol
        wanted = np.where((parent >= 0) & (symbol >= 0), parent * self.symbols + symbol, -1)
        at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return np.where(key[at] == wanted, at, -1)

    def draw(self, parent: Ints, rng: np.random.Generator) -> Ints:
        """A child of each parent in proportion to the counts, -1 where there is none."""
        if len(self) == 0:
            return np.full(len(parent), -1)
        known = np.maximum(parent, 0)
        begin, end = self._first[known], self._first[known + 1]
        at = self._cumulative[begin] + rng.random(len(parent)) * (self._cumulative[end] - self._cumulative[begin])
        child = np.clip(np.searchsorted(self._cumulative, at, side="right") - 1, begin, np.maximum(end - 1, begin))
        return np.where((parent >= 0) & (end > begin), child, -1)


def kept(noisy: Floats, threshold: float) -> Ints:
    """Positions of the counts above the threshold, at most MOST_NODES, in order."""
    above = np.flatnonzero(noisy > threshold)
    if len(above) > MOST_NODES:
        above = np.sort(above[np.argsort(noisy[above], kind="stable")[-MOST_NODES:]])
    return above


def make_level(parent: Ints, symbol: Ints, noisy: Floats, above: Floats, symbols: int) -> Level:
    """The level of these noisy counts, made consistent with the counts `above` of the parents.

    The children of a node add up to it: the least-squares correction (the difference is shared equally), then counts
    below a small share are raised to it and all are scaled.
    """
    parents = len(above)
    children = np.bincount(parent, minlength=parents)
    total = np.bincount(parent, noisy, minlength=parents)
    shift = (above - total) / np.maximum(children, 1)
    count = np.maximum(noisy + shift[parent], 1e-3 * above[parent])
    scaled = np.bincount(parent, count, minlength=parents)
    count *= (above / np.where(scaled > 0, scaled, 1.0))[parent]
    order = np.lexsort((symbol, parent))
    return Level(parent[order], symbol[order], count[order], parents, symbols)


def draw_paths(levels: list[Level], n: int, end: int, rng: np.random.Generator) -> Ints:
    """(n, levels) symbols of walks from the root down, -1 after the end.

    Privacy: free (post-processing).
    """
    path = np.full((n, len(levels)), -1, np.int64)
    node = np.zeros(n, np.int64)
    for depth, level in enumerate(levels):
        node = level.draw(node, rng)
        if len(level) == 0:
            break
        symbol = level.symbol[np.maximum(node, 0)]
        node = np.where(symbol == end, -1, node)
        path[:, depth] = np.where(node >= 0, symbol, -1)
    return path

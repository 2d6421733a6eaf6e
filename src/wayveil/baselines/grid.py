"""Two-level grids: a coarse grid over a box whose cells are split again."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TRACED_AT_ONCE = 8_192
"""Trajectories traced through the grid at a time, which bounds the memory."""


@dataclass(frozen=True)
class Box:
    """A rectangle in metres."""

    x_m: float
    y_m: float
    width_m: float
    height_m: float


@dataclass(frozen=True, eq=False)
class TwoLevelGrid:
    """`across` × `across` cells over `box`; cell i is split into splits[i] × splits[i] leaves.

    Leaves are numbered cell by cell, inside a cell row by row from the south-west.
    """

    box: Box
    across: int
    splits: Ints

    @cached_property
    def first_leaf(self) -> Ints:
        """(cells + 1,) number of the first leaf of each cell."""
        return ragged.offsets_of(self.splits**2)

    @property
    def leaves(self) -> int:
        return int(self.first_leaf[-1])

    @cached_property
    def cell_of_leaf(self) -> Ints:
        return ragged.owners(self.splits**2)

    def locate(self, x_m: Floats, y_m: Floats) -> Ints:
        """Leaf of each position; positions outside go to the border."""
        u = np.clip((x_m - self.box.x_m) / self.box.width_m, 0.0, 1.0 - 1e-12) * self.across
        v = np.clip((y_m - self.box.y_m) / self.box.height_m, 0.0, 1.0 - 1e-12) * self.across
        column, row = u.astype(np.int64), v.astype(np.int64)
        cell = row * self.across + column
        k = self.splits[cell]
        within: Ints = ((v - row) * k).astype(np.int64) * k + ((u - column) * k).astype(np.int64)
        leaf: Ints = self.first_leaf[cell] + within
        return leaf

    @cached_property
    def rectangles(self) -> tuple[Floats, Floats, Floats, Floats]:
        """West, south, width and height of each leaf, in metres."""
        cell = self.cell_of_leaf
        k = self.splits[cell]
        inside = np.arange(self.leaves) - self.first_leaf[cell]
        width, height = self.box.width_m / self.across / k, self.box.height_m / self.across / k
        west = self.box.x_m + (cell % self.across) * (self.box.width_m / self.across) + (inside % k) * width
        south = self.box.y_m + (cell // self.across) * (self.box.height_m / self.across) + (inside // k) * height
        return west, south, width, height

    def draw(self, leaf: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """One uniform position in each leaf."""
        west, south, width, height = self.rectangles
        u, v = rng.random((2, len(leaf)))
        return west[leaf] + u * width[leaf], south[leaf] + v * height[leaf]

    @cached_property
    def neighbours(self) -> tuple[Ints, Ints]:
        """Ordered pairs of different leaves that touch, corners included, sorted by the first."""
        west, south, width, height = self.rectangles
        slack = 1e-6 * self.box.width_m
        sources, targets = [], []
        for begin in range(0, self.leaves, 512):
            a = slice(begin, min(begin + 512, self.leaves))
            apart_x = np.maximum(west[a, None] - (west + width), west - (west + width)[a, None])
            apart_y = np.maximum(south[a, None] - (south + height), south - (south + height)[a, None])
            i, j = np.nonzero((apart_x <= slack) & (apart_y <= slack))
            keep = i + begin != j
            sources.append(i[keep] + begin)
            targets.append(j[keep])
        return np.concatenate(sources), np.concatenate(targets)


def uniform_grid(box: Box, across: int) -> TwoLevelGrid:
    """A grid whose cells are not split."""
    return TwoLevelGrid(box, across, np.ones(across**2, np.int64))


@dataclass(frozen=True, eq=False)
class Routes:
    """Each trajectory as the sequence of the leaves it passes, no leaf twice in a row."""

    offsets: Ints
    leaf: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def size(self) -> Ints:
        """Leaves of each route."""
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> Ints:
        return ragged.owners(self.size)

    @property
    def start(self) -> Ints:
        return self.leaf[self.offsets[:-1]]

    @property
    def end(self) -> Ints:
        return self.leaf[self.offsets[1:] - 1]

    def moves(self) -> tuple[Ints, Ints, Ints]:
        """Owner, from and to of each step."""
        same = self.owner[1:] == self.owner[:-1]
        return self.owner[1:][same], self.leaf[:-1][same], self.leaf[1:][same]

    def double_moves(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Owner and the three leaves of each pair of successive steps."""
        same = self.owner[2:] == self.owner[:-2]
        return self.owner[2:][same], self.leaf[:-2][same], self.leaf[1:-1][same], self.leaf[2:][same]


def trace(offsets: Ints, x_m: Floats, y_m: Floats, grid: TwoLevelGrid, spacing_m: float) -> Routes:
    """The leaves along each polyline, looked up at most `spacing_m` apart; in batches, which bounds the memory."""
    sizes, leaves = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for begin in range(0, len(offsets) - 1, _TRACED_AT_ONCE):
        batch = offsets[begin : begin + _TRACED_AT_ONCE + 1]
        points = slice(batch[0], batch[-1])
        size, leaf = _trace_batch(batch - batch[0], x_m[points], y_m[points], grid, spacing_m)
        sizes.append(size)
        leaves.append(leaf)
    return Routes(ragged.offsets_of(np.concatenate(sizes)), np.concatenate(leaves))


def _trace_batch(offsets: Ints, x_m: Floats, y_m: Floats, grid: TwoLevelGrid, spacing_m: float) -> tuple[Ints, Ints]:
    """How many leaves each polyline passes, and which."""
    leaf, owner = grid.locate(x_m, y_m), ragged.owners(np.diff(offsets))
    moving = (owner[1:] == owner[:-1]) & (leaf[1:] != leaf[:-1])
    pieces = np.ones(len(x_m), np.int64)
    distance = np.hypot(np.diff(x_m), np.diff(y_m))
    pieces[:-1][moving] = np.maximum(1, np.ceil(distance[moving] / spacing_m)).astype(np.int64)
    at = ragged.owners(pieces)
    share = ragged.ranks(pieces) / pieces[at]
    after = np.minimum(at + 1, len(x_m) - 1)
    between = share > 0
    visited = leaf[at]
    a, b, s = at[between], after[between], share[between]
    visited[between] = grid.locate(x_m[a] + s * (x_m[b] - x_m[a]), y_m[a] + s * (y_m[b] - y_m[a]))
    owners = owner[at]
    new = np.r_[True, (visited[1:] != visited[:-1]) | (owners[1:] != owners[:-1])]
    return np.bincount(owners[new], minlength=len(offsets) - 1), visited[new]


def norm_sub(noisy: Floats, total: float) -> Floats:
    """max(noisy − θ, 0) with θ such that the sum is `total`: the nearest non-negative vector with that sum."""
    flat = np.sort(noisy.ravel())[::-1]
    cumulative = np.cumsum(flat) - max(total, 0.0)
    rank = np.arange(1, len(flat) + 1)
    last = np.flatnonzero(flat - cumulative / rank > 0)
    theta = cumulative[last[-1]] / rank[last[-1]] if len(last) else float(flat[0])
    return np.maximum(noisy - theta, 0.0)


def draw_rows(weights: Floats, rng: np.random.Generator, count: int | None = None) -> Ints:
    """One column of each row, in proportion to its weights; uniform for a row without weight.

    With `count`, that many columns of the one row.
    """
    if count is not None:
        total = weights[0].sum()
        even = np.full(weights.shape[1], 1.0 / weights.shape[1])
        drawn: Ints = rng.choice(weights.shape[1], count, p=weights[0] / total if total > 0 else even)
        return drawn
    cumulative = np.cumsum(weights, 1)
    flat = cumulative[:, -1] <= 0
    if flat.any():
        cumulative[flat] = np.arange(1, weights.shape[1] + 1)
    threshold = rng.random(len(weights)) * cumulative[:, -1]
    chosen: Ints = np.minimum((cumulative <= threshold[:, None]).sum(1), weights.shape[1] - 1)
    return chosen


def draw_systematic(weights: Floats, count: int, rng: np.random.Generator) -> Ints:
    """`count` indices in proportion to `weights`, evenly spread (systematic sampling), in random order."""
    cumulative = np.cumsum(weights.ravel())
    if cumulative[-1] <= 0:
        return rng.integers(0, weights.size, count)
    at = (np.arange(count) + rng.random()) * (cumulative[-1] / count)
    return rng.permutation(np.minimum(np.searchsorted(cumulative, at, side="right"), weights.size - 1))

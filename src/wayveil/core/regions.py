"""Regions of about equal mass, cut as in a k-d tree; the release contains them as a list of cuts.

Privacy: free (post-processing of the noisy end points).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid
from wayveil.core.pyramid import Field

Cut = tuple[str, int]
"""('x' or 'y', first column or row of the upper half)."""


def cut_regions(mass: Field, depth: int) -> list[Cut]:
    """2^depth − 1 cuts in breadth-first order: each halves its rectangle's mass along the axis of larger spread."""
    rectangles = [(0, mass.shape[0], 0, mass.shape[1])]
    cuts: list[Cut] = []
    for _ in range(depth):
        halves = []
        for rectangle in rectangles:
            cut = _best_cut(mass, rectangle)
            cuts.append(cut)
            halves.extend(_split(rectangle, cut))
        rectangles = halves
    return cuts


def label_regions(grid: Grid, cuts: list[Cut]) -> NDArray[np.int64]:
    """(rows, columns) region of each base cell, from 0 to 2^depth − 1, siblings next to each other."""
    depth = int(np.log2(len(cuts) + 1))
    labels = np.zeros((grid.rows, grid.columns), np.int64)
    rectangles = [(0, grid.rows, 0, grid.columns)]
    position = 0
    for _ in range(depth):
        halves = []
        for rectangle in rectangles:
            halves.extend(_split(rectangle, cuts[position]))
            position += 1
        rectangles = halves
    for label, (bottom, top, left, right) in enumerate(rectangles):
        labels[bottom:top, left:right] = label
    return labels


def _split(rectangle: tuple[int, int, int, int], cut: Cut) -> list[tuple[int, int, int, int]]:
    bottom, top, left, right = rectangle
    axis, at = cut
    if axis == "x":
        at = min(max(at, left), right)
        return [(bottom, top, left, at), (bottom, top, at, right)]
    at = min(max(at, bottom), top)
    return [(bottom, at, left, right), (at, top, left, right)]


def _best_cut(mass: Field, rectangle: tuple[int, int, int, int]) -> Cut:
    bottom, top, left, right = rectangle
    part = mass[bottom:top, left:right]
    columns, rows = part.sum(axis=0), part.sum(axis=1)
    if _scatter(columns) >= _scatter(rows):
        return "x", left + _half(columns)
    return "y", bottom + _half(rows)


def _scatter(mass: NDArray[np.float64]) -> float:
    """Σ m·(i − mean)²; −1 if there is only one cell, which cannot be cut."""
    if len(mass) < 2 or mass.sum() <= 0:
        return -1.0 if len(mass) < 2 else 0.0
    position = np.arange(len(mass))
    mean = (mass * position).sum() / mass.sum()
    return float((mass * (position - mean) ** 2).sum())


def _half(mass: NDArray[np.float64]) -> int:
    """Where to cut so that the masses of both sides are as equal as whole cells allow, and neither side is empty."""
    if len(mass) < 2:
        return len(mass)
    below = np.cumsum(mass)[:-1]
    return int(np.argmin(np.abs(below - mass.sum() / 2))) + 1

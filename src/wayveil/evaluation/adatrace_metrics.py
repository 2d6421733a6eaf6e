"""The seven measures of the AdaTrace evaluation (Gursoy et al., CCS 2018), each one pure function.

Where the paper leaves a choice open (number of queries, of locations, of patterns), the docstring states ours.

Privacy: not private (trusted side only).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wayveil.evaluation.metrics import _group, histogram, length, metric
from wayveil.evaluation.paths import Paths
from wayveil.evaluation.tally import GROUPS, Counts, Tally, tabulate

Ints = NDArray[np.int64]
Compare = Callable[[NDArray[np.float64], NDArray[np.float64]], float]

# Numbers that the paper leaves open.
_QUERIES, _QUERY_GRID = 200, 64
"""Random queries, and the cells in each direction of the grid on which they count."""
_LOCATION_GRID = 20
"""Locations in each direction."""
_PATTERN_GRID, _PATTERN_LENGTHS, _TOP_PATTERNS = 6, (2, 3, 4, 5), 100
"""Cells in each direction of the grid for patterns, cells of a pattern, and patterns that are compared."""
_DIRECTIONS = 16
"""Directions in which the extent of a trajectory is measured; the largest is its diameter."""


def _box_cells(paths: Paths, across: int) -> NDArray[np.int64]:
    """Cell of each point on an across × across grid of the scope's box; outside points go to the border."""
    column = np.clip(np.floor(paths.x_m * (across / paths.width_m)), 0, across - 1).astype(np.int64)
    row = np.clip(np.floor(paths.y_m * (across / paths.height_m)), 0, across - 1).astype(np.int64)
    return row * across + column


def _visits(paths: Paths, across: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct (trajectory, cell) pairs."""
    pair = paths.owner * across**2 + _box_cells(paths, across)
    changed = np.r_[True, pair[1:] != pair[:-1]]
    pair = np.unique(pair[changed])
    return pair // across**2, pair % across**2


def _query_table(paths: Paths, west: Ints, south: Ints, east: Ints, north: Ints) -> NDArray[np.float64]:
    """(groups, queries + 1) trajectories that visit each rectangle, and all of them in the last column."""
    owner, cell = _visits(paths, _QUERY_GRID)
    row, column = cell // _QUERY_GRID, cell % _QUERY_GRID
    group = _group(paths)
    table = np.zeros((GROUPS, _QUERIES + 1))
    order = np.argsort(row, kind="stable")
    owner, row, column = owner[order], row[order], column[order]
    begin = np.searchsorted(row, np.arange(_QUERY_GRID + 1))
    seen = np.zeros(len(paths), bool)
    for query in range(_QUERIES):
        band = slice(begin[south[query]], begin[north[query]])
        inside = (column[band] >= west[query]) & (column[band] < east[query])
        seen[:] = False
        seen[owner[band][inside]] = True
        table[:, query] = np.bincount(group[seen], minlength=GROUPS)
    table[:, -1] = np.bincount(group, minlength=GROUPS)
    return table


def _relative_error(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> float:
    true, total = real[:-1], real[-1]
    answer = synthetic[:-1] * (total / max(synthetic[-1], 1.0))
    return float(np.mean(np.abs(true - answer) / np.maximum(true, max(0.01 * total, 1e-12))))


@metric()
def query_error(real: Paths, synthetic: Paths) -> Tally:
    """Mean of |Q(real) − Q(syn)| / max(Q(real), 1 % of all), Q = number of trajectories that visit a rectangle.

    200 fixed pseudo-random rectangles on a 64 × 64 grid of the box, sides of 1 to 16 cells. Synthetic counts are
    scaled to the number of real trajectories. Not a divergence: 0 = equal, no upper bound.
    """
    rng = np.random.default_rng(0)
    across, up = rng.integers(1, 17, (2, _QUERIES))
    west, south = rng.integers(0, _QUERY_GRID - across + 1), rng.integers(0, _QUERY_GRID - up + 1)
    tables = [_query_table(paths, west, south, west + across, south + up) for paths in (real, synthetic)]
    return Counts(tables[0], tables[1], _relative_error)


def _kendall(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> float:
    a, b = np.sign(real[:, None] - real), np.sign(synthetic[:, None] - synthetic)
    n = len(real)
    return float((a * b).sum() / max(n * (n - 1), 1))


@metric(higher_is_better=True)
def coverage_tau(real: Paths, synthetic: Paths) -> Tally:
    """Kendall's τ = (concordant − discordant) / all pairs, of the popularity of 400 locations (20 × 20 grid).

    Popularity = number of trajectories that visit the cell; tied pairs count 0. 1 = the same ranking.
    """
    tables = []
    for paths in (real, synthetic):
        owner, cell = _visits(paths, _LOCATION_GRID)
        code = _group(paths)[owner] * _LOCATION_GRID**2 + cell
        tables.append(np.bincount(code, minlength=GROUPS * _LOCATION_GRID**2).reshape(GROUPS, -1).astype(float))
    visited = tables[0].any(0) | tables[1].any(0)
    return Counts(tables[0][:, visited], tables[1][:, visited], _kendall)


def _patterns(paths: Paths) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every contiguous run of 2 to 5 different successive cells on the 6 × 6 grid, as a code, and its trajectory."""
    cell, owner = _box_cells(paths, _PATTERN_GRID), paths.owner
    moved = np.r_[True, (cell[1:] != cell[:-1]) | (owner[1:] != owner[:-1])]
    cell, owner = cell[moved], owner[moved]
    base = _PATTERN_GRID**2 + 1
    codes, owners = [], []
    for size in _PATTERN_LENGTHS:
        if len(cell) < size:
            break
        same = owner[size - 1 :] == owner[: len(owner) - size + 1]
        code = np.zeros(len(cell) - size + 1, np.int64)
        for step in range(size):
            code = code * base + cell[step : step + len(code)] + 1
        codes.append(code[same])
        owners.append(owner[: len(code)][same])
    return np.concatenate(codes or [np.zeros(0, np.int64)]), np.concatenate(owners or [np.zeros(0, np.int64)])


def _pattern_tally(real: Paths, synthetic: Paths, compare: Compare) -> Tally:
    (a, owner_a), (b, owner_b) = _patterns(real), _patterns(synthetic)
    if len(a) == 0 and len(b) == 0:
        return Counts(np.zeros((GROUPS, 1)), np.zeros((GROUPS, 1)), compare)
    # One sentinel on each side keeps the table defined if one side never leaves a cell; it has no weight.
    tally = tabulate(np.r_[a, 0], np.r_[_group(real)[owner_a], 0], np.r_[b, 0], np.r_[_group(synthetic)[owner_b], 0])
    return Counts(tally.real[:, 1:], tally.synthetic[:, 1:], compare)


def _top(count: NDArray[np.float64]) -> NDArray[np.int64]:
    order = np.argsort(-count, kind="stable")[:_TOP_PATTERNS]
    return order[count[order] > 0]


def _f1(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> float:
    a, b = _top(real), _top(synthetic)
    if len(a) + len(b) == 0:
        return 1.0
    return 2.0 * len(np.intersect1d(a, b)) / (len(a) + len(b))


def _support_error(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> float:
    a = _top(real)
    if len(a) == 0:
        return 0.0
    true, answer = real[a] / real.sum(), synthetic[a] / max(synthetic.sum(), 1.0)
    return float(np.mean(np.abs(true - answer) / true))


@metric(higher_is_better=True)
def pattern_f1(real: Paths, synthetic: Paths) -> Tally:
    """F1 of the 100 most frequent patterns of each side; a pattern is 2 to 5 successive cells of a 6 × 6 grid."""
    return _pattern_tally(real, synthetic, _f1)


@metric()
def pattern_support(real: Paths, synthetic: Paths) -> Tally:
    """Mean relative error of the support (share of all patterns) of the 100 most frequent real patterns."""
    return _pattern_tally(real, synthetic, _support_error)


@metric()
def trip_6x6(real: Paths, synthetic: Paths) -> Tally:
    """JSD of (start cell, end cell) on a 6 × 6 grid of the box."""
    codes = []
    for paths in (real, synthetic):
        cell = _box_cells(paths, 6)
        codes.append(cell[paths.first] * 36 + cell[paths.last])
    return tabulate(codes[0], _group(real), codes[1], _group(synthetic))


def _diameters(paths: Paths) -> NDArray[np.float64]:
    widest = np.zeros(len(paths))
    for angle in np.arange(_DIRECTIONS) * (np.pi / _DIRECTIONS):
        projected = paths.x_m * np.cos(angle) + paths.y_m * np.sin(angle)
        extent = np.maximum.reduceat(projected, paths.first) - np.minimum.reduceat(projected, paths.first)
        np.maximum(widest, extent, out=widest)
    return widest


@metric()
def diameter(real: Paths, synthetic: Paths) -> Tally:
    """JSD of trajectory diameters (largest distance between two points) in 20 equal bins from 0 to the largest real.

    The diameter is approximated by the largest extent over 16 directions, at most 0.5 % too small.
    """
    a, b = _diameters(real), _diameters(synthetic)
    return histogram(real, synthetic, a, b, float(a.max()), 20)


length_20 = length.at(bins=20)

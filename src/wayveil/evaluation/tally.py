"""Tallies: the counts of a metric by groups of trajectories.

A metric is a score of two tables of counts. With each table divided by groups of trajectories, one pass over the points
yields the value, a jackknife interval (leave one group out) and the floor (some groups of the real data against
others).
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.divergence import jsd

GROUPS = 16
"""Groups of the delete-one-group jackknife."""
_MOST_DENSE = 500_000
"""Range of codes up to which counts are kept in a dense table."""

Table = NDArray[np.float64]
Groups = NDArray[np.int64]


class Tally(Protocol):
    """A comparison that can be repeated on a subset of its groups."""

    def score(self, real: Groups, synthetic: Groups) -> float:
        """The metric on these groups of the real and of the synthetic trajectories."""
        ...

    def split(self, one: Groups, other: Groups) -> float:
        """The metric between two disjoint sets of groups of the real trajectories."""
        ...


@dataclass(frozen=True, eq=False)
class Counts:
    """Two tables (groups, bins) of counts and the function that compares their sums."""

    real: Table
    synthetic: Table
    compare: Callable[[NDArray[np.float64], NDArray[np.float64]], float] = jsd

    def score(self, real: Groups, synthetic: Groups) -> float:
        return self.compare(self.real[real].sum(0), self.synthetic[synthetic].sum(0))

    def split(self, one: Groups, other: Groups) -> float:
        return self.compare(self.real[one].sum(0), self.real[other].sum(0))


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean of several tallies."""

    parts: tuple[Tally, ...]

    def score(self, real: Groups, synthetic: Groups) -> float:
        return float(np.mean([part.score(real, synthetic) for part in self.parts]))

    def split(self, one: Groups, other: Groups) -> float:
        return float(np.mean([part.split(one, other) for part in self.parts]))


@dataclass(frozen=True, eq=False)
class Energy:
    """Sums of distances between groups of vectors: (2·E d(X,Y) − E d(X,X') − E d(Y,Y')) / E d(X,Y)."""

    real_real: Table
    real_synthetic: Table
    synthetic_synthetic: Table
    real_sizes: NDArray[np.int64]
    synthetic_sizes: NDArray[np.int64]

    def score(self, real: Groups, synthetic: Groups) -> float:
        return _energy(
            self.real_synthetic[np.ix_(real, synthetic)].sum(),
            self.real_real[np.ix_(real, real)].sum(),
            self.synthetic_synthetic[np.ix_(synthetic, synthetic)].sum(),
            int(self.real_sizes[real].sum()),
            int(self.synthetic_sizes[synthetic].sum()),
        )

    def split(self, one: Groups, other: Groups) -> float:
        return _energy(
            self.real_real[np.ix_(one, other)].sum(),
            self.real_real[np.ix_(one, one)].sum(),
            self.real_real[np.ix_(other, other)].sum(),
            int(self.real_sizes[one].sum()),
            int(self.real_sizes[other].sum()),
        )


def _energy(cross: float, within_one: float, within_other: float, n: int, m: int) -> float:
    if min(n, m) < 2 or cross <= 0:
        return 0.0
    mean_cross = cross / (n * m)
    return float((2 * mean_cross - within_one / (n * (n - 1)) - within_other / (m * (m - 1))) / mean_cross)


def energy_tally(real: Table, synthetic: Table, real_group: Groups, synthetic_group: Groups) -> Energy:
    """Group sums of the Euclidean distances between two sets of vectors."""
    a, b = np.argsort(real_group, kind="stable"), np.argsort(synthetic_group, kind="stable")
    real, synthetic = real[a], synthetic[b]
    n, m = (np.bincount(group, minlength=GROUPS) for group in (real_group, synthetic_group))
    return Energy(
        _blocks(_distances(real, real), n, n),
        _blocks(_distances(real, synthetic), n, m),
        _blocks(_distances(synthetic, synthetic), m, m),
        n,
        m,
    )


def _distances(one: Table, other: Table) -> Table:
    squared: Table = (one * one).sum(1)[:, None] + (other * other).sum(1)[None] - 2 * one @ other.T
    np.maximum(squared, 0.0, out=squared)
    return np.sqrt(squared, out=squared)


def _blocks(matrix: Table, row_sizes: NDArray[np.int64], column_sizes: NDArray[np.int64]) -> Table:
    # Groups may be empty, so prefix sums take the place of reduceat.
    rows = ragged.offsets_of(row_sizes)
    by_row = np.stack([matrix[a:b].sum(0) for a, b in itertools.pairwise(rows)])
    columns = ragged.offsets_of(column_sizes)
    return np.stack([by_row[:, a:b].sum(1) for a, b in itertools.pairwise(columns)], 1)


def tabulate(
    real_code: NDArray[np.int64],
    real_group: Groups,
    synthetic_code: NDArray[np.int64],
    synthetic_group: Groups,
    compare: Callable[[NDArray[np.float64], NDArray[np.float64]], float] = jsd,
) -> Counts:
    """Count integer codes by group; only codes that occur get a column, in ascending order."""
    real_dense, synthetic_dense, size = _dense(real_code, synthetic_code)
    real = _table(real_dense, real_group, size)
    synthetic = _table(synthetic_dense, synthetic_group, size)
    used = (real.any(0)) | (synthetic.any(0))
    return Counts(real[:, used], synthetic[:, used], compare)


def _dense(one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    lowest = min(int(one.min()), int(other.min()))
    highest = max(int(one.max()), int(other.max()))
    if highest - lowest < _MOST_DENSE:
        return one - lowest, other - lowest, highest - lowest + 1
    unique, inverse = np.unique(np.concatenate([one, other]), return_inverse=True)
    return inverse[: len(one)], inverse[len(one) :], len(unique)


def _table(code: NDArray[np.int64], group: Groups, size: int) -> Table:
    return np.bincount(group * size + code, minlength=GROUPS * size).reshape(GROUPS, size).astype(float)

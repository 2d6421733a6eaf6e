"""The view: features of one trajectory at a time, and their exact sum."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wayveil.prepare import Prepared
from wayveil.privacy.fixedpoint import exact_bincount


@dataclass(frozen=True, eq=False)
class Features:
    """Sparse features: trajectory `row[k]` has the whole number `weight[k]` at position `column[k]`."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    weight: NDArray[np.int64]


class View(Protocol):
    """One question about each trajectory.

    For every trajectory Σ |weight| ≤ `resolution`, and its features depend on nothing but itself and public values.
    """

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def resolution(self) -> int: ...

    def features(self, batch: Prepared) -> Features: ...


def size_of(view: View) -> int:
    """Number of values in the view's answer."""
    return int(np.prod(view.shape, dtype=np.int64))


def one_hot(column: NDArray[np.int64]) -> Features:
    """Each trajectory weighs 1 at one position: resolution 1, L1 norm 1."""
    return Features(np.arange(len(column)), column, np.ones(len(column), np.int64))


def batch_sums(views: Sequence[View], batch: Prepared) -> list[NDArray[np.int64]]:
    """Σ φ(T) over one batch, for each view, in exact integers."""
    sums = []
    for view in views:
        features = view.features(batch)
        sums.append(exact_bincount(features.column, features.weight, size_of(view)))
    return sums


def exact_sums(views: Sequence[View], batches: Iterable[Prepared]) -> list[NDArray[np.int64]]:
    """Σ φ(T) over all batches; equal for every partition of the data, because integers add exactly.

    Privacy: not private (trusted side only); `measure` adds the noise.
    """
    totals = [np.zeros(size_of(view), np.int64) for view in views]
    for batch in batches:
        for total, part in zip(totals, batch_sums(views, batch)):
            total += part
    return totals

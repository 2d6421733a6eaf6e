"""Trajectories as records of the same length, and the release of noisy records."""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import TwoLevelGrid
from wayveil.baselines.method import Run
from wayveil.core import ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def waypoints(offsets: Ints, x_m: Floats, y_m: Floats, count: int) -> tuple[Floats, Floats]:
    """(trajectories, count) positions at equal arc length, the first and the last point included."""
    m = len(offsets) - 1
    if m == 0:
        return np.zeros((0, count)), np.zeros((0, count))
    owner = ragged.owners(np.diff(offsets))
    step = np.hypot(np.diff(x_m, prepend=x_m[:1]), np.diff(y_m, prepend=y_m[:1]))
    step[offsets[:-1]] = 0.0
    along = np.cumsum(step)
    along -= along[offsets[:-1]][owner]
    total = along[offsets[1:] - 1]
    # One increasing axis for all trajectories: trajectory i covers the interval [2i, 2i + 1].
    axis = 2.0 * owner + along / np.maximum(total, 1e-9)[owner]
    wanted = 2.0 * np.arange(m)[:, None] + np.linspace(0.0, 1.0, count)[None] * (total > 0)[:, None]
    places = np.interp(wanted, axis, x_m), np.interp(wanted, axis, y_m)
    for place, column in zip(places, (x_m, y_m)):
        place[:, 0], place[:, -1] = column[offsets[:-1]], column[offsets[1:] - 1]
    return places


def noisy_records(run: Run, values: Floats, weights: Floats, count: float, name: str = "records") -> Floats:
    """Noisy copies of the records: as many as the (noisy) count says, each protected against replacement.

    Published: one for each record. Otherwise a random choice of records in a secret order; if there are fewer than the
    count, records with all values 0.5 are added. Lemma: with one record more or less, the chosen records can be coupled
    so that at most one of them is replaced, and `rows` covers the replacement of one.

    Privacy: spends the share of `name`; with `published`, not private.
    """
    if not run.published:
        size, m = run.size(count), len(values)
        chosen = run.mechanism.order(m)[:size]
        values = np.concatenate([values[chosen], np.full((size - len(chosen), values.shape[1]), 0.5)])
    return run.mechanism.rows(name, values, weights)


def leaf_of_cell(grid: TwoLevelGrid, weight: Floats, cell: Ints, rng: np.random.Generator) -> Ints:
    """A leaf of each coarse cell, in proportion to the leaves' weights; evenly where they have none.

    Privacy: free (post-processing).
    """
    first = grid.first_leaf
    cumulative = np.r_[0.0, np.cumsum(weight + 1e-9)]
    at = cumulative[first[cell]] + rng.random(len(cell)) * (cumulative[first[cell + 1]] - cumulative[first[cell]])
    leaf: Ints = np.clip(np.searchsorted(cumulative, at, side="right") - 1, first[cell], first[cell + 1] - 1)
    return leaf

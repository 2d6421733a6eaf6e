"""First-and-last extension: every trajectory gets as many points as the longest (Section "Trajectory Embedding")."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.errors import InputError


@dataclass(frozen=True, eq=False)
class Aligned:
    """Trajectories of equal length, and the positions of their own points."""

    points: NDArray[np.float64]
    """(m, n, k): n points of k coordinates."""
    front: NDArray[np.int64]
    """(m,) copies of the first point before the trajectory's own points."""
    counts: NDArray[np.int64]
    """(m,) a trajectory's own points."""
    extended: bool = True
    """Whether the other points are copies of the ends; if not, they only fill the array."""

    @property
    def vectors(self) -> NDArray[np.float64]:
        """(m, D) with D = k n: a trajectory as one vector."""
        return self.points.reshape(len(self.points), -1)

    @property
    def own(self) -> NDArray[np.bool_]:
        """(m, n) whether a point is the trajectory's own and not a copy."""
        position = np.arange(self.points.shape[1])[None, :]
        return (position >= self.front[:, None]) & (position < (self.front + self.counts)[:, None])


def align(points: NDArray[np.floating], offsets: NDArray[np.integer]) -> Aligned:
    """Copy the first point l/2 times in front and the last point l/2 times behind, l = n - own points.

    The paper does not say where the odd copy goes when l is odd: here the last point is repeated one more time.

    Privacy: not private (trusted side only); n is the length of the longest trajectory of the data.
    """
    bounds = np.asarray(offsets, np.int64)
    counts = np.diff(bounds)
    if len(counts) == 0 or (counts < 1).any():
        raise InputError("Alignment needs at least one trajectory, and at least one point in each.")
    n = int(counts.max())
    front = (n - counts) // 2
    position = np.clip(np.arange(n)[None, :] - front[:, None], 0, counts[:, None] - 1)
    return Aligned(np.asarray(points, np.float64)[position + np.asarray(offsets)[:-1, None]], front, counts)


def pad(points: NDArray[np.floating], offsets: NDArray[np.integer]) -> Aligned:
    """No extension, for metrics that need no alignment: own points first, the last one repeated to fill the array."""
    bounds = np.asarray(offsets, np.int64)
    counts = np.diff(bounds)
    if len(counts) == 0 or (counts < 1).any():
        raise InputError("At least one trajectory is needed, and at least one point in each.")
    position = np.minimum(np.arange(counts.max())[None, :], counts[:, None] - 1)
    front = np.zeros(len(counts), np.int64)
    filled = np.asarray(points, np.float64)[position + np.asarray(offsets)[:-1, None]]
    return Aligned(filled, front, counts, extended=False)


def unalign(points: NDArray[np.floating], aligned: Aligned) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(points, offsets) of the trajectories' own points, without the copies."""
    return np.asarray(points, np.float64)[aligned.own], ragged.offsets_of(aligned.counts)

"""Many polylines as flat columns: lengths, and points at equal steps of a weighted arc length."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Polylines:
    """Polyline i owns the vertices `offsets[i]:offsets[i + 1]`, at least two."""

    offsets: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.offsets) - 1


def steps(lines: Polylines) -> NDArray[np.float64]:
    """Distance from each vertex's predecessor; zero at the first vertex of each polyline."""
    step = np.zeros(len(lines.x_m))
    np.hypot(np.diff(lines.x_m), np.diff(lines.y_m), out=step[1:])
    step[lines.offsets[:-1]] = 0.0
    return step


def lengths(lines: Polylines) -> NDArray[np.float64]:
    """Length of each polyline in metres."""
    return np.add.reduceat(steps(lines), lines.offsets[:-1]) if len(lines) else np.zeros(0)


def take(lines: Polylines, index: NDArray[np.int64]) -> Polylines:
    """The polylines at the given positions, repeats allowed."""
    counts = np.diff(lines.offsets)[index]
    offsets = np.r_[0, np.cumsum(counts)]
    vertex = np.arange(offsets[-1]) + np.repeat(lines.offsets[index] - offsets[:-1], counts)
    return Polylines(offsets, lines.x_m[vertex], lines.y_m[vertex])


def place(
    lines: Polylines, weight: NDArray[np.float64], offsets: NDArray[np.int64], fraction: NDArray[np.float64]
) -> Polylines:
    """Points along each polyline where the running share of `weight` reaches the wanted fractions.

    Parameters
    ----------
    weight
        Non-negative weight of the step that ends at each vertex (its length, or its length times slowness).
    offsets, fraction
        Fractions from 0 to 1 wanted on polyline i: `fraction[offsets[i]:offsets[i + 1]]`.
    """
    running = np.cumsum(weight + 1e-6)
    begin = running[lines.offsets[:-1]]
    total = running[lines.offsets[1:] - 1] - begin
    counts = np.diff(offsets)
    owner = np.repeat(np.arange(len(lines)), counts)
    wanted = begin[owner] + fraction * total[owner]
    after = np.clip(np.searchsorted(running, wanted), lines.offsets[:-1][owner] + 1, lines.offsets[1:][owner] - 1)
    gap = running[after] - running[after - 1]
    share = np.clip((wanted - running[after - 1]) / np.maximum(gap, 1e-12), 0.0, 1.0)
    x = lines.x_m[after - 1] + share * (lines.x_m[after] - lines.x_m[after - 1])
    y = lines.y_m[after - 1] + share * (lines.y_m[after] - lines.y_m[after - 1])
    return Polylines(offsets, x, y)

"""Many polylines as flat columns: lengths, and points at equal steps of a weighted arc length."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged


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
    return step_lengths(lines.offsets, lines.x_m, lines.y_m)


def step_lengths(offsets: NDArray[np.int64], x_m: NDArray[np.float64], y_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """√(Δx² + Δy²) from each point's predecessor; zero at the first point of each polyline."""
    length = np.zeros(len(x_m))
    for first in range(1, len(x_m), ragged.CACHED):
        last = min(first + ragged.CACHED, len(x_m))
        across, along = np.diff(x_m[first - 1 : last]), np.diff(y_m[first - 1 : last])
        across *= across
        along *= along
        across += along
        np.sqrt(across, out=length[first:last])
    length[offsets[:-1]] = 0.0
    return length


def lengths(lines: Polylines) -> NDArray[np.float64]:
    """Length of each polyline in metres."""
    return ragged.sums(steps(lines), lines.offsets)


def take(lines: Polylines, index: NDArray[np.int64]) -> Polylines:
    """The polylines at the given positions, repeats allowed."""
    offsets, vertex = ragged.take(lines.offsets, index)
    return Polylines(offsets, lines.x_m[vertex], lines.y_m[vertex])


def joined(parts: Sequence[Polylines]) -> Polylines:
    """All polylines of `parts`, one after the other."""
    if not parts:
        return Polylines(np.zeros(1, np.int64), np.empty(0), np.empty(0))
    x_m, y_m = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x_m", "y_m"))
    return Polylines(ragged.join(part.offsets for part in parts), x_m, y_m)


def place(
    lines: Polylines, weight: NDArray[np.float64], offsets: NDArray[np.int64], fraction: NDArray[np.float64]
) -> Polylines:
    """Points along each polyline where the cumulative share of `weight` reaches the given fractions.

    Parameters
    ----------
    weight
        Non-negative weight of the step that ends at each vertex (its length, or its length times slowness).
    offsets, fraction
        The fractions of polyline i, from 0 to 1, are `fraction[offsets[i]:offsets[i + 1]]`.
    """
    x, y = np.empty(len(fraction)), np.empty(len(fraction))
    for first, last in ragged.runs(offsets):
        points, counts = slice(offsets[first], offsets[last]), np.diff(offsets[first : last + 1])
        base, stop = lines.offsets[first], lines.offsets[last]
        running = weight[base:stop] + 1e-6
        np.cumsum(running, out=running)
        begin, end = running[lines.offsets[first:last] - base], running[lines.offsets[first + 1 : last + 1] - base - 1]
        target = np.repeat(end - begin, counts)
        target *= fraction[points]
        target += np.repeat(begin, counts)
        # A value beyond the end, by a rounding error, would be interpolated towards the next polyline.
        np.minimum(target, np.repeat(end, counts), out=target)
        x[points] = np.interp(target, running, lines.x_m[base:stop])
        y[points] = np.interp(target, running, lines.y_m[base:stop])
    return Polylines(offsets, x, y)

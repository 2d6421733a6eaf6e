"""Many polylines as flat columns: lengths, and points at equal steps of a weighted arc length."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 15


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
    x, y = np.empty(len(fraction)), np.empty(len(fraction))
    # Some polylines at a time: what is looked at stays in the processor's cache.
    first = 0
    while first < len(lines):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, side="right")) - 1)
        points = slice(offsets[first], offsets[last])
        _place(lines, running, first, last, np.diff(offsets[first : last + 1]), fraction[points], x[points], y[points])
        first = last
    return Polylines(offsets, x, y)


def _place(
    lines: Polylines,
    running: NDArray[np.float64],
    first: int,
    last: int,
    counts: NDArray[np.int64],
    fraction: NDArray[np.float64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
) -> None:
    """`place` for the polylines `first:last`, into x and y."""
    base, stop = lines.offsets[first], lines.offsets[last]
    running, line_x, line_y = running[base:stop], lines.x_m[base:stop], lines.y_m[base:stop]
    low, high = lines.offsets[first:last] - base, lines.offsets[first + 1 : last + 1] - base - 1
    begin = running[low]
    wanted = np.repeat(begin, counts) + fraction * np.repeat(running[high] - begin, counts)
    after = np.searchsorted(running, wanted)
    np.clip(after, np.repeat(low + 1, counts), np.repeat(high, counts), out=after)
    before = after - 1
    reached = running[before]
    share = np.clip((wanted - reached) / np.maximum(running[after] - reached, 1e-12), 0.0, 1.0)
    from_x, from_y = line_x[before], line_y[before]
    x[:] = from_x + share * (line_x[after] - from_x)
    y[:] = from_y + share * (line_y[after] - from_y)

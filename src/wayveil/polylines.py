"""Many polylines as flat columns: lengths, and points at equal steps of a weighted arc length."""

from collections.abc import Iterator, Sequence
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


def runs(offsets: NDArray[np.int64], points: int = _BLOCK) -> Iterator[tuple[int, int]]:
    """(first, last) of polylines that together have about so many points: what is looked at stays in the cache."""
    first = 0
    while first < len(offsets) - 1:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + points, side="right")) - 1)
        yield first, last
        first = last


def steps(lines: Polylines) -> NDArray[np.float64]:
    """Distance from each vertex's predecessor; zero at the first vertex of each polyline."""
    return step_lengths(lines.offsets, lines.x_m, lines.y_m)


def step_lengths(offsets: NDArray[np.int64], x_m: NDArray[np.float64], y_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """√(Δx² + Δy²) from each point's predecessor; zero at the first point of each polyline."""
    length = np.zeros(len(x_m))
    # Some points at a time: what is looked at stays in the processor's cache.
    for first in range(1, len(x_m), _BLOCK):
        last = min(first + _BLOCK, len(x_m))
        across, along = np.diff(x_m[first - 1 : last]), np.diff(y_m[first - 1 : last])
        across *= across
        along *= along
        across += along
        np.sqrt(across, out=length[first:last])
    length[offsets[:-1]] = 0.0
    return length


def lengths(lines: Polylines) -> NDArray[np.float64]:
    """Length of each polyline in metres."""
    return np.add.reduceat(steps(lines), lines.offsets[:-1]) if len(lines) else np.zeros(0)


def vertices_of(offsets: NDArray[np.int64], index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of the polylines at the given positions, repeats allowed, and where their vertices are now."""
    begin = offsets[index]
    counts = offsets[index + 1] - begin
    taken = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=taken[1:])
    vertex = np.repeat(begin - taken[:-1], counts)
    vertex += np.arange(taken[-1])
    return taken, vertex


def take(lines: Polylines, index: NDArray[np.int64]) -> Polylines:
    """The polylines at the given positions, repeats allowed."""
    offsets, vertex = vertices_of(lines.offsets, index)
    return Polylines(offsets, lines.x_m[vertex], lines.y_m[vertex])


def joined(parts: Sequence[Polylines]) -> Polylines:
    """All polylines of `parts`, one after the other."""
    if not parts:
        return Polylines(np.zeros(1, np.int64), np.empty(0), np.empty(0))
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    x_m, y_m = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x_m", "y_m"))
    return Polylines(np.r_[0, np.cumsum(counts)], x_m, y_m)


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
    x, y = np.empty(len(fraction)), np.empty(len(fraction))
    for first, last in runs(offsets):
        points, counts = slice(offsets[first], offsets[last]), np.diff(offsets[first : last + 1])
        base, stop = lines.offsets[first], lines.offsets[last]
        running = weight[base:stop] + 1e-6
        np.cumsum(running, out=running)
        begin, end = running[lines.offsets[first:last] - base], running[lines.offsets[first + 1 : last + 1] - base - 1]
        wanted = np.repeat(end - begin, counts)
        wanted *= fraction[points]
        wanted += np.repeat(begin, counts)
        # A rounding error beyond the end would be on the way to the next polyline.
        np.minimum(wanted, np.repeat(end, counts), out=wanted)
        x[points] = np.interp(wanted, running, lines.x_m[base:stop])
        y[points] = np.interp(wanted, running, lines.y_m[base:stop])
    return Polylines(offsets, x, y)

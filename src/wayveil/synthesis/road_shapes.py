"""Shapes of many polylines at the same time: fewer vertices where they are straight, more where they are far apart.

Privacy: free (applied to public maps and to estimates).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.polylines import Polylines, joined, runs

_STRAIGHT_M = 2.0
_SIMPLIFY_ROUNDS = 6


def along(offsets: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance of each vertex from the beginning of its polyline, along it."""
    step = np.r_[0.0, np.hypot(np.diff(x), np.diff(y))]
    step[offsets[:-1]] = 0.0
    running = np.cumsum(step)
    return running - np.repeat(running[offsets[:-1]], np.diff(offsets))


def simplified(
    offsets: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Vertices that lie within two metres of the line between their neighbours left out, every other one at a time."""
    for round_ in range(_SIMPLIFY_ROUNDS):
        count = np.diff(offsets)
        rank = np.arange(len(x)) - np.repeat(offsets[:-1], count)
        inner = np.flatnonzero((rank % 2 == 1) & (rank < np.repeat(count, count) - 1))
        ax, ay, bx, by = x[inner - 1], y[inner - 1], x[inner + 1], y[inner + 1]
        chord = np.hypot(bx - ax, by - ay)
        cross = np.abs((bx - ax) * (y[inner] - ay) - (by - ay) * (x[inner] - ax))
        ahead = (bx - x[inner]) * (x[inner] - ax) + (by - y[inner]) * (y[inner] - ay) > 0
        flat = (cross <= _STRAIGHT_M * chord / (round_ + 1)) & ahead
        keep = np.ones(len(x), bool)
        keep[inner[flat]] = False
        if keep.all():
            break
        dropped = np.add.reduceat(~keep, offsets[:-1])
        x, y = x[keep], y[keep]
        offsets = np.r_[0, np.cumsum(count - dropped)]
    return offsets, x, y


def densified(
    offsets: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64], spacing_m: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Vertices put into steps longer than `spacing_m`, at equal distances."""
    step = np.r_[np.hypot(np.diff(x), np.diff(y)), 0.0]
    step[offsets[1:] - 1] = 0.0
    parts = np.maximum(np.ceil(step / spacing_m), 1).astype(np.int64)
    begin = np.repeat(np.arange(len(x)), parts)
    rank = np.arange(len(begin)) - np.repeat(np.cumsum(parts) - parts, parts)
    share = rank / parts[begin]
    after = np.minimum(begin + 1, len(x) - 1)
    new_x = np.where(rank == 0, x[begin], x[begin] + share * (x[after] - x[begin]))
    new_y = np.where(rank == 0, y[begin], y[begin] + share * (y[after] - y[begin]))
    return np.r_[0, np.cumsum(np.add.reduceat(parts, offsets[:-1]))], new_x, new_y


def with_short_steps(lines: Polylines, longest_m: float) -> Polylines:
    """The same polylines with no step longer than that, some at a time: the pieces need little memory."""
    parts = []
    for first, last in runs(lines.offsets):
        vertices = slice(lines.offsets[first], lines.offsets[last])
        offsets = lines.offsets[first : last + 1] - lines.offsets[first]
        parts.append(Polylines(*densified(offsets, lines.x_m[vertices], lines.y_m[vertices], longest_m)))
    return joined(parts)

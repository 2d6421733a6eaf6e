"""Simplify and densify many polylines at once.

Privacy: free (applied to public maps and to estimates).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import Polylines, joined, step_lengths
from wayveil.synthesis.routes.settings import ROADS


def along(offsets: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Arc length of each vertex from the beginning of its polyline."""
    running = np.cumsum(step_lengths(offsets, x, y))
    result: NDArray[np.float64] = running - np.repeat(running[offsets[:-1]], np.diff(offsets))
    return result


def simplified(
    offsets: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Remove vertices within 2/k metres of the line between their neighbours in round k, counted from 1.

    A round tests every other vertex.
    """
    for round_ in range(ROADS.simplify_rounds):
        count = np.diff(offsets)
        rank = ragged.ranks(count)
        inner = np.flatnonzero((rank % 2 == 1) & (rank < np.repeat(count, count) - 1))
        ax, ay, bx, by = x[inner - 1], y[inner - 1], x[inner + 1], y[inner + 1]
        chord = np.hypot(bx - ax, by - ay)
        cross = np.abs((bx - ax) * (y[inner] - ay) - (by - ay) * (x[inner] - ax))
        ahead = (bx - x[inner]) * (x[inner] - ax) + (by - y[inner]) * (y[inner] - ay) > 0
        flat = (cross <= ROADS.straight_m * chord / (round_ + 1)) & ahead
        keep = np.ones(len(x), bool)
        keep[inner[flat]] = False
        if keep.all():
            break
        x, y, offsets = x[keep], y[keep], ragged.offsets_of(ragged.sums(keep, offsets))
    return offsets, x, y


def densified(
    offsets: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64], spacing_m: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Divide steps longer than `spacing_m` by equidistant vertices."""
    after_m = np.roll(step_lengths(offsets, x, y), -1)  # from each vertex to the next one; 0 at the last
    parts = np.maximum(np.ceil(after_m / spacing_m), 1).astype(np.int64)
    begin, rank = ragged.owners(parts), ragged.ranks(parts)
    share = rank / parts[begin]
    after = np.minimum(begin + 1, len(x) - 1)
    new_x = np.where(rank == 0, x[begin], x[begin] + share * (x[after] - x[begin]))
    new_y = np.where(rank == 0, y[begin], y[begin] + share * (y[after] - y[begin]))
    return ragged.offsets_of(ragged.sums(parts, offsets)), new_x, new_y


def with_short_steps(lines: Polylines, longest_m: float) -> Polylines:
    """The same polylines with no step longer than `longest_m`, processed in blocks to limit the memory."""
    parts = []
    for first, last in ragged.runs(lines.offsets):
        vertices = slice(lines.offsets[first], lines.offsets[last])
        offsets = lines.offsets[first : last + 1] - lines.offsets[first]
        parts.append(Polylines(*densified(offsets, lines.x_m[vertices], lines.y_m[vertices], longest_m)))
    return joined(parts)

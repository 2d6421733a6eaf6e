"""Small moves of sparse points, so that the counts of cells match the density.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, steps
from wayveil.core.pyramid import Field
from wayveil.synthesis.place.points import histogram
from wayveil.synthesis.place.settings import SPREAD


def spread_points(
    lines: Polylines,
    density: Field,
    grid: Grid,
    furthest_m: float,
    random: np.random.Generator,
    room_m: NDArray[np.float64] | None = None,
) -> Polylines:
    """Move each sparse fix to the one of a few random places nearby that lowers Σ (count − target)² / target most.

    Ends and the fixes of dense tracks do not move, because their moves would be too short to matter. `room_m` is how
    far both ends of the step that ends at each fix may move along each axis.
    """
    reach = steps(lines)
    np.minimum(reach[:-1], reach[1:], out=reach[:-1])
    reach *= SPREAD.reach
    np.minimum(reach, furthest_m, out=reach)
    if room_m is not None:
        np.minimum(reach, room_m, out=reach)
        np.minimum(reach[:-1], room_m[1:], out=reach[:-1])
    inner = reach > SPREAD.sparse_m
    inner[lines.offsets[:-1]] = False
    inner[lines.offsets[1:] - 1] = False
    moving = random.permutation(np.flatnonzero(inner))
    if len(moving) == 0:
        return lines
    # Only for the fixes that move, which are few in dense tracks.
    reach = (reach[moving] / grid.cell_m).astype(np.float32)
    from_x, from_y = lines.x_m[moving], lines.y_m[moving]
    to_x, to_y, cell = from_x.copy(), from_y.copy(), grid.index(from_x, from_y)
    target = (density * (len(lines.x_m) / density.sum())).ravel() + SPREAD.least_wanted
    surplus = histogram(lines, grid, np.diff(lines.offsets)).ravel() - target
    worth = 1.0 / target
    size = max(SPREAD.least_block, min(SPREAD.block, grid.cells // SPREAD.cells_each))
    for first in list(range(0, len(moving), size)) * SPREAD.sweeps:
        some = slice(first, first + size)
        column = _around(from_x[some] / grid.cell_m, reach[some], grid.columns, SPREAD.proposals, random)
        row = _around(from_y[some] / grid.cell_m, reach[some], grid.rows, SPREAD.proposals, random)
        proposed = row.astype(np.int64)
        proposed *= grid.columns
        proposed += column.astype(np.int64)
        here = cell[some]
        # Half of the change: the square of a surplus changes by 2·surplus ± 1 if a point is added or removed.
        gain = (surplus[here] - 0.5) * worth[here] - (surplus[proposed] + 0.5) * worth[proposed]
        gain[proposed == here] = 0.0
        best = gain.argmax(axis=0)
        goes = np.flatnonzero(gain[best, np.arange(len(here))] > 0)
        best, there = best[goes], first + goes
        np.subtract.at(surplus, here[goes], 1.0)
        cell[there] = proposed[best, goes]
        np.add.at(surplus, cell[there], 1.0)
        to_x[there] = np.minimum(column[best, goes] * grid.cell_m, grid.width_m)
        to_y[there] = np.minimum(row[best, goes] * grid.cell_m, grid.height_m)
    x_m, y_m = lines.x_m.copy(), lines.y_m.copy()
    x_m[moving], y_m[moving] = to_x, to_y
    return Polylines(lines.offsets, x_m, y_m)


def _around(
    at: NDArray[np.float64], reach: NDArray[np.float32], count: int, proposals: int, random: np.random.Generator
) -> NDArray[np.float32]:
    """(proposals, n) coordinates on the grid within reach of each given one, all in cells."""
    # Two random bytes resolve steps of a centimetre; single precision resolves millimetres.
    uniform = random.integers(1 << 16, size=(proposals, len(at)), dtype=np.uint16)
    result = np.multiply(uniform, reach * np.float32(2.0**-15))
    result += at.astype(np.float32) - reach
    answer: NDArray[np.float32] = np.clip(result, 0, np.nextafter(np.float32(count), np.float32(0)), out=result)
    return answer

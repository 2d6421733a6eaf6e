"""evening: sparse fixes moved a little, so that each cell has as many as the density says and not as chance has it.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.polylines import Polylines, steps
from wayveil.pyramid import Field
from wayveil.synthesis.placing import histogram

_BLOCK = 1 << 10
_CELLS_EACH = 16
"""Fixes that are moved at a time: at most one for so many cells, lest all go to the same ones."""
_FEWEST_AT_A_TIME = 32
_SWEEPS = 2
_REACH = 0.4
"""Of the shorter step beside a fix: the order along the route stays, and nobody turns back and forth."""
_SPARSE_M = 15.0
_FEWEST = 0.01
"""Fixes that a cell is wanted to have at least: no place is forbidden."""


def even_out(
    lines: Polylines,
    density: Field,
    grid: Grid,
    furthest_m: float,
    random: np.random.Generator,
    proposals: int = 8,
    room_m: NDArray[np.float64] | None = None,
) -> Polylines:
    """Move each sparse fix to the place nearby, of a few, that brings Σ (count − wanted)² / wanted down furthest.

    Ends stay, and so do dense tracks: what they could reach is too close to matter. `room_m` is how far both ends of
    the step that ends at each fix may move along each axis.
    """
    reach = steps(lines)
    np.minimum(reach[:-1], reach[1:], out=reach[:-1])
    reach *= _REACH
    np.minimum(reach, furthest_m, out=reach)
    if room_m is not None:
        np.minimum(reach, room_m, out=reach)
        np.minimum(reach[:-1], room_m[1:], out=reach[:-1])
    inner = reach > _SPARSE_M
    inner[lines.offsets[:-1]] = False
    inner[lines.offsets[1:] - 1] = False
    moving = random.permutation(np.flatnonzero(inner))
    if len(moving) == 0:
        return lines
    # Of the fixes that move alone: of dense tracks they are few.
    reach = (reach[moving] / grid.cell_m).astype(np.float32)
    from_x, from_y = lines.x_m[moving], lines.y_m[moving]
    to_x, to_y, cell = from_x.copy(), from_y.copy(), grid.index(from_x, from_y)
    wanted = (density * (len(lines.x_m) / density.sum())).ravel() + _FEWEST
    surplus = histogram(lines, grid, np.diff(lines.offsets)).ravel() - wanted
    worth = 1.0 / wanted
    size = max(_FEWEST_AT_A_TIME, min(_BLOCK, grid.cells // _CELLS_EACH))
    for first in list(range(0, len(moving), size)) * _SWEEPS:
        some = slice(first, first + size)
        column = _around(from_x[some] / grid.cell_m, reach[some], grid.columns, proposals, random)
        row = _around(from_y[some] / grid.cell_m, reach[some], grid.rows, proposals, random)
        proposed = row.astype(np.int64)
        proposed *= grid.columns
        proposed += column.astype(np.int64)
        here = cell[some]
        # Halved: the square of a surplus changes by 2·surplus ± 1 with one more or one less.
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
    # Two bytes of randomness: steps of a centimetre. Single precision is millimetres.
    uniform = random.integers(1 << 16, size=(proposals, len(at)), dtype=np.uint16)
    result = np.multiply(uniform, reach * np.float32(2.0**-15))
    result += at.astype(np.float32) - reach
    return np.clip(result, 0, np.nextafter(np.float32(count), np.float32(0)), out=result)

"""Points on routes: where and when each is seen, so that the points fill the estimated density.

A point is drawn at equal steps of ∫ S ds along its route, S the slowness of the place: three updates of S by the ratio
of wanted to realised density bring the points to where time is spent. Sparse fixes are then drawn among places nearby.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.synthesis.polylines import Polylines, lengths, place, steps
from wayveil.synthesis.pyramid import Field

_BLOCK = 1 << 13
_QUANTILES = 1 << 12


def gap_fractions(
    points: NDArray[np.int64], ratio: NDArray[np.float64], ratio_edges: NDArray[np.float64], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Offsets, and the elapsed share of the duration at each point: gaps drawn from the estimated irregularity."""
    offsets = np.r_[0, np.cumsum(points)]
    cumulative = np.r_[0.0, np.cumsum(ratio)]
    quantiles = np.interp((np.arange(_QUANTILES) + 0.5) / _QUANTILES, cumulative / cumulative[-1], ratio_edges) + 1e-3
    gap = quantiles[random.integers(_QUANTILES, size=offsets[-1], dtype=np.uint16)]
    gap[offsets[:-1]] = 0.0
    running = np.cumsum(gap)
    begin = running[offsets[:-1]]
    running -= np.repeat(begin, points)
    running /= np.repeat(np.maximum(running[offsets[1:] - 1], 1e-12), points)
    return offsets, running


def slowness_weight(lines: Polylines, slowness: Field, grid: Grid) -> NDArray[np.float64]:
    """∫ S ds over the step that ends at each vertex, S taken at the middle of the step."""
    middle_x = 0.5 * (lines.x_m + np.r_[lines.x_m[:1], lines.x_m[:-1]])
    middle_y = 0.5 * (lines.y_m + np.r_[lines.y_m[:1], lines.y_m[:-1]])
    return steps(lines) * slowness.ravel()[grid.index(middle_x, middle_y)]


def histogram(
    lines: Polylines, grid: Grid, weight: NDArray[np.float64] | None = None
) -> Field:
    """Σ over trajectories of the share of its points in each cell, times the trajectory's weight."""
    count = np.diff(lines.offsets)
    each = 1.0 / count if weight is None else weight / count
    cells = np.bincount(grid.index(lines.x_m, lines.y_m), np.repeat(each, count), minlength=grid.cells)
    return cells.reshape(grid.rows, grid.columns)


def fit_slowness(
    lines: Polylines,
    offsets: NDArray[np.int64],
    fraction: NDArray[np.float64],
    target: Field,
    grid: Grid,
    rounds: int = 3,
    power: float = 0.8,
) -> Field:
    """S such that points at equal steps of ∫ S ds have the target density: S ← S·(target / realised)^0.8."""
    slowness = np.ones_like(target)
    softening = 0.02 * target.mean() + 0.05 * target.sum() / 20_000
    for _ in range(rounds):
        placed = place(lines, slowness_weight(lines, slowness, grid), offsets, fraction)
        realised = histogram(placed, grid)
        realised *= target.sum() / realised.sum()
        slowness = np.clip(slowness * ((target + softening) / (realised + softening)) ** power, 0.02, 50.0)
    return slowness


def scatter_sparse(
    lines: Polylines, density: Field, grid: Grid, furthest_m: float, random: np.random.Generator, proposals: int = 8
) -> Polylines:
    """Move each sparse fix to one of a few places nearby, in proportion to density; dense tracks stay as they are."""
    count = np.diff(lines.offsets)
    spacing = lengths(lines) / np.maximum(count - 1, 1)
    reach = np.repeat(np.minimum(furthest_m, 0.4 * spacing), count)
    inner = reach > 15.0
    inner[lines.offsets[:-1]] = False
    inner[lines.offsets[1:] - 1] = False
    moving = np.flatnonzero(inner)
    if len(moving) == 0:
        return lines
    attraction = density.ravel() + 1e-12 * density.max()
    new_x, new_y = lines.x_m.copy(), lines.y_m.copy()
    # Some points at a time: the proposals stay in the processor's cache.
    for first in range(0, len(moving), _BLOCK):
        some = moving[first : first + _BLOCK]
        shape = (proposals, len(some))
        x = np.clip(new_x[some] + reach[some] * random.uniform(-1, 1, shape), 0, grid.width_m)
        y = np.clip(new_y[some] + reach[some] * random.uniform(-1, 1, shape), 0, grid.height_m)
        x[0], y[0] = new_x[some], new_y[some]
        cumulative = np.cumsum(attraction[grid.index(x, y)], axis=0)
        chosen = (random.random(len(some)) * cumulative[-1] > cumulative).sum(axis=0)
        chosen = np.minimum(chosen, proposals - 1)
        column = np.arange(len(some))
        new_x[some], new_y[some] = x[chosen, column], y[chosen, column]
    return Polylines(lines.offsets, new_x, new_y)

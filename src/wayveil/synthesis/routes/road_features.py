"""Features of a road map: road length per cell by class, areas that the map does not cover, and points on roads.

Privacy: free (the map is public).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid
from wayveil.core.pyramid import Field, pool, shifted, spread
from wayveil.core.roads import ROAD_CLASSES, RoadMap, clip_roads
from wayveil.core.scope import Scope
from wayveil.synthesis.routes.settings import ROADS

CLASS_GROUPS = (
    ("motorway", "trunk"),
    ("primary",),
    ("secondary",),
    ("tertiary",),
    ("residential",),
    ("service", "path", "unknown"),
)
"""Groups of classes with similar traffic; each group has one feature."""
_BLUR_REACH = 2.5
"""Distance, in standard deviations of the GPS error, up to which a part of a road adds to the cells around it."""
_GROUP_OF = np.array([next(k for k, group in enumerate(CLASS_GROUPS) if name in group) for name in ROAD_CLASSES])


@dataclass(frozen=True, eq=False)
class RoadSamples:
    """Roads cut into short parts, sorted by cell: the middle of each part, its length and its class group."""

    x_m: NDArray[np.float32]
    y_m: NDArray[np.float32]
    length_m: NDArray[np.float32]
    group: NDArray[np.int8]
    first: NDArray[np.int64]
    """(cells + 1,) cell c has the parts `first[c]:first[c + 1]`."""


@dataclass(frozen=True, eq=False)
class RoadPoints:
    """Draws positions on the roads of cells.

    Privacy: free (post-processing; the map is public).
    """

    grid: Grid
    samples: RoadSamples

    @classmethod
    def of(cls, roadmap: RoadMap, grid: Grid, scope: Scope) -> "RoadPoints":
        """The roads of a map inside the scope."""
        return cls(grid, road_samples(roadmap, grid, scope))

    def draw_in_cells(
        self, cell: NDArray[np.int64], random: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A position in each cell: on one of its roads with a GPS error, or anywhere if it has no road."""
        grid, samples = self.grid, self.samples
        cell = np.asarray(cell, np.int64)
        west, south = (cell % grid.columns) * grid.cell_m, (cell // grid.columns) * grid.cell_m
        across, up = random.random((2, len(cell))) * grid.cell_m
        noise_x, noise_y = random.normal(0.0, ROADS.end_jitter_m, (2, len(cell)))
        if len(samples.x_m):
            low, high = samples.first[cell], samples.first[cell + 1]
            running = np.r_[0.0, np.cumsum(samples.length_m, dtype=float)]
            level = running[low] + random.random(len(cell)) * (running[high] - running[low])
            part = np.clip(np.searchsorted(running, level, side="right") - 1, low, np.maximum(high - 1, low))
            part = np.minimum(part, len(samples.x_m) - 1)
            # Positions are mirrored back into the cell, because the estimate determines the number of points per cell.
            across = np.where(high > low, _fold(samples.x_m[part] + noise_x - west, grid.cell_m), across)
            up = np.where(high > low, _fold(samples.y_m[part] + noise_y - south, grid.cell_m), up)
        return np.minimum(west + across, grid.width_m), np.minimum(south + up, grid.height_m)


def _fold(offset: NDArray[np.float64], extent: float) -> NDArray[np.float64]:
    """Mirror values outside [0, extent) back into it."""
    around = np.mod(offset, 2 * extent)
    return np.minimum(np.minimum(around, 2 * extent - around), np.nextafter(extent, 0.0))


def road_samples(roadmap: RoadMap, grid: Grid, scope: Scope) -> RoadSamples:
    """The roads inside the scope, cut into parts of at most a fifth of a cell.

    Privacy: free (the map is public).
    """
    roads = clip_roads(roadmap, scope)
    x, y = scope.to_metres(roads.lon, roads.lat)
    owner = ragged.owners(np.diff(roads.offsets))
    begin = np.flatnonzero(owner[1:] == owner[:-1])
    step_x, step_y = x[begin + 1] - x[begin], y[begin + 1] - y[begin]
    length = np.hypot(step_x, step_y)
    parts = np.ceil(length * ROADS.parts_per_cell / grid.cell_m).astype(np.int64)
    segment, rank = ragged.owners(parts), ragged.ranks(parts)
    share = (rank + 0.5) / parts[segment]
    part_x = np.clip(x[begin][segment] + share * step_x[segment], 0.0, grid.width_m).astype(np.float32)
    part_y = np.clip(y[begin][segment] + share * step_y[segment], 0.0, grid.height_m).astype(np.float32)
    cell = grid.index(part_x, part_y)
    order = np.argsort(cell, kind="stable")
    group = _GROUP_OF[roads.road_class[owner[begin]]].astype(np.int8)[segment]
    first = np.searchsorted(cell[order], np.arange(grid.cells + 1))
    part_length = (length / np.maximum(parts, 1)).astype(np.float32)[segment]
    return RoadSamples(part_x[order], part_y[order], part_length[order], group[order], first)


def road_features(roadmap: RoadMap, grid: Grid, scope: Scope) -> tuple[Field, ...]:
    """Road length per base cell by class group, in cell widths (100 m in a city), then a mask of uncovered cells.

    Recorded points have GPS errors. So each part of a road is distributed over the cells in proportion to the integral
    of a normal distribution with a standard deviation of 15 m.

    Privacy: free (the map is public).
    """
    return features_of(road_samples(roadmap, grid, scope), grid)


def features_of(samples: RoadSamples, grid: Grid) -> tuple[Field, ...]:
    """`road_features` from the samples of a map."""
    from scipy.special import ndtr

    x, y = samples.x_m.astype(float), samples.y_m.astype(float)
    reach = int(np.ceil(_BLUR_REACH * ROADS.blur_m / grid.cell_m))
    padded_columns, padded_rows = grid.columns + 2 * reach, grid.rows + 2 * reach
    column = np.clip((x // grid.cell_m).astype(np.int64), 0, grid.columns - 1)
    row = np.clip((y // grid.cell_m).astype(np.int64), 0, grid.rows - 1)
    bounds = np.arange(-reach, reach + 2)[:, None] * grid.cell_m
    share_x = np.diff(ndtr((bounds - (x - column * grid.cell_m)) / ROADS.blur_m), axis=0)
    share_y = np.diff(ndtr((bounds - (y - row * grid.cell_m)) / ROADS.blur_m), axis=0)
    size = padded_rows * padded_columns
    fields = np.zeros(len(CLASS_GROUPS) * size)
    place = (samples.group.astype(np.int64) * padded_rows + row) * padded_columns + column
    for down in range(2 * reach + 1):
        weight = samples.length_m / grid.cell_m * share_y[down]
        for right in range(2 * reach + 1):
            fields += np.bincount(place + down * padded_columns + right, weight * share_x[right], minlength=len(fields))
    inner = fields.reshape(len(CLASS_GROUPS), padded_rows, padded_columns)[:, reach:-reach, reach:-reach]
    return *(np.ascontiguousarray(field) for field in inner), uncovered(samples, grid)


def cover_side(grid: Grid) -> int:
    """Side of a coverage block in base cells: 400 m, or more if that would give too many blocks."""
    side = max(1, round(ROADS.cover_m / grid.cell_m))
    while -(-grid.columns // side) * -(-grid.rows // side) > ROADS.max_cover_blocks:
        side *= 2
    return side


def uncovered_blocks(x_m: NDArray[np.floating], y_m: NDArray[np.floating], grid: Grid) -> NDArray[np.bool_]:
    """Whether each block and its eight neighbours contain none of the positions."""
    count = np.bincount(grid.index(x_m, y_m), minlength=grid.cells).reshape(grid.rows, grid.columns)
    covered = (pool(count.astype(float), cover_side(grid)) > 0).astype(float)
    around = sum(shifted(covered, down, right) for down in (-1, 0, 1) for right in (-1, 0, 1))
    return np.asarray(around == 0)


def uncovered(samples: RoadSamples, grid: Grid) -> Field:
    """1 in base cells of blocks that the map does not cover, 0 elsewhere."""
    blocks = uncovered_blocks(samples.x_m, samples.y_m, grid)
    return spread(blocks.astype(float), cover_side(grid), (grid.rows, grid.columns))

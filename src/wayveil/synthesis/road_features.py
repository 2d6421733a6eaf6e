"""Where a map says that people can be: road length a cell by class, where the map has no cover, points on roads.

Privacy: free (the map is public).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.pyramid import Field, pool, shifted, spread
from wayveil.roads import ROAD_CLASSES, RoadMap, clip_roads
from wayveil.scope import Scope

CLASS_GROUPS = (
    ("motorway", "trunk"),
    ("primary",),
    ("secondary",),
    ("tertiary",),
    ("residential",),
    ("service", "path", "unknown"),
)
"""One field each: classes that carry similar traffic."""
_GROUP_OF = np.array([next(k for k, group in enumerate(CLASS_GROUPS) if name in group) for name in ROAD_CLASSES])
_BLUR_M = 15.0
_JITTER_M = 10.0
_BLOCK_M = 400.0
_MOST_BLOCKS = 12_000
_PARTS_A_CELL = 5


@dataclass(frozen=True, eq=False)
class RoadSamples:
    """Roads cut into short parts, sorted by cell: the middle of each part, its length and its group of class."""

    x_m: NDArray[np.float32]
    y_m: NDArray[np.float32]
    length_m: NDArray[np.float32]
    group: NDArray[np.int8]
    first: NDArray[np.int64]
    """(cells + 1,) parts of cell c are `first[c]:first[c + 1]`."""


@dataclass(frozen=True, eq=False)
class RoadPoints:
    """Positions on the roads of a cell.

    Privacy: free (post-processing; the map is public).
    """

    grid: Grid
    samples: RoadSamples

    @classmethod
    def of(cls, roadmap: RoadMap, grid: Grid, scope: Scope) -> "RoadPoints":
        """The roads of a map inside the scope."""
        return cls(grid, road_samples(roadmap, grid, scope))

    def draw_in_cells(
        self, cell: NDArray[np.int64], random: np.random.Generator, jitter_m: float = _JITTER_M
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A position in each cell: on one of its roads as a GPS would see it; anywhere where it has none."""
        grid, samples = self.grid, self.samples
        cell = np.asarray(cell, np.int64)
        west, south = (cell % grid.columns) * grid.cell_m, (cell // grid.columns) * grid.cell_m
        across, up = random.random((2, len(cell))) * grid.cell_m
        noise_x, noise_y = random.normal(0.0, jitter_m, (2, len(cell)))
        if len(samples.x_m):
            low, high = samples.first[cell], samples.first[cell + 1]
            running = np.r_[0.0, np.cumsum(samples.length_m, dtype=float)]
            wanted = running[low] + random.random(len(cell)) * (running[high] - running[low])
            part = np.clip(np.searchsorted(running, wanted, side="right") - 1, low, np.maximum(high - 1, low))
            part = np.minimum(part, len(samples.x_m) - 1)
            # Folded back into the cell: how many points the cell holds was settled by the estimate.
            across = np.where(high > low, _fold(samples.x_m[part] + noise_x - west, grid.cell_m), across)
            up = np.where(high > low, _fold(samples.y_m[part] + noise_y - south, grid.cell_m), up)
        return np.minimum(west + across, grid.width_m), np.minimum(south + up, grid.height_m)


def _fold(offset: NDArray[np.float64], extent: float) -> NDArray[np.float64]:
    """Mirror what lies outside [0, extent) back into it."""
    around = np.mod(offset, 2 * extent)
    return np.minimum(np.minimum(around, 2 * extent - around), np.nextafter(extent, 0.0))


def road_samples(roadmap: RoadMap, grid: Grid, scope: Scope) -> RoadSamples:
    """The roads inside the scope in parts of a fifth of a cell or less.

    Privacy: free (the map is public).
    """
    roads = clip_roads(roadmap, scope)
    x, y = scope.to_metres(roads.lon, roads.lat)
    owner = np.repeat(np.arange(len(roads)), np.diff(roads.offsets))
    begin = np.flatnonzero(owner[1:] == owner[:-1])
    step_x, step_y = x[begin + 1] - x[begin], y[begin + 1] - y[begin]
    length = np.hypot(step_x, step_y)
    parts = np.ceil(length * _PARTS_A_CELL / grid.cell_m).astype(np.int64)
    segment = np.repeat(np.arange(len(begin)), parts)
    rank = np.arange(len(segment)) - np.repeat(np.cumsum(parts) - parts, parts)
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
    """Road length a base cell by group of class, in cell widths (100 m in a city), and last where no map is.

    A road shows up in the data with the noise of GPS, so each part of it is spread over the cells where a position
    with a normal error of 15 m would fall: by the normal's own integrals, without any drawing.

    Privacy: free (the map is public).
    """
    return features_of(road_samples(roadmap, grid, scope), grid)


def features_of(samples: RoadSamples, grid: Grid) -> tuple[Field, ...]:
    """`road_features` of samples that are already there."""
    from scipy.special import ndtr

    x, y = samples.x_m.astype(float), samples.y_m.astype(float)
    reach = int(np.ceil(2.5 * _BLUR_M / grid.cell_m))
    padded_columns, padded_rows = grid.columns + 2 * reach, grid.rows + 2 * reach
    column = np.clip((x // grid.cell_m).astype(np.int64), 0, grid.columns - 1)
    row = np.clip((y // grid.cell_m).astype(np.int64), 0, grid.rows - 1)
    bounds = np.arange(-reach, reach + 2)[:, None] * grid.cell_m
    share_x = np.diff(ndtr((bounds - (x - column * grid.cell_m)) / _BLUR_M), axis=0)
    share_y = np.diff(ndtr((bounds - (y - row * grid.cell_m)) / _BLUR_M), axis=0)
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
    """Side of a block of cover in base cells: 400 m, more where that would be very many blocks."""
    side = max(1, round(_BLOCK_M / grid.cell_m))
    while -(-grid.columns // side) * -(-grid.rows // side) > _MOST_BLOCKS:
        side *= 2
    return side


def uncovered_blocks(x_m: NDArray[np.floating], y_m: NDArray[np.floating], grid: Grid) -> NDArray[np.bool_]:
    """Blocks that have none of the positions, and whose eight neighbours have none."""
    count = np.bincount(grid.index(x_m, y_m), minlength=grid.cells).reshape(grid.rows, grid.columns)
    covered = (pool(count.astype(float), cover_side(grid)) > 0).astype(float)
    around = sum(shifted(covered, down, right) for down in (-1, 0, 1) for right in (-1, 0, 1))
    return np.asarray(around == 0)


def uncovered(samples: RoadSamples, grid: Grid) -> Field:
    """1 in base cells of blocks without a map, 0 elsewhere."""
    blocks = uncovered_blocks(samples.x_m, samples.y_m, grid)
    return spread(blocks.astype(float), cover_side(grid), (grid.rows, grid.columns))

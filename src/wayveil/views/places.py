"""Where: occupancy, end points, their asymmetry, and origin–destination."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.prepare import Prepared
from wayveil.views.base import Features, one_hot

OCCUPANCY_RESOLUTION = 1 << 16


@dataclass(frozen=True)
class Occupancy:
    """φ_c(T) = share of T's points in cell c: n_T points of weight 1/n_T, so ‖φ‖₁ ≤ 1."""

    grid: Grid
    name: str = "occupancy"
    resolution: int = OCCUPANCY_RESOLUTION

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.grid.rows, self.grid.columns)

    def features(self, batch: Prepared) -> Features:
        row = np.repeat(np.arange(len(batch)), batch.points)
        # Whole-number division rounds each of the n_T weights down, so n_T of them stay within the resolution.
        weight = (self.resolution // np.maximum(batch.points, 1))[row]
        return Features(row, self.grid.index(batch.x_m, batch.y_m), weight)


@dataclass(frozen=True)
class EndPoints:
    """φ(T) = ½ at the start's cell + ½ at the end's cell."""

    grid: Grid
    name: str = "end_points"
    resolution: int = 2

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.grid.rows, self.grid.columns)

    def features(self, batch: Prepared) -> Features:
        column = np.r_[_cells(self.grid, batch, batch.first), _cells(self.grid, batch, batch.last)]
        return Features(np.tile(np.arange(len(batch)), 2), column, np.ones(len(column), np.int64))


@dataclass(frozen=True)
class StartMinusEnd:
    """φ(T) = +½ at the start's cell − ½ at the end's cell: where trips begin rather than finish."""

    grid: Grid
    name: str = "start_minus_end"
    resolution: int = 2

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.grid.rows, self.grid.columns)

    def features(self, batch: Prepared) -> Features:
        column = np.r_[_cells(self.grid, batch, batch.first), _cells(self.grid, batch, batch.last)]
        weight = np.repeat(np.array([1, -1], np.int64), len(batch))
        return Features(np.tile(np.arange(len(batch)), 2), column, weight)


@dataclass(frozen=True, eq=False)
class OriginDestination:
    """φ(T) = 1 at (region of the start, region of the end); regions are a public map from cells to labels."""

    grid: Grid
    region_of_cell: NDArray[np.int64]
    regions: int
    name: str = "origin_destination"
    resolution: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.regions, self.regions)

    def features(self, batch: Prepared) -> Features:
        start = self.region_of_cell[_cells(self.grid, batch, batch.first)]
        end = self.region_of_cell[_cells(self.grid, batch, batch.last)]
        return one_hot(start * self.regions + end)


def _cells(grid: Grid, batch: Prepared, position: NDArray[np.int64]) -> NDArray[np.int64]:
    return grid.index(batch.x_m[position], batch.y_m[position])

"""Where: occupancy, end points, their asymmetry, and origin–destination."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.prepare import Prepared
from wayveil.scope import Scope
from wayveil.views.base import Features, one_hot
from wayveil.week import PARTS_OF_WEEK, part_of_week

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
        return self.of_ends(Ends.of(batch, self.grid, None))

    def of_ends(self, ends: "Ends") -> Features:
        """The features, of what is remembered of each trajectory."""
        return one_hot(self.region_of_cell[ends.start] * self.regions + self.region_of_cell[ends.end])


@dataclass(frozen=True, eq=False)
class EndPointHours:
    """φ(T) = ½ at (start, its region, T's part of the week) + ½ at (end, its region, the same part of the week)."""

    scope: Scope
    grid: Grid
    region_of_cell: NDArray[np.int64]
    regions: int
    name: str = "end_points/hours"
    resolution: int = 2

    @property
    def shape(self) -> tuple[int, ...]:
        return (2, self.regions, PARTS_OF_WEEK)

    def features(self, batch: Prepared) -> Features:
        return self.of_ends(Ends.of(batch, self.grid, self.scope))

    def of_ends(self, ends: "Ends") -> Features:
        """The features, of what is remembered of each trajectory."""
        region = np.r_[self.region_of_cell[ends.start], self.regions + self.region_of_cell[ends.end]]
        column = region * PARTS_OF_WEEK + np.tile(ends.part, 2)
        return Features(np.tile(np.arange(len(ends)), 2), column, np.ones(len(column), np.int64))


@dataclass(frozen=True, eq=False)
class Ends:
    """What is remembered of each trajectory for the views whose regions are known only after noise has been drawn.

    Privacy: not private (trusted side only).
    """

    start: NDArray[np.int32]
    """Base cell of the first point."""
    end: NDArray[np.int32]
    """Base cell of the last point."""
    part: NDArray[np.int8]
    """Part of the week of the first point."""

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def of(cls, batch: Prepared, grid: Grid, scope: Scope | None) -> "Ends":
        """Of each trajectory of a batch; without a scope all parts of the week are the first."""
        start, end = (_cells(grid, batch, at).astype(np.int32) for at in (batch.first, batch.last))
        part = np.zeros(len(batch)) if scope is None else part_of_week(scope.local_seconds(batch.t_utc[batch.first]))
        return cls(start, end, part.astype(np.int8))

    @classmethod
    def joined(cls, parts: "list[Ends]") -> "Ends":
        """One after the other; none where there are none."""
        none = cls(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int8))
        columns = ([getattr(part, name) for part in (none, *parts)] for name in ("start", "end", "part"))
        return cls(*(np.concatenate(column) for column in columns))


def _cells(grid: Grid, batch: Prepared, position: NDArray[np.int64]) -> NDArray[np.int64]:
    return grid.index(batch.x_m[position], batch.y_m[position])

"""Where trajectories start and end: in coarse blocks, and in detail."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid
from wayveil.questions import priors
from wayveil.questions.detail_weights import PARTS
from wayveil.questions.field import Blocks, Detail, Field, Levels, field_levels
from wayveil.questions.question import Context, Features

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

HOURS_PART = Fraction(1, 9)
"""The part of the end points' ε that is spent on their hours."""
HOURS_FROM = 40.0
"""Least signal of that part in noise units. With less, even two regions in two halves of the day would be noise
(`end_point_hours`), and the ε would be lost."""


@dataclass(frozen=True)
class _EndPointField(Field):
    """φ(T) = ½ at the start's cell + ½ at the end's cell."""

    meaning: ClassVar[str] = "where trajectories start and end"
    quantity: ClassVar[str] = "end_points"
    budget_group: ClassVar[str] = "end_points"
    prior: ClassVar[Any] = priors.Traffic()

    @classmethod
    def choose_levels(cls, context: Context) -> Levels:
        """The sides of the cells, given the part of the group's signal that the hours leave."""
        signal = context.group_signals[cls.budget_group]
        return field_levels(context.grid, float(1 - hours_part(signal)) * signal)

    def cell_features(self, batch: "Prepared") -> Features:
        column = start_and_end_cells(self.grid, batch)
        return Features(np.tile(np.arange(len(batch)), 2), column, np.ones(len(column), np.int64))


@dataclass(frozen=True)
class EndPoints(Blocks, _EndPointField):
    """End points in coarse blocks."""

    name: ClassVar[str] = "end_points/coarse"
    resolution: ClassVar[int] = 2
    own_norm: ClassVar[float] = 0.6
    shared_norm: ClassVar[float] = 0.3

    @classmethod
    def part_of_group(cls, signal: float, grid: Grid, gaussian: bool = False) -> Fraction:
        return (1 - hours_part(signal, gaussian)) * super().part_of_group(signal, grid, gaussian)


@dataclass(frozen=True)
class EndPointsDetail(Detail, _EndPointField):
    """End points in middle and fine cells."""

    name: ClassVar[str] = "end_points/detail"
    resolution: ClassVar[int] = PARTS * 2
    own_norm: ClassVar[float] = 0.28
    shared_norm: ClassVar[float] = 0.05
    needs: ClassVar[tuple[str, ...]] = ("count", "end_points/coarse")
    coarse: ClassVar[type[Blocks]] = EndPoints

    @classmethod
    def part_of_group(cls, signal: float, grid: Grid, gaussian: bool = False) -> Fraction:
        return super().part_of_group(signal, grid, gaussian) - hours_part(signal, gaussian)


def hours_part(signal: float, gaussian: bool = False) -> Fraction:
    """The part of the end points' ε that goes to their hours, from the signal of all their ε in noise units."""
    worth = signal * (math.sqrt(HOURS_PART) if gaussian else float(HOURS_PART))
    return HOURS_PART if worth >= HOURS_FROM else Fraction(0)


def start_and_end_cells(grid: Grid, batch: "Prepared") -> NDArray[np.int64]:
    """Base cells of all first points, then of all last points."""
    result: NDArray[np.int64] = np.r_[cells_at(grid, batch, batch.first), cells_at(grid, batch, batch.last)]
    return result


def cells_at(grid: Grid, batch: "Prepared", position: NDArray[np.int64]) -> NDArray[np.int64]:
    """Base cells of the points at the given positions."""
    return grid.index(batch.x_m[position], batch.y_m[position])

"""Which places are passed through: in coarse blocks, and in detail."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wayveil.core import ragged
from wayveil.questions import priors
from wayveil.questions.detail_weights import PARTS, concentration
from wayveil.questions.end_points import EndPoints
from wayveil.questions.field import Blocks, Detail, Field, Levels, field_levels
from wayveil.questions.question import Context, Features

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

OCCUPANCY_RESOLUTION = 1 << 16
"""Integer units per trajectory: with up to 2^16 points each point adds at least one unit."""


@dataclass(frozen=True)
class _OccupancyField(Field):
    """φ_c(T) = share of T's points in cell c: n_T points of weight 1/n_T, so ‖φ‖₁ ≤ 1."""

    meaning: ClassVar[str] = "which places are passed through"
    quantity: ClassVar[str] = "occupancy"
    budget_group: ClassVar[str] = "occupancy"
    prior: ClassVar[Any] = priors.Traffic()

    def cell_features(self, batch: "Prepared") -> Features:
        row = ragged.owners(batch.points)
        # Integer division rounds each of the n_T weights down, so their sum stays within the resolution.
        weight = (OCCUPANCY_RESOLUTION // np.maximum(batch.points, 1))[row]
        return Features(row, self.grid.index(batch.x_m, batch.y_m), weight)

    @classmethod
    def choose_levels(cls, context: Context) -> Levels:
        """Points are about as concentrated as end points, whose concentration follows from an earlier answer."""
        ends = context.answers[EndPoints.name]
        assert isinstance(ends.question, EndPoints)
        concentrated = concentration(ends.counts, ends.question.side, ends.noises)
        return field_levels(context.grid, context.group_signals[cls.budget_group], concentrated)


@dataclass(frozen=True)
class Occupancy(Blocks, _OccupancyField):
    """Occupancy of coarse blocks."""

    name: ClassVar[str] = "occupancy/coarse"
    resolution: ClassVar[int] = OCCUPANCY_RESOLUTION
    own_norm: ClassVar[float] = 0.45
    shared_norm: ClassVar[float] = 0.17
    needs: ClassVar[tuple[str, ...]] = ("count", "end_points/coarse")


@dataclass(frozen=True)
class OccupancyDetail(Detail, _OccupancyField):
    """Occupancy of middle and fine cells."""

    name: ClassVar[str] = "occupancy/detail"
    resolution: ClassVar[int] = PARTS * OCCUPANCY_RESOLUTION
    own_norm: ClassVar[float] = 0.08
    shared_norm: ClassVar[float] = 0.01
    needs: ClassVar[tuple[str, ...]] = ("count", "end_points/coarse", "occupancy/coarse")
    coarse: ClassVar[type[Blocks]] = Occupancy

"""Where more trajectories start than end."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from wayveil.core.grid import Grid
from wayveil.questions import priors
from wayveil.questions.end_points import start_and_end_cells
from wayveil.questions.field import Blocks
from wayveil.questions.question import Context, Features

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class StartMinusEnd(Blocks):
    """φ(T) = +½ at the start's cell − ½ at the end's cell."""

    name: ClassVar[str] = "start_minus_end"
    meaning: ClassVar[str] = "where more start than end"
    resolution: ClassVar[int] = 2
    own_norm: ClassVar[float] = 0.4
    shared_norm: ClassVar[float] = 0.003
    adds_up: ClassVar[bool] = False
    prior: ClassVar[Any] = priors.Difference(of="end_points")

    def cell_features(self, batch: "Prepared") -> Features:
        column = start_and_end_cells(self.grid, batch)
        weight = np.repeat(np.array([1, -1], np.int64), len(batch))
        return Features(np.tile(np.arange(len(batch)), 2), column, weight)

    @classmethod
    def sized(cls, context: Context) -> Self:
        return cls(context.grid, difference_side(context.grid, context.signal(cls.name)))


def difference_side(grid: Grid, signal: float) -> int:
    """Side of the blocks on which starts and ends are compared: the least of 8, 16, 32, 64 with signal·f²/cells ≥ 2."""
    side = 8
    while side < 64 and signal * side * side < 2 * grid.cells:
        side *= 2
    return side

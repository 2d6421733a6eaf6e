"""Where trajectories travel, weighted by distance.

Occupancy is about time and passage about distance: a slow street has much of the first, a busy street much of both.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import step_lengths
from wayveil.questions import priors
from wayveil.questions.detail_weights import concentration
from wayveil.questions.end_points import EndPoints
from wayveil.questions.field import USUALLY_CONCENTRATED, Blocks
from wayveil.questions.question import Context, Features

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

PASSAGE_RESOLUTION = 1 << 16
"""Integer units per trajectory: each of at most `MOST_PLACES` places adds at least 512."""
CLEAR_UNITS = 12.0
"""Signal in noise units that a busy block must have. Most of the passage follows from the occupancy, so smaller
blocks would add little to it."""
MOST_PLACES = 128
"""Largest number of places at which the path of one trajectory is counted; it bounds time and memory."""
SPACING_CELLS = 2.0
"""Distance between these places on shorter paths, in base cells; blocks are mostly larger."""
KNOWN_M = 100.0
"""Distance from a point, in metres, within which the straight line to the next point is taken as the path. Between
points further apart the path is unknown, so each half of the line is counted close to its point."""
_UNITS_PER_M = 1000
"""Lengths are added up in whole millimetres, so that sums do not depend on the order."""


@dataclass(frozen=True)
class Passage(Blocks):
    """φ_c(T) = share of T's path in cell c: K places at equal distances along it, each of weight 1/K, so ‖φ‖₁ ≤ 1."""

    name: ClassVar[str] = "passage"
    meaning: ClassVar[str] = "which route they take"
    resolution: ClassVar[int] = PASSAGE_RESOLUTION
    own_norm: ClassVar[float] = 0.45
    shared_norm: ClassVar[float] = 0.17
    needs: ClassVar[tuple[str, ...]] = ("count", "end_points/coarse", "occupancy/coarse")
    prior: ClassVar[Any] = priors.Way(time="occupancy", ends="end_points")

    def cell_features(self, batch: "Prepared") -> Features:
        row, x_m, y_m = places_along(batch, SPACING_CELLS * self.grid.cell_m)
        # Integer division rounds each of the K weights down, so their sum stays within the resolution.
        weight = PASSAGE_RESOLUTION // np.bincount(row, minlength=len(batch))
        return Features(row, self.grid.index(x_m, y_m), weight[row])

    @classmethod
    def sized(cls, context: Context) -> Self:
        """The smallest blocks with a clear signal, if routes are about as concentrated as end points."""
        ends = context.answers[EndPoints.name]
        assert isinstance(ends.question, EndPoints)
        busier = max(concentration(ends.counts, ends.question.side, ends.noises), USUALLY_CONCENTRATED)
        side = 1
        while side < 64 and busier * context.signal(cls.name) * side * side < CLEAR_UNITS * context.grid.cells:
            side *= 2
        return cls(context.grid, side)


def places_along(
    batch: "Prepared", spacing_m: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Places at equal distances along each path: their trajectories, x and y; at least one for each trajectory.

    Lengths are whole millimetres, because the result for one trajectory must not depend on the others of the batch, and
    integers add exactly in any order.
    """
    step = np.rint(_UNITS_PER_M * step_lengths(batch.offsets, batch.x_m, batch.y_m)).astype(np.int64)
    along = np.cumsum(step)
    begin = along[batch.first]
    total = along[batch.last] - begin
    count = np.clip(-(-total // max(1, round(_UNITS_PER_M * spacing_m))), 1, MOST_PLACES)
    row = ragged.owners(count)
    position = begin[row] + (2 * ragged.ranks(count) + 1) * total[row] // (2 * count[row])
    after = np.minimum(np.searchsorted(along, position, side="right"), batch.last[row])
    before = np.maximum(after - 1, batch.first[row])
    share = _near_points((position - along[before]) / np.maximum(step[after], 1), step[after] / _UNITS_PER_M)
    x, y = (at[before] + share * (at[after] - at[before]) for at in (batch.x_m, batch.y_m))
    return row, x, y


def _near_points(share: NDArray[np.float64], step_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of a step, from 0 to 1, moved towards its nearer end so that none is further from it than `KNOWN_M`."""
    share = np.clip(share, 0.0, 1.0)
    shrunk = np.minimum(1.0, 2 * KNOWN_M / np.maximum(step_m, 1e-3))
    return np.where(share < 0.5, share * shrunk, 1 - (1 - share) * shrunk)

"""How far apart the ends of trajectories are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.histogram import Histogram

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

_PARTS_OF_DIAGONAL = (
    0, 0.002, 0.006, 0.012, 0.02, 0.03, 0.044, 0.06, 0.08, 0.11, 0.15, 0.2, 0.28, 0.4, 0.56, 1.0,
)  # fmt: skip


@dataclass(frozen=True)
class Displacement(Histogram):
    """φ(T) = 1 at the bin of the straight distance from start to end (km)."""

    name: ClassVar[str] = "displacement"
    meaning: ClassVar[str] = "how far apart their ends are"
    prior: ClassVar[Any] = priors.Smooth(wide_bins=True, usual_part=0.18, related="length")

    @classmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        """15 bins of increasing width, from zero to the scope's diagonal."""
        diagonal_km = np.hypot(scope.width_m, scope.height_m) / 1000
        return Bins(tuple(float(v) for v in np.array(_PARTS_OF_DIAGONAL) * diagonal_km))

    def values(self, batch: "Prepared") -> NDArray[np.float64]:
        return straight_km(batch)


def straight_km(batch: "Prepared") -> NDArray[np.float64]:
    """The straight distance from each trajectory's start to its end."""
    dx = batch.x_m[batch.last] - batch.x_m[batch.first]
    dy = batch.y_m[batch.last] - batch.y_m[batch.first]
    return np.hypot(dx, dy) / 1000

"""How long trajectories are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.edges import linear_then_wider, logarithmic
from wayveil.questions.histogram import Histogram

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

_CITY_DIAGONAL_M = 28_000
"""In a scope with a smaller diagonal than this all bins of lengths shrink in proportion."""


@dataclass(frozen=True)
class Length(Histogram):
    """φ(T) = 1 at the bin of the polyline length (km)."""

    name: ClassVar[str] = "length"
    meaning: ClassVar[str] = "how long trajectories are"
    prior: ClassVar[Any] = priors.Smooth(by_ratios=True, usual_part=0.22, related="displacement")

    @classmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        """150 m wide up to 3.75 km, then 4 % wide, to the cap; for a small scope everything shrinks with it."""
        unit = _unit(scope)
        return linear_then_wider(0.15 * unit, 3.75 * unit, 0.04, scope.caps.length_km)

    def values(self, batch: "Prepared") -> NDArray[np.float64]:
        return batch.length_m / 1000


def coarse_length_bins(scope: Scope) -> Bins:
    """18 bins: below a small length, then logarithmic to the cap."""
    unit = _unit(scope)
    return logarithmic(0.5 * unit, max(scope.caps.length_km * 0.75, unit), 18)


def _unit(scope: Scope) -> float:
    result: float = min(1.0, np.hypot(scope.width_m, scope.height_m) / _CITY_DIAGONAL_M)
    return result

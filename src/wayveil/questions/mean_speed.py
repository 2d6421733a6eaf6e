"""The mean speed of trajectories."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.edges import linear_then_wider
from wayveil.questions.histogram import Histogram

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class MeanSpeed(Histogram):
    """φ(T) = 1 at the bin of length / duration (km/h); a trajectory without duration has speed 0."""

    name: ClassVar[str] = "mean_speed"
    meaning: ClassVar[str] = "how fast they are"
    prior: ClassVar[Any] = priors.LogNormal(long_tails=True)

    @classmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        """1 km/h wide up to 25 km/h, then 4 % wide, to the cap."""
        return linear_then_wider(1.0, 25.0, 0.04, scope.caps.speed_kmh)

    def values(self, batch: "Prepared") -> NDArray[np.float64]:
        duration_h = batch.duration_s / 3600
        return np.divide(batch.length_m / 1000, duration_h, out=np.zeros(len(batch)), where=duration_h > 0)

"""How fast the fastest step of a trajectory is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.polylines import step_lengths
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.edges import linear_then_wider
from wayveil.questions.histogram import Histogram

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class TopSpeed(Histogram):
    """φ(T) = 1 at the bin of the fastest step between two points (km/h, in the scope's projection).

    A step that takes less than a second counts as one second long.
    """

    name: ClassVar[str] = "top_speed"
    meaning: ClassVar[str] = "how fast their fastest step is"
    prior: ClassVar[Any] = priors.LogNormal()
    """Top speeds pile up at the cap, so a single high bin is more credible than one of mean speeds."""

    @classmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        """2.5 km/h wide up to 40 km/h, then 5 % wide, to the cap."""
        return linear_then_wider(2.5, 40.0, 0.05, scope.caps.speed_kmh)

    def values(self, batch: "Prepared") -> NDArray[np.float64]:
        fastest_mps = np.zeros(len(batch))
        if len(batch.x_m) > 1:
            step_m = step_lengths(batch.offsets, batch.x_m, batch.y_m)
            speed_mps = step_m / np.maximum(np.diff(batch.t_utc, prepend=0.0), 1.0)
            fastest_mps = np.maximum.reduceat(speed_mps, batch.first)
        return 3.6 * fastest_mps

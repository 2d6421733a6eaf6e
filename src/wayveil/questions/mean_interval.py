"""How often a position is recorded on average."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.histogram import NARROW_SPIKES, Histogram, Merging

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class MeanInterval(Histogram):
    """φ(T) = 1 at the bin of duration / (points − 1) (s), at least the lower edge of the second bin.

    The first bin is for trajectories of one point, which have no interval, and for nothing else.
    """

    name: ClassVar[str] = "mean_interval"
    meaning: ClassVar[str] = "how often a position is recorded"
    merging: ClassVar[Merging] = replace(NARROW_SPIKES, valueless=1)
    prior: ClassVar[Any] = priors.Smooth(starts_anywhere=True)

    @classmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        """One bin for trajectories of one point, then 48 logarithmic bins from 1 s to 20 minutes."""
        return Bins((0.0, *(float(v) for v in np.exp(np.linspace(0.0, np.log(1200.0), 49)))))

    def values(self, batch: "Prepared") -> NDArray[np.float64]:
        interval_s = np.maximum(batch.duration_s / np.maximum(batch.points - 1, 1), self.bins.edges[1])
        return np.where(batch.points > 1, interval_s, self.bins.edges[0])

"""At which interval a device records: the median time between two points."""

from dataclasses import dataclass
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
class MedianInterval(Histogram):
    """φ(T) = 1 at the bin of the median time between two points (s).

    Of an even number of intervals it is the lower of the middle two; of none it is 0.
    """

    name: ClassVar[str] = "median_interval"
    quantity: ClassVar[str] = "median_interval"
    meaning: ClassVar[str] = "at which interval positions are recorded"
    merging: ClassVar[Merging] = NARROW_SPIKES
    prior: ClassVar[Any] = priors.RoundSeconds(mean="mean_interval", ratio="gap_ratio")

    @classmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        """A second wide around each whole second up to 20 s, then 5 % wide, to 20 minutes."""
        longer = np.round(20.5 * np.exp(0.05 * np.arange(82)), 6)  # rounded: the last bit differs between processors
        return Bins((0.0, *(float(v) for v in np.r_[np.arange(1.5, 20.0), longer])))

    def values(self, batch: "Prepared") -> NDArray[np.float64]:
        return batch.median_interval_s

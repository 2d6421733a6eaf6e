"""How regularly a position is recorded: intervals between points over their median."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.histogram import Histogram
from wayveil.questions.question import Features

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class GapRatio(Histogram):
    """φ_k(T) = share of T's intervals whose length, divided by T's median interval, falls into bin k.

    Where the median is 0, intervals of zero length have the ratio 1, and all others fall into the last bin.
    """

    name: ClassVar[str] = "gap_ratio"
    meaning: ClassVar[str] = "how regularly a position is recorded"
    resolution: ClassVar[int] = 1 << 16
    one_hot: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    own_norm: ClassVar[float] = 0.2
    shared_norm: ClassVar[float] = 0.13
    prior: ClassVar[Any] = priors.AroundMedian()

    @classmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        """14 bins: three below a half, one for ratios of one, narrow ones around it, a tail."""
        return Bins((0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 1.01, 1.05, 1.2, 1.5, 2.0, 3.5, 8.0))

    def values(self, batch: "Prepared") -> NDArray[np.float64]:
        """The ratio of each interval, in order."""
        row, gap_s = batch.gaps
        median_s = batch.median_interval_s[row]
        return np.divide(gap_s, median_s, out=np.where(gap_s > 0, np.inf, 1.0), where=median_s > 0)

    def features(self, batch: "Prepared") -> Features:
        gaps = np.maximum(batch.points - 1, 1)
        # Integer division rounds each weight down, so the sum over all intervals stays within the resolution.
        row, _ = batch.gaps
        return Features(row, self.bins.index(self.values(batch)), (self.resolution // gaps)[row])

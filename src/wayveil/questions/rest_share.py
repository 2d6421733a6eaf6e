"""How much of their time trajectories stand still."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions.histogram import NEVER, Histogram, Merging

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

REST_MPS = 1.0
"""A step slower than this, below walking speed, is a rest."""


@dataclass(frozen=True)
class RestShare(Histogram):
    """φ(T) = 1 at the bin of the share of T's time in steps slower than REST_MPS; 0 for one without duration."""

    name: ClassVar[str] = "rest_share"
    meaning: ClassVar[str] = "how much of their time they stand still"
    merging: ClassVar[Merging] = NEVER

    @classmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        """10 bins, narrow for small shares, which most trips have."""
        return Bins((0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0))

    def values(self, batch: "Prepared") -> NDArray[np.float64]:
        """The share of each trajectory's time at rest, from 0 to 1."""
        share = np.zeros(len(batch))
        if len(batch.x_m) > 1:
            step_m = np.hypot(np.diff(batch.x_m, prepend=0.0), np.diff(batch.y_m, prepend=0.0))
            step_s = np.maximum(np.diff(batch.t_utc, prepend=0.0), 0.0)
            step_s[batch.first] = 0.0  # the difference from the previous trajectory is not a step
            rest_s = np.add.reduceat(np.where(step_m < REST_MPS * step_s, step_s, 0.0), batch.first)
            all_s = np.add.reduceat(step_s, batch.first)
            np.divide(rest_s, all_s, out=share, where=all_s > 0)
        return share

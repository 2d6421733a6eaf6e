"""How long trajectories take: in merged bins, and again in narrow ones.

Recordings that are all cut at the hour are one narrow spike, which merged bins would hide.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.edges import linear_then_wider, logarithmic
from wayveil.questions.histogram import NEVER, Histogram, Merging

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class Duration(Histogram):
    """φ(T) = 1 at the bin of the duration (s)."""

    name: ClassVar[str] = "duration"
    meaning: ClassVar[str] = "how long they take"
    prior: ClassVar[Any] = priors.CutDurations()

    @classmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        """20 s wide up to 20 minutes, then 4 % wide, to the cap."""
        return linear_then_wider(20.0, 1200.0, 0.04, scope.caps.duration_h * 3600)

    def values(self, batch: "Prepared") -> NDArray[np.float64]:
        return batch.duration_s


@dataclass(frozen=True)
class DurationSpikes(Duration):
    """φ(T) = 1 at the narrowest bin of the duration (s)."""

    name: ClassVar[str] = "duration/spikes"
    meaning: ClassVar[str] = "how long they take, in narrow bins"
    budget_group: ClassVar[str] = "duration/spikes"
    shared_norm: ClassVar[float] = 0.025
    merging: ClassVar[Merging] = NEVER

    @classmethod
    def finest(cls, scope: Scope) -> Histogram:
        """`Duration` at its finest, so that the sums of both questions are computed only once."""
        return Duration.finest(scope)

    @classmethod
    def example(cls, scope: Scope) -> Self:
        return cls(cls.finest_bins(scope))


def coarse_duration_bins(scope: Scope) -> Bins:
    """20 bins: below two minutes, then logarithmic to the cap."""
    return logarithmic(120.0, max(scope.caps.duration_h * 3600, 300.0), 20)

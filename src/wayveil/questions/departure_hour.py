"""At which hour of the day trajectories start."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.core.week import hour_of_week
from wayveil.questions import priors
from wayveil.questions.histogram import Histogram

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared

HOURS = Bins(tuple(float(hour) for hour in range(25)))
"""The 24 hours of a day."""


@dataclass(frozen=True)
class DepartureHour(Histogram):
    """φ(T) = 1 at the local hour of the first point."""

    scope: Scope
    name: ClassVar[str] = "departure_hour"
    meaning: ClassVar[str] = "at which hour they start"
    prior: ClassVar[Any] = priors.DailyRhythm()

    @classmethod
    def with_bins(cls, bins: Bins, scope: Scope) -> Self:
        return cls(bins, scope)

    @classmethod
    def finest_bins(cls, scope: Scope) -> Bins:
        return HOURS

    def values(self, batch: "Prepared") -> NDArray[np.int64]:
        return first_hour_of_week(self.scope, batch) % 24


def first_hour_of_week(scope: Scope, batch: "Prepared") -> NDArray[np.int64]:
    """The local hour of the week, from 0 to 167, of each first point."""
    return hour_of_week(scope.local_seconds(batch.t_utc[batch.first]))

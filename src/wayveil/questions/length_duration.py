"""How long trajectories take, given their length."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.duration import coarse_duration_bins
from wayveil.questions.length import coarse_length_bins
from wayveil.questions.table import Table

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class LengthDuration(Table):
    """φ(T) = 1 at (bin of the length in km, bin of the duration in s)."""

    name: ClassVar[str] = "length_duration"
    meaning: ClassVar[str] = "how long they take, given their length"
    axes: ClassVar[tuple[str, str]] = ("length", "duration")
    prior: ClassVar[Any] = priors.Independent(ratio_spreads=(1.5,))

    @classmethod
    def finest_bins(cls, scope: Scope) -> tuple[Bins, Bins]:
        return coarse_length_bins(scope), coarse_duration_bins(scope)

    def values(self, batch: "Prepared") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return batch.length_m / 1000, batch.duration_s

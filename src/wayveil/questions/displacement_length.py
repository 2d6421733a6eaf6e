"""How long trajectories are, given the distance between their ends."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions import priors
from wayveil.questions.displacement import Displacement, straight_km
from wayveil.questions.length import coarse_length_bins
from wayveil.questions.table import Table

if TYPE_CHECKING:
    from wayveil.core.prepare import Prepared


@dataclass(frozen=True)
class DisplacementLength(Table):
    """φ(T) = 1 at (bin of the straight distance from start to end, bin of the length), both in km."""

    name: ClassVar[str] = "displacement_length"
    meaning: ClassVar[str] = "how long they are, given the distance between their ends"
    axes: ClassVar[tuple[str, str]] = ("displacement", "length")
    prior: ClassVar[Any] = priors.Independent(columns_reach_rows=True, ratio_spreads=(0.3, 0.8, None))

    @classmethod
    def finest_bins(cls, scope: Scope) -> tuple[Bins, Bins]:
        return Displacement.finest_bins(scope), coarse_length_bins(scope)

    def values(self, batch: "Prepared") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return straight_km(batch), batch.length_m / 1000

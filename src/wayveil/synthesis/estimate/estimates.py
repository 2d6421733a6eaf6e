"""Estimates by quantity: distributions, estimated from the release, that trips are drawn from.

Privacy: free (post-processing of the release).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.grid import Grid
from wayveil.core.pyramid import Field
from wayveil.core.scope import Scope
from wayveil.questions.count import Count
from wayveil.questions.departure_week import DepartureWeek
from wayveil.questions.end_point_hours import EndPointHours
from wayveil.questions.histogram import Histogram
from wayveil.questions.occupancy import Occupancy
from wayveil.questions.origin_destination import OriginDestination
from wayveil.questions.passage import Passage
from wayveil.questions.start_minus_end import StartMinusEnd
from wayveil.questions.table import Table

if TYPE_CHECKING:
    from wayveil.synthesis.estimate.place_hours import PlaceHours


@dataclass(frozen=True, eq=False)
class Distribution:
    """Shares of the bins of one quantity, adding up to one."""

    bins: Bins
    shares: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointDistribution:
    """Shares of the cells of a table of two quantities, adding up to one."""

    rows: Bins
    columns: Bins
    shares: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RegionFlows:
    """Shares of trips between regions."""

    regions: NDArray[np.int64]
    """(rows, columns) region of each base cell."""
    shares: NDArray[np.float64]
    """(regions, regions) share of trips from one region to another."""


@dataclass(frozen=True, eq=False)
class Estimates(Mapping[str, Any]):
    """The estimate of each quantity: a number, a distribution, a density, or flows, depending on the question."""

    scope: Scope
    grid: Grid
    found: Mapping[str, Any]
    noise: Mapping[str, float]
    """Scale of the noise of each answer, in trajectories."""
    one_point: float = 0.0
    """Share of trajectories with a single point. Counts, lengths, durations, speeds, intervals and flows describe the
    other trajectories."""

    def __getitem__(self, quantity: str) -> Any:
        return self.found[quantity]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def distribution(self, question: type[Histogram]) -> Distribution:
        """The distribution of a histogram's quantity."""
        found = self.found[question.quantity]
        assert isinstance(found, Distribution)
        return found

    def joint(self, question: type[Table]) -> JointDistribution:
        """The joint distribution of a table's quantities."""
        found = self.found[question.quantity]
        assert isinstance(found, JointDistribution)
        return found

    @property
    def count(self) -> float:
        """The number of trajectories of several points."""
        return float(self.found[Count.quantity])

    @property
    def occupancy(self) -> Field:
        """Density of points."""
        field: Field = self.found[Occupancy.quantity]
        return field

    @property
    def passage(self) -> Field:
        """Density of distance travelled; occupancy / passage is a cell's pace (time per distance), up to a factor."""
        field: Field = self.found[Passage.quantity]
        return field

    @property
    def starts(self) -> Field:
        """Density of trip starts."""
        field: Field = self.found[StartMinusEnd.quantity][0]
        return field

    @property
    def ends(self) -> Field:
        """Density of trip ends."""
        field: Field = self.found[StartMinusEnd.quantity][1]
        return field

    @property
    def flows(self) -> RegionFlows:
        """Trips between regions."""
        found = self.found[OriginDestination.quantity]
        assert isinstance(found, RegionFlows)
        return found

    @property
    def departure(self) -> NDArray[np.float64]:
        """(7, 24) share of departures by weekday, Monday first, and hour."""
        return self.joint(DepartureWeek).shares

    @property
    def place_hours(self) -> "PlaceHours | None":
        """Hours of each region; None if the release has no answer about them."""
        return self.found.get(EndPointHours.quantity)

    def with_fields(
        self,
        occupancy: Field,
        passage: Field | None = None,
        starts: Field | None = None,
        ends: Field | None = None,
    ) -> "Estimates":
        """The same estimates with another density of points and, if given, of distance, of starts and of ends."""
        changed = {
            Occupancy.quantity: occupancy,
            Passage.quantity: self.passage if passage is None else passage,
            StartMinusEnd.quantity: (self.starts if starts is None else starts, self.ends if ends is None else ends),
        }
        return replace(self, found={**self.found, **changed})

"""What every table is made from: the trips, the release, the scale and the parts of the day."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.uncertainty.uncertainty import Uncertainty
from wayveil.traffic.parts import ALL_DAY, Parts
from wayveil.traffic.trips import Trips
from wayveil.traffic.uncertainty import Scale

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Period:
    """The whole day, or a part of it."""

    name: str
    number: int | None
    """Number of the part; None for the whole day."""
    relative: float
    """Relative error of this part's share of the day, at one place."""

    def of(self, part: Ints) -> Any:
        """Index of the values inside, given the part of each value."""
        return slice(None) if self.number is None else part == self.number


@dataclass(frozen=True, eq=False)
class Basis:
    """Synthetic trips, and what their release says about them."""

    trips: Trips
    scale: Scale
    parts: Parts
    uncertainty: Uncertainty

    @cached_property
    def part(self) -> Ints:
        """Part of the day of each departure."""
        return self.parts.index(self.trips.hour)

    def periods(self) -> Iterator[Period]:
        """The whole day, then each part that overlaps the hours of the scope."""
        yield Period(ALL_DAY, None, 0.0)
        hours, place = self.uncertainty.hours(self.parts.first_hours), self.uncertainty.place_hours
        for number in self.parts.covered(self.trips.scope):
            yield Period(self.parts.names[number], number, float(np.hypot(hours[number], place)))


def stacked(tables: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Rows of several tables with the same columns, one below the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}

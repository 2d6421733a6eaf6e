"""What every table is made from: the trips, the release, the scale and the parts of the day."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.end_point_hours import EndPointHours
from wayveil.release import Release
from wayveil.traffic.parts import ALL_DAY, Parts
from wayveil.traffic.trips import Trips
from wayveil.traffic.uncertainty import SPREADS, Scale, histogram_variances

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Period:
    """The whole day, or a part of it."""

    name: str
    number: int | None
    """Number of the part; None for the whole day."""
    relative: float
    """Relative variance of the share of this part of the day, in one place."""

    def of(self, part: Ints) -> Any:
        """Which values are inside, given the part of each."""
        return slice(None) if self.number is None else part == self.number


@dataclass(frozen=True, eq=False)
class Basis:
    """The release and the synthetic trips that were made from it."""

    release: Release
    trips: Trips
    scale: Scale
    parts: Parts

    @cached_property
    def part(self) -> Ints:
        """Part of the day of each departure."""
        return self.parts.index(self.trips.hour)

    @cached_property
    def hour_variances(self) -> Floats:
        """Relative variance of the departures in each part of the day."""
        return histogram_variances(self.release, self.trips.hours_asked, self.part, len(self.parts), self.scale)

    def periods(self) -> Iterator[Period]:
        """The whole day, then each part that overlaps the hours of the scope."""
        yield Period(ALL_DAY, None, 0.0)
        known = EndPointHours.name in self.release
        place = (SPREADS.place_hour if known else SPREADS.place_hour_unknown) ** 2
        for number in self.parts.covered(self.trips.scope):
            yield Period(self.parts.names[number], number, float(self.hour_variances[number]) + place)


def stacked(tables: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Rows of several tables with the same columns, one below the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}

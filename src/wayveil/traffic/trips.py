"""Synthetic trips as the release counts them, with everything that tables are made of."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid, base_grid
from wayveil.core.prepare import Prepared, prepare
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.questions.departure_hour import DepartureHour
from wayveil.questions.duration import Duration
from wayveil.questions.length import Length
from wayveil.traffic.parts import local_hour
from wayveil.traffic.zones import Zones

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Asked:
    """The value of each trip, of a quantity that a question of the release counts in bins."""

    question: str
    values: Floats


@dataclass(frozen=True, eq=False)
class Trips:
    """Trips inside the scope, within its caps: exactly what the release counts."""

    scope: Scope
    grid: Grid
    prepared: Prepared

    @classmethod
    def of(cls, trajectories: Trajectories, scope: Scope) -> "Trips":
        """The part of the trajectories inside the scope."""
        prepared = prepare(trajectories, scope)
        if len(prepared) == 0:
            raise InputError("No synthetic trip lies inside the scope of the release; give the file made from it.")
        return cls(scope, base_grid(scope), prepared)

    def __len__(self) -> int:
        return len(self.prepared)

    @cached_property
    def start_cell(self) -> Ints:
        """Base cell of each start."""
        return self._cells(self.prepared.first)

    @cached_property
    def end_cell(self) -> Ints:
        """Base cell of each end."""
        return self._cells(self.prepared.last)

    @cached_property
    def hour(self) -> Ints:
        """Local hour of each departure."""
        return local_hour(self.scope, self.prepared.t_utc[self.prepared.first])

    @property
    def hours_asked(self) -> Asked:
        """Departures as the release counts them."""
        return Asked(DepartureHour.name, self.hour.astype(float))

    @property
    def lengths_asked(self) -> Asked:
        """Lengths in kilometres."""
        return Asked(Length.name, self.prepared.length_m / 1000)

    @property
    def durations_asked(self) -> Asked:
        """Durations in seconds."""
        return Asked(Duration.name, self.prepared.duration_s)

    def zones(self, zones: Zones) -> tuple[Ints, Ints]:
        """The zones in which trips start and end."""
        start, end = (self._zone(zones, at) for at in (self.prepared.first, self.prepared.last))
        return start, end

    def _zone(self, zones: Zones, at: Ints) -> Ints:
        lon, lat = self.scope.to_degrees(self.prepared.x_m[at], self.prepared.y_m[at])
        return zones.index(lon, lat)

    def _cells(self, at: Ints) -> Ints:
        return self.grid.index(self.prepared.x_m[at], self.prepared.y_m[at])

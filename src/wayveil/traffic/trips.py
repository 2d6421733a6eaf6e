"""Synthetic trips, clipped to the scope as the release counts them, with the values that tables need."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid, base_grid
from wayveil.core.prepare import Prepared, prepare
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.traffic.parts import local_hour
from wayveil.traffic.zones import Zones

Ints = NDArray[np.int64]


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
    def hour(self) -> Ints:
        """Local hour of each departure."""
        return local_hour(self.scope, self.prepared.t_utc[self.prepared.first])

    def zones(self, zones: Zones) -> tuple[Ints, Ints]:
        """The zones in which trips start and end."""
        start, end = (self._zone(zones, at) for at in (self.prepared.first, self.prepared.last))
        return start, end

    def _zone(self, zones: Zones, at: Ints) -> Ints:
        lon, lat = self.scope.to_degrees(self.prepared.x_m[at], self.prepared.y_m[at])
        return zones.index(lon, lat)

    def zone_of_cell(self, zones: Zones, size: int) -> Ints:
        """(rows, columns) zone of the middle of each base cell; -1 for numbers from `size` on."""
        row, column = np.divmod(np.arange(self.grid.cells), self.grid.columns)
        lon, lat = self.scope.to_degrees((column + 0.5) * self.grid.cell_m, (row + 0.5) * self.grid.cell_m)
        zone = zones.index(lon, lat)
        return np.where(zone < size, zone, -1).reshape(self.grid.rows, self.grid.columns)

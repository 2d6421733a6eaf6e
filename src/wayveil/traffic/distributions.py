"""Tables of lengths, durations and hours of departure.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.traffic.basis import Basis
from wayveil.traffic.table import Table, figure_columns
from wayveil.traffic.trips import Asked
from wayveil.traffic.uncertainty import Figures, histogram_variances

Floats = NDArray[np.float64]

LENGTHS_KM = (0, 0.5, 1, 1.5, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1_000, 100_000)
DURATIONS_MIN = (0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 180, 240, 360, 480, 720, 1_440, 1_000_000)
"""Edges of the rows, as planners publish them; those beyond the caps of the scope are left out."""


def distribution_tables(basis: Basis) -> tuple[Table, Table, Table]:
    """Trips by length, by duration and by hour of departure."""
    caps = basis.trips.scope.caps
    lengths, durations = basis.trips.lengths_asked, basis.trips.durations_asked
    by_length = _table(basis, "lengths", lengths, _up_to(LENGTHS_KM, caps.length_km), 1.0, ("km_from", "km_to"))
    by_duration = _table(
        basis, "durations", durations, _up_to(DURATIONS_MIN, caps.duration_h * 60), 60.0, ("minutes_from", "minutes_to")
    )
    by_hour = _table(
        basis, "hours", basis.trips.hours_asked, np.arange(25.0), 1.0, ("hour_from", "hour_to")
    )
    return by_length, by_duration, by_hour


def _up_to(edges: tuple[float, ...], most: float) -> Floats:
    """The edges below the cap, and the cap."""
    return np.array([edge for edge in edges if edge < most] + [most], float)


def _table(
    basis: Basis, name: str, asked: Asked, edges: Floats, unit: float, columns: tuple[str, str]
) -> Table:
    """Trips between each two edges, which are in units of the values."""
    row = Bins(tuple(edges.tolist())).index(asked.values / unit)
    count = np.bincount(row, minlength=len(edges) - 1)
    relative = histogram_variances(basis.release, asked, row, len(count), basis.scale)
    figures = Figures.of(count, relative, basis.scale)
    share = np.round(figures.value / max(float(figures.value.sum()), 1e-9), 5)
    return Table(name, {columns[0]: edges[:-1], columns[1]: edges[1:], **figure_columns(figures), "share": share})

"""Tables of lengths, durations and hours of departure.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.traffic.basis import Basis
from wayveil.traffic.table import Table, figure_columns
from wayveil.traffic.uncertainty import MODEL, Figures

Floats = NDArray[np.float64]

LENGTHS_KM = (0, 0.5, 1, 1.5, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1_000)
"""Edges of the rows, as planners publish them; those beyond the caps of the scope are left out."""
DURATIONS_MIN = (0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 180, 240, 360, 480, 720, 1_440)
"""The same for durations."""


def distribution_tables(basis: Basis) -> tuple[Table, Table, Table]:
    """Trips by length, by duration and by hour of departure."""
    caps, prepared, known = basis.trips.scope.caps, basis.trips.prepared, basis.uncertainty
    km = _up_to(LENGTHS_KM, caps.length_km)
    minutes = _up_to(DURATIONS_MIN, caps.duration_h * 60)
    return (
        _table(basis, "lengths", "km", km, prepared.length_m / 1000, known.lengths(km)),
        _table(basis, "durations", "minutes", minutes, prepared.duration_s / 60, known.durations(60 * minutes)),
        _table(basis, "hours", "hour", np.arange(25.0), basis.trips.hour.astype(float), known.hours()),
    )


def _up_to(edges: tuple[float, ...], most: float) -> Floats:
    """The edges below the cap, and the cap."""
    return np.array([*(edge for edge in edges if edge < most), most], float)


def _table(basis: Basis, name: str, unit: str, edges: Floats, values: Floats, relative: Floats) -> Table:
    """Trips between successive edges."""
    count = np.bincount(Bins(tuple(edges.tolist())).index(values), minlength=len(edges) - 1)
    figures = Figures.counts(count, np.hypot(relative, MODEL.bin), basis.scale)
    share = np.round(count / max(int(count.sum()), 1), 5)
    return Table(name, {f"{unit}_from": edges[:-1], f"{unit}_to": edges[1:], **figure_columns(figures), "share": share})

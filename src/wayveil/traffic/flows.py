"""Trips between zones, and their starts and ends in each zone, by part of the day.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.uncertainty.uncertainty import SPREADS
from wayveil.traffic.basis import Basis, stacked
from wayveil.traffic.table import Table, figure_columns
from wayveil.traffic.uncertainty import MODEL, Figures
from wayveil.traffic.zones import Zones, centres

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COMPLETE_UP_TO = 100
"""Up to this many zones, the matrix also lists pairs without a synthetic trip."""


def flow_tables(basis: Basis, zones: Zones) -> tuple[Table, Table]:
    """Starts and ends by zone, and trips by pair of zones."""
    start, end = basis.trips.zones(zones)
    # 'outside' is listed as a zone only if a trip starts or ends there.
    size = max(len(zones), int(max(start.max(), end.max())) + 1)
    zone_of_cell = basis.trips.zone_of_cell(zones, size)
    of_zone = np.hypot(_padded(basis.uncertainty.ends(zone_of_cell), size), MODEL.zone)
    of_pair = np.hypot(_padded(basis.uncertainty.flows(zone_of_cell), size), MODEL.pair)
    names = np.array(zones.all_names[:size])
    by_zone = []
    for period in basis.periods():
        rows = {"zone": names, "part_of_day": np.full(size, period.name)}
        for name, zone in (("starts", start), ("ends", end)):
            count = np.bincount(zone[period.of(basis.part)], minlength=size)
            rows |= figure_columns(Figures.counts(count, np.hypot(of_zone, period.relative), basis.scale), name)
        by_zone.append(rows)
    shapes = np.append(zones.shapes, [None])[:size]
    zone_table = Table("zones", stacked(by_zone), np.tile(shapes, len(by_zone)))
    return zone_table, _pair_table(basis, zones, start * size + end, of_pair.ravel())


def _pair_table(basis: Basis, zones: Zones, pair: Ints, relative: Floats) -> Table:
    """Trips from each zone to each zone; with many zones only pairs with a synthetic trip."""
    import shapely

    size = round(len(relative) ** 0.5)
    listed = np.arange(size * size) if size <= COMPLETE_UP_TO + 1 else np.unique(pair)
    names = np.array(zones.all_names[:size])
    tables = []
    for period in basis.periods():
        count = np.bincount(pair[period.of(basis.part)], minlength=size * size)[listed]
        figures = Figures.counts(count, np.hypot(relative[listed], period.relative), basis.scale)
        tables.append({
            "origin": names[listed // size], "destination": names[listed % size],
            "part_of_day": np.full(len(listed), period.name), **figure_columns(figures),
        })  # fmt: skip
    centre = centres(zones, basis.trips.scope)
    lines = shapely.linestrings(np.stack([centre[listed // size], centre[listed % size]], axis=1))
    return Table("od", stacked(tables), np.tile(lines, len(tables)))


def _padded(errors: Floats, size: int) -> Floats:
    """Errors of all zones; a zone without the centre of any cell has the error of the prior."""
    wide = np.full((size,) * errors.ndim, SPREADS.place)
    wide[tuple(slice(length) for length in errors.shape)] = errors
    return wide

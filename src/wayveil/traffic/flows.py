"""Trips between zones, and their starts and ends in each zone, by part of the day.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.end_points import EndPoints, EndPointsDetail
from wayveil.questions.flow import Flow
from wayveil.questions.levels import noisy_levels
from wayveil.questions.origin_destination import OriginDestination, OriginDestinationCoarse
from wayveil.traffic.basis import Basis, stacked
from wayveil.traffic.table import Table, figure_columns
from wayveil.traffic.uncertainty import SPREADS, Figures, Shares, combined, noise_variance
from wayveil.traffic.zones import Zones, centres

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COMPLETE_UP_TO = 100
"""Zones up to which a matrix lists pairs without a synthetic trip, too."""


def flow_tables(basis: Basis, zones: Zones) -> tuple[Table, Table]:
    """Starts and ends by zone, and trips by pair of zones."""
    start, end = basis.trips.zones(zones)
    # The outside is a zone only if some trip starts or ends there.
    size = max(len(zones), int(max(start.max(), end.max())) + 1)
    of_start = zone_variances(basis, basis.trips.start_cell, start, size)
    of_end = zone_variances(basis, basis.trips.end_cell, end, size)
    names = np.array(zones.all_names[:size])
    by_zone = []
    for period in basis.periods():
        rows = {"zone": names, "part_of_day": np.full(size, period.name)}
        for name, zone, relative in (("starts", start, of_start), ("ends", end, of_end)):
            count = np.bincount(zone[period.of(basis.part)], minlength=size)
            rows |= figure_columns(Figures.of(count, relative + period.relative, basis.scale), name)
        by_zone.append(rows)
    shapes = np.append(zones.shapes, [None])[:size]
    zone_table = Table("zones", stacked(by_zone), np.tile(shapes, len(by_zone)))
    return zone_table, _pair_table(basis, zones, start * size + end, pair_variances(basis, start, end, of_start, of_end))


def _pair_table(basis: Basis, zones: Zones, pair: Ints, relative: Floats) -> Table:
    """Trips from each zone to each zone; with many zones only pairs with a synthetic trip."""
    import shapely

    size = round(len(relative) ** 0.5)
    listed = np.arange(size * size) if size <= COMPLETE_UP_TO + 1 else np.unique(pair)
    names = np.array(zones.all_names[:size])
    tables = []
    for period in basis.periods():
        count = np.bincount(pair[period.of(basis.part)], minlength=size * size)[listed]
        figures = Figures.of(count, relative[listed] + period.relative, basis.scale)
        tables.append({
            "origin": names[listed // size], "destination": names[listed % size],
            "part_of_day": np.full(len(listed), period.name), **figure_columns(figures),
        })  # fmt: skip
    where = centres(zones, basis.trips.scope)
    lines = shapely.linestrings(np.stack([where[listed // size], where[listed % size]], axis=1))
    return Table("od", stacked(tables), np.tile(lines, len(tables)))


def zone_variances(basis: Basis, cells: Ints, zone: Ints, zones: int) -> Floats:
    """Relative variance of the trips that start (or end) in each zone, from all levels of the end points."""
    found: list[Floats | float] = [SPREADS.place**2]
    columns = basis.trips.grid.columns
    names = [name for name in (EndPoints.name, EndPointsDetail.name) if name in basis.release]
    for level in noisy_levels([basis.release[name] for name in names]):
        block = cells // columns // level.side * level.counts.shape[1] + cells % columns // level.side
        shares = Shares.of(zone, block, np.ones(len(cells)), zones)
        # Starts and ends are asked together, half each, so the noise of one of them is larger.
        noise = 4 * np.broadcast_to(level.noise, level.counts.shape).ravel() ** 2
        found.append(shares.relative_variance(noise, basis.scale, SPREADS.within))
    return np.asarray(np.broadcast_to(combined(*found), (zones,)) + SPREADS.zone_model**2)


def pair_variances(basis: Basis, start: Ints, end: Ints, of_start: Floats, of_end: Floats) -> Floats:
    """Relative variance of the trips of each pair: from the zones and a prior, and from the flows between regions."""
    size = len(of_start)
    found: list[Floats | float] = [np.add.outer(of_start, of_end).ravel() + SPREADS.pair**2]
    for name in (OriginDestinationCoarse.name, OriginDestination.name):
        if name in basis.release:
            answer = basis.release[name]
            assert isinstance(answer.question, Flow)
            region = answer.question.region_of_cell.ravel()
            block = region[basis.trips.start_cell] * answer.question.regions + region[basis.trips.end_cell]
            shares = Shares.of(start * size + end, block, np.ones(len(block)), size * size)
            found.append(shares.relative_variance(noise_variance(answer), basis.scale, SPREADS.within))
    return np.asarray(combined(*found) + SPREADS.pair_model**2)

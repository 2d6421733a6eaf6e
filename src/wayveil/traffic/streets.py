"""Traffic and mean speeds on the links of a road map, by part of the day.

The traffic of a link is the distance driven on it divided by its length: the mean number of trips along it. The mean
speed is that distance divided by the time.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import ROAD_CLASSES, RoadMap, check_inside
from wayveil.progress import Progress, quiet
from wayveil.questions.mean_speed import MeanSpeed
from wayveil.traffic.basis import Basis, stacked
from wayveil.traffic.links import Links, links_of
from wayveil.traffic.matching import Drives, match_trips
from wayveil.traffic.parts import local_hour
from wayveil.traffic.table import Table, figure_columns
from wayveil.traffic.uncertainty import MODEL, Figures

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PACE_BLOCK_M = 500.0
"""Side of the blocks whose speed error is used for their streets."""


def street_table(basis: Basis, roads: RoadMap, progress: Progress = quiet) -> tuple[Table, float]:
    """Rows by link, direction and period, where there is traffic; and the share of the distance that was matched."""
    scope, prepared = basis.trips.scope, basis.trips.prepared
    check_inside(roads, scope)
    links = links_of(roads, scope)
    progress("matching trips to streets", 0.0)
    drives = match_trips(links, prepared.offsets, prepared.x_m, prepared.y_m, prepared.t_utc, progress)
    # 2·link forwards, 2·link + 1 backwards.
    directed_link = 2 * drives.link + ~drives.forward
    used = np.unique(directed_link)
    row = np.searchsorted(used, directed_link)
    part = basis.parts.index(local_hour(scope, drives.t_utc))
    directed = _DirectedLinks(used, row, links.length_m[used // 2], drives)
    traffic, pace = (errors[used // 2] for errors in _errors(basis, links))
    speed = np.hypot(np.hypot(pace, basis.uncertainty.scale(MeanSpeed)), MODEL.speed)
    tables = []
    for period in basis.periods():
        figures, speeds = _figures(
            basis, directed, period.of(part),
            np.hypot(np.hypot(traffic, MODEL.street), period.relative), speed,
        )  # fmt: skip
        tables.append({
            **_rows(links, roads, used), "part_of_day": np.full(len(used), period.name),
            **figure_columns(figures), **figure_columns(speeds, "speed_kmh"),
        })  # fmt: skip
    shapes = np.tile(_shapes(links, basis)[used // 2], len(tables))
    return Table("streets", stacked(tables), shapes), drives.matched_share


@dataclass(frozen=True, eq=False)
class _DirectedLinks:
    """Links by direction (2·link, or 2·link + 1 backwards) that trips use."""

    used: Ints
    row: Ints
    """Position in `used` of each drive."""
    length_m: Floats
    drives: Drives


def _rows(links: Links, roads: RoadMap, used: Ints) -> dict[str, NDArray[np.generic]]:
    link = used // 2
    names = {} if roads.name is None else {"name": roads.name[links.road[link]].astype(np.str_)}
    return {
        "road": links.road[link], **names, "part": links.part[link],
        "direction": np.where(used % 2 == 0, "forward", "backward"),
        "road_class": np.array(ROAD_CLASSES)[roads.road_class[links.road[link]]],
        "length_m": np.round(links.length_m[link], 1),
    }  # fmt: skip


def _figures(
    basis: Basis, directed: "_DirectedLinks", inside: NDArray[np.bool_] | slice, traffic: Floats, pace: Floats
) -> tuple[Figures, Figures]:
    """Traffic and mean speed of each directed link, with the relative errors of the traffic and of the speed.

    Few trips may all have been slow, for example at a red light, so their speed is at least as uncertain as that of as
    many trips at the mean speed of all streets.
    """
    distance, time = (
        np.bincount(directed.row[inside], column[inside], minlength=len(directed.used))
        for column in (directed.drives.distance_m, directed.drives.duration_s)
    )
    trips = distance / np.maximum(directed.length_m, 1e-6)
    speed = 3.6 * np.divide(distance, time, out=np.full(len(trips), np.nan), where=time > 0)
    usual = 3.6 * distance.sum() / max(time.sum(), 1e-9)
    chance = (MODEL.trip_speed * np.maximum(speed, usual)) ** 2 / np.maximum(trips, 1.0)
    return Figures.counts(trips, traffic, basis.scale), Figures.around(speed, speed, pace, chance)


def _errors(basis: Basis, links: Links) -> tuple[Floats, Floats]:
    """Relative errors of the traffic and of the speed of each link: those of the cells that its vertices lie in."""
    grid = basis.trips.grid
    cell = grid.index(links.x_m, links.y_m)
    traffic = basis.uncertainty.cells.ravel()
    side = max(1, round(_PACE_BLOCK_M / grid.cell_m))
    rows, columns = np.divmod(np.arange(grid.cells), grid.columns)
    block = rows // side * (grid.columns // side + 1) + columns // side
    pace = basis.uncertainty.paces(block.reshape(grid.rows, grid.columns))[block]
    counts = np.diff(links.offsets)
    return tuple(ragged.sums(errors[cell], links.offsets) / counts for errors in (traffic, pace))  # type: ignore[return-value]


def _shapes(links: Links, basis: Basis) -> NDArray[np.object_]:
    import shapely

    lon, lat = basis.trips.scope.to_degrees(links.x_m, links.y_m)
    owner = np.repeat(np.arange(len(links)), np.diff(links.offsets))
    return np.asarray(shapely.linestrings(np.c_[lon, lat], indices=owner), object)

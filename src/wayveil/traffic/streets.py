"""Traffic and mean speeds on the links of a road map, by part of the day.

The traffic of a link is the distance driven on it divided by its length: the mean number of trips along it. The mean speed
is that distance divided by the time.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.roads import ROAD_CLASSES, RoadMap, check_inside
from wayveil.progress import Progress, quiet
from wayveil.questions.levels import noisy_levels
from wayveil.questions.mean_speed import MeanSpeed
from wayveil.questions.occupancy import Occupancy, OccupancyDetail
from wayveil.traffic.basis import Basis, stacked
from wayveil.traffic.links import Links, links_of
from wayveil.traffic.matching import Drives, match_trips
from wayveil.traffic.parts import local_hour
from wayveil.traffic.table import Table, figure_columns
from wayveil.traffic.uncertainty import SPREADS, Figures, combined, interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def street_table(basis: Basis, roads: RoadMap, progress: Progress = quiet) -> tuple[Table, float]:
    """One row for each link and direction with traffic and each period, and the share of the distance that is matched."""
    scope, prepared = basis.trips.scope, basis.trips.prepared
    check_inside(roads, scope)
    links = links_of(roads, scope)
    progress("matching trips to streets", 0.0)
    drives = match_trips(links, prepared.offsets, prepared.x_m, prepared.y_m, prepared.t_utc, progress)
    # Both directions of a link, in turn.
    way = 2 * drives.link + ~drives.forward
    used = np.unique(way)
    row = np.searchsorted(used, way)
    part = basis.parts.index(local_hour(scope, drives.t_utc))
    relative, tables = street_variances(basis, links)[used // 2], []
    for period in basis.periods():
        rows = _rows(links, roads, used)
        figures, speeds = _figures(basis, links, drives, used, row, period.of(part), relative + period.relative)
        tables.append({
            **rows, "part_of_day": np.full(len(used), period.name), **figure_columns(figures),
            **figure_columns(speeds, "speed_kmh"),
        })  # fmt: skip
    return Table("streets", stacked(tables), np.tile(_shapes(links, basis)[used // 2], len(tables))), drives.matched_share


def _rows(links: Links, roads: RoadMap, used: Ints) -> dict[str, NDArray[np.generic]]:
    link = used // 2
    return {
        "road": links.road[link], "part": links.part[link],
        "direction": np.where(used % 2 == 0, "forward", "backward"),
        "road_class": np.array(ROAD_CLASSES)[roads.road_class[links.road[link]]],
        "length_m": np.round(links.length_m[link], 1),
    }  # fmt: skip


def _figures(
    basis: Basis, links: Links, drives: Drives, used: Ints, row: Ints, inside: NDArray[np.bool_] | slice, relative: Floats
) -> tuple[Figures, Figures]:
    """Traffic and mean speed of each way."""
    distance, time = (
        np.bincount(row[inside], column[inside], minlength=len(used)) for column in (drives.distance_m, drives.duration_s)
    )
    trips = distance / np.maximum(links.length_m[used // 2], 1e-6)
    speed = 3.6 * np.divide(distance, time, out=np.full(len(used), np.nan), where=time > 0)
    variance = (speed_variance(basis) + SPREADS.trip_speed**2 / np.maximum(trips, 1.0)) * speed**2
    known = np.isfinite(speed)
    low, high = np.full(len(used), np.nan), np.full(len(used), np.nan)
    low[known], high[known] = interval(speed[known], speed[known], variance[known])
    return Figures.of(trips, relative, basis.scale), Figures(speed, np.sqrt(variance), low, high)


def street_variances(basis: Basis, links: Links) -> Floats:
    """Relative variance of the traffic of each link, from the noisy density of the cells around its middle."""
    grid, prepared = basis.trips.grid, basis.trips.prepared
    middle = (links.offsets[:-1] + links.offsets[1:]) // 2
    at = grid.index(links.x_m[middle], links.y_m[middle])
    cell = grid.index(prepared.x_m, prepared.y_m)
    weight = np.repeat(1 / prepared.points, prepared.points)
    found: list[Floats | float] = [np.full(len(links), SPREADS.place**2)]
    names = [name for name in (Occupancy.name, OccupancyDetail.name) if name in basis.release]
    levels = noisy_levels([basis.release[name] for name in names])
    for number, level in enumerate(levels):
        across, size = level.counts.shape[1], level.counts.size
        block, place = (k // grid.columns // level.side * across + k % grid.columns // level.side for k in (cell, at))
        mass = basis.scale.weight * np.maximum(np.bincount(block, weight, minlength=size), 0.0)
        noise = 2 * np.broadcast_to(level.noise, level.counts.shape).ravel() ** 2
        relative = noise[place] / np.maximum(mass[place], 1e-3) ** 2
        # A coarser block says less about one of its streets.
        found.append(relative + (SPREADS.within * (len(levels) - number)) ** 2)
    return np.asarray(combined(*found) + SPREADS.street_model**2)


def speed_variance(basis: Basis) -> float:
    """Relative variance of the mean speed on a link: its release tells speeds of trips, not of streets."""
    told = np.inf
    if MeanSpeed.name in basis.release:
        answer = basis.release[MeanSpeed.name]
        told = 2 * answer.noise**2 * answer.counts.size / max(basis.scale.number, 1.0) ** 2
    return float(combined(told, SPREADS.speed**2)) + SPREADS.speed_model**2


def _shapes(links: Links, basis: Basis) -> NDArray[np.object_]:
    import shapely

    lon, lat = basis.trips.scope.to_degrees(links.x_m, links.y_m)
    owner = np.repeat(np.arange(len(links)), np.diff(links.offsets))
    return np.asarray(shapely.linestrings(np.c_[lon, lat], indices=owner), object)

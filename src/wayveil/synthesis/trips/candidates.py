"""Candidate trips, drawn from the estimates, more than the output needs.

Ends are drawn from the origin–destination matrix, with whole numbers of trips between zones (`pairs`); then the length
given the displacement, and the duration given the length. Later stages find routes of about that length (`routes`),
points on them (`place`), and weights with which the candidates fit the answers (`fit`).

Privacy: free (post-processing).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid
from wayveil.core.raking import Limits, rake
from wayveil.core.regions import cut_regions, label_regions
from wayveil.questions.displacement import Displacement
from wayveil.questions.displacement_length import DisplacementLength
from wayveil.questions.duration import Duration
from wayveil.questions.length import Length
from wayveil.questions.length_duration import LengthDuration
from wayveil.questions.mean_interval import MeanInterval
from wayveil.questions.mean_speed import MeanSpeed
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.place.caps import fastest_mps
from wayveil.synthesis.place.sampling import with_sampling_intervals
from wayveil.synthesis.trips.draw import drawn_columns, stratified, within_bins, within_groups
from wayveil.synthesis.trips.pairs import integer_trips, zone_pairs
from wayveil.synthesis.trips.settings import TRIPS


@dataclass(frozen=True, eq=False)
class Trips:
    """Trips before routing: start, end, length, duration and number of points of each."""

    start: tuple[NDArray[np.float64], NDArray[np.float64]]
    end: tuple[NDArray[np.float64], NDArray[np.float64]]
    flow: NDArray[np.int64]
    """Index of (origin region, destination region)."""
    pair: NDArray[np.int64]
    """Number of (zone of the start, zone of the end), among those that occur."""
    origin: NDArray[np.int64]
    """Base cell of the start."""
    destination: NDArray[np.int64]
    """Base cell of the end."""
    length_m: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    points: NDArray[np.int64]
    interval: NDArray[np.float64]
    """Ratio of the sampling interval of the device to the mean gap between points."""

    def __len__(self) -> int:
        return len(self.flow)


PlaceInCells = Callable[[NDArray[np.int64], np.random.Generator], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""A function that draws a position in each of the given cells."""


def draw_trips(
    estimates: Estimates,
    count: int,
    random: np.random.Generator,
    place_in_cells: PlaceInCells | None = None,
    candidates: int = 1,
) -> Trips:
    """Ends, length, duration and number of points of `candidates` × `count` trips, ordered by flow."""
    draw_positions = place_in_cells or partial(inside_cells, estimates.grid)
    flow, pair, origin, destination = _draw_ends(estimates, count, candidates, random)
    start, end = draw_positions(origin, random), draw_positions(destination, random)
    straight_km = np.hypot(start[0] - end[0], start[1] - end[1]) / 1000

    table, length = estimates.joint(DisplacementLength), estimates.distribution(Length)
    coarse = drawn_columns(table.shares, table.rows.index(straight_km), random)
    length_edges = np.asarray(length.bins.edges)
    coarse_of_fine = table.columns.index((length_edges[1:] + length_edges[:-1]) / 2)
    length_km = within_bins(length.shares, length_edges, coarse_of_fine, coarse, random)
    length_km = np.maximum(length_km, TRIPS.least_detour * straight_km)

    times = _draw_times(estimates, length_km, random)
    return Trips(start, end, flow, pair, origin, destination, length_km * 1000, *times)


def timed_again(
    estimates: Estimates, trips: Trips, length_m: NDArray[np.float64], random: np.random.Generator
) -> Trips:
    """The trips with new durations and numbers of points, drawn for the actual lengths of their routes.

    A route is not exactly as long as the drawn length, so keeping the first duration would change the distribution of
    speeds.
    """
    duration_s, points, interval = _draw_times(estimates, length_m / 1000, random)
    return replace(trips, length_m=length_m, duration_s=duration_s, points=points, interval=interval)


def _draw_times(
    estimates: Estimates, length_km: NDArray[np.float64], random: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Duration, number of points and sampling interval of trips of the given lengths."""
    count, duration_s = len(length_km), _draw_durations(estimates, length_km, random)
    mean_interval = estimates.distribution(MeanInterval)
    interval_edges = np.asarray(mean_interval.bins.edges)
    interval = random.permutation(stratified(mean_interval.shares, count, random))
    width = interval_edges[interval + 1] / interval_edges[interval]
    interval_s = interval_edges[interval] * width ** random.random(count)
    points = np.clip(np.rint(duration_s / interval_s).astype(np.int64) + 1, 2, estimates.scope.caps.points)
    return with_sampling_intervals(estimates, duration_s, points, random)


def _draw_ends(
    estimates: Estimates, count: int, candidates: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Flow, pair of zones, start cell and end cell of each trip, resampled from a larger set of weighted draws.

    Start and end cells drawn independently inside their regions would be too far apart, because trips within a region
    are short. Raking restores the distribution of displacements and keeps flows and the starts and ends of each
    district. Then each pair of zones gets a whole number of trips.
    """
    grid, regions, many = estimates.grid, len(estimates.flows.shares), TRIPS.ends_per_trip * count
    flows = estimates.flows.shares.ravel()
    flow = stratified(flows, many, random)
    region_of_cell = estimates.flows.regions.ravel()
    origin = within_groups(estimates.starts.ravel(), region_of_cell, flow // regions, regions, random)
    destination = within_groups(estimates.ends.ravel(), region_of_cell, flow % regions, regions, random)
    columns = origin % grid.columns - destination % grid.columns, origin // grid.columns - destination // grid.columns
    straight_km = np.hypot(*(apart + random.triangular(-1, 0, 1, many) for apart in columns)) * grid.cell_m / 1000
    district, starts, ends = ends_by_district(estimates, TRIPS.district_depth)
    displacement = estimates.distribution(Displacement)
    views = (
        (flow, flows / flows.sum()),
        (displacement.bins.index(straight_km), displacement.shares),
        (district[origin], starts),
        (district[destination], ends),
    )
    limits = Limits(TRIPS.most_factor, TRIPS.weight_bounds)
    weight = rake(np.ones(many), views, TRIPS.ends_rounds, total=None, limits=limits)
    pair = zone_pairs(origin, destination, grid)
    each = candidates * integer_trips(pair, weight, count, random)
    kept = within_groups(weight, pair, ragged.owners(each), len(each), random)
    kept = kept[np.argsort(flow[kept], kind="stable")]
    return flow[kept], pair[kept], origin[kept], destination[kept]


def _draw_durations(
    estimates: Estimates, length_km: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float64]:
    """A duration for each length: one of a few draws from their joint table, raked to the distribution of speeds.

    Each bin of the table spans about a third of its value, in length and in duration. That is too wide to determine
    their ratio, but the release has a separate answer about speeds.
    """
    count, proposals = len(length_km), TRIPS.durations_per_trip
    table, duration, speed = (
        estimates.joint(LengthDuration),
        estimates.distribution(Duration),
        estimates.distribution(MeanSpeed),
    )
    row = np.repeat(table.rows.index(length_km), proposals)
    coarse = drawn_columns(table.shares, row, random)
    edges = np.asarray(duration.bins.edges)
    coarse_of_fine = table.columns.index((edges[1:] + edges[:-1]) / 2)
    duration_s = within_bins(duration.shares, edges, coarse_of_fine, coarse, random)
    shortest_s = np.maximum(TRIPS.shortest_s, TRIPS.spare_time * length_km * 1000 / fastest_mps(estimates.scope))
    duration_s = np.minimum(duration_s, estimates.scope.caps.duration_h * 3600)  # the last bin extends beyond the cap
    duration_s = np.maximum(duration_s, np.repeat(shortest_s, proposals))
    kmh = np.repeat(length_km, proposals) * 3600 / duration_s
    margins = (
        (speed.bins.index(kmh).reshape(count, proposals), speed.shares),
        (duration.bins.index(duration_s).reshape(count, proposals), duration.shares),
    )
    weight = np.full((count, proposals), 1.0 / proposals)
    limits = Limits(TRIPS.most_factor, rows_add_to_one=True)
    weight = rake(weight, margins, TRIPS.durations_rounds, total=count, limits=limits)
    chosen = (random.random((count, 1)) > np.cumsum(weight, axis=1)).sum(axis=1)
    result: NDArray[np.float64] = duration_s.reshape(count, proposals)[
        np.arange(count), np.minimum(chosen, proposals - 1)
    ]
    return result


def ends_by_district(
    estimates: Estimates, depth: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """District of each cell (2^depth with about equal numbers of ends), and their shares of starts and of ends."""
    district = label_regions(estimates.grid, cut_regions(estimates.starts + estimates.ends, depth)).ravel()
    starts, ends = (
        np.bincount(district, field.ravel(), minlength=2**depth) for field in (estimates.starts, estimates.ends)
    )
    return district, starts / starts.sum(), ends / ends.sum()


def inside_cells(
    grid: Grid, cell: NDArray[np.int64], random: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A uniform position inside each cell, and inside the scope."""
    x = (cell % grid.columns + random.random(len(cell))) * grid.cell_m
    y = (cell // grid.columns + random.random(len(cell))) * grid.cell_m
    return np.minimum(x, grid.width_m), np.minimum(y, grid.height_m)


def take_trips(trips: Trips, index: NDArray[np.int64]) -> Trips:
    """The trips at the given positions."""
    return Trips(
        (trips.start[0][index], trips.start[1][index]),
        (trips.end[0][index], trips.end[1][index]),
        trips.flow[index],
        trips.pair[index],
        trips.origin[index],
        trips.destination[index],
        trips.length_m[index],
        trips.duration_s[index],
        trips.points[index],
        trips.interval[index],
    )

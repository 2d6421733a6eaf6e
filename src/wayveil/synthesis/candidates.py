"""candidates: a pool of whole trajectories drawn from the estimates, twice as many as are wanted.

Ends by origin–destination and in whole numbers by zones (`pairs`), length given displacement, duration given length;
then a route of about that length (`router`), and points on it in proportion to time spent (`placing`). Weights that
make the pool fit the answers are found afterwards (`fit`).

Privacy: free (post-processing).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.questions.displacement import Displacement
from wayveil.questions.displacement_length import DisplacementLength
from wayveil.questions.duration import Duration
from wayveil.questions.length import Length
from wayveil.questions.length_duration import LengthDuration
from wayveil.questions.mean_interval import MeanInterval
from wayveil.questions.mean_speed import MeanSpeed
from wayveil.regions import cut_regions, label_regions
from wayveil.synthesis.beats import on_the_beat
from wayveil.synthesis.caps import fastest_mps
from wayveil.synthesis.draw import rows_of, systematic, within_bins, within_groups
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.pairs import whole_trips, zone_pairs

_SHORTEST_S = 10.0
_OVERSAMPLE = 16
_END_ROUNDS = 8
_DURATIONS = 6
_DURATION_ROUNDS = 6
_DISTRICT_DEPTH = 8


@dataclass(frozen=True, eq=False)
class Trips:
    """Drawn before any route: who goes from where to where, how far, how long, seen how often."""

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
    beat: NDArray[np.float64]
    """Seconds between two points at the device's rhythm, over the mean gap."""

    def __len__(self) -> int:
        return len(self.flow)


PlaceInCells = Callable[[NDArray[np.int64], np.random.Generator], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Cells in, a position in each of them out."""


def draw_trips(
    estimates: Estimates,
    wanted: int,
    random: np.random.Generator,
    place_in_cells: PlaceInCells | None = None,
    candidates: int = 1,
) -> Trips:
    """Ends, length, duration and number of points of so many `candidates` for each `wanted` trip, ordered by flow."""
    inside = place_in_cells or partial(inside_cells, estimates.grid)
    flow, pair, origin, destination = _draw_ends(estimates, wanted, candidates, random)
    start, end = inside(origin, random), inside(destination, random)
    straight_km = np.hypot(start[0] - end[0], start[1] - end[1]) / 1000

    table, length = estimates.joint(DisplacementLength), estimates.distribution(Length)
    coarse = rows_of(table.shares, table.rows.index(straight_km), random)
    length_edges = np.asarray(length.bins.edges)
    coarse_of_fine = table.columns.index((length_edges[1:] + length_edges[:-1]) / 2)
    length_km = within_bins(length.shares, length_edges, coarse_of_fine, coarse, random)
    length_km = np.maximum(length_km, 1.01 * straight_km)

    times = _draw_times(estimates, length_km, random)
    return Trips(start, end, flow, pair, origin, destination, length_km * 1000, *times)


def timed_again(
    estimates: Estimates, trips: Trips, length_m: NDArray[np.float64], random: np.random.Generator
) -> Trips:
    """The trips with other durations and numbers of points, now that they are known to be so long.

    No route is exactly as long as was drawn, and a duration that was drawn for another length is another speed.
    """
    duration_s, points, beat = _draw_times(estimates, length_m / 1000, random)
    return replace(trips, length_m=length_m, duration_s=duration_s, points=points, beat=beat)


def _draw_times(
    estimates: Estimates, length_km: NDArray[np.float64], random: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Duration, number of points and beat of trips of the given lengths."""
    count, duration_s = len(length_km), _draw_durations(estimates, length_km, random)
    mean_interval = estimates.distribution(MeanInterval)
    interval_edges = np.asarray(mean_interval.bins.edges)
    interval = random.permutation(systematic(mean_interval.shares, count, random))
    width = interval_edges[interval + 1] / interval_edges[interval]
    interval_s = interval_edges[interval] * width ** random.random(count)
    points = np.clip(np.rint(duration_s / interval_s).astype(np.int64) + 1, 2, estimates.scope.caps.points)
    return on_the_beat(estimates, duration_s, points, random)


def _draw_ends(
    estimates: Estimates, wanted: int, candidates: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Flow, pair of zones, cell of the start, cell of the end: some of many drawn from the flows, weighed.

    Cells drawn independently inside their regions would be too far apart: who ends in the region of the start, ends
    near the start. Weights restore the shares of displacements while flows and the starts and ends of each district
    keep theirs. Then each pair of zones gets a whole number of trips.
    """
    grid, regions, many = estimates.grid, len(estimates.flows.shares), _OVERSAMPLE * wanted
    flows = estimates.flows.shares.ravel()
    flow = systematic(flows, many, random)
    region_of_cell = estimates.flows.regions.ravel()
    origin = within_groups(estimates.starts.ravel(), region_of_cell, flow // regions, regions, random)
    destination = within_groups(estimates.ends.ravel(), region_of_cell, flow % regions, regions, random)
    columns = origin % grid.columns - destination % grid.columns, origin // grid.columns - destination // grid.columns
    straight_km = np.hypot(*(apart + random.triangular(-1, 0, 1, many) for apart in columns)) * grid.cell_m / 1000
    district, starts, ends = ends_by_district(estimates, _DISTRICT_DEPTH)
    displacement = estimates.distribution(Displacement)
    views = (
        (flow, flows / flows.sum()),
        (displacement.bins.index(straight_km), displacement.shares),
        (district[origin], starts),
        (district[destination], ends),
    )
    weight, pair = _raked(views, many), zone_pairs(origin, destination, grid)
    each = candidates * whole_trips(pair, weight, wanted, random)
    kept = within_groups(weight, pair, np.repeat(np.arange(len(each)), each), len(each), random)
    kept = kept[np.argsort(flow[kept], kind="stable")]
    return flow[kept], pair[kept], origin[kept], destination[kept]


def _raked(views: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]], count: int) -> NDArray[np.float64]:
    """Weights near one by which each view (bin of each, shares of the bins) has its shares: raking, within limits."""
    weight = np.ones(count)
    for _ in range(_END_ROUNDS):
        for bin_of, target in views:
            share = np.bincount(bin_of, weight, minlength=len(target)) / weight.sum()
            factor = np.divide(target, share, out=np.ones(len(target)), where=share > 0)
            weight *= np.clip(factor, 0.2, 5.0)[bin_of]
        weight = np.clip(weight / weight.mean(), 0.05, 20.0)
    return weight


def _draw_durations(
    estimates: Estimates, length_km: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float64]:
    """A duration for each length: one of a few from the table of both, weighed so that speeds have their shares too.

    The table's bins are a third wide each way, which blurs the ratio of the two; speed was measured by itself.
    """
    count, proposals = len(length_km), _DURATIONS
    table, duration, speed = (
        estimates.joint(LengthDuration),
        estimates.distribution(Duration),
        estimates.distribution(MeanSpeed),
    )
    row = np.repeat(table.rows.index(length_km), proposals)
    coarse = rows_of(table.shares, row, random)
    edges = np.asarray(duration.bins.edges)
    coarse_of_fine = table.columns.index((edges[1:] + edges[:-1]) / 2)
    duration_s = within_bins(duration.shares, edges, coarse_of_fine, coarse, random)
    shortest_s = np.maximum(_SHORTEST_S, 1.25 * length_km * 1000 / fastest_mps(estimates.scope))
    duration_s = np.minimum(duration_s, estimates.scope.caps.duration_h * 3600)  # the last bin reaches beyond
    duration_s = np.maximum(duration_s, np.repeat(shortest_s, proposals))
    views = (
        (speed.bins.index(np.repeat(length_km, proposals) * 3600 / duration_s), speed.shares),
        (duration.bins.index(duration_s), duration.shares),
    )
    weight = np.full((count, proposals), 1.0 / proposals)
    for _ in range(_DURATION_ROUNDS):
        for bin_of, target in views:
            share = np.bincount(bin_of, weight.ravel(), minlength=len(target)) / count
            factor = np.divide(target, share, out=np.ones(len(target)), where=share > 0)
            weight *= np.clip(factor, 0.2, 5.0)[bin_of].reshape(count, proposals)
            weight /= weight.sum(axis=1, keepdims=True)
    chosen = (random.random((count, 1)) > np.cumsum(weight, axis=1)).sum(axis=1)
    return duration_s.reshape(count, proposals)[np.arange(count), np.minimum(chosen, proposals - 1)]


def ends_by_district(
    estimates: Estimates, depth: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """District of each cell, 2^depth of them with about as many ends each, and their shares of starts and of ends."""
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
        trips.beat[index],
    )

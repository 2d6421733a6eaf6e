"""candidates: a pool of whole trajectories drawn from the estimates, twice as many as are wanted.

Ends by origin–destination, length given displacement, duration given length, a route of about that length, and points
on it in proportion to time spent. Weights that make the pool fit the answers are found afterwards (`fit`).

Privacy: free (post-processing).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.synthesis.draw import rows_of, systematic, within_bins, within_groups
from wayveil.synthesis.ends import pair_order
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.graph import RouteGraph
from wayveil.synthesis.polylines import Polylines, lengths, place, steps
from wayveil.synthesis.pyramid import Field, interpolate, pool
from wayveil.synthesis.regions import cut_regions, label_regions
from wayveil.synthesis.road_shapes import with_short_steps
from wayveil.synthesis.routes import HUB_DEPTH, Hubs, choose_vias, find_hubs, route

_VERTEX_POWER = 1.5
_SHORTEST_S = 10.0
_STEP_CELLS = 2.0
"""Places are slow or fast by the step: one across a whole block could not be slow in the middle of it."""
_BALANCE_M = 800.0
_BALANCE = 0.5
_FAR = 4
"""Side of a district, in blocks."""
_HUB_BALANCE = 2.0
_ROUNDS = 2
_TRIAL_DEPTH = 7
"""Half the hubs are enough to see where routes crowd."""
_SAMPLE = 4000
_OVERSAMPLE = 4
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
    origin: NDArray[np.int64]
    """Base cell of the start."""
    destination: NDArray[np.int64]
    """Base cell of the end."""
    length_m: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    points: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.flow)


PlaceInCells = Callable[[NDArray[np.int64], np.random.Generator], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Cells in, a position in each of them out."""


def draw_trips(
    estimates: Estimates, count: int, random: np.random.Generator, place_in_cells: PlaceInCells | None = None
) -> Trips:
    """Ends, length, duration and number of points of `count` trips, in the order of their flows."""
    inside = place_in_cells or partial(inside_cells, estimates.grid)
    flow, origin, destination = _draw_ends(estimates, count, random)
    start, end = inside(origin, random), inside(destination, random)
    straight_km = np.hypot(start[0] - end[0], start[1] - end[1]) / 1000

    row = estimates.displacement_bins.index(straight_km)
    coarse = rows_of(estimates.displacement_length, row, random)
    length_edges = np.asarray(estimates.length_bins.edges)
    coarse_of_fine = estimates.coarse_length_bins.index((length_edges[1:] + length_edges[:-1]) / 2)
    length_km = within_bins(estimates.length, length_edges, coarse_of_fine, coarse, random)
    length_km = np.maximum(length_km, 1.01 * straight_km)

    duration_s = _draw_durations(estimates, length_km, random)
    interval_edges = np.asarray(estimates.interval_bins.edges)
    interval = random.permutation(systematic(estimates.interval, count, random))
    width = interval_edges[interval + 1] / interval_edges[interval]
    interval_s = interval_edges[interval] * width ** random.random(count)
    points = np.clip(np.rint(duration_s / interval_s).astype(np.int64) + 1, 2, estimates.scope.caps.points)
    return Trips(start, end, flow, origin, destination, length_km * 1000, duration_s, points)


def _draw_ends(
    estimates: Estimates, count: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Flow, cell of the start, cell of the end: some of many pairs drawn from the flows, weighed by displacement.

    Cells drawn independently inside their regions would be too far apart: who ends in the region of the start, ends
    near the start. Weights restore the shares of displacements while starts and ends of each district keep theirs.
    """
    grid, regions, many = estimates.grid, len(estimates.flows), _OVERSAMPLE * count
    flow = systematic(estimates.flows.ravel(), many, random)
    region_of_cell = estimates.regions.ravel()
    origin = within_groups(estimates.starts.ravel(), region_of_cell, flow // regions, regions, random)
    destination = within_groups(estimates.ends.ravel(), region_of_cell, flow % regions, regions, random)
    columns = origin % grid.columns - destination % grid.columns, origin // grid.columns - destination // grid.columns
    straight_km = np.hypot(*(apart + random.triangular(-1, 0, 1, many) for apart in columns)) * grid.cell_m / 1000
    both = estimates.starts + estimates.ends
    district = label_regions(grid, cut_regions(both, _DISTRICT_DEPTH)).ravel()
    views = (
        (estimates.displacement_bins.index(straight_km), estimates.displacement),
        (district[origin], _district_shares(district, estimates.starts)),
        (district[destination], _district_shares(district, estimates.ends)),
    )
    weight = np.ones(many)
    for _ in range(_END_ROUNDS):
        for bin_of, target in views:
            share = np.bincount(bin_of, weight, minlength=len(target)) / weight.sum()
            factor = np.divide(target, share, out=np.ones(len(target)), where=share > 0)
            weight *= np.clip(factor, 0.2, 5.0)[bin_of]
        weight = np.clip(weight / weight.mean(), 0.05, 20.0)
    order = np.lexsort((pair_order(origin, destination, grid), flow))
    kept = order[systematic(weight[order], count, random)]
    return flow[kept], origin[kept], destination[kept]


def _draw_durations(
    estimates: Estimates, length_km: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float64]:
    """A duration for each length: one of a few from the table of both, weighed so that speeds have their shares too.

    The table's bins are a third wide each way, which blurs the ratio of the two; speed was measured by itself.
    """
    count, proposals = len(length_km), _DURATIONS
    row = np.repeat(estimates.coarse_length_bins.index(length_km), proposals)
    coarse = rows_of(estimates.length_duration, row, random)
    edges = np.asarray(estimates.duration_bins.edges)
    coarse_of_fine = estimates.coarse_duration_bins.index((edges[1:] + edges[:-1]) / 2)
    duration_s = within_bins(estimates.duration, edges, coarse_of_fine, coarse, random)
    fastest_mps = estimates.scope.caps.speed_kmh / 3.6
    shortest_s = np.maximum(_SHORTEST_S, 1.25 * length_km * 1000 / fastest_mps)
    duration_s = np.maximum(duration_s, np.repeat(shortest_s, proposals))
    views = (
        (estimates.speed_bins.index(np.repeat(length_km, proposals) * 3600 / duration_s), estimates.speed),
        (estimates.duration_bins.index(duration_s), estimates.duration),
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


def _district_shares(district: NDArray[np.int64], field: Field) -> NDArray[np.float64]:
    mass = np.bincount(district, field.ravel(), minlength=2**_DISTRICT_DEPTH)
    return mass / mass.sum()


def inside_cells(
    grid: Grid, cell: NDArray[np.int64], random: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A uniform position inside each cell, and inside the scope."""
    x = (cell % grid.columns + random.random(len(cell))) * grid.cell_m
    y = (cell // grid.columns + random.random(len(cell))) * grid.cell_m
    return np.minimum(x, grid.width_m), np.minimum(y, grid.height_m)


@dataclass(frozen=True, eq=False)
class Router:
    """A graph whose costs have been balanced, its hubs, and how much longer its paths are than straight lines."""

    graph: RouteGraph
    hubs: Hubs
    detour: float


def balance_routes(estimates: Estimates, graph: RouteGraph, trips: Trips, random: np.random.Generator) -> Router:
    """Costs under which routes pass where the occupancy says that people are.

    Routes of a sample show where cheapest paths crowd: there travel is made dearer and detours less likely, and where
    too few pass the opposite, until the blocks see about the share of the way that the occupancy gives them. A last
    step that leaves the ways further from the occupancy than they were has gone too far; only half of it is taken.
    """
    grid = estimates.grid
    side = max(1, round(_BALANCE_M / grid.cell_m))
    wanted = pool(estimates.occupancy, side)
    wanted = wanted / wanted.sum()
    ends = estimates.starts + estimates.ends

    def tried(router: Router) -> tuple[Field, float]:
        """Where the routes of a sample pass, and how much longer they are than straight lines."""
        some = take_trips(trips, random.permutation(len(trips))[:_SAMPLE])
        lines, vias, _ = _routes(router, some, random)
        return pool(_way_shares(lines, grid), side), _detour(lines, vias, some)

    def built(crowding: Field, depth: int, detour: float) -> Router:
        fine = interpolate(crowding, side, estimates.occupancy.shape)
        balanced = graph.reweighted(grid, fine)
        hubs = find_hubs(balanced, grid, estimates.occupancy, ends, depth)
        at_hub = fine.ravel()[grid.index(hubs.x_m, hubs.y_m)]
        return Router(balanced, replace(hubs, mass=hubs.mass / at_hub**_HUB_BALANCE), detour)

    router = Router(graph, find_hubs(graph, grid, estimates.occupancy, ends, _TRIAL_DEPTH), 1.25)
    crowding = before = np.ones_like(wanted)
    gap, detour = np.inf, router.detour
    for left in reversed(range(_ROUNDS)):
        seen, detour = tried(router)
        gap = np.abs(seen - wanted).sum()
        before, crowding = crowding, np.clip(crowding * _crowding(seen, wanted), 0.1, 10.0)
        router = built(crowding, _TRIAL_DEPTH if left else HUB_DEPTH, detour)
    if np.abs(tried(router)[0] - wanted).sum() > gap:
        return built(np.sqrt(before * crowding), HUB_DEPTH, detour)
    return router


def _crowding(seen: Field, wanted: Field) -> Field:
    """√(seen / wanted) of each block, times the same of the district around it.

    Cheapest paths are drawn to the centre as a whole, which no single block shows well: with blocks alone the ways were
    3 to 6 % narrower than the occupancy.
    """
    far_seen, far_wanted = pool(seen, _FAR), pool(wanted, _FAR)
    around = interpolate(_ratio(far_seen, far_wanted), _FAR, seen.shape)
    return (_ratio(seen, wanted) * around) ** _BALANCE


def _ratio(seen: Field, wanted: Field) -> Field:
    soft = 0.1 * wanted.mean()
    return (seen + soft) / (wanted + soft)


def route_trips(estimates: Estimates, router: Router, trips: Trips, random: np.random.Generator) -> Polylines:
    """A polyline for each trip; where the graph is only a grid, it passes anywhere inside its blocks."""
    lines, _, node = _routes(router, trips, random)
    loose = loosen(lines, node, router.graph, estimates.grid, estimates.occupancy**_VERTEX_POWER, random)
    return with_short_steps(loose, _STEP_CELLS * estimates.grid.cell_m)


def _routes(
    router: Router, trips: Trips, random: np.random.Generator
) -> tuple[Polylines, NDArray[np.int64], NDArray[np.int64]]:
    vias = choose_vias(trips.start, trips.end, trips.length_m, router.hubs, router.detour, random)
    lines, node = route(router.graph, router.hubs, trips.start, trips.end, vias)
    return lines, vias, node


def _way_shares(lines: Polylines, grid: Grid, count: int = 24) -> Field:
    """Share of the way in each cell, every trip counting the same."""
    fractions = np.tile((np.arange(count) + 0.5) / count, len(lines))
    spots = place(lines, steps(lines), np.arange(len(lines) + 1) * count, fractions)
    cells = np.bincount(grid.index(spots.x_m, spots.y_m), minlength=grid.cells).reshape(grid.rows, grid.columns)
    return cells / cells.sum()


def take_trips(trips: Trips, index: NDArray[np.int64]) -> Trips:
    """The trips at the given positions."""
    return Trips(
        (trips.start[0][index], trips.start[1][index]),
        (trips.end[0][index], trips.end[1][index]),
        trips.flow[index],
        trips.origin[index],
        trips.destination[index],
        trips.length_m[index],
        trips.duration_s[index],
        trips.points[index],
    )


def _detour(lines: Polylines, vias: NDArray[np.int64], trips: Trips) -> float:
    """How much longer a cheapest path is than the straight line: the median over trips without a detour."""
    straight = np.hypot(trips.start[0] - trips.end[0], trips.start[1] - trips.end[1])
    direct = (vias.max(axis=1) < 0) & (straight > 1000)
    if direct.sum() < 20:
        return 1.25
    return float(np.clip(np.median(lengths(lines)[direct] / straight[direct]), 1.02, 1.6))


def loosen(
    lines: Polylines,
    node: NDArray[np.int64],
    graph: RouteGraph,
    grid: Grid,
    attraction: Field,
    random: np.random.Generator,
) -> Polylines:
    """Move each vertex that stands for a block to a place inside the block, drawn in proportion to `attraction`."""
    if graph.loose is None or not graph.loose.any():
        return lines
    movable = np.flatnonzero((node >= 0) & graph.loose[node])
    side = round(graph.block_m / grid.cell_m)
    rows, columns = -(-grid.rows // side), -(-grid.columns // side)
    padded = np.zeros((rows * side, columns * side))
    padded[: grid.rows, : grid.columns] = attraction + 1e-12 * max(float(attraction.max()), 1e-300)
    inner = padded.reshape(rows, side, columns, side).transpose(0, 2, 1, 3).reshape(rows * columns, side * side)
    down, right = (graph.y_m // graph.block_m).astype(np.int64), (graph.x_m // graph.block_m).astype(np.int64)
    node = node[movable]
    cell = rows_of(inner, np.minimum(down * columns + right, rows * columns - 1)[node], random)
    x, y = lines.x_m.copy(), lines.y_m.copy()
    within = np.arange(side * side)
    for along, corner, inside in ((x, right * side, within % side), (y, down * side, within // side)):
        moved = random.random(len(movable))
        moved += corner.astype(float)[node]
        moved += inside.astype(float)[cell]
        moved *= grid.cell_m
        along[movable] = moved
    return Polylines(lines.offsets, np.minimum(x, grid.width_m, out=x), np.minimum(y, grid.height_m, out=y))

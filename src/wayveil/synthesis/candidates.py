"""candidates: a pool of whole trajectories drawn from the estimates, twice as many as are wanted.

Ends by origin–destination, length given displacement, duration given length, a route of about that length, and points
on it in proportion to time spent. Weights that make the pool fit the answers are found afterwards (`fit`).

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.draw import rows_of, systematic, within_bins, within_groups
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.graph import RouteGraph
from wayveil.synthesis.polylines import Polylines, lengths
from wayveil.synthesis.pyramid import Field
from wayveil.synthesis.routes import Hubs, choose_vias, route

_VERTEX_POWER = 1.5
_SHORTEST_S = 10.0


@dataclass(frozen=True, eq=False)
class Trips:
    """Drawn before any route: who goes from where to where, how far, how long, seen how often."""

    start: tuple[NDArray[np.float64], NDArray[np.float64]]
    end: tuple[NDArray[np.float64], NDArray[np.float64]]
    flow: NDArray[np.int64]
    """Index of (origin region, destination region)."""
    length_m: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    points: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.flow)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Trips with the polylines that they follow."""

    trips: Trips
    lines: Polylines


def draw_trips(estimates: Estimates, count: int, random: np.random.Generator) -> Trips:
    """Ends, length, duration and number of points of `count` trips."""
    regions = len(estimates.flows)
    flow = systematic(estimates.flows.ravel(), count, random)
    region_of_cell = estimates.regions.ravel()
    origin = within_groups(estimates.starts.ravel(), region_of_cell, flow // regions, regions, random)
    destination = within_groups(estimates.ends.ravel(), region_of_cell, flow % regions, regions, random)
    start, end = _inside(estimates, origin, random), _inside(estimates, destination, random)
    straight_km = np.hypot(start[0] - end[0], start[1] - end[1]) / 1000

    row = estimates.displacement_bins.index(straight_km)
    coarse = rows_of(estimates.displacement_length, row, random)
    length_edges = np.asarray(estimates.length_bins.edges)
    coarse_of_fine = estimates.coarse_length_bins.index((length_edges[1:] + length_edges[:-1]) / 2)
    length_km = within_bins(estimates.length, length_edges, coarse_of_fine, coarse, random)
    length_km = np.maximum(length_km, 1.01 * straight_km)

    row = estimates.coarse_length_bins.index(length_km)
    coarse = rows_of(estimates.length_duration, row, random)
    duration_edges = np.asarray(estimates.duration_bins.edges)
    coarse_of_fine = estimates.coarse_duration_bins.index((duration_edges[1:] + duration_edges[:-1]) / 2)
    duration_s = within_bins(estimates.duration, duration_edges, coarse_of_fine, coarse, random)
    fastest_mps = estimates.scope.caps.speed_kmh / 3.6
    duration_s = np.maximum(duration_s, np.maximum(_SHORTEST_S, 1.25 * length_km * 1000 / fastest_mps))

    interval_edges = np.asarray(estimates.interval_bins.edges)
    interval = random.permutation(systematic(estimates.interval, count, random))
    interval_s = interval_edges[interval] * (interval_edges[interval + 1] / interval_edges[interval]) ** random.random(count)
    points = np.clip(np.rint(duration_s / interval_s).astype(np.int64) + 1, 2, estimates.scope.caps.points)
    return Trips(start, end, flow, length_km * 1000, duration_s, points)


def _inside(
    estimates: Estimates, cell: NDArray[np.int64], random: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A uniform position inside each cell, and inside the scope."""
    grid = estimates.grid
    x = (cell % grid.columns + random.random(len(cell))) * grid.cell_m
    y = (cell // grid.columns + random.random(len(cell))) * grid.cell_m
    return np.minimum(x, grid.width_m), np.minimum(y, grid.height_m)


def route_trips(
    estimates: Estimates, trips: Trips, graph: RouteGraph, hubs: Hubs, random: np.random.Generator
) -> Polylines:
    """A polyline for each trip; how much cheapest paths exceed straight lines is found on a first sample."""
    sample = random.permutation(len(trips))[:4000]
    detour = _measure_detour(graph, hubs, _some(trips, sample), random)
    vias = choose_vias(trips.start, trips.end, trips.length_m, hubs, detour, random)
    lines, node = route(graph, hubs, trips.start, trips.end, vias)
    return loosen(lines, node, graph, estimates, estimates.occupancy**_VERTEX_POWER, random)


def _some(trips: Trips, index: NDArray[np.int64]) -> Trips:
    return Trips(
        (trips.start[0][index], trips.start[1][index]),
        (trips.end[0][index], trips.end[1][index]),
        trips.flow[index],
        trips.length_m[index],
        trips.duration_s[index],
        trips.points[index],
    )


def _measure_detour(graph: RouteGraph, hubs: Hubs, trips: Trips, random: np.random.Generator) -> float:
    vias = choose_vias(trips.start, trips.end, trips.length_m, hubs, 1.25, random)
    lines, _ = route(graph, hubs, trips.start, trips.end, vias)
    straight = np.hypot(trips.start[0] - trips.end[0], trips.start[1] - trips.end[1])
    direct = (vias.max(axis=1) < 0) & (straight > 1000)
    if direct.sum() < 20:
        return 1.25
    return float(np.clip(np.median(lengths(lines)[direct] / straight[direct]), 1.02, 1.6))


def loosen(
    lines: Polylines,
    node: NDArray[np.int64],
    graph: RouteGraph,
    estimates: Estimates,
    attraction: Field,
    random: np.random.Generator,
) -> Polylines:
    """Move each vertex that stands for a block to a place inside the block, drawn in proportion to `attraction`."""
    if graph.loose is None or not graph.loose.any():
        return lines
    movable = np.flatnonzero((node >= 0) & graph.loose[node])
    grid = estimates.grid
    side = int(round(graph.block_m / grid.cell_m))
    rows, columns = -(-grid.rows // side), -(-grid.columns // side)
    padded = np.zeros((rows * side, columns * side))
    padded[: grid.rows, : grid.columns] = attraction + 1e-12 * max(float(attraction.max()), 1e-300)
    inner = padded.reshape(rows, side, columns, side).transpose(0, 2, 1, 3).reshape(rows * columns, side * side)
    block = (graph.y_m[node[movable]] // graph.block_m).astype(np.int64) * columns + (
        graph.x_m[node[movable]] // graph.block_m
    ).astype(np.int64)
    cell = rows_of(inner, np.minimum(block, rows * columns - 1), random)
    x, y = lines.x_m.copy(), lines.y_m.copy()
    x[movable] = ((block % columns) * side + cell % side + random.random(len(movable))) * grid.cell_m
    y[movable] = ((block // columns) * side + cell // side + random.random(len(movable))) * grid.cell_m
    return Polylines(lines.offsets, np.minimum(x, grid.width_m), np.minimum(y, grid.height_m))

"""Route costs, balanced on a sample of trips so that routes reproduce the passage, the density of the way.

Privacy: free (post-processing).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid, level_shape
from wayveil.core.polylines import Polylines, lengths, place, steps
from wayveil.core.pyramid import Field, interpolate, pool
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.routes.graph import RouteGraph
from wayveil.synthesis.routes.road_shapes import with_short_steps
from wayveil.synthesis.routes.routes import Hubs, choose_vias, find_hubs, route
from wayveil.synthesis.routes.settings import BALANCE, ROUTES
from wayveil.synthesis.trips.candidates import Trips, take_trips
from wayveil.synthesis.trips.draw import within_blocks


@dataclass(frozen=True, eq=False)
class Router:
    """A graph with balanced costs, its hubs, and the ratio of path length to straight-line distance."""

    graph: RouteGraph
    hubs: Hubs
    detour: float


def balance_routes(estimates: Estimates, graph: RouteGraph, trips: Trips, random: np.random.Generator) -> Router:
    """Balance costs such that the density of routes is about the passage.

    In each round a sample of trips is routed. In blocks with too many routes, travel becomes more expensive and detours
    less likely; in blocks with too few, the opposite. If the last step makes the misfit larger than before, only half
    of the step is taken.
    """
    grid = estimates.grid
    side = max(1, round(BALANCE.block_m / grid.cell_m))
    target = pool(estimates.passage, side)
    target = target / target.sum()
    ends = estimates.starts + estimates.ends

    def tried(router: Router) -> tuple[Field, float]:
        """Density of the routes of a sample, and the ratio of their length to the straight line."""
        some = take_trips(trips, random.permutation(len(trips))[: BALANCE.sample_trips])
        lines, vias, _ = _routes(router, some, random)
        return pool(_way_shares(lines, grid), side), _detour(lines, vias, some)

    def built(crowding: Field, depth: int, detour: float) -> Router:
        fine = interpolate(crowding, side, estimates.passage.shape)
        balanced = graph.reweighted(grid, fine)
        hubs = find_hubs(balanced, grid, estimates.passage, ends, random, depth)
        at_hub = fine.ravel()[grid.index(hubs.x_m, hubs.y_m)]
        return Router(balanced, replace(hubs, mass=hubs.mass / at_hub**BALANCE.hub_power), detour)

    router = Router(
        graph, find_hubs(graph, grid, estimates.passage, ends, random, BALANCE.trial_hub_depth), BALANCE.usual_detour
    )
    crowding = before = np.ones_like(target)
    gap, detour = np.inf, router.detour
    for left in reversed(range(BALANCE.rounds)):
        seen, detour = tried(router)
        gap = np.abs(seen - target).sum()
        before, crowding = crowding, np.clip(crowding * _crowding(seen, target), *BALANCE.factor_bounds)
        router = built(crowding, BALANCE.trial_hub_depth if left else ROUTES.hub_depth, detour)
    if np.abs(tried(router)[0] - target).sum() > gap:
        return built(np.sqrt(before * crowding), ROUTES.hub_depth, detour)
    return router


def _crowding(seen: Field, target: Field) -> Field:
    """√(seen / target) of each block, times the same of the district around it.

    Cheapest paths concentrate in the centre as a whole, which single blocks do not show well: with blocks only, the
    routes were 3 to 6 % less spread out than the target.
    """
    far_seen, far_target = pool(seen, BALANCE.district_blocks), pool(target, BALANCE.district_blocks)
    around = interpolate(_ratio(far_seen, far_target), BALANCE.district_blocks, seen.shape)
    return (_ratio(seen, target) * around) ** BALANCE.power


def _ratio(seen: Field, target: Field) -> Field:
    soft = BALANCE.soft * target.mean()
    result: Field = (seen + soft) / (target + soft)
    return result


def route_trips(estimates: Estimates, router: Router, trips: Trips, random: np.random.Generator) -> Polylines:
    """A polyline for each trip; on nodes of the grid, it passes a random place inside their blocks."""
    lines, _, node = _routes(router, trips, random)
    loose = loosen(lines, node, router.graph, estimates.grid, estimates.passage**BALANCE.vertex_power, random)
    return with_short_steps(loose, BALANCE.step_cells * estimates.grid.cell_m)


def _routes(
    router: Router, trips: Trips, random: np.random.Generator
) -> tuple[Polylines, NDArray[np.int64], NDArray[np.int64]]:
    vias = choose_vias(trips.start, trips.end, trips.length_m, router.hubs, router.detour, random)
    lines, node = route(router.graph, router.hubs, trips.start, trips.end, vias)
    return lines, vias, node


def _way_shares(lines: Polylines, grid: Grid) -> Field:
    """Share of route length in each cell, with equal weight for every trip."""
    count = BALANCE.way_points
    fractions = np.tile((np.arange(count) + 0.5) / count, len(lines))
    spots = place(lines, steps(lines), np.arange(len(lines) + 1) * count, fractions)
    cells = np.bincount(grid.index(spots.x_m, spots.y_m), minlength=grid.cells).reshape(grid.rows, grid.columns)
    result: Field = cells / cells.sum()
    return result


def _detour(lines: Polylines, vias: NDArray[np.int64], trips: Trips) -> float:
    """Ratio of a cheapest path to the straight line: the median over trips without a detour."""
    straight = np.hypot(trips.start[0] - trips.end[0], trips.start[1] - trips.end[1])
    direct = (vias.max(axis=1) < 0) & (straight > BALANCE.detour_least_m)
    if direct.sum() < BALANCE.detour_trips:
        return BALANCE.usual_detour
    return float(np.clip(np.median(lengths(lines)[direct] / straight[direct]), *BALANCE.detour_bounds))


def loosen(
    lines: Polylines,
    node: NDArray[np.int64],
    graph: RouteGraph,
    grid: Grid,
    attraction: Field,
    random: np.random.Generator,
) -> Polylines:
    """Move each vertex that represents a block to a place inside the block, drawn in proportion to `attraction`."""
    if graph.loose is None or not graph.loose.any():
        return lines
    movable = np.flatnonzero((node >= 0) & graph.loose[node])
    side = round(graph.block_m / grid.cell_m)
    rows, columns = level_shape(grid, side)
    down, right = (graph.y_m // graph.block_m).astype(np.int64), (graph.x_m // graph.block_m).astype(np.int64)
    block = np.minimum(down * columns + right, rows * columns - 1)[node[movable]]
    x, y = lines.x_m.copy(), lines.y_m.copy()
    weight = attraction + 1e-12 * max(float(attraction.max()), 1e-300)
    x[movable], y[movable] = within_blocks(weight, side, block, grid, random)
    return Polylines(lines.offsets, x, y)

"""router: routes that pass where the occupancy says that people are, with costs balanced on a sample of the trips.

Privacy: free (post-processing).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid, level_shape
from wayveil.polylines import Polylines, lengths, place, steps
from wayveil.pyramid import Field, interpolate, pool
from wayveil.synthesis.candidates import Trips, take_trips
from wayveil.synthesis.draw import within_blocks
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.graph import RouteGraph
from wayveil.synthesis.road_shapes import with_short_steps
from wayveil.synthesis.routes import HUB_DEPTH, Hubs, choose_vias, find_hubs, route

_VERTEX_POWER = 1.5
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
    rows, columns = level_shape(grid, side)
    down, right = (graph.y_m // graph.block_m).astype(np.int64), (graph.x_m // graph.block_m).astype(np.int64)
    block = np.minimum(down * columns + right, rows * columns - 1)[node[movable]]
    x, y = lines.x_m.copy(), lines.y_m.copy()
    weight = attraction + 1e-12 * max(float(attraction.max()), 1e-300)
    x[movable], y[movable] = within_blocks(weight, side, block, grid, random)
    return Polylines(lines.offsets, x, y)

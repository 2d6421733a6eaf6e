"""Trees of cheapest paths, balanced so that routes reproduce the passage (the estimated density of route length).

Privacy: free (post-processing).
"""

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid, level_shape
from wayveil.core.polylines import Polylines, lengths, place, steps
from wayveil.core.pyramid import Field, interpolate, pool
from wayveil.core.regions import cut_regions, label_regions
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.routes.graph import RouteGraph, streets_of
from wayveil.synthesis.routes.road_shapes import with_short_steps
from wayveil.synthesis.routes.routes import Hubs, choose_vias, route
from wayveil.synthesis.routes.settings import BALANCE, ROUTES
from wayveil.synthesis.routes.trees import trees_from, trees_to
from wayveil.synthesis.trips.candidates import Trips, take_trips
from wayveil.synthesis.trips.draw import within_blocks


@dataclass(frozen=True, eq=False)
class Router:
    """A graph, its hubs with balanced trees, and the ratio of path length to straight-line distance."""

    graph: RouteGraph
    hubs: Hubs
    detour: float


def balance_routes(estimates: Estimates, graph: RouteGraph, trips: Trips, random: np.random.Generator) -> Router:
    """Find trees of cheapest paths such that the density of routes along them is close to the passage.

    This is traffic assignment by successive averages. In each round, some of the hubs get their trees, from the costs
    of that round; then a sample of trips is routed along all trees so far. Travel becomes more expensive for the next
    round in blocks with too many routes, and cheaper in blocks with too few. The trees of all rounds stay in use, so
    the density is an average over rounds, which does not oscillate, and trips between neighbouring places take
    different routes. Only the first trees, whose costs were not balanced, are made again at the end. Detours follow the
    same rule: a hub in a block with too many routes attracts fewer of them.
    """
    grid = estimates.grid
    side = max(1, round(BALANCE.block_m / grid.cell_m))
    target = pool(estimates.passage, side)
    target = target / target.sum()
    node, mass = _hub_nodes(graph, grid, estimates.passage, estimates.starts + estimates.ends)
    rounds = min(ROUTES.rounds, len(node))
    crowding, attraction, detour = np.ones_like(target), mass, BALANCE.usual_detour
    cell_of_node = grid.index(graph.x_m[node], graph.y_m[node])
    made: list[Hubs] = []
    for number in range(rounds + 1):
        if made:
            router = Router(graph, _joined(made, node, attraction), detour)
            sample = take_trips(trips, random.permutation(len(trips))[: BALANCE.sample_trips])
            lines, vias, _ = _routes(router, sample, random)
            detour = _detour(lines, vias, sample)
            change = _crowding(pool(_route_shares(lines, grid), side), target)
            crowding = np.clip(crowding * change, *BALANCE.factor_bounds)
        factor = interpolate(crowding, side, estimates.passage.shape)
        attraction = mass / factor.ravel()[cell_of_node] ** BALANCE.hub_power
        some_hubs = slice(number % rounds, None, rounds)
        made.append(_hubs_with_trees(graph.reweighted(grid, factor), node[some_hubs], mass[some_hubs], random))
    return Router(graph, _joined(made[1:], node, attraction), detour)


def _joined(parts: list[Hubs], node: NDArray[np.int64], attraction: NDArray[np.float64]) -> Hubs:
    """All hubs, with the attraction of their nodes as mass; `node` is sorted."""
    hubs = reduce(Hubs.followed_by, parts)
    return replace(hubs, mass=attraction[np.searchsorted(node, hubs.node)])


def _hub_nodes(
    graph: RouteGraph, grid: Grid, passage: Field, ends: Field
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Hubs: the node nearest to the busiest cell of each of 256 regions of equal mass, and the region's passage."""
    mass = passage / passage.sum() + ends / ends.sum()
    depth = min(ROUTES.hub_depth, max(1, int(np.log2(max(2, min(grid.cells, graph.nodes) // 4)))))
    region = label_regions(grid, cut_regions(mass, depth)).ravel()
    busiest = np.zeros(2**depth)
    np.maximum.at(busiest, region, mass.ravel())
    found = np.flatnonzero(mass.ravel() == busiest[region])
    cell = found[np.unique(region[found], return_index=True)[1]]
    x, y = (cell % grid.columns + 0.5) * grid.cell_m, (cell // grid.columns + 0.5) * grid.cell_m
    node, member = np.unique(graph.nearest(x, y), return_inverse=True)
    share = np.bincount(region, passage.ravel(), minlength=2**depth)[region[cell]]
    return node, np.asarray(np.bincount(member, share), np.float64) + 1e-12


def _hubs_with_trees(
    graph: RouteGraph, node: NDArray[np.int64], mass: NDArray[np.float64], random: np.random.Generator
) -> Hubs:
    """Hubs with trees of cheapest paths; street costs get random factors, because drivers choose differently."""
    street = streets_of(graph)
    factor = np.exp(ROUTES.cost_spread * random.standard_normal(street.max(initial=0) + 1))[street]
    varied = replace(graph, cost=graph.cost * factor)
    inward = None if graph.blocks is not None else trees_to(varied, node)
    return Hubs(node, graph.x_m[node], graph.y_m[node], mass, trees_from(varied, node), inward)


def _crowding(realised: Field, target: Field) -> Field:
    """√(realised / target) of each block, times realised / target of the district around it.

    Cheapest paths concentrate in the centre as a whole, which single blocks hardly show: without districts, routes were
    3 to 6 % less spread out than the target.
    """
    of_districts = _ratio(pool(realised, BALANCE.district_blocks), pool(target, BALANCE.district_blocks))
    around = interpolate(of_districts, BALANCE.district_blocks, realised.shape)
    return _ratio(realised, target) ** BALANCE.power * around


def _ratio(realised: Field, target: Field) -> Field:
    """realised / target, with a constant added to both so that empty blocks have a finite ratio."""
    soft = BALANCE.soft * target.mean()
    result: Field = (realised + soft) / (target + soft)
    return result


def route_trips(estimates: Estimates, router: Router, trips: Trips, random: np.random.Generator) -> Polylines:
    """A polyline for each trip; where it follows blocks of the grid, it passes a random place inside each."""
    lines, _, node = _routes(router, trips, random)
    attraction = estimates.passage**BALANCE.vertex_power
    varied = spread_in_blocks(lines, node, router.graph, estimates.grid, attraction, random)
    return with_short_steps(varied, BALANCE.step_cells * estimates.grid.cell_m)


def _routes(
    router: Router, trips: Trips, random: np.random.Generator
) -> tuple[Polylines, NDArray[np.int64], NDArray[np.int64]]:
    """The route of each trip, its via (−1 for none), and the node at each vertex."""
    vias = choose_vias(trips.start, trips.end, trips.length_m, router.hubs, router.detour, random)
    lines, node = route(router.graph, router.hubs, trips.start, trips.end, vias)
    return lines, vias, node


def _route_shares(lines: Polylines, grid: Grid) -> Field:
    """Share of the route length in each cell; every trip has the same weight."""
    count = BALANCE.points_per_route
    fractions = np.tile((np.arange(count) + 0.5) / count, len(lines))
    spots = place(lines, steps(lines), np.arange(len(lines) + 1) * count, fractions)
    cells = np.bincount(grid.index(spots.x_m, spots.y_m), minlength=grid.cells).reshape(grid.rows, grid.columns)
    result: Field = cells / cells.sum()
    return result


def _detour(lines: Polylines, vias: NDArray[np.int64], trips: Trips) -> float:
    """Ratio of a cheapest path to the straight line: the median of trips without a via."""
    straight = np.hypot(trips.start[0] - trips.end[0], trips.start[1] - trips.end[1])
    direct = (vias < 0) & (straight > BALANCE.detour_min_m)
    if direct.sum() < BALANCE.detour_min_trips:
        return BALANCE.usual_detour
    return float(np.clip(np.median(lengths(lines)[direct] / straight[direct]), *BALANCE.detour_bounds))


def spread_in_blocks(
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

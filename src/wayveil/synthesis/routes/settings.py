"""Settings of the stage that finds routes, on a grid and on road maps.

The values were set by hand. Fields that were tuned on the trial data say so (research/log.md); for the others, no
comparison with other values is recorded.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class GraphSettings:
    """Travel costs, and the graph of grid blocks."""

    density_power: float = 0.5
    """The cost per metre is density^−½: people travel where the density of points is high."""
    max_cost: float = 30.0
    """Maximum cost per metre, relative to the cost at the mean density of drawn points."""
    background: float = 0.25
    """Share of the mean density that is added everywhere, so that empty places have a finite cost."""
    max_nodes: int = 12_000
    """Approximate maximum number of nodes of a grid graph; limits the time that cheapest paths take."""


@dataclass(frozen=True)
class RouteSettings:
    """Cheapest paths between ends, with detours through hubs."""

    hub_depth: int = 8
    """Depth of the cuts into 2^8 = 256 regions of equal mass, each with a hub."""
    rounds: int = 4
    """Rounds of balancing. Each has its own part of the hubs and its own costs, so that trips between the same places
    take several routes."""
    cost_spread: float = 0.2
    """Standard deviation of the logarithm of the random factors on costs; research/log.md reports trials of such
    factors."""
    turn_m: float = 200.0
    """Cost of a right angle on a map, in metres at the median cost: about twenty seconds in a car. Chosen on the trial
    data, where values from 100 to 400 were about as good; on two simulated cities, so was 0."""
    directions: int = 8
    """Number of directions, in half a turn, that are distinguished when edges are grouped into streets."""
    street_m: tuple[float, float] = (1_500.0, 150.0)
    """Length and width in metres of a group of edges with the same random factor."""
    hub_nearness: float = 1.5
    """Weight of the distance from the start to its hub, relative to that from the hub to the end: above 1, so that of
    two hubs on the way the one nearer to the start is chosen."""
    node_m: float = 500.0
    """A path begins and ends at nodes, so it may pass the trip's start only after a first piece in the wrong direction,
    or pass the trip's end before its last node. Such pieces are cut off within this many metres of the path's ends: a
    little more than the distance between nodes."""
    around_hub: float = 3.0
    """The same limit for the first piece, which may lead to a hub and back, as a multiple of the distance from the
    start to the hub; the larger limit applies."""
    beside_m: float = 100.0
    """Distance in metres within which a path counts as passing a place: about a block."""
    detour_from: float = 1.12
    """Ratio of the drawn length to that of a cheapest path above which the route gets a via."""
    detour_from_m: float = 100.0
    """Metres added to that threshold."""
    length_spread: float = 0.04
    """Standard deviation of the length of a route through its via, relative to the drawn length."""
    length_spread_m: float = 50.0
    """Metres added to that standard deviation."""
    hub_block: int = 1 << 9
    """Positions whose distances to all hubs are computed at once, so that they fit into the processor's cache."""
    trips_block: int = 1 << 11
    """Trips whose routes are assembled at once, for the same reason."""


@dataclass(frozen=True)
class BalanceSettings:
    """Balancing of travel costs, so that routes reproduce the passage."""

    sample_trips: int = 3_000
    """Trips that are routed in a round to measure the density of routes."""
    block_m: float = 400.0
    """Side in metres of the blocks that are balanced."""
    district_blocks: int = 8
    """Side of a district in blocks. Cheapest paths concentrate in the centre as a whole, which single blocks hardly
    show; a side of 3.2 km improved the relation metric on the trial data."""
    power: float = 0.5
    """Exponent of realised / target density of blocks in each update of the costs. For districts it is 1, because their
    density changes less with their costs: routes cannot avoid them."""
    hub_power: float = 2.0
    """A hub's attraction is its mass divided by the factor on costs to this power: with the exponent ½ above, it
    changes by target / realised density."""
    factor_bounds: tuple[float, float] = (1 / 3, 3.0)
    """Minimum and maximum factor on a cost. With wider bounds, noise in the passage can double the length of routes."""
    soft: float = 0.1
    """Share of the mean target that is added to both densities, so that their ratio is finite in empty blocks."""
    usual_detour: float = 1.25
    """Ratio of a cheapest path's length to the straight line, assumed if there are too few trips to measure it."""
    detour_bounds: tuple[float, float] = (1.02, 1.6)
    """Minimum and maximum of that ratio."""
    detour_min_trips: int = 20
    """Minimum number of trips without a via for their median to be used as the ratio."""
    detour_min_m: float = 1_000.0
    """Minimum displacement in metres of such trips; in short trips the ratio depends on the positions of nodes."""
    points_per_route: int = 24
    """Points on each route at which the density of routes is measured."""
    vertex_power: float = 1.5
    """Exponent of the passage: a route crosses a block in one of its cells, drawn in proportion to passage^1.5."""
    step_cells: float = 2.0
    """Maximum step of a route in cells; the slowness cannot vary within a step."""


@dataclass(frozen=True)
class OffroadSettings:
    """Routes that leave the roads where routes on roads cannot reproduce the estimated density."""

    block_m: float = 800.0
    """Side in metres of the blocks that are compared with the target."""
    rounds: int = 3
    """Updates of the slowness of cells before the remaining difference counts as missing density."""
    usual_share: float = 0.4
    """Share of a block's density that may be missing before any route leaves the roads: the estimate and the routes
    never agree in every cell. Tuned on the trial data."""


@dataclass(frozen=True)
class RoadSettings:
    """Road maps: the prior of the density, and the network that routes are found on."""

    blur_m: float = 15.0
    """Standard deviation in metres of the GPS error of points on a road."""
    end_jitter_m: float = 10.0
    """Standard deviation in metres, on each axis, of the offset of a trip's start or end from its road."""
    parts_per_cell: int = 5
    """Minimum number of parts into which a road is cut per cell width."""
    cover_m: float = 400.0
    """Side in metres of coverage blocks; the map covers a block if it or a neighbour contains a road."""
    max_cover_blocks: int = 12_000
    """Maximum number of such blocks; uncovered ones become nodes of the graph and take time."""
    snap_m: float = 1.0
    """Distance in metres within which vertices are merged."""
    key_m: float = 0.05
    """Metres to which coordinates are rounded before merging; smaller differences are round-off."""
    junction_m: float = 25.0
    """Places joined by pieces of road shorter than this, in metres, are merged into one junction if they lie in the
    same square of twice this side: both sides of a divided road, turning lanes."""
    stub_m: float = 60.0
    """Dead ends shorter than this, in metres, are removed."""
    straight_m: float = 2.0
    """A vertex at most this far, in metres, from the line between its neighbours is removed; the limit in round k is
    1/k of it."""
    simplify_rounds: int = 6
    """Rounds that each remove at most every other vertex: at most 63 of 64 in all."""
    vertex_cells: float = 1.2
    """Maximum step of a road in cells, so that its vertices show which cells it passes."""
    node_cells: float = 4.0
    """Length in cells at which long roads are cut, so that each trip has a node near its ends."""
    join_m: float = 900.0
    """An uncovered block is joined to a road at most this far away in metres; `join_blocks` applies if it is more."""
    join_blocks: float = 2.25
    """The same limit as a multiple of the side of a block."""
    off_road_cost: float = 1.2
    """Ratio of the cost per metre off-road to that on a road with the same density."""
    border_m: float = 200.0
    """Roads that leave the scope at most this far apart, in metres, are connected: they may meet outside."""
    border_cost_m: float = 1_000.0
    """Cost of such a link, as metres of road at zero density."""
    min_island_m: float = 2_000.0
    """An isolated part of the network is kept if its roads have at least this length in metres."""
    cached_maps: int = 24
    """Number of prepared maps that the user's cache keeps."""


GRAPH = GraphSettings()
ROUTES = RouteSettings()
BALANCE = BalanceSettings()
OFFROAD = OffroadSettings()
ROADS = RoadSettings()

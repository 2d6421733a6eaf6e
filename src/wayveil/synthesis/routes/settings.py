"""Settings of the stage that finds routes, on a grid and on road maps.

The values were set by hand. The description of a field mentions if it was chosen on the trial data (research/log.md);
for the others no comparison with other values is recorded.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class GraphSettings:
    """Costs of travel, and the graph of the grid."""

    density_power: float = 0.5
    """The cost per metre is density^−½: people travel where the density of points is high."""
    most_cost: float = 30.0
    """Largest cost per metre, relative to that at the mean density over random points."""
    background: float = 0.25
    """Share of the mean density that is added everywhere, so that empty places have a finite cost."""
    most_nodes: int = 12_000
    """About the largest number of nodes of a grid graph; bounds the time of shortest paths."""


@dataclass(frozen=True)
class RouteSettings:
    """Cheapest paths between ends, with detours through hubs."""

    hub_depth: int = 8
    """Depth of the cuts into 2^8 = 256 regions of equal mass with a hub each. A quarter was faster but rejected."""
    rounds: int = 4
    """Rounds of balancing, each with its part of the hubs and its own costs. Thus trips between the same places take
    several routes."""
    cost_spread: float = 0.2
    """Standard deviation of the logarithm of the random factors on costs (research/log.md)."""
    directions: int = 8
    """Directions that are told apart when edges are grouped to streets, in half a turn."""
    street_m: tuple[float, float] = (1_500.0, 150.0)
    """Length and width in metres of a group of edges with the same random factor."""
    hub_nearness: float = 1.5
    """Weight of the distance from the start to its hub, relative to that from the hub to the end: above 1, so that the
    nearer one of two hubs on the way is taken."""
    nearby_m: float = 1_500.0
    """Distance in metres, at a median cost, within which the ways to a hub are found; hubs are closer than that."""
    node_m: float = 500.0
    """Length in metres of the first and the last part of a path that may lie behind the trip's end: a little more than
    the distance of nodes."""
    around_hub: float = 3.0
    """Length of the first part of a path in which it may pass its start again after its hub, as a ratio to the distance
    of that hub."""
    beside_m: float = 100.0
    """Distance in metres within which a path passes a place: about a block."""
    detour_from: float = 1.12
    """Ratio of the drawn length to that of a cheapest path above which the route passes a hub."""
    detour_from_m: float = 100.0
    """Metres that are added to that threshold."""
    length_spread: float = 0.04
    """Standard deviation of the length with that hub, relative to the drawn length."""
    length_spread_m: float = 50.0
    """Metres that are added to that standard deviation."""
    hub_block: int = 1 << 9
    """Positions whose distances to all hubs are computed at a time; they fit into the processor's cache."""
    trips_block: int = 1 << 11
    """Trips whose routes are assembled at a time, for the same reason."""


@dataclass(frozen=True)
class BalanceSettings:
    """Balancing of costs, so that routes reproduce the passage."""

    sample_trips: int = 3_000
    """Trips that are routed in a round to measure the density of routes."""
    block_m: float = 400.0
    """Side in metres of the blocks that are balanced."""
    district_blocks: int = 8
    """Side of a district in blocks. Cheapest paths concentrate in the centre as a whole, which single blocks do not
    show; 3.2 km improved the relation metric on the trial data."""
    power: float = 0.5
    """Exponent of realised / target density in a step, for blocks and for districts; ½ is half the log ratio."""
    factor_bounds: tuple[float, float] = (1 / 3, 3.0)
    """Smallest and largest factor on a cost. With wider bounds, noise in the passage can send routes twice as far."""
    soft: float = 0.1
    """Share of the mean that is added to both sides of the ratio, so that it is finite in empty blocks."""
    usual_detour: float = 1.25
    """Default ratio of a cheapest path to the straight line, if too few trips show it."""
    detour_bounds: tuple[float, float] = (1.02, 1.6)
    """Smallest and largest ratio that is accepted."""
    detour_trips: int = 20
    """Least number of trips without a detour whose median is used as the ratio."""
    detour_least_m: float = 1_000.0
    """Least displacement in metres of such trips; for short trips the ratio depends on the positions of nodes."""
    way_points: int = 24
    """Points per trip at which the density of routes is measured."""
    vertex_power: float = 1.5
    """Exponent of the passage in the probability that a route passes a cell of a grid block."""
    step_cells: float = 2.0
    """Longest step of a route in cells; the slowness cannot vary within a step."""


@dataclass(frozen=True)
class OffroadSettings:
    """Routes that leave the roads where the roads do not reach the estimated density."""

    block_m: float = 800.0
    """Side in metres of the blocks that are compared with the target."""
    rounds: int = 3
    """Updates of the slowness of cells before the missing density counts as out of reach."""
    usual_share: float = 0.4
    """Share of a block's density that may be out of reach without a change, because a field and routes never agree in
    every cell. Chosen on the trial data."""


@dataclass(frozen=True)
class RoadSettings:
    """Road maps: the prior of the density, and the network that routes are found on."""

    blur_m: float = 15.0
    """Standard deviation in metres of the GPS error of points on a road."""
    end_jitter_m: float = 10.0
    """Standard deviation in metres of an end of a trip around its road."""
    parts_per_cell: int = 5
    """Least number of parts of a road per cell."""
    cover_m: float = 400.0
    """Side in metres of coverage blocks; the map covers a block if it or a neighbour contains a road."""
    most_cover_blocks: int = 12_000
    """Largest number of such blocks; uncovered ones become nodes of the graph and take time."""
    snap_m: float = 1.0
    """Distance in metres within which vertices are merged."""
    key_m: float = 0.05
    """Metres to which coordinates are rounded before merging; smaller differences are round-off."""
    junction_m: float = 25.0
    """Distance in metres within which places are merged to one junction: both sides of a divided road."""
    stub_m: float = 60.0
    """Length in metres up to which dead ends are removed."""
    straight_m: float = 2.0
    """Distance in metres from the line between its neighbours up to which a vertex is removed."""
    simplify_rounds: int = 6
    """Rounds of removing every other such vertex: up to 63 of 64."""
    vertex_cells: float = 1.2
    """Longest step of a road in cells, so that its vertices show which cells it passes."""
    node_cells: float = 4.0
    """Length in cells at which long roads are cut, so that each trip has a node near its ends."""
    join_m: float = 900.0
    """Least distance in metres within which an uncovered block is connected to a road."""
    join_blocks: float = 2.25
    """That distance in sides of a block."""
    off_road_cost: float = 1.2
    """Ratio of the cost per metre off-road to that on a road with the same density."""
    border_m: float = 200.0
    """Distance in metres within which roads that leave the scope are connected; they may meet outside."""
    border_cost_m: float = 1_000.0
    """Cost of such a link, as metres of road at zero density."""
    least_island_m: float = 2_000.0
    """Least length in metres of roads in an isolated part of the network that is kept."""
    cached_maps: int = 24
    """Prepared maps that are kept in the user's cache."""


GRAPH = GraphSettings()
ROUTES = RouteSettings()
BALANCE = BalanceSettings()
OFFROAD = OffroadSettings()
ROADS = RoadSettings()

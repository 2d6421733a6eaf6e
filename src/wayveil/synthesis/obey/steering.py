"""Steering: routes and densities avoid what rules forbid, before any trip is drawn.

Points can be moved out of a closed area one by one, but then trips crowd along its border and jump across it. A route
that goes around the area needs no repair. The same holds for areas to stay within and for drawn one-way streets.

Privacy: free (post-processing; rules are public).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines
from wayveil.core.pyramid import Field
from wayveil.rules.area import Area
from wayveil.rules.counting import violating_trajectories
from wayveil.rules.motion import Motion
from wayveil.rules.rule import Rule
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.obey.settings import STEERING
from wayveil.synthesis.routes.graph import RouteGraph, edge_lines


def binding_rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules that only another route can obey."""
    return tuple(rule for rule in rules if rule.binds_routes())


def crowded_closures(rules: Sequence[Rule], routes: Polylines, departure: NDArray[np.float64]) -> tuple[Rule, ...]:
    """Return the rules whose area too many trips pass at closed hours; routes should avoid it at all times.

    A trip that passes an area at closed hours exchanges its departure with a trip that passes elsewhere at open hours
    (`departures.py`). If there are too few of those, routes go around the area instead.

    Parameters
    ----------
    departure
        The (weekday, hour) shares of all departures.
    """
    middle_s = (np.arange(departure.size) + 0.5) * 3600.0
    crowded = []
    for rule in rules:
        hours = rule.closed_hours()
        if hours is None or rule.closed_area() is None or rule.binds_routes():
            continue
        passing = float((rule.metres_against(routes) > STEERING.passing_m).mean())
        open_share = float(departure.ravel()[hours.depth_s(middle_s, np) <= 0].sum() / departure.sum())
        if passing * (1 - open_share) > STEERING.exchangeable_share * (1 - passing) * open_share:
            crowded.append(rule)
    return tuple(crowded)


def steered_estimates(estimates: Estimates, rules: Sequence[Rule]) -> Estimates:
    """Return the estimates with almost no density in closed places; it moves to open places nearby.

    Flows between regions do not change: trips of a region that is entirely closed keep their ends, and the fit of the
    weights excludes them.

    Parameters
    ----------
    rules
        Rules that routes must obey: `binding_rules` and `crowded_closures`.
    """
    closed = [area for rule in rules if (area := rule.closed_area()) is not None]
    if not closed and all(rule.stay_area() is None for rule in rules):
        return estimates
    open_share = np.ones((estimates.grid.rows, estimates.grid.columns))
    for rule in rules:
        if (area := rule.closed_area()) is not None:
            open_share *= 1 - _share_inside(area, estimates.grid)
        if (area := rule.stay_area()) is not None:
            open_share *= _share_inside(area, estimates.grid)
    open_share = np.maximum(open_share, STEERING.least_density)
    spread = _spread_cells(closed, estimates.grid)
    fields = estimates.occupancy, estimates.passage, estimates.starts, estimates.ends
    return estimates.with_fields(*(_diverted(field, open_share, spread) for field in fields))


def _diverted(field: Field, open_share: Field, spread: float) -> Field:
    """Return the density in open places, increased near closed ones; its sum does not change."""
    from scipy.ndimage import gaussian_filter

    left = field * open_share
    closed, near = (gaussian_filter(part, spread, mode="nearest") for part in (field - left, left))
    more = left * (1 + closed / np.maximum(near, STEERING.least_open_share * (near + closed) + 1e-300))
    return np.asarray(more * (field.sum() / more.sum()))


def _spread_cells(closed: Sequence[Area], grid: Grid) -> float:
    """Return how far density is diverted, in cells: a share of the width of the largest closed area in the scope."""
    import shapely

    box = shapely.box(0, 0, grid.width_m, grid.height_m)
    shapes = [shapely.intersection(area.outline, box) for area in closed]
    sizes = shapely.area(shapely.get_parts(shapes)) if shapes else np.zeros(0)
    spread_m = STEERING.spread_m + STEERING.spread_per_width * np.sqrt(sizes.max(initial=0.0))
    most_m = min(STEERING.widest_spread_m, STEERING.widest_spread_share * max(grid.width_m, grid.height_m))
    return float(min(spread_m, most_m) / grid.cell_m)


def steered_graph(graph: RouteGraph, rules: Sequence[Rule], avoided: Sequence[Rule] = ()) -> RouteGraph:
    """Return the graph with higher costs on edges that rules forbid or make expensive.

    Parameters
    ----------
    avoided
        Rules with hours (`crowded_closures`) that routes obey at all times.
    """
    if not rules:
        return graph
    lines = edge_lines(graph)
    factor = np.ones(len(lines))
    for rule in rules:
        own = rule.cost_factor(lines)
        if np.ndim(own) > 0 or own != 1.0:
            factor *= own
    against = metres_against(lines, (*binding_rules(rules), *avoided))
    factor[against > STEERING.touched_m] *= STEERING.blocked_factor
    return graph if (factor == 1).all() else replace(graph, cost=factor * graph.cost)


def metres_against(lines: Polylines, rules: Sequence[Rule]) -> NDArray[np.float64]:
    """Return how many metres of each line break a rule, summed over the rules."""
    metres = np.zeros(len(lines))
    for rule in rules:
        metres += rule.metres_against(lines)
    return metres


def forbidden_candidates(
    rules: Sequence[Rule], avoided: Sequence[Rule], motion: Motion, routes: Polylines
) -> NDArray[np.bool_] | None:
    """Return which candidates break a rule that only another route can obey; None if there is no such rule.

    Candidates that would obey with other times are not included: without them, long and fast trips would be missing.

    Parameters
    ----------
    motion, routes
        The candidates' points with times, and their routes.
    """
    binding = binding_rules(rules)
    if not binding and not avoided:
        return None
    broken = violating_trajectories(binding, motion)
    points = Polylines(motion.offsets, motion.x_m, motion.y_m)
    for rule in avoided:
        broken[motion.owner[rule.timed_points(points)]] = True
    return broken | (metres_against(routes, (*binding, *avoided)) > STEERING.forbidden_m)


def _share_inside(area: Area, grid: Grid) -> Field:
    """Return about how much of each cell lies in the area, from a few positions in each cell."""
    side = STEERING.cell_samples
    share = np.zeros((grid.rows, grid.columns))
    for down in range(side):
        y = (np.arange(grid.rows) + (down + 0.5) / side) * grid.cell_m
        for right in range(side):
            x = (np.arange(grid.columns) + (right + 0.5) / side) * grid.cell_m
            share += area.inside(np.tile(x, grid.rows), np.repeat(y, grid.columns)).reshape(share.shape)
    return share / side**2

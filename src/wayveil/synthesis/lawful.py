"""lawful: what rules say about places at most hours is told to the fields and the routes before anything is drawn.

Points can be moved out of a closed area one by one, but then trips crowd along its border and leap across it. A route
that goes around it needs no cure. The same holds for areas to stay within and for streets that are drawn as one-way.

Privacy: free (post-processing; rules are public).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.pyramid import Field
from wayveil.rules import Closed, Custom, OneWay, StayWithin
from wayveil.rules.area import Area
from wayveil.rules.hours import ALWAYS
from wayveil.rules.motion import Motion
from wayveil.rules.rule import Rule
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.graph import RouteGraph, edge_lines
from wayveil.synthesis.polylines import Polylines, lengths, place, runs, step_lengths, steps, take

_DEAR = 1_000.0
"""Times what an edge costs otherwise: still a way out for whoever starts in the middle of a closed area."""
_LEFT = 1e-6
"""Of a field where nobody may be: no district becomes empty."""
_DIVERTED_M, _FURTHEST_DIVERTED_M = 100.0, 2_000.0
_LEAST_OPEN = 0.02
"""Of what is around, so much is open at least: what is deep inside stays out of reach."""
_NEARLY_ALWAYS = 0.8
_PASSED_M = 60.0
_TRADED = 0.7
"""Of the trips that pass elsewhere at open hours, how many may be asked to trade."""
_TOUCHED_M = 1.0
_STEP_M = 20.0
_ROUTE_VERTICES = 1 << 14
_SIDE = 3


def binds_routes(rule: Rule) -> bool:
    """Whether only another route would cure what breaks the rule.

    Speeds, durations and closed hours are cured by other times, and a wrong side of a street of the map, whose
    direction the routes know, by a few metres. The box of the scope no route leaves. What is closed nearly always is
    driven around at all times: few departures are left to trade (`departures.py`).
    """
    if isinstance(rule, OneWay):
        return not rule.of_map
    if isinstance(rule, StayWithin):
        return not rule.of_scope
    return isinstance(rule, Custom) or (isinstance(rule, Closed) and rule.hours.share_of_week >= _NEARLY_ALWAYS)


def crowded_closures(rules: Sequence[Rule], routes: Polylines, departure: NDArray[np.float64]) -> tuple[Closed, ...]:
    """Areas with hours that too many trips pass while they are closed, as closed at all times.

    `departure` are the (weekday, hour) shares of all departures. Who passes such an area at closed hours trades with
    somebody who passes elsewhere at open ones (`departures.py`); where those are too few, trips go around it instead.
    """
    timed = [rule for rule in rules if isinstance(rule, Closed) and not binds_routes(rule)]
    middle_s = (np.arange(departure.size) + 0.5) * 3600.0
    crowded = []
    for rule in timed:
        passing = float((metres_against(routes, [rule]) > _PASSED_M).mean())
        open_share = float(departure.ravel()[rule.hours.depth_s(middle_s, np) <= 0].sum() / departure.sum())
        if passing * (1 - open_share) > _TRADED * (1 - passing) * open_share:
            crowded.append(replace(rule, hours=ALWAYS))
    return tuple(crowded)


def lawful_estimates(estimates: Estimates, rules: Sequence[Rule]) -> Estimates:
    """The estimates with next to nothing where nobody may ever be: who was there is close by now.

    Flows between regions stay: where a whole region is closed its trips keep their ends, and the fit has to do without.
    """
    areas = [rule for rule in rules if isinstance(rule, Closed | StayWithin) and binds_routes(rule)]
    if not areas:
        return estimates
    open_share = np.ones((estimates.grid.rows, estimates.grid.columns))
    for rule in areas:
        inside = _share_inside(rule.area, estimates.grid)
        open_share *= inside if isinstance(rule, StayWithin) else 1 - inside
    open_share = np.maximum(open_share, _LEFT)
    reach = _reach(areas, estimates.grid)
    occupancy, starts, ends = (
        _diverted(field, open_share, reach) for field in (estimates.occupancy, estimates.starts, estimates.ends)
    )
    return estimates.with_fields(occupancy, starts, ends)


def _diverted(field: Field, open_share: Field, reach: float) -> Field:
    """What is left of the field in the open, and more of it the closer it is to what is not."""
    from scipy.ndimage import gaussian_filter

    left = field * open_share
    shut, near = (gaussian_filter(part, reach, mode="nearest") for part in (field - left, left))
    more = left * (1 + shut / np.maximum(near, _LEAST_OPEN * (near + shut) + 1e-300))
    return np.asarray(more * (field.sum() / more.sum()))


def _reach(rules: Sequence[Closed | StayWithin], grid: Grid) -> float:
    """How far traffic is diverted, in cells: by a part of the size of the largest closed area inside the scope."""
    import shapely

    box = shapely.box(0, 0, grid.width_m, grid.height_m)
    shut = [shapely.intersection(rule.area.outline, box) for rule in rules if isinstance(rule, Closed)]
    sizes = shapely.area(shapely.get_parts(shut)) if shut else np.zeros(0)
    reach_m = _DIVERTED_M + np.sqrt(sizes.max(initial=0.0)) / 4
    return float(min(reach_m, _FURTHEST_DIVERTED_M, 0.1 * max(grid.width_m, grid.height_m)) / grid.cell_m)


def lawful_graph(graph: RouteGraph, rules: Sequence[Rule]) -> RouteGraph:
    """The graph with edges that would break a rule made so dear that routes go another way where there is one."""
    binding = [rule for rule in rules if binds_routes(rule) and not isinstance(rule, Custom)]
    if not binding:
        return graph
    wrong = metres_against(edge_lines(graph), binding) > _TOUCHED_M
    return replace(graph, cost=np.where(wrong, _DEAR * graph.cost, graph.cost))


def metres_against(lines: Polylines, rules: Sequence[Rule]) -> NDArray[np.float64]:
    """How far each polyline runs where it may not, or in a direction in which it may not."""
    metres = np.zeros(len(lines))
    for rule in rules:
        if isinstance(rule, OneWay):
            metres += _against_direction(lines, rule)
        elif isinstance(rule, Closed | StayWithin):
            metres += _in_forbidden_area(lines, rule)
    return metres


def _in_forbidden_area(lines: Polylines, rule: Closed | StayWithin) -> NDArray[np.float64]:
    import shapely

    # Of a shape with many corners the outline is a simpler one, metres larger or smaller; overlays cost by the corner.
    shape = rule.area.outline
    shapely.prepare(shape)
    stay = isinstance(rule, StayWithin)
    metres = np.zeros(len(lines))
    near = np.arange(len(lines)) if stay else _near(lines, shape.bounds)
    if len(near) == 0:
        return metres
    part = take(lines, near)
    owner = np.repeat(np.arange(len(near)), np.diff(part.offsets))
    strings = shapely.linestrings(np.c_[part.x_m, part.y_m], indices=owner)
    whole = shapely.disjoint(shape, strings) if stay else shapely.contains_properly(shape, strings)
    none = shapely.covers(shape, strings) if stay else shapely.disjoint(shape, strings)
    metres[near[whole]] = lengths(part)[whole]
    some = ~whole & ~none
    wrong = (shapely.difference if stay else shapely.intersection)(strings[some], shape)
    metres[near[some]] = shapely.length(wrong)
    return metres


def _against_direction(lines: Polylines, rule: OneWay) -> NDArray[np.float64]:
    """Metres of the steps that the rule counts, on a route that is cut into short ones."""
    metres = np.zeros(len(lines))
    ax, ay, bx, by = rule.segments.ends.T
    west, south = (float(np.minimum(*both).min()) - rule.width_m for both in ((ax, bx), (ay, by)))
    east, north = (float(np.maximum(*both).max()) + rule.width_m for both in ((ax, bx), (ay, by)))
    near = _near(lines, (west, south, east, north))
    if len(near) == 0:
        return metres
    chosen = take(lines, near)
    for first, last in runs(chosen.offsets, _ROUTE_VERTICES):  # some at a time: long routes have many short steps
        part = _evenly(take(chosen, np.arange(first, last)), _STEP_M)
        unused = np.zeros(len(part.x_m))
        joins = np.ones(max(len(part.x_m) - 1, 0), bool)
        joins[part.offsets[1:-1] - 1] = False
        wrong = rule.violations(Motion(part.x_m, part.y_m, unused, unused, joins, part.offsets, unused))
        step_m = np.where(wrong, step_lengths(part.offsets, part.x_m, part.y_m), 0.0)
        metres[near[first:last]] = np.add.reduceat(step_m, part.offsets[:-1])
    return metres


def _evenly(lines: Polylines, step_m: float) -> Polylines:
    """The same polylines in about equal steps; shorter ones, as many maps have them, would have no heading."""
    each = np.ceil(lengths(lines) / step_m).astype(np.int64) + 1
    offsets = np.r_[0, np.cumsum(np.maximum(each, 2))]
    rank = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    return place(lines, steps(lines), offsets, rank / np.repeat(np.diff(offsets) - 1, np.diff(offsets)))


def _near(lines: Polylines, box: tuple[float, ...]) -> NDArray[np.int64]:
    """Polylines whose bounds meet the box (west, south, east, north)."""
    first = lines.offsets[:-1]
    if len(first) == 0:
        return first
    west, south, east, north = box
    apart = (np.maximum.reduceat(lines.x_m, first) < west) | (np.minimum.reduceat(lines.x_m, first) > east)
    apart |= (np.maximum.reduceat(lines.y_m, first) < south) | (np.minimum.reduceat(lines.y_m, first) > north)
    return np.flatnonzero(~apart)


def _share_inside(area: Area, grid: Grid) -> Field:
    """About how much of each cell lies in the area: of so many spots a side."""
    share = np.zeros((grid.rows, grid.columns))
    for down in range(_SIDE):
        y = (np.arange(grid.rows) + (down + 0.5) / _SIDE) * grid.cell_m
        for right in range(_SIDE):
            x = (np.arange(grid.columns) + (right + 0.5) / _SIDE) * grid.cell_m
            share += area.inside(np.tile(x, grid.rows), np.repeat(y, grid.columns)).reshape(share.shape)
    return share / _SIDE**2

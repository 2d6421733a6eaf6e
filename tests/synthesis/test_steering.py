"""Steering: routes go around closed areas, along one-way streets, and stay inside areas to stay within."""

from dataclasses import replace

import numpy as np
import pytest
import shapely
from recordings import every

from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.rules import (
    Closed,
    MaxDuration,
    OneWay,
    StayWithin,
    area_in_metres,
    count,
    hours,
    motion_of,
    with_scope_bounds,
)
from wayveil.rules.segments import segments_of_lines
from wayveil.simulate import simulate_trajectories
from wayveil.synthesis.obey import settings, steering
from wayveil.synthesis.obey.steering import (
    binding_rules,
    crowded_closures,
    metres_against,
    steered_estimates,
    steered_graph,
)
from wayveil.synthesis.routes.graph import RouteGraph, edge_lines, grid_graph
from wayveil.synthesis.routes.trees import trees_from
from wayveil.workflow.synthesize import synthesize

pytestmark = pytest.mark.usefixtures("estimated_once")
GRID = Grid(100.0, 40, 30, 4000.0, 3000.0)
MIDDLE = shapely.box(1500, 900, 2500, 2100)


def closed(shape=MIDDLE, **options):
    return Closed(area_in_metres(shape), **options)


def line(*xy):
    x, y = np.array(xy, float).T
    return Polylines(np.array([0, len(x)]), x, y)


def eastward_street(width_m=10.0):
    """A street along y = 1500 that is driven eastwards."""
    segments = segments_of_lines([np.array([[0.0, 1500.0], [4000.0, 1500.0]])], [0], width_m + 5)
    return OneWay(segments, np.ones(len(segments.ends), bool), width_m)


def test_rules_that_need_another_route_are_recognized():
    binding = (closed(), StayWithin(area_in_metres(MIDDLE)), eastward_street(), closed(hours=hours("04:00", "00:00")))
    others = (
        closed(hours=hours("07:00", "09:00")), closed(hours=hours(days="mon-fri")), MaxDuration(60.0),
        replace(eastward_street(), of_map=True),  # routes know the directions of the map's own streets
    )  # fmt: skip
    assert binding_rules((*binding, *others)) == binding


def test_rules_that_need_no_other_route_change_no_estimate(small_estimates):
    rules = with_scope_bounds([closed(hours=hours("07:00", "09:00")), MaxDuration(600.0)], small_estimates.scope)
    assert binding_rules(rules) == () and len(rules) == 3
    assert steered_estimates(small_estimates, binding_rules(rules)) is small_estimates


def test_distances_inside_a_forbidden_area():
    through, beside = line((0, 1500), (4000, 1500)), line((0, 100), (4000, 100))
    assert metres_against(through, [closed()]) == pytest.approx(1000)
    assert metres_against(beside, [closed()]) == 0
    assert metres_against(through, [StayWithin(area_in_metres(MIDDLE))]) == pytest.approx(3000)
    assert metres_against(line((1600, 1000), (2400, 2000)), [StayWithin(area_in_metres(MIDDLE))]) == 0


def test_metres_against_a_direction():
    west, east = line((3000, 1502), (1000, 1498)), line((1000, 1498), (3000, 1502))
    assert metres_against(west, [eastward_street()])[0] == pytest.approx(2000, rel=0.02)
    assert metres_against(east, [eastward_street()]) == 0
    crossing, aside = line((2000, 1000), (2000, 2000)), line((3000, 1540), (1000, 1540))
    assert metres_against(crossing, [eastward_street()]) == 0 and metres_against(aside, [eastward_street()]) == 0
    # A map's line may have a vertex every few metres, too short for a heading each.
    x = np.arange(3000.0, 1000.0, -4.0)
    fine = Polylines(np.array([0, len(x)]), x, np.full(len(x), 1500.0))
    assert metres_against(fine, [eastward_street()])[0] == pytest.approx(2000, rel=0.02)


def test_edges_have_the_shape_of_their_roads():
    graph = RouteGraph(
        np.array([0.0, 10, 20]), np.array([0.0, 0, 5]), np.array([0, 1, 2]), np.array([1, 2, 0]), np.ones(3),
        np.array([0, 2, 2, 3]), np.array([3.0, 6, 15]), np.array([1.0, 1, 9]),
    )  # fmt: skip
    lines = edge_lines(graph)
    assert lines.offsets.tolist() == [0, 4, 6, 9]
    assert lines.x_m.tolist() == [0, 3, 6, 10, 10, 20, 20, 15, 0] and lines.y_m.tolist() == [0, 1, 1, 0, 0, 5, 5, 9, 0]


def cheapest_line(graph, start, end):
    _, nodes = trees_from(graph, np.array([start])).paths(np.array([0]), np.array([end]))
    return line(*zip(graph.x_m[nodes], graph.y_m[nodes], strict=True))


def test_routes_go_around_a_closed_area_and_into_it_only_if_they_must():
    graph = grid_graph(GRID, np.ones((30, 40)))
    steered = steered_graph(graph, [closed()])
    west, east, inside = (int(graph.nearest(np.array([x]), np.array([1500.0]))[0]) for x in (100.0, 3900.0, 2000.0))
    assert metres_against(cheapest_line(graph, west, east), [closed()]) > 500
    assert metres_against(cheapest_line(steered, west, east), [closed()]) == 0
    assert 0 < metres_against(cheapest_line(steered, west, inside), [closed()]) < 800
    assert steered_graph(graph, [closed(hours=hours("07:00", "09:00"))]) is graph


def test_forbidden_cells_have_a_target_of_zero(small_estimates):
    scope, grid = small_estimates.scope, small_estimates.grid
    shape = shapely.box(0.3 * scope.width_m, 0.3 * scope.height_m, 0.6 * scope.width_m, 0.6 * scope.height_m)
    x, y = (np.arange(grid.columns) + 0.5) * grid.cell_m, (np.arange(grid.rows) + 0.5) * grid.cell_m
    core = shapely.contains_xy(shape.buffer(-2 * grid.cell_m), *np.meshgrid(x, y))
    far = ~shapely.contains_xy(shape.buffer(2 * grid.cell_m), *np.meshgrid(x, y))
    near = shapely.contains_xy(shape.buffer(4 * grid.cell_m), *np.meshgrid(x, y)) & far
    corner = shapely.contains_xy(shapely.box(0, 0, 500, 500), *np.meshgrid(x, y))
    shut = steered_estimates(small_estimates, [closed(shape)])
    kept = steered_estimates(small_estimates, [StayWithin(area_in_metres(shape))])
    for name in ("occupancy", "starts", "ends"):
        before, after, within = (getattr(one, name) for one in (small_estimates, shut, kept))
        assert after.sum() == pytest.approx(before.sum()) and within.sum() == pytest.approx(before.sum())
        assert after[core].sum() < 1e-4 * before[core].sum() and within[far].sum() < 1e-3 * before[far].sum()
        more = after / before  # the closer to what is closed, the more
        assert more[far].min() > 0.9 and more[near].mean() > 1.2 * more[corner].mean()
    assert steered_estimates(small_estimates, [eastward_street()]) is small_estimates


@pytest.fixture(scope="module")
def often_seen(small_city):
    """A release of trips with a point every ten seconds."""
    data = every(10, simulate_trajectories(small_city, 600, seed=3))
    return measure(data, small_city.scope, epsilon=4, unit="trajectory", noise=SeededNoise(5))


def test_points_neither_crowd_around_a_closed_area_nor_jump_across(often_seen, monkeypatch):
    """Points that are only moved out of the area crowd along its border; routes around the area do not."""
    scope = often_seen.scope
    rule = closed(shapely.Point(scope.width_m / 2, scope.height_m / 2).buffer(400))

    def beside_and_across(rules):
        made = synthesize(often_seen, n=400, seed=2, estimator="bayes", rules=rules).trajectories
        x, y = scope.to_metres(made.lon, made.lat)
        inside, around = (shapely.contains_xy(rule.area.shape.buffer(far), x, y).sum() for far in (0, 15))
        return around - inside, int((metres_against(Polylines(made.offsets, x, y), [rule]) > 50).sum())

    _, across_before = beside_and_across(())
    beside, across = beside_and_across((rule,))
    assert across_before > 100 > 10 > across
    monkeypatch.setattr("wayveil.synthesis.model.steered_estimates", lambda estimates, rules: estimates)
    monkeypatch.setattr("wayveil.synthesis.model.steered_graph", lambda graph, rules, avoided: graph)
    pushed_aside, _ = beside_and_across((rule,))
    assert 1.5 * beside < pushed_aside


def test_candidates_whose_route_cuts_through_are_barred(often_seen, monkeypatch):
    """This holds even if routes were found without the rule and none of their points lies inside."""
    scope = often_seen.scope
    rule = closed(shapely.box(0.2 * scope.width_m, 0.49 * scope.height_m, 0.8 * scope.width_m, 0.51 * scope.height_m))
    monkeypatch.setattr("wayveil.synthesis.model.steered_graph", lambda graph, rules, avoided: graph)

    def across():
        made = synthesize(often_seen, n=300, seed=2, estimator="bayes", rules=(rule,)).trajectories
        return int((metres_against(Polylines(made.offsets, *scope.to_metres(made.lon, made.lat)), [rule]) > 30).sum())

    barred = across()
    monkeypatch.setattr(steering, "STEERING", replace(settings.STEERING, forbidden_m=np.inf))
    assert 2 * barred < across()


def test_areas_with_many_corners_or_beyond_the_scope(small_estimates):
    scope = small_estimates.scope
    angle = np.linspace(0, 2 * np.pi, 20_001)[:-1]
    ragged = np.where(np.arange(20_000) % 2, 1000.0, 990.0)
    jagged = shapely.Polygon(np.c_[2000 + ragged * np.cos(angle), 2000 + ragged * np.sin(angle)])
    frame = shapely.box(-1e5, -1e5, 1e5, 1e5).difference(shapely.box(0, 0, scope.width_m, scope.height_m))
    edges = edge_lines(grid_graph(small_estimates.grid, small_estimates.occupancy))
    many = Polylines(edges.offsets, edges.x_m, edges.y_m)
    inside = metres_against(many, [closed(jagged)])
    plain = metres_against(many, [closed(shapely.Point(2000, 2000).buffer(1000))])
    assert inside.sum() == pytest.approx(plain.sum(), rel=0.1)
    same = steered_estimates(small_estimates, [closed(frame)])
    np.testing.assert_allclose(same.occupancy[4:-4, 4:-4], small_estimates.occupancy[4:-4, 4:-4], rtol=0.1)


@pytest.mark.parametrize("radius_m", [120, 400])
def test_an_area_closed_on_working_days_moves_no_trip_to_the_weekend(often_seen, radius_m):
    """Trips through a small area exchange departures with others; trips go around a large area."""
    scope = often_seen.scope
    rule = closed(shapely.Point(scope.width_m / 2, scope.height_m / 2).buffer(radius_m), hours=hours(days="mon-fri"))

    def made_with(rules):
        found = synthesize(often_seen, n=400, seed=2, estimator="bayes", rules=rules)
        assert found.diagnostics["avoided"] == (["closed"] if rules and radius_m > 200 else [])
        made, motion = found.trajectories, motion_of(found.trajectories, scope)
        assert not any(broken["points"] for broken in count(rules, motion).values())
        inside = rule.area.inside(motion.x_m, motion.y_m)
        return (motion.week_s[made.offsets[:-1]] >= 5 * 86_400).mean(), inside.mean()

    (weekend, inside), (usual_weekend, usually_inside) = made_with((rule,)), made_with(())
    assert abs(weekend - usual_weekend) < 0.05
    assert (inside > 0.6 * usually_inside) if radius_m < 200 else (inside < 0.2 * usually_inside)


def test_an_area_is_avoided_if_too_few_open_departures_can_be_exchanged():
    through, beside = line((0, 1500), (4000, 1500)), line((0, 100), (4000, 100))
    even = np.full((7, 24), 1 / 168)

    def crowded(passing, hour_rule, departure=even):
        lines = [through] * passing + [beside] * (10 - passing)
        x, y = (np.concatenate([getattr(one, name) for one in lines]) for name in ("x_m", "y_m"))
        return crowded_closures([hour_rule], Polylines(np.arange(0, 21, 2), x, y), departure)

    by_day = closed(hours=hours("06:00", "18:00"))
    assert crowded(3, by_day) == ()
    (avoided,) = crowded(5, by_day)
    assert avoided is by_day
    at_night = np.zeros((7, 24))
    at_night[:, 20:] = 1 / 28
    assert crowded(5, by_day, at_night) == () and len(crowded(1, by_day, np.roll(at_night, 12, axis=1))) == 1
    assert crowded(10, closed()) == (), "known to routes anyway"


def test_an_area_that_is_seldom_closed_is_not_avoided_however_many_pass_it():
    through, beside = line((0, 1500), (4000, 1500)), line((0, 100), (4000, 100))
    x, y = (np.concatenate([getattr(one, name) for one in [through] * 8 + [beside] * 2]) for name in ("x_m", "y_m"))
    lines, even = Polylines(np.arange(0, 21, 2), x, y), np.full((7, 24), 1 / 168)
    assert crowded_closures([closed(hours=hours("23:00", "05:00", "sun"))], lines, even) == ()
    assert len(crowded_closures([closed(hours=hours("06:00", "18:00"))], lines, even)) == 1

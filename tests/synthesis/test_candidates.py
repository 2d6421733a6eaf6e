"""Draws, graphs, routes, trips and points on routes, each on something small enough to see the right answer."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes import changed
from wayveil.core.divergence import jsd
from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, lengths, place, steps, take
from wayveil.core.pyramid import pool
from wayveil.questions.displacement import Displacement
from wayveil.questions.displacement_length import DisplacementLength
from wayveil.questions.duration import Duration
from wayveil.questions.length import Length
from wayveil.questions.length_duration import LengthDuration
from wayveil.questions.mean_speed import MeanSpeed
from wayveil.questions.median_interval import MedianInterval
from wayveil.synthesis.place.points import (
    course_of,
    draw_fixes,
    fit_slowness,
    histogram,
    slowness_weight,
    take_course,
)
from wayveil.synthesis.place.tracks import Pool, assigned_ends, fixes_of, refitted_slowness, timed_tracks
from wayveil.synthesis.routes.graph import (
    RouteGraph,
    block_centres,
    block_side,
    grid_graph,
    relative_density,
    streets_of,
    travel_cost,
)
from wayveil.synthesis.routes.prior import Prior
from wayveil.synthesis.routes.router import (
    _crowding,
    _hub_nodes,
    _hubs_with_trees,
    balance_routes,
    route_trips,
    spread_in_blocks,
)
from wayveil.synthesis.routes.routes import Hubs, choose_vias, route
from wayveil.synthesis.routes.trees import NodeTrees, trees_from
from wayveil.synthesis.trips.candidates import Trips, draw_trips, take_trips, timed_again
from wayveil.synthesis.trips.draw import drawn_columns, shuffled, stratified, within_bins, within_groups

few = settings(max_examples=25, deadline=None)
GRID = Grid(100.0, 40, 30, 4000.0, 3000.0)


def rng(seed=0):
    return np.random.default_rng(seed)


def gap(p, q):
    """Total variation distance."""
    return 0.5 * np.abs(p / p.sum() - q / q.sum()).sum()


# draw ----------------------------------------------------------------------------------------------------------------


@few
@given(st.lists(st.floats(0, 10), min_size=1, max_size=20), st.integers(0, 300), st.integers(0, 99))
def test_stratified_draws_are_within_two_of_what_is_expected(weights, count, seed):
    weights = np.array(weights)
    drawn = stratified(weights, count, rng(seed))
    assert len(drawn) == count and (np.diff(drawn) >= 0).all()
    even = weights if weights.sum() > 0 else np.ones(len(weights))
    found = np.bincount(drawn, minlength=len(weights))
    assert (np.abs(found - count * even / even.sum()) < 2.001).all()
    assert (np.sort(shuffled(weights, count, rng(seed))) == drawn).all()


def test_within_groups_stays_inside_and_follows_the_weights():
    group_of = np.array([2, 0, 1, 0, 2, 1])
    weights = np.array([1.0, 3.0, 1.0, 1.0, 0.0, 1.0])
    wanted = np.repeat([0, 1, 2], [400, 100, 50])[rng(1).permutation(550)]
    found = within_groups(weights, group_of, wanted, 3, rng(2))
    assert (group_of[found] == wanted).all()
    assert np.bincount(found, minlength=6) == pytest.approx([50, 300, 50, 100, 0, 50], abs=2)


def test_rows_of_draws_from_its_own_row():
    table = np.array([[0.2, 0.0, 0.6], [0.0, 5.0, 0.0]])
    row = np.repeat([0, 1], 8000)
    found = drawn_columns(table, row, rng(3))
    assert (found[8000:] == 1).all()
    assert np.bincount(found[:8000], minlength=3) / 8000 == pytest.approx([0.25, 0, 0.75], abs=0.02)


def test_within_bins_gives_values_of_the_wanted_coarse_bin_or_of_the_nearest():
    edges = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    fine, coarse_of_fine = np.array([0.1, 0.3, 0.5, 0.1]), np.array([0, 0, 2, 2])
    value = within_bins(fine, edges, coarse_of_fine, np.repeat([0, 2], 1000), rng(4))
    low, high = value[:1000], value[1000:]
    assert (low >= 0).all() and (low < 2).all() and (high >= 2).all() and (high < 8).all()
    assert (low < 1).mean() == pytest.approx(0.25, abs=0.01) and (high < 4).mean() == pytest.approx(5 / 6, abs=0.01)
    lost = within_bins(fine, edges, coarse_of_fine, np.array([1, 1, 1]), rng(4))
    assert ((lost >= 0) & (lost < 2)).all()


# graph ---------------------------------------------------------------------------------------------------------------


def street(row=10):
    """One busy street from west to east, and hardly anybody elsewhere."""
    density = np.full((GRID.rows, GRID.columns), 0.01)
    density[row] = 5.0
    return density


def test_travel_is_cheap_in_busy_places_and_has_a_finite_cost_in_empty_ones():
    relative, background = relative_density(street())
    assert relative.max() == pytest.approx(1, rel=0.1) and 0 < background < 0.1
    cost = travel_cost(relative, background)
    assert cost[10].max() < 0.5 * cost[0].min() and travel_cost(np.zeros(1), 0.0)[0] == 30.0


def test_nodes_of_blocks_lie_where_the_density_is_and_are_joined_to_all_neighbours():
    graph = grid_graph(GRID, street())
    assert block_side(GRID) == 2 and graph.nodes == 15 * 20 and graph.block_m == 200.0
    x, y = block_centres(GRID, street(), 2)
    on_street = y[5 * 20 : 6 * 20]
    np.testing.assert_allclose(on_street, 1050, atol=1)  # row 10, not the block's middle at 1,100
    np.testing.assert_array_equal((x // 200 + 20 * (y // 200)).astype(int), np.arange(300))
    degree = np.bincount(graph.tail, minlength=300).reshape(15, 20)
    assert degree[0, 0] == 3 and degree[0, 5] == 5 and (degree[1:-1, 1:-1] == 8).all()
    forth = {(t, h): c for t, h, c in zip(graph.tail.tolist(), graph.head.tolist(), graph.cost.tolist())}
    assert all(forth[h, t] == c for (t, h), c in forth.items())
    assert (graph.nearest(x, y) == np.arange(300)).all()


def test_large_grids_get_larger_blocks():
    assert block_side(Grid(100.0, 400, 400, 4e4, 4e4)) == 4


def test_reweighting_multiplies_an_edge_by_the_field_at_its_place():
    graph = grid_graph(GRID, np.ones((30, 40)))
    field = np.ones((30, 40))
    field[:, :20] = 3.0
    factor = graph.reweighted(GRID, field).cost / graph.cost
    middle = 0.5 * (graph.x_m[graph.tail] + graph.x_m[graph.head])
    np.testing.assert_allclose(factor, np.where(middle < 2000, 3.0, 1.0))


# polylines -----------------------------------------------------------------------------------------------------------

CORNER = Polylines(np.array([0, 3, 5]), np.array([0.0, 30, 30, 5, 5]), np.array([0.0, 0, 40, 1, 11]))


def test_steps_and_lengths_of_polylines_and_of_a_selection():
    assert steps(CORNER).tolist() == [0, 30, 40, 0, 10] and lengths(CORNER).tolist() == [70, 10]
    some = take(CORNER, np.array([1, 0, 1]))
    assert lengths(some).tolist() == [10, 70, 10] and some.offsets.tolist() == [0, 2, 5, 7]
    assert len(lengths(Polylines(np.array([0]), np.zeros(0), np.zeros(0)))) == 0


def test_positions_at_shares_of_the_weight():
    fraction = np.array([0, 0.5, 1, 0, 0.25, 1])
    on = place(CORNER, steps(CORNER), np.array([0, 3, 6]), fraction)
    np.testing.assert_allclose(on.x_m, [0, 30, 30, 5, 5, 5], atol=1e-4)
    np.testing.assert_allclose(on.y_m, [0, 5, 40, 1, 3.5, 11], atol=1e-4)
    # All weight is on the second step, so half of it is reached in the middle of that step.
    slow = place(CORNER, np.array([0.0, 0, 1e6, 0, 1]), np.array([0, 3, 6]), fraction)
    np.testing.assert_allclose([slow.x_m[1], slow.y_m[1]], [30, 20], atol=1e-3)


@few
@given(st.integers(1, 12), st.integers(0, 999))
def test_placed_points_lie_on_their_line_in_order(count, seed):
    random = rng(seed)
    points = random.integers(2, 6, count)
    offsets = np.r_[0, np.cumsum(points)]
    x = random.uniform(0, 1000, offsets[-1])
    lines = Polylines(offsets, np.sort(x), np.zeros(offsets[-1]))  # on one axis, to the east
    wanted = np.arange(count + 1) * 7
    on = place(lines, steps(lines), wanted, np.tile(np.linspace(0, 1, 7), count))
    for k in range(count):
        part = on.x_m[wanted[k] : wanted[k + 1]]
        assert part[0] == lines.x_m[offsets[k]] and part[-1] == pytest.approx(lines.x_m[offsets[k + 1] - 1])
        assert (np.diff(part) >= 0).all()
    assert (on.y_m == 0).all()


# placing -------------------------------------------------------------------------------------------------------------


def test_gaps_cover_the_whole_duration_with_the_wanted_irregularity():
    points = np.array([2, 50, 3, 4000])
    edges = np.array([0.0, 0.5, 1.5, 4.0])
    fixes = draw_fixes(points, np.full(4, 0.65), np.array([0.5, 0.0, 0.5]), edges, rng(5))
    first, last = fixes.offsets[:-1], fixes.offsets[1:] - 1
    assert fixes.offsets.tolist() == [0, 2, 52, 55, 4055]
    for share in (fixes.moving_share, fixes.time_share):
        assert (share[first] == 0).all() and share[last] == pytest.approx(1)
        gaps = np.diff(share[55:])
        assert (gaps > 0).all()
        assert np.quantile(gaps, 0.75) / np.quantile(gaps, 0.25) == pytest.approx(2.75 / 0.25, rel=0.15)
    even = draw_fixes(points, np.ones(4), np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.99, 1.01, 4.0]), rng(5))
    np.testing.assert_allclose(even.moving_share[2:52], np.linspace(0, 1, 50), atol=0.01)
    np.testing.assert_allclose(even.time_share[2:52], np.linspace(0, 1, 50), atol=0.01)


def test_time_left_over_becomes_one_long_gap_and_the_other_gaps_do_not_change():
    """Most gaps are 0.7 of the mean gap, because of long gaps beyond the last bin, which must be restored."""
    points = np.full(200, 101)
    fixes = draw_fixes(points, np.full(200, 0.7), np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.95, 1.05, 8.0]), rng(5))
    of_mean = 100 * np.diff(fixes.time_share.reshape(200, 101), axis=1)
    assert np.median(of_mean) == pytest.approx(0.7, abs=0.01)
    longest = of_mean.max(axis=1)
    assert longest == pytest.approx(30.7, abs=1.5)
    assert np.bincount(of_mean.argmax(axis=1) // 20, minlength=5).min() > 20
    way = 100 * np.diff(fixes.moving_share.reshape(200, 101), axis=1)
    assert way.max() < 1.2, "a trip does not move during its long gap"


def test_gaps_that_take_too_long_are_cut_and_the_interval_stays():
    """A fifth of the gaps would be four intervals long, more than a trip has time for: only they are cut."""
    points, ratio = np.full(300, 41), np.array([0.8, 0.0, 0.2])
    fixes = draw_fixes(points, np.full(300, 0.9), ratio, np.array([0.99, 1.01, 3.9, 4.1]), rng(3))
    over_interval = 40 * np.diff(fixes.time_share.reshape(300, 41), axis=1) / 0.9
    assert ((over_interval > 0.98) & (over_interval < 1.02)).mean() > 0.75
    assert over_interval.min() > 0.95 and over_interval.max() < 4.2
    # If even the interval is too long, all gaps are shortened alike.
    hurried = draw_fixes(points, np.full(300, 1.5), np.array([1.0]), np.array([0.99, 1.01]), rng(3))
    np.testing.assert_allclose(40 * np.diff(hurried.time_share.reshape(300, 41), axis=1), 1.0, atol=0.03)


def test_intervals_are_whole_seconds_and_longer_where_mean_gaps_are_longer(small_estimates):
    bins = small_estimates.distribution(MedianInterval).bins
    asked = np.zeros(len(bins))
    asked[bins.index(np.array([5.0, 15.0]))] = 0.7, 0.3
    trips = draw_trips(changed(small_estimates, median_interval=asked), 2000, rng(9))
    mean_gap_s = trips.duration_s / (trips.points - 1)
    interval_s = trips.interval * mean_gap_s
    free = trips.interval < 1.5
    assert free.mean() > 0.5
    assert set(np.rint(interval_s[free])) <= {5.0, 15.0}
    assert np.abs(interval_s[free] - np.rint(interval_s[free])).max() < 1e-9
    assert mean_gap_s[free & (interval_s > 10)].min() >= mean_gap_s[free & (interval_s < 10)].max()


def test_no_place_is_passed_at_more_than_about_four_times_the_speed_of_the_trip():
    lines = eastward()
    slowness = np.ones((30, 40))
    slowness[:, 12:28] = 0.02
    course = course_of(lines, GRID)
    offsets, fraction = np.arange(61) * 100, np.tile(np.linspace(0, 1, 100), 60)
    step = np.diff(place(lines, slowness_weight(course, slowness), offsets, fraction).x_m.reshape(60, 100), axis=1)
    unbounded = np.diff(place(lines, slowness.ravel()[course.cell] * course.step_m, offsets, fraction).x_m)
    assert unbounded.max() > 10 * 4000 / 99
    assert (step >= 0).all() and 2.5 < step.max() / (4000 / 99) < 4.6


@pytest.mark.parametrize("most_ratio", [1.25, 1.5, 3.0])
def test_no_trip_exceeds_its_own_speed_limit(most_ratio):
    lines, random = eastward(), rng(4)
    course = course_of(lines, GRID)
    slowness = random.lognormal(0, 1.5, (30, 40))
    offsets, fraction = np.arange(61) * 100, np.tile(np.linspace(0, 1, 100), 60)
    most = np.where(np.arange(60) < 30, most_ratio, 9.0)
    step = np.diff(
        place(lines, slowness_weight(course, slowness, most), offsets, fraction).x_m.reshape(60, 100), axis=1
    )
    fastest = step.max(axis=1) / (4000 / 99)
    assert fastest[:30].max() < 1.03 * most_ratio and fastest[30:].min() > fastest[:30].min()
    assert (step >= 0).all()


def test_gaps_at_the_interval_are_exactly_that_long():
    points, edges = np.full(300, 41), np.array([0.0, 0.5, 0.99, 1.01, 1.5, 3.0])
    interval = np.full(300, 1.0)
    fixes = draw_fixes(points, interval, np.array([0.0, 0.0, 1.0, 0.0, 0.0]), edges, rng(2))
    gap = np.diff(fixes.time_share.reshape(300, 41), axis=1) * 40
    np.testing.assert_allclose(gap, 1.0, atol=1e-9)
    mixed = draw_fixes(points, interval / 2, np.array([0.0, 0.1, 0.8, 0.1, 0.0]), edges, rng(2))
    gap = np.diff(mixed.time_share.reshape(300, 41), axis=1) * 40
    assert 0.75 < (np.abs(gap - 0.5) < 1e-9).mean() < 0.85
    assert gap.min() < 0.4
    late = draw_fixes(
        points, interval / 2, np.array([0.0, 0.1, 0.8, 0.1, 0.0]), edges, rng(2), least=np.full(300, 0.45)
    )
    assert np.diff(late.time_share.reshape(300, 41), axis=1).min() * 40 > 0.45 - 1e-9


def eastward(n=60, seed=6):
    """Straight lines from the west border to the east border."""
    y = np.repeat(rng(seed).uniform(1, 2999, n), 41)
    return Polylines(np.arange(n + 1) * 41, np.tile(np.linspace(0, 4000, 41), n), y)


def test_every_trajectory_counts_the_same_in_a_histogram():
    lines = Polylines(np.array([0, 1, 5]), np.array([50.0, 150, 150, 150, 250]), np.full(5, 50.0))
    assert histogram(lines, GRID)[0, :4].tolist() == [1, 0.75, 0.25, 0]
    assert histogram(lines, GRID, np.array([2.0, 4.0]))[0, :4].tolist() == [2, 3, 1, 0]


def test_points_concentrate_where_the_target_is_high():
    lines = eastward()
    target = np.ones((30, 40))
    target[:, 10:20] = 6.0
    target *= 60 / target.sum()
    offsets, fraction = np.arange(61) * 100, np.tile(np.linspace(0, 1, 100), 60)
    course = course_of(lines, GRID)
    slowness = fit_slowness(course, np.diff(offsets), offsets, fraction, target, GRID)
    placed = place(lines, slowness_weight(course, slowness), offsets, fraction)
    by_column = histogram(placed, GRID).sum(axis=0)
    assert gap(by_column, target.sum(axis=0)) < 0.1
    flat = place(lines, slowness_weight(course, np.ones_like(target)), offsets, fraction)
    assert gap(histogram(flat, GRID).sum(axis=0), target.sum(axis=0)) > 0.3


def test_slowness_is_fitted_again_to_the_chosen_routes(small_estimates):
    """Half of the pool drives only the first half of one street; the chosen trips follow all of it."""
    x = np.r_[np.tile(np.linspace(0, 2000, 41), 40), np.tile(np.linspace(0, 4000, 41), 40)]
    lines = Polylines(np.arange(81) * 41, x, np.full(len(x), 150.0))
    street = np.full((30, 40), 1e-6)
    street[1] = 1.0
    points = np.full(80, 60)
    nowhere, none = (np.zeros(80), np.zeros(80)), np.zeros(80, np.int64)
    trips = Trips(nowhere, nowhere, none, none, none, none, np.full(80, 4e3), np.full(80, 600.0), points, np.ones(80))
    pool_of = Pool(trips, course_of(lines, GRID), np.zeros(80))
    estimates = replace(changed(small_estimates, occupancy=street), grid=GRID)
    fixes = fixes_of(estimates, points, trips.interval, rng(1))
    before = fit_slowness(pool_of.course, points, fixes.offsets, fixes.moving_share, street, GRID)
    chosen = np.arange(40, 80)
    first, last = lines.offsets[:-1][chosen], lines.offsets[1:][chosen] - 1
    ends = np.stack([lines.x_m[first], lines.y_m[first], lines.x_m[last], lines.y_m[last]])
    after = refitted_slowness(estimates, pool_of, before, chosen, ends, rng(2))
    worse, better = (timed_gap(estimates, pool_of, slowness, chosen, ends) for slowness in (before, after))
    assert better < 0.5 * worse


def timed_gap(estimates, pool_of, slowness, chosen, ends):
    tracks = timed_tracks(estimates, Prior(), pool_of, slowness, chosen, rng(3), ends)
    return gap(histogram(Polylines(tracks.offsets, tracks.x_m, tracks.y_m), GRID), estimates.occupancy)


def test_a_selection_of_a_course_is_the_course_of_the_selected_lines():
    lines = eastward()
    which = np.array([7, 7, 3, 59])
    taken, again = take_course(course_of(lines, GRID), which), course_of(take(lines, which), GRID)
    assert (taken.step_m == again.step_m).all() and (taken.lines.offsets == again.lines.offsets).all()
    inner = np.setdiff1d(np.arange(len(again.cell)), again.lines.offsets[:-1])
    assert (taken.cell[inner] == again.cell[inner]).all()
    assert taken.cell[1] == GRID.index(np.array([50.0]), lines.y_m[7 * 41 : 7 * 41 + 1])[0]


def test_few_or_many_points_are_placed_at_their_shares():
    lines = eastward()
    for count in (3, 500):
        fraction = np.sort(rng(9).random((60, count)), axis=1)
        placed = place(lines, steps(lines), np.arange(61) * count, fraction.ravel())
        assert np.allclose(placed.x_m, 4000 * fraction.ravel(), atol=1e-3)


# routes --------------------------------------------------------------------------------------------------------------


@few
@given(st.integers(0, 999), st.integers(3, 40), st.integers(3, 40))
def test_the_search_of_nearby_blocks_finds_the_nearest_of_all(seed, columns, rows):
    random = rng(seed)
    grid = Grid(100.0, columns, rows, 100.0 * columns, 100.0 * rows)
    graph = grid_graph(grid, random.gamma(0.1, 1.0, (rows, columns)))
    x, y = random.uniform(-150, 100 * columns + 150, 200), random.uniform(-150, 100 * rows + 150, 200)
    x[:50], y[:50] = np.clip(x[:50], 0, grid.width_m), np.clip(y[:50], 0, grid.height_m)
    apart = np.hypot(graph.x_m - x[:, None], graph.y_m - y[:, None])
    found = apart[np.arange(200), graph.nearest(x, y)]
    # Inside the grid; outside, only approximately.
    np.testing.assert_allclose(found[:50], apart[:50].min(axis=1), rtol=1e-12)
    assert (found <= apart.min(axis=1) + 2 * graph.block_m).all()


def test_edges_are_found_by_their_ends():
    graph = grid_graph(GRID, np.ones((30, 40)))
    edge, there = graph.edges_between(graph.tail, graph.head)
    assert there.all() and (edge == np.arange(len(graph.tail))).all()
    assert not graph.edges_between(np.array([0]), np.array([graph.nodes - 1]))[1].any()


def test_hubs_are_drawn_by_their_mass_where_all_are_equally_good():
    n, mass = 20_000, np.array([1.0, 2, 3, 4])
    hubs = Hubs(np.arange(4), np.full(4, 1000.0), np.full(4, 500.0), mass, NO_TREES)
    start, end = (np.zeros(n), np.zeros(n)), (np.full(n, 2000.0), np.zeros(n))
    vias = choose_vias(start, end, np.full(n, 3000.0), hubs, 1.0, rng(11))
    np.testing.assert_allclose(np.bincount(vias, minlength=4) / n, [0.1, 0.2, 0.3, 0.4], atol=0.02)


def test_hubs_are_busy_places_all_over_the_city():
    graph = grid_graph(GRID, street())
    node, mass = _hub_nodes(graph, GRID, street(), street())
    assert 20 < len(node) < graph.nodes / 3 and len(np.unique(node)) == len(node)
    assert np.isin(np.flatnonzero(np.abs(graph.y_m - 1050) < 1), node).mean() > 0.7 and np.ptp(graph.x_m[node]) > 2000
    assert mass.sum() == pytest.approx(street().sum()) and (mass > 0).all()


def test_joined_hubs_keep_their_trees():
    graph = grid_graph(GRID, street())
    one, other = some_hubs(graph, np.array([5 * 20, 7])), some_hubs(graph, np.array([5 * 20 + 19]))
    both = one.followed_by(other)
    assert both.node.tolist() == [100, 7, 119] and both.x_m.tolist() == graph.x_m[both.node].tolist()
    np.testing.assert_array_equal(both.outward.predecessor, trees_from(graph, both.node).predecessor)


NO_TREES = NodeTrees(np.zeros((0, 0), np.int32))


def some_hubs(graph, node):
    return Hubs(node, graph.x_m[node], graph.y_m[node], np.ones(len(node)), trees_from(graph, node))


def ends_of(*pairs):
    pairs = np.array(pairs, float)
    return (pairs[:, 0], pairs[:, 1]), (pairs[:, 2], pairs[:, 3])


def test_a_route_takes_the_busy_street():
    graph = grid_graph(GRID, street())
    hubs = some_hubs(graph, np.array([5 * 20, 5 * 20 + 19]))
    start, end = ends_of((150, 1500, 3850, 1500))
    lines, node = route(graph, hubs, start, end, np.full(1, -1))
    assert (lines.x_m[0], lines.y_m[0]) == (150, 1500) and (lines.x_m[-1], lines.y_m[-1]) == (3850, 1500)
    assert node[0] == node[-1] == -1 and (node[1:-1] >= 0).all()
    middle = (lines.x_m > 1000) & (lines.x_m < 3000)
    assert middle.sum() > 5 and np.abs(lines.y_m[middle] - 1050).max() < 1
    assert steps(lines)[2:-1].max() < 400  # from block to neighbouring block, once on the street


def test_a_route_passes_its_via():
    graph = grid_graph(GRID, np.ones((30, 40)))
    at = np.array([2 * 20 + 2, 12 * 20 + 10, 2 * 20 + 17])
    hubs = some_hubs(graph, at)
    start, end = ends_of((500, 500, 3500, 500), (500, 500, 3500, 500))
    lines, node = route(graph, hubs, start, end, np.array([1, -1]))
    first, second = node[: lines.offsets[1]], node[lines.offsets[1] :]
    assert at[1] in first and at[1] not in second
    assert lengths(lines)[0] > 4500 > 1.4 * 3000 > lengths(lines)[1]


def test_a_route_never_goes_to_a_via_and_back_on_the_same_street():
    """The via is a dead end beside the route, so nothing of the detour remains."""
    x, y = np.array([0.0, 500, 1000, 1500, 500]), np.array([0.0, 0, 0, 0, 800])
    one, other = np.array([0, 1, 2, 1]), np.array([1, 2, 3, 4])
    length = np.hypot(x[one] - x[other], y[one] - y[other])
    graph = RouteGraph(x, y, np.r_[one, other], np.r_[other, one], np.r_[length, length], np.zeros(9, np.int64))
    start, end = ends_of((0, 0, 1500, 0))
    lines, node = route(graph, some_hubs(graph, np.array([0, 4])), start, end, np.array([1]))
    assert node.tolist() == [-1, 0, 1, 2, 3, -1] and lengths(lines)[0] == 1500


def test_a_route_is_short_although_its_hub_lies_elsewhere():
    graph = grid_graph(GRID, np.ones((30, 40)))
    hubs = some_hubs(graph, np.array([3 * 20 + 3, 13 * 20 + 5]))
    start, end = ends_of((1000, 600, 3500, 2500), (900, 2700, 900, 300))
    lines, _ = route(graph, hubs, start, end, np.full(2, -1))
    assert steps(lines).max() < 400 and (lengths(lines) < 1.3 * np.hypot(*(np.array(start) - end))).all()


def test_edges_of_a_street_share_a_random_factor_and_trees_differ():
    graph = grid_graph(GRID, np.ones((30, 40)))
    random = rng(3)
    drivers = [_hubs_with_trees(graph, np.array([0]), np.ones(1), random) for _ in range(4)]
    assert len(np.unique(np.concatenate([each.outward.predecessor for each in drivers]), axis=0)) == 4
    label = streets_of(graph)
    level = (graph.y_m[graph.tail] == graph.y_m[graph.head]) & (np.abs(graph.y_m[graph.tail] - 1100) < 1)
    assert len(np.unique(label[level])) <= 4 < level.sum() and len(np.unique(label)) > 50


def test_shapes_of_edges_are_inserted():
    """Two nodes joined by a curved edge each way."""
    graph = RouteGraph(
        np.array([0.0, 1000.0]), np.array([0.0, 0.0]), np.array([0, 1]), np.array([1, 0]), np.ones(2),
        np.array([0, 2, 4]), np.array([300.0, 700, 700, 300]), np.array([200.0, 200, 200, 200]),
    )  # fmt: skip
    start, end = ends_of((-10, 0, 1010, 0))
    lines, node = route(graph, some_hubs(graph, np.array([0])), start, end, np.full(1, -1))
    assert lines.x_m.tolist() == [-10, 0, 300, 700, 1000, 1010] and lines.y_m.tolist() == [0, 0, 200, 200, 0, 0]
    assert node.tolist() == [-1, 0, -1, -1, 1, -1]


def test_longer_target_lengths_give_detours_of_about_that_length():
    n = 300
    random = rng(9)
    hubs = Hubs(
        np.arange(200), random.uniform(0, 10_000, 200), random.uniform(0, 10_000, 200), np.ones(200),
        NO_TREES,
    )  # fmt: skip
    start = random.uniform(3000, 7000, (2, n))
    end = start + random.uniform(-1500, 1500, (2, n))
    straight = np.hypot(*(start - end))

    def chosen(length):
        return choose_vias(tuple(start), tuple(end), length, hubs, 1.2, rng(10))

    assert (chosen(1.2 * straight) == -1).all()
    wish = 1.2 * straight + 2500
    vias = chosen(wish)
    assert (vias >= 0).all()
    at = np.array([hubs.x_m[vias], hubs.y_m[vias]])
    way = 1.2 * (np.hypot(*(at - start)) + np.hypot(*(at - end)))
    assert np.median(np.abs(way / wish - 1)) < 0.05
    assert (chosen(np.full(n, 20_000.0)) >= 0).all()


# candidates ----------------------------------------------------------------------------------------------------------


def test_ends_have_the_shares_of_displacements_and_of_regions(small_estimates):
    """Displacements that flows and fields alone would get wrong are restored, without moving the regions' margins."""
    grid, bins = small_estimates.grid, small_estimates.distribution(Displacement).bins
    label = small_estimates.flows.regions.ravel()
    regions = len(small_estimates.flows.shares)
    everywhere = np.ones((grid.rows, grid.columns))
    out = np.bincount(label, minlength=regions) / grid.cells

    # Starts and ends are independent, but the estimated displacements are shorter than that implies.
    flow = stratified(np.outer(out, out).ravel(), 20_000, rng(11))
    here, there = (
        within_groups(everywhere.ravel(), label, which, regions, rng(seed))
        for seed, which in ((12, flow // regions), (13, flow % regions))
    )
    apart_km = np.hypot(here % grid.columns - there % grid.columns, here // grid.columns - there // grid.columns)
    plain = np.bincount(bins.index(apart_km * grid.cell_m / 1000), minlength=len(bins)) / len(flow)
    shorter = plain * np.exp(-np.asarray(bins.edges)[:-1] / 1.5)
    shorter /= shorter.sum()

    lengths_of_all = small_estimates.joint(DisplacementLength).shares.sum(axis=0)
    wanted = changed(
        small_estimates,
        starts=everywhere,
        ends=everywhere,
        origin_destination=np.outer(out, out),
        displacement=shorter,
        displacement_length=np.outer(shorter, lengths_of_all),
    )
    trips = draw_trips(wanted, 6000, rng(14))
    straight_km = np.hypot(trips.start[0] - trips.end[0], trips.start[1] - trips.end[1]) / 1000
    found = np.bincount(bins.index(straight_km), minlength=len(bins))
    assert gap(plain, shorter) > 0.15 and gap(found, shorter) < 0.05
    assert gap(np.bincount(trips.flow // regions, minlength=regions), out) < 0.03
    assert gap(np.bincount(trips.flow % regions, minlength=regions), out) < 0.03


def test_trips_are_possible_and_start_in_their_region(small_estimates):
    trips = draw_trips(small_estimates, 3000, rng(14))
    grid, caps = small_estimates.grid, small_estimates.scope.caps
    assert len(trips) == 3000
    start_cell = grid.index(*trips.start)
    assert (start_cell == trips.origin).mean() > 0.999
    regions = len(small_estimates.flows.shares)
    assert (small_estimates.flows.regions.ravel()[trips.origin] == trips.flow // regions).all()
    assert (small_estimates.flows.regions.ravel()[grid.index(*trips.end)] == trips.flow % regions).mean() > 0.999
    straight = np.hypot(trips.start[0] - trips.end[0], trips.start[1] - trips.end[1])
    assert (trips.length_m >= 1.01 * straight - 1e-6).all()
    assert (trips.duration_s >= 1.25 * trips.length_m / (caps.speed_kmh / 3.6) - 1e-6).all()
    assert (trips.points >= 2).all() and (trips.points <= caps.points).all()
    length = small_estimates.distribution(Length)
    found = np.bincount(length.bins.index(trips.length_m / 1000), minlength=len(length.bins))
    assert gap(found, length.shares) < 0.15
    again = draw_trips(small_estimates, 3000, rng(14))
    assert (again.length_m == trips.length_m).all() and (again.points == trips.points).all()
    twice = draw_trips(small_estimates, 3000, rng(14), candidates=2)
    assert len(twice) == 6000 and (np.bincount(twice.pair) % 2 == 0).all()
    some = take_trips(trips, np.array([5, 2]))
    assert some.pair.tolist() == trips.pair[[5, 2]].tolist()
    assert some.flow.tolist() == trips.flow[[5, 2]].tolist() and some.end[1].tolist() == trips.end[1][[5, 2]].tolist()


def test_ends_are_drawn_where_the_caller_says(small_estimates):
    corner = draw_trips(small_estimates, 100, rng(), lambda cell, random: (np.zeros(len(cell)), np.ones(len(cell))))
    assert (corner.start[0] == 0).all() and (corner.end[1] == 1).all()


def test_balanced_routes_pass_where_people_are(small_estimates):
    trips = draw_trips(small_estimates, 1500, rng(15))
    graph = grid_graph(small_estimates.grid, small_estimates.occupancy)
    router = balance_routes(small_estimates, graph, trips, rng(16))
    assert 1.02 <= router.detour <= 1.6
    lines = route_trips(small_estimates, router, trips, rng(17))
    grid = small_estimates.grid
    begin, end = lines.offsets[:-1], lines.offsets[1:] - 1
    np.testing.assert_array_equal(lines.x_m[begin], trips.start[0])
    np.testing.assert_array_equal(lines.y_m[end], trips.end[1])
    assert lines.x_m.min() >= 0 and lines.x_m.max() <= grid.width_m and lines.y_m.max() <= grid.height_m
    assert np.median(lengths(lines) / trips.length_m) == pytest.approx(1, abs=0.2)
    spots = place(lines, steps(lines), np.arange(len(lines) + 1) * 24, np.tile((np.arange(24) + 0.5) / 24, len(lines)))
    seen = pool(histogram(spots, grid), 8)
    assert gap(seen, pool(small_estimates.passage, 8)) < 0.25


def test_loose_vertices_stay_in_their_blocks_and_prefer_busy_cells():
    density = street(11)
    graph = grid_graph(GRID, np.ones((30, 40)))
    node = np.r_[-1, 5 * 20 + np.arange(20), -1]
    x, y = np.r_[0.0, graph.x_m[node[1:-1]], 4000.0], np.r_[1.0, graph.y_m[node[1:-1]], 2.0]
    lines = Polylines(np.array([0, 22]), x, y)
    moved = spread_in_blocks(lines, node, graph, GRID, density, rng(18))
    assert (moved.x_m[0], moved.y_m[0], moved.x_m[-1], moved.y_m[-1]) == (0, 1, 4000, 2)
    np.testing.assert_array_equal(moved.x_m[1:-1] // 200, np.arange(20))
    assert ((moved.y_m[1:-1] >= 1100) & (moved.y_m[1:-1] < 1200)).all()  # the busier of the block's two rows
    fixed = replace(graph, loose=None)
    assert spread_in_blocks(lines, node, fixed, GRID, density, rng(18)) is lines


def test_speeds_have_their_shares_and_durations_keep_theirs(small_estimates):
    """All trips go at about 15 km/h, which a table with independent lengths and durations does not show."""
    speeds, durations = (small_estimates.distribution(question).bins for question in (MeanSpeed, Duration))
    table = small_estimates.joint(LengthDuration)
    coarse = table.columns
    length_km = draw_trips(small_estimates, 6000, rng(15)).length_m / 1000
    took_s = length_km * 240 * rng(16).lognormal(0, 0.2, 6000)

    def shares(bins, values):
        return np.bincount(bins.index(values), minlength=len(bins)) / len(values)

    margins = np.outer(table.shares.sum(axis=1), shares(coarse, took_s))
    known = changed(small_estimates, length_duration=margins, duration=shares(durations, took_s))
    speed = shares(speeds, length_km * 3600 / took_s)
    trips = draw_trips(changed(known, mean_speed=speed), 6000, rng(17))
    blind = draw_trips(changed(known, mean_speed=np.full(len(speeds), 1 / len(speeds))), 6000, rng(17))
    found, forgotten = (shares(speeds, each.length_m * 3.6 / each.duration_s) for each in (trips, blind))
    assert gap(forgotten, speed) > 0.4 and gap(found, speed) < 0.5 * gap(forgotten, speed)
    assert gap(shares(coarse, trips.duration_s), shares(coarse, took_s)) < 0.1


def test_a_block_in_a_crowded_district_costs_more_than_one_outside():
    wanted = np.full((24, 24), 1 / 576)
    seen = wanted.copy()
    seen[:8, :8] *= 3
    seen[1, 1] = seen[12, 12] = 1 / 576
    found = _crowding(seen, wanted)
    assert found[1, 1] > 1.3 * found[12, 12]
    assert found[2, 2] > 1.5 * found[1, 1]
    assert _crowding(wanted, wanted) == pytest.approx(1.0)


def test_a_candidate_that_is_chosen_twice_is_two_trips(small_estimates):
    """The output must not contain the same start, end and times twice."""
    lines = eastward(40)
    ends = [lines.x_m[lines.offsets[:-1]], lines.y_m[lines.offsets[:-1]], lines.x_m[40::41], lines.y_m[40::41]]
    origin, destination = GRID.index(*ends[:2]), GRID.index(*ends[2:])
    none, points = np.zeros(40, np.int64), np.full(40, 20)
    trips = Trips(
        tuple(ends[:2]), tuple(ends[2:]), none, none, origin, destination,
        np.full(40, 4e3), np.full(40, 600.0), points, np.ones(40),
    )  # fmt: skip
    pool_of = Pool(trips, course_of(lines, GRID), np.linspace(1.7e9, 1.7e9 + 4e5, 40))
    even = np.ones((30, 40))
    estimates = replace(changed(small_estimates, occupancy=even, starts=even, ends=even), grid=GRID)
    chosen = np.repeat(np.arange(40), 3)
    assigned = assigned_ends(estimates, Prior(), pool_of, chosen, rng(4))
    tracks = timed_tracks(estimates, Prior(), pool_of, np.ones((30, 40)), chosen, rng(5), assigned)
    first, last = tracks.offsets[:-1], tracks.offsets[1:] - 1
    for end in (first, last):
        assert len(np.unique(tracks.x_m[end] + 1j * tracks.y_m[end])) == 120
        assert len(np.unique(tracks.t_utc[end])) > 110
    alone = timed_tracks(estimates, Prior(), pool_of, np.ones((30, 40)), np.arange(40), rng(5))
    assert (alone.t_utc[alone.offsets[:-1]] == np.rint(pool_of.departure_utc)).all(), (
        "a candidate that is chosen once departs as drawn"
    )


def test_speeds_follow_the_estimate_although_route_lengths_differ(small_estimates):
    random = np.random.default_rng(4)
    trips = draw_trips(small_estimates, 3000, random)
    length_m = trips.length_m * random.choice([0.5, 1.0, 1.9], len(trips))

    def off(timed):
        speed = small_estimates.distribution(MeanSpeed)
        bin_of = speed.bins.index(length_m * 3.6 / timed.duration_s)
        return jsd(np.bincount(bin_of, minlength=len(speed.bins)), speed.shares)

    again = timed_again(small_estimates, trips, length_m, random)
    assert off(again) < 0.3 * off(trips) and (again.length_m == length_m).all()
    assert (again.points >= 2).all() and again.start is trips.start

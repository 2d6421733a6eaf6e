"""Metrics on hand-made trajectories whose answers are known."""

import numpy as np
import pytest

from wayveil.core.divergence import jsd
from wayveil.core.scope import Scope
from wayveil.core.trajectories import EMPTY, Trajectories, concatenate, select
from wayveil.errors import InputError
from wayveil.evaluation import HEADLINE, METRICS, evaluate, floors, headline, project
from wayveil.evaluation import adatrace_metrics as ada
from wayveil.evaluation import metrics as m
from wayveil.evaluation.paths import waypoints

SCOPE = Scope(name="square", south=0.0, west=0.0, north=0.1, east=0.1, timezone="Etc/GMT-1")
LN2 = np.log(2.0)


def lines(*polylines, t0=0.0, step_s=10.0):
    """Trajectories from lists of (x, y) in metres, one point every `step_s`."""
    sizes = [len(p) for p in polylines]
    x, y = np.array([c for p in polylines for c in p], float).T
    lon, lat = SCOPE.to_degrees(x, y)
    t = np.concatenate([t0 + step_s * np.arange(n) for n in sizes])
    return Trajectories(np.r_[0, np.cumsum(sizes)], lon, lat, t)


def walks(n, seed, spread=900.0):
    rng = np.random.default_rng(seed)
    begin = 5500 + rng.normal(0, spread, (n, 2))
    return lines(*[begin[i] + np.cumsum(rng.normal(0, 120, (8, 2)), 0) for i in range(n)])


def test_jsd_of_disjoint_is_ln_2_and_of_equal_is_0():
    assert jsd([1, 2, 0, 0], [0, 0, 5, 1]) == pytest.approx(LN2)
    assert jsd([1, 2, 3], [2, 4, 6]) == pytest.approx(0.0, abs=1e-15)
    # By hand: p = (1, 0), q = (1/2, 1/2).
    assert jsd([1, 0], [1, 1]) == pytest.approx(0.5 * np.log(4 / 3) + 0.25 * np.log(2 / 3) + 0.25 * np.log(2))


def test_length_counts_the_polyline_and_puts_longer_ones_into_the_last_bin():
    real = lines([(0, 0), (300, 400)], [(0, 0), (0, 500), (500, 500)])
    assert project(real, SCOPE).length_m == pytest.approx([500.0, 1000.0])
    longer = lines([(0, 0), (300, 400)], [(0, 0), (0, 9000)])
    assert m.length(real, longer, SCOPE) == pytest.approx(0.0, abs=1e-12)
    assert m.length(real, lines([(0, 0), (0, 750)]), SCOPE) == pytest.approx(LN2)


def test_cells_are_anchored_in_the_south_west_corner():
    one, other = lines([(10, 10), (90, 90)]), lines([(11, 50), (60, 99)])
    assert m.density(one, other, SCOPE, cell_m=100.0) == pytest.approx(0.0, abs=1e-12)
    assert m.density(one, lines([(110, 10), (120, 10)]), SCOPE, cell_m=100.0) == pytest.approx(LN2)


def test_points_outside_the_box_have_cells_of_their_own():
    assert m.density(lines([(50, 50)] * 2), lines([(-50, 50)] * 2), SCOPE, cell_m=100.0) == pytest.approx(LN2)


def test_path_density_does_not_depend_on_sampling():
    sparse = lines([(0, 50), (1000, 50)])
    dense = lines([(x, 50) for x in range(0, 1001, 10)])
    assert m.path_density(sparse, dense, SCOPE, cell_m=100.0) == pytest.approx(0.0, abs=1e-9)
    assert m.density(sparse, dense, SCOPE, cell_m=100.0) > 0.1


def test_path_density_handles_standing_still():
    still = lines([(50, 50), (50, 50)], [(250, 50), (250, 50)])
    x, y, owner = project(still, SCOPE).every_50_m
    assert list(owner) == [0, 1] and x == pytest.approx([50, 250]) and y == pytest.approx([50, 50])


def test_trip_sees_the_pairing_that_the_margins_do_not():
    straight = lines([(50, 50), (50, 2050)], [(2050, 50), (2050, 2050)])
    crossed = lines([(50, 50), (2050, 2050)], [(2050, 50), (50, 2050)])
    assert m.trip(straight, crossed, SCOPE, cell_m=500.0) == pytest.approx(LN2)
    for margin in (m.start, m.end, m.endpoints):
        assert margin(straight, crossed, SCOPE, cell_m=500.0) == pytest.approx(0.0, abs=1e-12)


def test_start_and_end_are_distinguished():
    forth, back = lines([(50, 50), (950, 950)]), lines([(950, 950), (50, 50)])
    assert m.start(forth, back, SCOPE, cell_m=100.0) == pytest.approx(LN2)
    mixed = lines([(50, 50), (5, 5)])
    assert m.endpoints(forth, mixed, SCOPE, cell_m=100.0) == pytest.approx(LN2 / 2)


def test_waypoints_are_at_equal_arc_length():
    paths = project(lines([(0, 0), (100, 0), (100, 300)], [(7, 7), (7, 7)]), SCOPE)
    assert waypoints(paths, np.array([0, 1]), 5, paths.y_m)[0] == pytest.approx([0, 0, 100, 200, 300])
    assert waypoints(paths, np.array([1]), 5, paths.x_m)[0] == pytest.approx([7] * 5)


def test_relation_by_hand():
    # Two distributions at single points 3 km apart and no spread: (2·3 − 0 − 0) / 3 = 2.
    here, there = lines(*[[(0, 0), (0, 0)]] * 5), lines(*[[(3000, 0), (3000, 0)]] * 4)
    assert m.relation(here, there, SCOPE) == pytest.approx(2.0)
    assert abs(m.relation(walks(400, 1), walks(400, 2), SCOPE)) < 0.02


def test_relation_time_sees_hours_that_relation_does_not():
    morning, evening = walks(200, 1), walks(200, 1)
    evening = Trajectories(evening.offsets, evening.lon, evening.lat, evening.t_utc + 12 * 3600)
    assert abs(m.relation(morning, evening, SCOPE)) < 0.03
    assert m.relation_time(morning, evening, SCOPE) > 1.0


def test_place_and_hour_together_are_seen_where_each_alone_is_right():
    """Half of the trips begin here in the morning and half there in the evening; or the other way round."""
    walked = walks(200, 1)
    late = np.repeat(np.arange(200) % 2, np.diff(walked.offsets))
    moved = walked.lon + 0.05 * late
    one, other = (
        Trajectories(walked.offsets, moved, walked.lat, walked.t_utc + 12 * 3600 * hours) for hours in (late, 1 - late)
    )
    apart = m.start_place_hour(one, other, SCOPE, cell_m=2000.0)
    assert apart > 0.9 * LN2 and m.start_place_hour(one, one, SCOPE, cell_m=2000.0) == 0
    assert m.start_hour(one, other, SCOPE) < 0.01 and m.start(one, other, SCOPE, cell_m=2000.0) == 0


def test_time_metrics():
    noon, later = walks(50, 1), walks(50, 1)
    later = Trajectories(later.offsets, later.lon, later.lat, later.t_utc * 2 + 3600)
    assert project(noon, SCOPE).start_clock_s[0] == 3600  # Etc/GMT-1 is one hour ahead of UTC
    assert m.start_hour(noon, later, SCOPE) == pytest.approx(LN2)
    assert m.duration(noon, noon, SCOPE) == 0
    tomorrow = Trajectories(noon.offsets, noon.lon, noon.lat, noon.t_utc + 86_400)
    assert m.start_hour(noon, tomorrow, SCOPE) == 0 and m.start_week(noon, tomorrow, SCOPE) == pytest.approx(LN2)
    assert m.start_week(noon, Trajectories(noon.offsets, noon.lon, noon.lat, noon.t_utc + 7 * 86_400), SCOPE) == 0
    slow = Trajectories(noon.offsets, noon.lon, noon.lat, noon.t_utc * 100)
    assert m.speed(noon, slow, SCOPE) > 0.5


def test_intervals_are_seen_whole_second_by_whole_second():
    walk = walks(50, 1)
    single = lines([(0, 0)], [(50, 50)])
    assert m.interval(walk, walk, SCOPE) == 0 == m.interval(single, single, SCOPE)
    seconds = np.diff(walk.t_utc)[0]
    other = Trajectories(walk.offsets, walk.lon, walk.lat, walk.t_utc * (1 + 1 / seconds))
    assert m.interval(walk, other, SCOPE) == pytest.approx(LN2 if seconds <= 10 else 0.0, abs=0.01)
    slower = Trajectories(walk.offsets, walk.lon, walk.lat, walk.t_utc * 1.5)
    assert m.interval(walk, slower, SCOPE) == pytest.approx(LN2)


def test_what_measure_leaves_out_is_left_out_of_the_real_data():
    """A few positions far away made every length the same, in bins that reach to the longest one."""
    from wayveil.evaluation import evaluate

    real, other = walks(200, 3), walks(200, 4)
    after = real.offsets[1:11]  # a stray point at the end of each of the first ten
    columns = ((real.lon, -0.5), (real.lat, -0.5), (real.t_utc, 0.0))
    offsets = real.offsets + np.minimum(np.arange(len(real.offsets)), 10)
    stray = Trajectories(offsets, *(np.insert(column, after, value) for column, value in columns))
    names = ["length", "density_500", "duration"]
    clean, found = (evaluate(data, other, SCOPE, metrics=names).values for data in (real, stray))
    assert found == pytest.approx(clean)
    assert m.length(stray, other, SCOPE) != pytest.approx(clean["length"]), "the metric itself sees all"
    from wayveil.errors import InputError

    other_days = Scope(name="s", south=0.0, west=0.0, north=0.1, east=0.1, timezone="UTC",
                       first_day="2020-01-01", last_day="2020-01-31")  # fmt: skip
    with pytest.raises(InputError, match="box and days"):
        evaluate(real, other, other_days, metrics=names)


def test_points_that_cluster_and_jump_are_distinguished_at_equal_routes_and_times():
    even, bunched = [(100 * k, 0) for k in range(11)], [(10 * k, 0) for k in range(10)] + [(1000, 0)]
    real, synthetic = lines(*[even] * 38, *[bunched] * 2), lines(*[even] * 2, *[bunched] * 38)
    for blind in (m.length, m.speed, m.duration):
        assert blind(real, synthetic, SCOPE) == pytest.approx(0, abs=1e-9)
    for step in (m.longest_step, m.top_speed):
        assert step(real, real, SCOPE) == 0
        assert step(real, synthetic, SCOPE) > 0.4


def test_query_error_and_coverage_of_equal_and_of_empty_places():
    real = walks(200, 3, spread=2500)
    assert ada.query_error(real, real, SCOPE) == 0
    far = lines(*[[(100, 100), (120, 120)]] * 200)
    assert ada.query_error(real, far, SCOPE) > 0.3
    assert ada.coverage_tau(real, far, SCOPE) < 0.2 < ada.coverage_tau(real, real, SCOPE)


def test_query_error_scales_to_the_real_number():
    real = walks(200, 3)
    assert ada.query_error(real, concatenate([real, real]), SCOPE) == pytest.approx(0.0, abs=1e-12)


def test_patterns_are_runs_of_cells():
    side = SCOPE.width_m / 6
    at = lambda column: ((column + 0.5) * side, 0.5 * side)  # noqa: E731
    real = lines([at(0), at(0), at(1), at(2)])
    codes, owner = ada._patterns(project(real, SCOPE))
    assert len(codes) == 3 and set(owner) == {0}  # 01, 12, 012; the stay in 0 is no pattern
    assert ada.pattern_f1(real, real, SCOPE) == 1 and ada.pattern_support(real, real, SCOPE) == 0
    other = lines([at(3), at(4), at(5)])
    assert ada.pattern_f1(real, other, SCOPE) == 0 and ada.pattern_support(real, other, SCOPE) == 1
    still = lines([at(0), at(0)])
    assert ada.pattern_f1(real, still, SCOPE) == 0


def test_diameter_is_the_largest_distance_between_two_points():
    zigzag = project(lines([(0, 0), (300, 400), (10, 10)]), SCOPE)
    assert 0.995 * 500 <= ada._diameters(zigzag)[0] <= 500.0001


def test_trip_6x6_and_length_20():
    straight, other = lines([(50, 50), (50, 9000)]), lines([(50, 9000), (50, 50)])
    assert ada.trip_6x6(straight, other, SCOPE) == pytest.approx(LN2)
    assert ada.length_20(straight, other, SCOPE) == pytest.approx(0.0, abs=1e-12)


def test_evaluate_has_every_metric_with_an_interval_around_it():
    found = evaluate(walks(300, 1), walks(300, 2), SCOPE)
    assert set(found.scores) == set(METRICS)
    for score in found.scores.values():
        assert np.isfinite([score.value, score.low, score.high, score.floor]).all()
        assert score.low <= score.value <= score.high


def test_an_honest_sample_is_near_the_floor_and_not_flagged():
    found = evaluate(walks(1200, 1), walks(1200, 2), SCOPE)
    assert found.below_floor == ()
    for name in ("density_100", "endpoints_100", "length", "trip_100"):
        score = found.scores[name]
        assert score.value == pytest.approx(score.floor, abs=4 * score.floor_error), name
        assert score.floor_error < 0.3 * score.floor, name


def test_a_copied_dataset_is_flagged_below_the_floor():
    real = walks(500, 1)
    for synthetic in (real, select(real, np.random.default_rng(0).permutation(500)[:400])):
        assert {"length", "density_100", "endpoints_100", "trip_1000"} <= set(
            evaluate(real, synthetic, SCOPE).below_floor
        )


def test_the_floor_shrinks_with_the_sample_compared():
    real = walks(2000, 1)
    small, same = (floors(real, SCOPE, size, ["density_100", "length"]) for size in (200, 2000))
    assert all(small[name] > 1.5 * same[name] for name in small)
    # Scaled from halves of the same 2,000, against two fresh samples of 2,000.
    fresh = evaluate(walks(2000, 5), walks(2000, 6), SCOPE, metrics=["density_100"]).values["density_100"]
    assert same["density_100"] == pytest.approx(fresh, rel=0.15)


@pytest.mark.parametrize("size", [20, 50, 300, 900])
def test_a_small_honest_sample_is_near_its_floor(size):
    """The law of alike sizes gave floors above ln 2 here, and called such a sample a copy."""
    everybody = walks(3000, 4)
    order = np.random.default_rng(size).permutation(3000)
    found = evaluate(select(everybody, order[size:]), select(everybody, order[:size]), SCOPE)
    assert found.below_floor == () and not found.too_few
    for name in ("density_100", "endpoints_100", "length", "trip_1000", "density_500", "query_error"):
        score = found.scores[name]
        assert score.value == pytest.approx(score.floor, abs=4 * score.floor_error, rel=0.03), name
        assert score.floor_error < 0.3 * score.floor, name
        assert score.floor < LN2 or name == "query_error"


def test_the_floor_rises_evenly_as_the_sample_gets_smaller():
    """Three ways to find it meet at a half and at an eighth of the real data."""
    real = walks(1600, 1)
    for name in ("density_100", "length"):
        found = {size: floors(real, SCOPE, size, [name])[name] for size in (1600, 800, 799, 400, 201, 199, 100, 20)}
        assert found[1600] < found[800] < found[400] < found[201] < found[100] < found[20] < LN2, name
        assert found[799] == pytest.approx(found[800], rel=0.08), name
        assert found[199] == pytest.approx(found[201], rel=0.08), name


@pytest.mark.parametrize("size", [20, 50, 300])
def test_much_more_synthetic_than_real_data_is_judged_with_care(size):
    everybody = walks(3000, 6)
    real, others = select(everybody, np.arange(size)), select(everybody, np.arange(size, 3000))
    assert evaluate(real, others, SCOPE).below_floor == ()
    copies = concatenate([real] * (3000 // size))
    assert {"density_100", "endpoints_100"} <= set(evaluate(real, copies, SCOPE).below_floor)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.7])
def test_a_copied_part_is_flagged_below_the_floor(share):
    """A quarter is not: a quarter that was dealt out evenly and copied from nobody would be as close."""
    real = walks(1200, 1)
    part = select(real, np.random.default_rng(0).permutation(1200)[: int(1200 * share)])
    flagged = {"density_100", "endpoints_100"} <= set(evaluate(real, part, SCOPE).below_floor)
    assert flagged is (share >= 0.5)


def test_too_few_trajectories_have_no_interval_and_no_floor():
    many, few = walks(100, 1), walks(19, 2)
    for real, synthetic in ((many, few), (few, many), (few, few)):
        found = evaluate(real, synthetic, SCOPE, metrics=["length"])
        assert found.too_few and found.below_floor == () and found.to_dict()["too_few"] is True
        assert "±" not in str(found) and "too few" in str(found)
    assert not evaluate(many, walks(20, 2), SCOPE, metrics=["length"]).too_few


def test_headline_gives_the_same_values():
    real, synthetic = walks(200, 1), walks(180, 2)
    assert headline(project(real, SCOPE), synthetic, SCOPE) == evaluate(real, synthetic, SCOPE, metrics=HEADLINE).values


def test_order_of_trajectories_does_not_change_a_divergence():
    real, synthetic = walks(150, 1), walks(150, 2)
    shuffled = select(synthetic, np.random.default_rng(3).permutation(150))
    for name in ("length", "density_100", "trip_1000", "query_error", "pattern_f1"):
        assert METRICS[name](real, synthetic, SCOPE) == pytest.approx(METRICS[name](real, shuffled, SCOPE), abs=1e-12)


def test_one_trajectory_each_is_enough():
    found = evaluate(lines([(0, 0), (100, 0)]), lines([(0, 0), (100, 0)]), SCOPE)
    assert all(np.isfinite(score.value) for score in found.scores.values())


def test_no_trajectory_and_unknown_metrics_are_refused():
    with pytest.raises(InputError, match="no trajectory"):
        evaluate(EMPTY, walks(3, 1), SCOPE)
    with pytest.raises(InputError, match="Unknown metric 'beauty'"):
        evaluate(walks(3, 1), walks(3, 1), SCOPE, metrics=["beauty"])


def test_without_time_the_metrics_of_time_are_left_out():
    found = evaluate(walks(20, 1), walks(20, 2), SCOPE, with_time=False)
    assert {
        "start_hour",
        "start_week",
        "start_place_hour",
        "duration",
        "speed",
        "relation_time",
        "top_speed",
        "interval",
    }.isdisjoint(found.scores)


def test_every_metric_has_words():
    from wayveil.evaluation.all_metrics import METRICS
    from wayveil.evaluation.metric_descriptions import metric_description

    words = {name: metric_description(name) for name in METRICS}
    assert all(words.values()) and len(set(words.values())) == len(words)
    assert "500 m" in words["density_500"] and metric_description("density_x") == "" == metric_description("unknown")

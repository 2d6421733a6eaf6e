"""Rests, waits, turns and errors of positions."""

import numpy as np
import pytest

from changes import changed
from wayveil.core import ragged
from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, lengths
from wayveil.questions.rest_share import RestShare
from wayveil.synthesis.place.errors import with_errors
from wayveil.synthesis.place.physics import whole_times
from wayveil.synthesis.place.points import course_of, slowness_weight, with_speeds
from wayveil.synthesis.place.settings import STOPS
from wayveil.synthesis.place.stops import draw_rest_shares, moving_times, with_short_moves

GRID = Grid(100.0, 40, 30, 4000.0, 3000.0)


def rng(seed=0):
    return np.random.default_rng(seed)


def clocked(n, points, interval_s):
    """Fixes of n trips at one interval: offsets, seconds, intervals."""
    return np.arange(n + 1) * points, np.tile(np.arange(points) * float(interval_s), n), np.full(n, float(interval_s))


def test_rest_shares_follow_their_distribution_and_slow_trips_rest_more(small_estimates):
    shares = np.zeros(10)
    shares[[0, 5]] = 0.5
    estimates = changed(small_estimates, rest_share=shares)
    speed = rng(1).uniform(0.5, 3.0, 4000)
    length_m, duration_s = np.full(4000, 1800.0), 1800.0 / speed
    rest = draw_rest_shares(estimates, length_m, duration_s, rng(2))
    assert (rest == 0).mean() == pytest.approx(0.5, abs=0.05)
    edges = estimates.distribution(RestShare).bins.edges
    assert rest.max() <= edges[6] and rest[rest > 0].mean() == pytest.approx(0.25, abs=0.04)
    assert rest[speed < 1.5].mean() > 1.5 * rest[speed > 2.0].mean()
    assert len(draw_rest_shares(estimates, np.zeros(0), np.zeros(0), rng(2))) == 0


def test_trips_that_are_slow_for_their_length_rest_more_whatever_their_length(small_estimates):
    shares = np.zeros(10)
    shares[[0, 5]] = 0.5
    length_m = np.geomspace(500, 50_000, 4000)
    slow = rng(3).random(4000) < 0.5
    duration_s = 6 * length_m**0.7 * np.where(slow, 1.5, 1.0)  # long trips are faster
    rest = draw_rest_shares(changed(small_estimates, rest_share=shares), length_m, duration_s, rng(2))
    for some in np.split(np.arange(4000), 4):
        assert rest[some].mean() == pytest.approx(0.125, abs=0.03)
        assert rest[some][slow[some]].mean() > 1.5 * rest[some][~slow[some]].mean()


def test_trips_at_the_highest_speed_do_not_rest(small_estimates):
    shares = np.zeros(10)
    shares[-1] = 1.0
    rest = draw_rest_shares(changed(small_estimates, rest_share=shares), np.full(50, 2e6), np.full(50, 1e4), rng(2))
    assert (rest == 0).all()


@pytest.mark.parametrize("interval_s", [1, 5, 60])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_rests_fill_whole_gaps_and_the_wanted_share_of_the_time(interval_s, share):
    offsets, time_s, interval = clocked(800, 61, interval_s)
    moving_s = moving_times(offsets, time_s, np.full(800, share), interval, rng(3)).reshape(800, 61)[:, 1:]
    assert (moving_s >= 0).all() and (moving_s <= interval_s).all()
    # Spells that overlap are shorter than their sum.
    assert 0.75 * share - 0.02 <= (moving_s == 0).mean() <= share + 0.02
    assert (moving_s.sum(axis=1) > 0).all()


def test_rests_come_in_spells_and_waits_only_where_they_are_shorter_than_the_interval():
    offsets, time_s, interval = clocked(500, 201, 5)
    still = moving_times(offsets, time_s, np.full(500, 0.2), interval, rng(3)).reshape(500, 201)[:, 1:] == 0
    spells = (np.diff(still.astype(int), axis=1) == 1).sum() + still[:, 0].sum()
    assert still.sum() / spells > 3, "most rests are longer than one gap"
    dense, sparse = (
        moving_times(*clocked(300, 41, s)[:2], np.zeros(300), clocked(300, 41, s)[2], rng(3)) for s in (2, 60)
    )
    waiting = [1 - moving.reshape(300, 41)[:, 1:].sum() / (300 * 40 * s) for moving, s in ((dense, 2), (sparse, 60))]
    assert waiting[0] < 0.01 < 0.03 < waiting[1] < 0.2


def test_a_trip_that_rests_far_longer_than_others_has_one_long_rest():
    """Of 400 trips of an hour, most rest for 2 % of the time and some for 40 %."""
    offsets, time_s, interval = clocked(400, 121, 30)
    share = np.where(np.arange(400) % 20 == 0, 0.4, 0.02)
    moving_s = moving_times(offsets, time_s, share, interval, rng(4))
    spells = []
    for trip in np.flatnonzero(share > 0.1):
        resting = np.r_[0, (moving_s[offsets[trip] + 1 : offsets[trip + 1]] == 0).astype(int), 0]
        change = np.diff(resting)
        spells.append(30.0 * (np.flatnonzero(change < 0) - np.flatnonzero(change > 0)))
    assert np.mean([length.max() for length in spells]) > 0.75 * 0.4 * 3600
    assert np.mean([len(length) for length in spells]) < 5


def test_a_long_gap_of_a_trip_that_rests_as_long_is_a_rest():
    time_s = np.r_[np.arange(30) * 5.0, 145 + 600 + np.arange(30) * 5.0]
    offsets = np.array([0, 60])
    resting = moving_times(offsets, time_s, np.array([0.75]), np.array([5.0]), rng(1))
    moving = moving_times(offsets, time_s, np.array([0.2]), np.array([5.0]), rng(1))
    assert resting[30] == 0 < moving[30]


def test_trips_without_spare_time_neither_rest_nor_wait():
    offsets, time_s, interval = clocked(200, 5, 60)
    hurried = np.arange(200) % 2 == 0
    moving_s = moving_times(offsets, time_s, np.full(200, 0.4), interval, rng(3), np.where(hurried, 0.95, 0.0))
    moving_s = moving_s.reshape(200, 5)[:, 1:]
    assert (moving_s[hurried] == 60).all() and (moving_s[~hurried] == 0).any()


def test_turns_cost_fast_trips_more_than_slow_ones():
    line = np.linspace(0, 1000, 21)
    x, y = np.r_[line, np.full(20, 1000.0)], np.r_[np.full(20, 500.0), 500 + line]
    lines = Polylines(np.array([0, 41, 82, 123]), np.tile(x, 3), np.tile(y, 3))
    course = with_speeds(course_of(lines, GRID), np.array([10.0, 1.3, 30.0]))
    extra_m = ragged.sums(course.turn_m, lines.offsets)
    # A right angle costs v²/a/2 metres: 33 m at 10 m/s, half a metre on foot, and never more than 75 m.
    np.testing.assert_allclose(extra_m, [100 / 1.5 / 2, 1.3**2 / 1.5 / 2, 75.0], rtol=1e-6)
    assert course.turn_m[20] > 0 and course.turn_m[21] > 0 and course.turn_m[5] == 0
    weight = slowness_weight(course, np.ones((30, 40)))
    assert weight[20] > 1.3 * weight[5]


def test_errors_move_fixes_a_few_metres_and_hardly_the_length():
    x = np.tile(np.linspace(200, 3800, 300), 40)
    lines = Polylines(np.arange(41) * 300, x, np.full(len(x), 1500.0))
    made = with_errors(lines, np.full(40, 2.0), GRID, rng(2))
    assert 3 < np.std(made.y_m) < 9
    assert np.median(lengths(made) / lengths(lines)) < 1.03
    ends = np.r_[lines.offsets[:-1], lines.offsets[1:] - 1]
    assert (made.y_m[ends] == 1500).all() and (made.x_m[ends] == lines.x_m[ends]).all()
    again = with_errors(lines, np.full(40, 2.0), GRID, rng(2))
    assert (made.x_m == again.x_m).all()


def test_about_half_of_the_devices_hold_their_position_while_they_stand_and_all_stay_inside():
    x = np.tile(np.r_[np.linspace(0, 1, 20), np.full(20, 1.0), np.linspace(1, 900, 20)], 200)
    lines = Polylines(np.arange(201) * 60, x, np.zeros(len(x)))
    made = with_errors(lines, np.full(200, 5.0), GRID, rng(4))
    assert made.x_m.min() >= 0 and made.y_m.min() >= 0
    still = np.ptp(made.x_m.reshape(200, 60)[:, 22:38], axis=1) == 0
    assert 0.35 < still.mean() < 0.75


def test_gaps_of_whole_seconds_stay_and_the_others_are_rounded_together():
    gaps = np.array([60.0, 17.3, 60.0, 60.0, 44.4, 60.0, 12.3])
    time_s = np.r_[0.0, np.cumsum(gaps), 0.0, 5.5]
    whole = whole_times(np.array([0, 8, 10]), time_s)
    assert (whole == np.rint(whole)).all()
    assert (np.diff(whole[:8])[gaps == 60] == 60).all()
    assert np.abs(whole - time_s).max() <= 0.5 + 1e-9


def test_rests_of_one_long_gap_hide_short_moves_and_the_middle_of_a_rest_hides_none():
    offsets = np.array([0, 8, 16])
    gap_s = np.tile([0.0] + [300.0] * 7, 2)
    moving_s = gap_s.copy()
    moving_s[3:6] = moving_s[12] = 0.0  # a rest of three gaps, and one of a single gap
    mean_mps = np.array([8.0, 8.0])
    moves = np.array([with_short_moves(offsets, moving_s, gap_s, mean_mps, rng(seed)) for seed in range(400)])
    kept = moving_s > 0
    np.testing.assert_array_equal(moves[:, kept], np.broadcast_to(moving_s[kept], (400, kept.sum())))
    assert (moves[:, [0, 8, 4]] == 0).all()
    assert moves.max(where=~kept, initial=0.0) < 300 / 8
    assert (moves[:, [3, 5]] > 0).mean() == pytest.approx(1 / 8, abs=0.04)
    assert (moves[:, 12] > 0).mean() == pytest.approx(1 - np.exp(-300 / 8 / STOPS.wait_s), abs=0.08)

"""Regions with hours of their own, and departures dealt out by where a trip starts and ends."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from wayveil.core.grid import Grid
from wayveil.core.scope import Scope
from wayveil.core.week import PARTS_OF_WEEK, hour_of_day_or_weekend, part_of_week
from wayveil.errors import ReleaseError
from wayveil.measurement import measure
from wayveil.privacy.budget import Budget
from wayveil.privacy.noise import SeededNoise
from wayveil.questions.catalogue import SHARES, by_line, divided
from wayveil.questions.end_point_hours import EndPointHours
from wayveil.questions.end_points import HOURS_FROM, HOURS_PART
from wayveil.questions.flow import region_depth
from wayveil.release import release_from_json, release_to_json
from wayveil.release.check import check_complete
from wayveil.release.statements import map_hours_statement, not_promised
from wayveil.simulate import simulate_trajectories
from wayveil.synthesis.estimate.place_hours import PlaceHours, exchanged_departures, region_ratios
from wayveil.synthesis.recipe import synthesize

HOUR = np.arange(24)
HOURS = np.full(48, 1 / 48)
SCOPE = Scope(name="small", south=0.0, west=0.0, north=0.05, east=0.05, timezone="Europe/Paris")


def planted(regions=8):
    """Homes in the first half of the regions, work in the second: twice as many leave homes in the morning."""
    wave = 0.5 * np.cos(2 * np.pi * (HOUR - 8) / 24)
    side = np.repeat([1.0, -1.0], regions // 2)
    return 1 + np.outer(side, np.tile(wave, 2))


def heard(ratio, count, noise, seed=0):
    regions = len(ratio)
    mass = np.full(regions, 1 / regions)
    part = part_of_week(np.r_[HOUR, 120 + HOUR] * 3600.0)
    truth = np.zeros((regions, PARTS_OF_WEEK))
    np.add.at(truth.T, part, (count * mass[:, None] * HOURS * ratio).T)
    noisy = truth + np.random.default_rng(seed).laplace(0, noise, truth.shape)
    return region_ratios(noisy, noise, mass, HOURS, count)


def test_hours_and_parts_of_the_week_count_from_monday():
    week_s = np.array([0.0, 2.9 * 3600, 3 * 3600, 119.9 * 3600, 120 * 3600, 167.9 * 3600, 168 * 3600])
    assert part_of_week(week_s).tolist() == [0, 0, 1, 7, 8, 15, 0]
    assert hour_of_day_or_weekend(week_s).tolist() == [0, 2, 3, 23, 24, 47, 0]


def test_what_was_heard_clearly_is_found_and_noise_alone_is_nothing():
    truth = planted()
    assert np.abs(heard(truth, 1e5, 1.0) - truth).max() < 0.1
    far = np.mean([np.abs(heard(truth, 1e5, 200.0, seed) - truth).mean() for seed in range(5)])
    assert far < 0.5 * np.abs(truth - 1).mean()
    for seed in range(5):
        assert np.abs(heard(np.ones((16, 48)), 1e3, 1e4, seed) - 1).max() < 0.1


def test_one_pair_of_regions_and_empty_ones_are_no_trouble():
    noisy = np.zeros((2, PARTS_OF_WEEK))
    found = region_ratios(noisy, 1.0, np.array([1.0, 0.0]), HOURS, 0.5)
    assert np.isfinite(found).all()


def test_departures_stay_and_go_where_their_hour_is_at_home():
    random = np.random.default_rng(1)
    table = np.log(planted(2))
    place_hours = PlaceHours(np.array([0, 1]), table, np.zeros((2, 48)))
    departure = random.uniform(0, 14 * 86_400, 4001)
    origin = random.integers(0, 2, 4001)
    found = exchanged_departures(place_hours, departure, origin, random.integers(0, 2, 4001), SCOPE, random)
    assert np.array_equal(np.sort(found), np.sort(departure))
    hour = hour_of_day_or_weekend(SCOPE.local_seconds(found)) % 24
    morning = (hour >= 6) & (hour < 11)
    # In the morning the ratios are about 1.47 and .53, so three of four start in the first region.
    assert (origin[morning] == 0).mean() == pytest.approx(0.735, abs=0.06)
    both = PlaceHours(np.array([0, 1]), table, table)
    found = exchanged_departures(both, departure, origin, origin, SCOPE, random)
    hour = hour_of_day_or_weekend(SCOPE.local_seconds(found)) % 24
    morning = (hour >= 6) & (hour < 11)
    # Both ends of a short trip say the same: that must not count twice.
    assert (origin[morning] == 0).mean() == pytest.approx(0.735, abs=0.06)
    for few in (0, 1, 2, 3):
        some = exchanged_departures(place_hours, departure[:few], origin[:few], origin[:few], SCOPE, random)
        assert sorted(some) == sorted(departure[:few])


def test_only_many_end_points_are_asked_for_their_hours():
    budget = Budget.split(Fraction(1, 2), SHARES)
    grid = Grid(100.0, 150, 245, 15_000.0, 24_500.0)
    few, many = (
        divided(budget, {**dict.fromkeys(by_line(SHARES), 1e6), "end_points": signal}, grid)
        for signal in (HOURS_FROM - 1, HOURS_FROM)
    )
    assert EndPointHours.name not in few.shares
    whole = budget["end_points/coarse"] + budget["end_points/detail"]
    assert many[EndPointHours.name] == whole * HOURS_PART
    # The ledger is charged before anybody knows: its lines must not tell, and need not.
    assert by_line(budget.shares) == by_line(few.shares) == by_line(many.shares)


@pytest.fixture(scope="module")
def many(small_city):
    """Five hundred trajectories at an ε at which they count as many."""
    data = simulate_trajectories(small_city, 500, seed=3)
    return measure(data, small_city.scope, epsilon=200, unit="trajectory", noise=SeededNoise(5))


def test_a_release_with_hours_keeps_them_and_says_so(many, small_release):
    answer = many[EndPointHours.name]
    assert answer.shape == (2, 2 ** region_depth(500 * float(answer.epsilon)), PARTS_OF_WEEK)
    assert answer.counts.sum() == pytest.approx(500, rel=0.05)  # half at the starts, half at the ends
    assert sum(cost for _, cost in many.ledger) == many.epsilon
    again = release_from_json(release_to_json(many))
    check_complete(again)
    assert np.array_equal(again[EndPointHours.name].noisy, answer.noisy)
    assert any("measured together" in line for line in not_promised(many))
    assert any("measured separately" in line for line in not_promised(small_release))
    assert "districts" in map_hours_statement(many) and "not in their places" in map_hours_statement(small_release)


def test_altered_hours_are_refused(many):
    regions = many[EndPointHours.name].question.regions
    for change in (
        {"shape": [regions * PARTS_OF_WEEK * 2], "parameters": {}},
        {"shape": [2, regions * PARTS_OF_WEEK // 8, 8]},
        {"parameters": {"cuts": many[EndPointHours.name].question.to_json()["cuts"][:-2]}},
        {"parameters": {}},
    ):
        document = json.loads(release_to_json(many))
        next(view for view in document["views"] if view["name"] == EndPointHours.name).update(change)
        with pytest.raises(ReleaseError):
            release_from_json(json.dumps(document))


def test_synthesis_deals_departures_out_and_changes_no_hour(many):
    plain = [answer for answer in many.answers if answer.name != EndPointHours.name]
    made = synthesize(many, n=300, seed=2, estimator="bayes").trajectories
    without = synthesize(replace(many, answers=tuple(plain)), n=300, seed=2, estimator="bayes").trajectories
    starts = [each.t_utc[each.offsets[:-1]] for each in (made, without)]
    assert len(made) == len(without) == 300 and not np.array_equal(*starts)
    assert np.array_equal(*(np.sort(each) for each in starts))

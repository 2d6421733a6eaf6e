"""Regions with hours of their own, and departures assigned to trips by their starts and ends."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from wayveil.core.grid import Grid, base_grid
from wayveil.core.scope import Scope
from wayveil.core.week import hour_of_day_or_weekend, part_of_hour
from wayveil.errors import ReleaseError
from wayveil.measurement import measure
from wayveil.privacy.budget import Budget
from wayveil.privacy.noise import SeededNoise
from wayveil.questions.catalogue import SHARES
from wayveil.questions.end_point_hours import CLEAR_UNITS, SIZES, EndPointHours, hours_size
from wayveil.questions.end_points import HOURS_FROM, HOURS_PART, hours_part
from wayveil.questions.shares import by_group, divided
from wayveil.release import release_from_json, release_to_json
from wayveil.release.check import check_complete
from wayveil.release.statements import map_hours_statement, not_promised
from wayveil.simulate import simulate_trajectories
from wayveil.synthesis.estimate.estimates import RegionFlows
from wayveil.synthesis.estimate.place_hours import PlaceHours, ends_of, place_ratios
from wayveil.synthesis.trips.hours_by_place import departures_by_place
from wayveil.workflow.synthesize import synthesize

HOUR = np.arange(24)
HOURS = np.full(48, 1 / 48)
SCOPE = Scope(name="small", south=0.0, west=0.0, north=0.05, east=0.05, timezone="Europe/Paris")
QUESTION = EndPointHours.example(SCOPE)
EVEN = np.ones((base_grid(SCOPE).rows, base_grid(SCOPE).columns))
ANYWHERE = RegionFlows(np.zeros(EVEN.shape, np.int64), np.ones((1, 1)))
PLACES = ends_of(QUESTION, EVEN, EVEN, ANYWHERE)
MORNING = 0.5 * np.cos(2 * np.pi * (HOUR - 8) / 24)


def planted(side):
    """Ratios of starts and of ends: starts on one side and ends on the other are in the morning."""
    wave = np.outer(side, np.tile(MORNING, 2))
    return 1 + wave, 1 - wave


def tidal():
    """Trips go inward in the morning and outward in the evening."""
    far = PLACES.distance[0] - (PLACES.mass * PLACES.distance)[0].sum()
    return planted(far / np.abs(far).max())


def truth(starts, ends, count):
    """The exact answer if places have these hours and the ends of each trip are equally far from the centre."""
    places = np.vstack([starts, ends]) * HOURS
    by_part = np.stack([places[:, part_of_hour(QUESTION.parts) == part].sum(axis=1) for part in range(QUESTION.parts)])
    group = np.r_[QUESTION.group_of_leaf, QUESTION.groups + QUESTION.group_of_leaf]
    answer = np.zeros(QUESTION.shape)
    np.add.at(answer, group, (by_part * PLACES.mass.ravel() / 2).T)
    answer[-1] = by_part @ (PLACES.mass * PLACES.distance * [[1], [-1]]).ravel()
    return count * answer


def estimated_ratios(starts, ends, count, noise, seed=0):
    """The estimated ratios of starts and ends, stacked."""
    exact = truth(starts, ends, count)
    noisy = exact + np.random.default_rng(seed).laplace(0, noise, exact.shape)
    return np.vstack(place_ratios(QUESTION, noisy, noise, PLACES, HOURS, count))


def test_parts_of_the_day_and_of_the_week():
    assert part_of_hour(2).tolist() == [*([0] * 12 + [1] * 12)] * 2
    assert np.bincount(part_of_hour(5)).tolist() == [12, 8, 12, 8, 8]
    assert part_of_hour(16).tolist() == np.repeat(np.arange(16), 3).tolist()
    week_s = np.array([0.0, 2.9 * 3600, 3 * 3600, 119.9 * 3600, 120 * 3600, 167.9 * 3600, 168 * 3600])
    assert hour_of_day_or_weekend(week_s).tolist() == [0, 2, 3, 23, 24, 47, 0]
    with pytest.raises(ValueError, match="parts"):
        part_of_hour(3)


def test_clear_signals_are_found_and_noise_alone_is_not():
    halves = planted(np.repeat([1.0, -1.0], QUESTION.regions // 2))
    for starts, ends in (halves, tidal()):
        both, size = np.vstack([starts, ends]), np.abs(starts - 1).mean()
        assert np.abs(estimated_ratios(starts, ends, 1e6, 1.0) - both).mean() < 0.35 * size
        far = np.mean([np.abs(estimated_ratios(starts, ends, 1e5, 300.0, seed) - both).mean() for seed in range(5)])
        assert far < 0.8 * size
    nothing = np.ones((QUESTION.regions, 48))
    for seed in range(5):
        assert np.abs(estimated_ratios(nothing, nothing, 1e3, 1e4, seed) - 1).max() < 0.1


def test_the_balance_of_inward_and_outward_is_found_where_regions_are_lost_in_noise():
    starts, ends = tidal()
    exact = truth(starts, ends, 1.0)[-1]
    assert exact[1] == exact.max() > 0 > exact.min()  # the second part of the day is the morning
    found = np.mean([estimated_ratios(starts, ends, 2e4, 100.0, seed) for seed in range(8)], axis=0)
    seen = truth(*np.split(found, 2), 1.0)[-1]
    assert np.abs(seen - exact).max() < 0.5 * np.abs(exact).max()


def test_empty_places_and_a_single_cell_do_not_fail():
    one = np.zeros(EVEN.shape)
    one[3, 4] = 7.0
    places = ends_of(QUESTION, one, one, ANYWHERE)
    for ratios in place_ratios(QUESTION, np.zeros(QUESTION.shape), 1.0, places, HOURS, 0.5):
        assert np.isfinite(ratios).all()


def test_departures_are_kept_and_move_to_places_with_such_hours():
    random = np.random.default_rng(1)
    table = np.log(planted([1.0, -1.0])[0])
    place_hours = PlaceHours(np.array([0, 1]), table, np.zeros((2, 48)))
    departure = random.uniform(0, 14 * 86_400, 4001)
    origin = random.integers(0, 2, 4001)
    found = departures_by_place(place_hours, departure, origin, random.integers(0, 2, 4001), SCOPE, random)
    assert np.array_equal(np.sort(found), np.sort(departure))
    hour = hour_of_day_or_weekend(SCOPE.local_seconds(found)) % 24
    morning = (hour >= 6) & (hour < 11)
    # In the morning the ratios are about 1.47 and .53, so three of four start in the first region.
    assert (origin[morning] == 0).mean() == pytest.approx(0.735, abs=0.06)
    both = PlaceHours(np.array([0, 1]), table, table)
    found = departures_by_place(both, departure, origin, origin, SCOPE, random)
    hour = hour_of_day_or_weekend(SCOPE.local_seconds(found)) % 24
    morning = (hour >= 6) & (hour < 11)
    # Both ends of a short trip carry the same information, which must not count twice.
    assert (origin[morning] == 0).mean() == pytest.approx(0.735, abs=0.06)
    for few in (0, 1, 2, 3):
        some = departures_by_place(place_hours, departure[:few], origin[:few], origin[:few], SCOPE, random)
        assert sorted(some) == sorted(departure[:few])


def test_hours_by_place_are_asked_only_about_many_end_points():
    budget = Budget.split(Fraction(1, 2), SHARES)
    grid = Grid(100.0, 150, 245, 15_000.0, 24_500.0)
    few, many = (
        divided(budget, {**dict.fromkeys(by_group(SHARES), 1e6), "end_points": signal}, grid)
        for signal in (float(HOURS_FROM / HOURS_PART) - 1, float(HOURS_FROM / HOURS_PART) + 1)
    )
    assert EndPointHours.name not in few.shares
    whole = budget["end_points/coarse"] + budget["end_points/detail"]
    assert many[EndPointHours.name] == whole * HOURS_PART
    # The ledger is charged before the signal is known, so its entries must not depend on it.
    assert by_group(budget.shares) == by_group(few.shares) == by_group(many.shares)


def test_regions_and_parts_follow_the_signal():
    assert hours_size(0.0) == hours_size(CLEAR_UNITS * 4) == (2, 2)
    assert hours_size(1e9) == SIZES[-1]
    sizes = [hours_size(signal) for signal in np.geomspace(10, 1e5, 50)]
    assert sorted(sizes, key=lambda size: size[0] * size[1]) == sizes and set(sizes) == set(SIZES)
    # Where the question is asked at all, its coarsest size is clear.
    assert CLEAR_UNITS * SIZES[0][0] * SIZES[0][1] <= HOURS_FROM
    assert hours_part(200.0) == 0 and hours_part(200.0, gaussian=True) == hours_part(400.0) == HOURS_PART


@pytest.fixture(scope="module")
def many(small_city):
    """Five hundred trajectories, with an ε so large that their signal is that of many."""
    data = simulate_trajectories(small_city, 500, seed=3)
    return measure(data, small_city.scope, epsilon=200, unit="trajectory", noise=SeededNoise(5))


def test_a_release_with_hours_keeps_them_and_says_so(many, small_release):
    answer = many[EndPointHours.name]
    regions, parts = hours_size(500 * float(answer.epsilon))
    assert answer.shape == (2 * regions + 1, parts)
    starts, ends = answer.counts[:regions].sum(), answer.counts[regions:-1].sum()
    assert starts == pytest.approx(ends, rel=0.1) and 150 < starts < 250  # up to one half each
    assert sum(cost for _, cost in many.ledger) == many.epsilon
    again = release_from_json(release_to_json(many))
    check_complete(again)
    assert np.array_equal(again[EndPointHours.name].noisy, answer.noisy)
    assert any("measured together" in line for line in not_promised(many))
    assert any("measured separately" in line for line in not_promised(small_release))
    assert "districts" in map_hours_statement(many) and map_hours_statement(small_release) is None


def test_altered_hours_are_refused(many):
    question = many[EndPointHours.name].question
    plain = question.to_json()
    for change in (
        {"shape": [(2 * question.groups + 1) * question.parts], "parameters": {}},
        {"shape": [question.groups, question.parts]},
        {"parameters": {**plain, "cuts": plain["cuts"][:-2]}},
        {"parameters": {**plain, "regions": 3}},
        {"parameters": {**plain, "parts": 7}},
        {"parameters": {**plain, "centre": [-1, 0]}},
        {"parameters": {**plain, "radius": 0}},
        {"parameters": {"cuts": plain["cuts"]}},
    ):
        document = json.loads(release_to_json(many))
        next(entry for entry in document["answers"] if entry["name"] == EndPointHours.name).update(change)
        with pytest.raises(ReleaseError):
            release_from_json(json.dumps(document))


def test_synthesis_reassigns_departures_and_changes_no_hour(many):
    plain = [answer for answer in many.answers if answer.name != EndPointHours.name]
    made = synthesize(many, n=300, seed=2, estimator="bayes").trajectories
    without = synthesize(replace(many, answers=tuple(plain)), n=300, seed=2, estimator="bayes").trajectories
    starts = [each.t_utc[each.offsets[:-1]] for each in (made, without)]
    assert len(made) == len(without) == 300 and not np.array_equal(*starts)
    assert np.array_equal(*(np.sort(each) for each in starts))

"""Estimates about people: noise alone changes nothing, a clear answer is followed, and ends exchange positions."""

import datetime as dt
from types import SimpleNamespace

import numpy as np
import pytest

from wayveil.core.scope import Scope
from wayveil.questions.answer import Clipping
from wayveil.questions.norms import NormBins
from wayveil.questions.people.rhythm import TRIPS
from wayveil.questions.people.trips_of_people import PLACE_M
from wayveil.synthesis.people.ends import NEAR_M, exchanged
from wayveil.synthesis.people.estimate import coupled
from wayveil.synthesis.people.numbers import draw_numbers, trip_numbers
from wayveil.synthesis.people.plan import Calendar
from wayveil.synthesis.people.posterior import Observed, jointly, posterior_mean, projected, shapes
from wayveil.synthesis.people.rhythms import Deal
from wayveil.synthesis.people.state import TripTable

SCOPE = Scope(
    name="small", south=0.0, west=0.0, north=0.05, east=0.05, timezone="UTC",
    first_day=dt.date(2024, 1, 1), last_day=dt.date(2024, 1, 28),
)  # fmt: skip
UNRELATED = np.array([5.0, 40.0, 120.0, 90.0, 30.0, 10.0, 5.0])


def error(estimate, truth):
    return np.abs(estimate - truth).sum()


def estimate(noisy, sd, ordered):
    (counts,) = jointly([Observed(noisy, sd, UNRELATED[None], ordered)], np.ones(1))
    return counts


@pytest.mark.parametrize("ordered", [False, True])
def test_an_answer_of_noise_leaves_the_expected_table_nearly_as_it_is(ordered):
    rng = np.random.default_rng(0)
    sd = 60.0
    noisy = UNRELATED + rng.normal(0, sd, (40, len(UNRELATED)))
    errors = [error(estimate(one, sd, ordered), UNRELATED) for one in noisy]
    assert np.mean(errors) < 0.35 * np.mean([error(one, UNRELATED) for one in noisy])


@pytest.mark.parametrize("ordered", [False, True])
def test_a_clear_answer_is_followed(ordered):
    rng = np.random.default_rng(0)
    truth, sd = UNRELATED[::-1], 3.0
    noisy = truth + rng.normal(0, sd, len(UNRELATED))
    counts = estimate(noisy, sd, ordered)
    assert error(counts, truth) < error(noisy, truth) + 6 < error(UNRELATED, truth) / 10
    assert counts.min() >= 0 and counts.sum() == pytest.approx(truth.sum())


def test_tables_that_share_a_hypothesis_are_nearer_together_than_alone():
    rng, sd, tables, errors = np.random.default_rng(0), 30.0, 4, []
    other = UNRELATED[::-1]
    for truth in (UNRELATED, other):
        for _ in range(20):
            noisy = truth + rng.normal(0, sd, (tables, len(truth)))
            observed = [Observed(one, sd, np.array([UNRELATED, other])) for one in noisy]
            prior = np.array([0.5, 0.5])
            alone = [jointly([one], prior)[0] for one in observed]
            errors.append([sum(error(one, truth) for one in found) for found in (jointly(observed, prior), alone)])
    together, alone = np.mean(errors, axis=0)
    assert together < 0.8 * alone


def test_a_small_share_needs_evidence_and_a_large_one_is_followed():
    expected = np.array([[2.0] * 8, [40.0] * 8])
    rng = np.random.default_rng(0)
    for truth, prior, sd in ((expected[0], 0.95, 40.0), (expected[1], 0.95, 5.0)):
        found = np.mean([posterior_mean(expected, truth + rng.normal(0, sd, 8), sd, prior) for _ in range(40)], axis=0)
        assert found == pytest.approx(truth, abs=4)


class Released:
    """A release with an answer about the number of trips only."""

    def __init__(self, most, count):
        self.max_per_user, self.count = most, count

    def __getitem__(self, name):
        assert name == "count"
        return self.count


def released(trips, most, sd, rng):
    """A release about people with these numbers of trips, and the answer about the numbers; noise of this size."""
    used, edges = np.minimum(trips, most), NormBins(most, whole=True).edges
    norms = np.bincount(np.searchsorted(edges, used, side="left") - 1, minlength=len(edges) - 1)
    kept = float(np.minimum(used, most / 2).sum() / used.sum())
    clipping = Clipping(1, most // 2, kept, norms + rng.normal(0, sd, len(norms)), sd)
    count = np.array([used.sum() + rng.normal(0, 20 * sd)])
    histogram = np.bincount(TRIPS.index(trips.astype(float)), minlength=len(TRIPS)) + rng.normal(0, sd, len(TRIPS))
    answer = SimpleNamespace(counts=count, noise=20 * sd / 2**0.5, clipping=clipping)
    return Released(most, answer), SimpleNamespace(counts=histogram, noise=sd / 2**0.5)


def numbers_of(kind, people, rng):
    if kind == "drivers":
        return rng.poisson(50 * rng.lognormal(0, 0.35, people)) + 1
    return np.minimum(2 * np.floor(rng.random(people) ** (-1 / 0.9)), 2 * rng.integers(25, 33, people)).astype(int)


@pytest.mark.parametrize(("kind", "people"), [("drivers", 400), ("residents", 3000)])
def test_numbers_of_trips_are_nearer_than_if_everybody_made_the_mean(kind, people):
    errors = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        trips = numbers_of(kind, people, rng)
        number, shares = trip_numbers(*released(trips, 50, 40.0, rng), [(people + rng.normal(0, 200), 200.0)])
        assert number == pytest.approx(people, rel=0.3)
        assert shares.min() >= 0 and shares.sum() == pytest.approx(1) and len(shares) == 100
        bins = TRIPS.index(np.arange(1.0, 101))
        chance = rng.multinomial(trips.sum(), np.full(people, 1 / people))
        truth, equal = (np.bincount(TRIPS.index(np.maximum(one, 1.0)), minlength=len(TRIPS)) for one in (trips, chance))
        estimate = np.bincount(bins, weights=people * shares, minlength=len(TRIPS))
        errors.append((error(estimate, truth), error(equal, truth)))
    estimated, equal = np.mean(errors, axis=0)
    assert estimated < 0.6 * equal


def test_with_little_noise_numbers_of_trips_are_nearly_the_true_ones():
    rng = np.random.default_rng(0)
    trips = numbers_of("residents", 3000, rng)
    number, shares = trip_numbers(*released(trips, 50, 1.0, rng), [])
    found = number * np.bincount(TRIPS.index(np.arange(1.0, 101)), weights=shares, minlength=len(TRIPS))
    assert found == pytest.approx(np.bincount(TRIPS.index(trips.astype(float)), minlength=len(TRIPS)), abs=30)
    assert number == pytest.approx(3000, rel=0.01)


def test_shapes_are_distributions_and_projections_keep_the_total():
    bank = shapes(np.arange(8.0), np.arange(0.0, 7.0), (0.2, 2.0))
    assert bank.min() >= 0 and np.allclose(bank.sum(axis=1), 1)
    assert projected(np.array([5.0, -3.0, 1.0]), 4.0) == pytest.approx([4, 0, 0])
    assert projected(np.array([5.0, 1.0]), 0.0) == pytest.approx([0, 0])


def test_numbers_of_trips_add_up():
    shares = np.array([0.5, 0.3, 0.2])
    for count, people in ((200, 100), (100, 100), (700, 100), (7, 7), (9, 1)):
        drawn = draw_numbers(shares, count, people, np.random.default_rng(0))
        assert len(drawn) == people and drawn.sum() == count and drawn.min() >= 1


def test_ends_are_near_their_place_and_positions_are_used_once():
    rng = np.random.default_rng(0)
    place, before = rng.uniform(0, 5_000, (2, 3_000, 2))
    after = exchanged(place, before)
    assert (np.hypot(*(after - place).T) <= NEAR_M).all()
    assert (after // PLACE_M == place // PLACE_M).all()
    kept = {tuple(row) for row in before.tolist()}
    taken = [tuple(row) for row in after.tolist() if tuple(row) in kept]
    assert len(taken) == len(set(taken)) > 0.8 * len(before)


def test_an_end_that_is_near_its_place_stays():
    place = np.array([[250.0, 250.0], [1250.0, 250.0]])
    before = place + np.array([[100.0, 0.0], [0.0, -140.0]])
    assert np.array_equal(exchanged(place, before), before)
    assert exchanged(np.zeros((0, 2)), np.zeros((0, 2))).shape == (0, 2)


def test_values_of_a_row_get_its_wanted_shares_and_as_few_as_possible_change():
    rng = np.random.default_rng(0)
    wanted = np.array([[0.5, 0.5, 0.0], [0.0, 0.2, 0.8]])
    row, bins = np.repeat([0, 1], 5000), np.r_[np.zeros(5000, int), np.full(5000, 2)]
    new = coupled(wanted, row, bins, rng)
    for k in (0, 1):
        assert np.bincount(new[row == k], minlength=3) / 5000 == pytest.approx(wanted[k], abs=0.03)
    assert (new != bins).mean() == pytest.approx(0.35, abs=0.02)
    assert np.array_equal(coupled(np.eye(2), np.array([0, 1]), np.array([0, 1]), rng), [0, 1])


def test_people_with_a_rhythm_travel_on_fewer_days_and_at_hours_of_their_own():
    rng, calendar = np.random.default_rng(0), Calendar.of(SCOPE)
    count, people = 20_000, 500
    day = rng.integers(0, len(calendar.midnight), count)
    table = TripTable(
        rng.uniform(0, 5_000, (count, 2)), rng.uniform(0, 5_000, (count, 2)), rng.uniform(0, 80_000, count),
        np.full(count, 600.0), calendar.weekend[day].astype(float),
    )  # fmt: skip
    deal, numbers = Deal.of(table, day, SCOPE), np.full(people, 20)
    usual, days, hours = (deal.people(numbers, *rhythm, rng) for rhythm in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.35)))
    assert all(len(one) == 20 * people for one in (usual, days, hours))
    assert days.days.mean() < 0.75 * usual.days.mean() == pytest.approx(0.75 * hours.days.mean(), rel=0.05)

    def spread(trips):
        angle = 2 * np.pi * (trips.local0_s % 86_400) / 86_400
        return 1 - np.abs(np.bincount(trips.person, weights=np.cos(angle)) + 1j * np.bincount(
            trips.person, weights=np.sin(angle))).mean() / 20  # fmt: skip

    assert spread(hours) < 0.5 * spread(usual) and spread(days) == pytest.approx(spread(usual), rel=0.05)
    for one in (days, hours):  # all trips together keep their hours
        quartiles = np.quantile(one.local0_s % 86_400, [0.25, 0.5, 0.75])
        assert quartiles == pytest.approx([20_000, 40_000, 60_000], abs=1_500)

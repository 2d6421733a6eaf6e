"""Questions about people: what one user adds is bounded and that user's own; they are asked only of enough people."""

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayveil.core.prepare import prepare
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, select
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Serial
from wayveil.engine.units import UserUnits, unit_vectors
from wayveil.io.source import MemorySource
from wayveil.measurement import measure
from wayveil.privacy.budget import Budget
from wayveil.privacy.clipping import clip_l2, squared_norms
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.questions import shares
from wayveil.questions.catalogue import PEOPLE_QUESTIONS, SHARES
from wayveil.questions.norms import NormBins, UnitQuery, clipped_resolution
from wayveil.questions.people.chains import Continuity
from wayveil.questions.people.rhythm import MOST_DATES, Dates, TripsPerDay, days_per_column
from wayveil.questions.people.trips_of_people import PeopleTrips
from wayveil.questions.question import size_of
from wayveil.questions.shares import PEOPLE_SHARE, PEOPLE_SHARES_OF_RHO, with_people
from wayveil.release import release_from_json, release_to_json
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.simulate.generate import Behaviour

SCOPE = Scope(name="small", south=0.0, west=0.0, north=0.05, east=0.05, timezone="Europe/Paris")
QUESTIONS = [question(SCOPE) for question, _ in PEOPLE_QUESTIONS]
EUCLIDEAN = [question(SCOPE, 2) for question, _ in PEOPLE_QUESTIONS]
PLACE = st.one_of(st.floats(0.0, 0.05), st.sampled_from([0.0, 0.05, 0.025, -1.0]))
MOMENT = st.one_of(st.integers(0, 200_000).map(float), st.sampled_from([0.0, 86_400.0, 1e11, -1e11]))
TRIP = st.tuples(PLACE, PLACE, MOMENT, PLACE, PLACE, MOMENT)


def as_trips(rows, users):
    """Trips of two points; times may be equal, or end before they start."""
    flat = np.array([[(row[0], row[1], row[2]), (row[3], row[4], row[5])] for row in rows], float).reshape(-1, 3)
    return Trajectories(2 * np.arange(len(rows) + 1), flat[:, 0], flat[:, 1], flat[:, 2], np.array(users))


@settings(max_examples=25, deadline=None)
@given(st.lists(TRIP, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_one_user_adds_at_most_one_in_l1_and_l2_in_any_order(rows, shuffle):
    batch = prepare(as_trips(rows, [0] * len(rows)), SCOPE)
    shuffle.shuffle(rows)
    other = prepare(as_trips(rows, [0] * len(rows)), SCOPE)
    for question in QUESTIONS:
        vectors = [unit_vectors(question, one, np.zeros(len(one), np.int64), 1) for one in (batch, other)]
        sums = [one.sums(size_of(question)) for one in vectors]
        assert np.array_equal(*sums), question.name
        assert sums[0].min() >= 0 and sums[0].sum() <= question.resolution, question.name
        assert int(squared_norms(vectors[0])[0]) <= question.resolution**2, question.name
    for question in EUCLIDEAN:
        vectors = [unit_vectors(question, one, np.zeros(len(one), np.int64), 1) for one in (batch, other)]
        sums = [one.sums(size_of(question)) for one in vectors]
        norm = int(squared_norms(vectors[0])[0])
        assert np.array_equal(*sums) and sums[0].min() >= 0, question.name
        assert norm <= question.resolution**2, question.name
        # Only rounding takes something away, at most one in each cell.
        largest = (question.resolution - np.sqrt((sums[0] > 0).sum())) ** 2
        assert norm >= largest or norm == 0, question.name
        assert (sums[0] >= unit_vectors(_with_norm(question, 1), batch, np.zeros(len(batch), np.int64), 1).sums(
            size_of(question)
        )).all(), question.name  # fmt: skip


@pytest.mark.parametrize("equal_times", [False, True])
def test_thousands_of_trips_of_one_user_add_no_more_than_one(equal_times):
    rng = np.random.default_rng(0)
    places, times = rng.uniform(0, 0.05, (5_000, 4)), np.zeros(5_000) if equal_times else rng.uniform(0, 1e7, 5_000)
    rows = [(a, b, t, c, d, t + 600) for (a, b, c, d), t in zip(places.tolist(), times.tolist())]
    batch = prepare(as_trips(rows, [0] * len(rows)), SCOPE)
    for question in QUESTIONS:
        vectors = unit_vectors(question, batch, np.zeros(len(batch), np.int64), 1)
        assert 0 < vectors.sums(size_of(question)).sum() <= question.resolution, question.name
    for question in EUCLIDEAN:
        vectors = unit_vectors(question, batch, np.zeros(len(batch), np.int64), 1)
        assert 0 < int(squared_norms(vectors)[0]) <= question.resolution**2, question.name


@settings(max_examples=5, deadline=None)
@given(st.lists(TRIP, min_size=2, max_size=14), st.integers(0, 3))
def test_removing_a_user_removes_exactly_what_that_user_adds(rows, user):
    data = as_trips(rows, [k % 4 for k in range(len(rows))])
    asked = QUESTIONS + EUCLIDEAN
    queries = [UnitQuery(one, NormBins(1), clipped_resolution(one)) for one in asked]

    def sums(some, ends_only):
        if len(some) == 0:
            return [np.zeros(size_of(one), np.int64) for one in asked]
        with UserUnits(Passes(MemorySource(some), Serial()), SCOPE, None, ends_only=ends_only) as units:
            return units.sums(queries)

    mine = data.user == user
    for ends_only in (False, True):  # as with a δ, and as without one
        sides = [sums(select(data, which), ends_only) for which in (np.ones(len(data), bool), ~mine, mine)]
        for whole, without, alone in zip(*sides):
            assert np.array_equal(whole - without, alone)


def test_a_question_that_adds_up_trips_instead_of_people_is_caught():
    """What the bound would be without dividing by the number of trips: the test above fails for it."""
    rows = [(0.01, 0.01, 100.0 * k, 0.02, 0.02, 100.0 * k + 50) for k in range(5)]
    batch = prepare(as_trips(rows, [0] * 5), SCOPE)
    question = Continuity(SCOPE)
    person, _ = question.entries(PeopleTrips.of(batch, np.zeros(5, np.int64), 1, SCOPE))
    assert len(person) * question.resolution > question.resolution  # 4 stays of one user
    vectors = unit_vectors(question, batch, np.zeros(5, np.int64), 1)
    assert clip_l2(vectors, clipped_resolution(question)).sums(size_of(question)).sum() == question.resolution


def _with_norm(question, norm):
    return replace(question, norm=norm)


def test_with_a_bounded_l2_norm_equal_entries_in_n_cells_add_one_over_the_root_of_n():
    day = 86_400.0
    rows = [(0.01, 0.01, 4 * day + 3600.0 * k, 0.02, 0.02, 4 * day + 3600.0 * k + 60) for k in (9, 33, 34)]
    batch = prepare(as_trips(rows, [0] * 3), SCOPE)  # one trip on Monday, two on Tuesday
    for norm, each in ((1, 1 / 2), (2, 2**-0.5)):
        question = TripsPerDay(SCOPE, norm)
        sums = unit_vectors(question, batch, np.zeros(3, np.int64), 1).sums(size_of(question))
        assert sums[:2] / question.resolution == pytest.approx([each, each], abs=1e-4) and sums[2:].sum() == 0


def test_dates_are_those_of_the_scope_in_at_most_a_few_columns():
    zone = {"timezone": "Europe/Paris", "south": 0.0, "west": 0.0, "north": 0.05, "east": 0.05, "name": "dated"}
    june = Scope(first_day=dt.date(2024, 6, 1), last_day=dt.date(2024, 6, 10), **zone)
    first = dt.datetime(2024, 6, 1, tzinfo=june.zone).timestamp()
    rows = [(0.01, 0.01, first + 86_400.0 * k + 60, 0.02, 0.02, first + 86_400.0 * k + 90) for k in (0, 0, 3, 9)]
    batch = prepare(as_trips(rows, [0] * 4), june)
    sums = unit_vectors(Dates(june), batch, np.zeros(4, np.int64), 1).sums(10)
    assert np.flatnonzero(sums).tolist() == [0, 3, 9] and sums[0] == 2 * sums[3] == Dates.resolution // 2
    assert Dates(SCOPE).shape == (7,)
    years = Scope(first_day=dt.date(2007, 4, 1), last_day=dt.date(2012, 8, 31), **zone)
    assert days_per_column(years) % 7 == 0 and Dates(years).shape[0] <= MOST_DATES
    late = dt.datetime(2012, 8, 31, 23, tzinfo=years.zone).timestamp()
    batch = prepare(as_trips([(0.01, 0.01, late, 0.02, 0.02, late + 60)], [0]), years)
    assert unit_vectors(Dates(years), batch, np.zeros(1, np.int64), 1).column.tolist() == [Dates(years).shape[0] - 1]


def test_a_hand_made_week_is_counted_as_described():
    # Monday: home → work → home; Tuesday: home → work. Home and work are 2.2 km apart.
    home, work, day = (0.0101, 0.0101), (0.0301, 0.0101), 86_400.0
    monday = 4 * day  # 1970-01-05, and Paris is an hour ahead
    rows = [
        (*home, monday + 25_200, *work, monday + 26_400),
        (*work, monday + 57_600, *home, monday + 58_800),
        (*home, monday + day + 25_200, *work, monday + day + 26_400),
    ]
    batch = prepare(as_trips(rows, [0] * 3), SCOPE)
    trips = PeopleTrips.of(batch, np.zeros(3, np.int64), 1, SCOPE)
    assert trips.trips.tolist() == [3] and trips.days.tolist() == [2]
    assert trips.active_days[1].tolist() == [2, 1] and (trips.apart_m < 1).all()
    assert trips.gap_s.tolist() == [31_200.0, 52_800.0]
    assert trips.repeats.tolist() == [0, 2, 1]
    assert trips.ranked.count(1).tolist() == [2] and trips.ranked.visits.tolist() == [3, 3]
    half = (
        SCOPE.to_metres(np.array([0.0301]), np.array([0.0]))[0]
        - SCOPE.to_metres(np.array([0.0101]), np.array([0.0]))[0]
    )
    assert trips.gyration_m[0] == pytest.approx(half[0] / 2)


def test_the_part_for_people_keeps_the_total_and_the_count():
    budget = Budget.split(1, SHARES)
    more = with_people(budget, Unit.user(5), 1e6, lambda share: 1 / float(share))
    asked = sum(share for name, share in more.shares.items() if name.startswith("people/"))
    assert sum(more.shares.values(), Fraction(0)) == budget.epsilon and more["count"] == budget["count"]
    assert asked == PEOPLE_SHARE * (1 - budget["count"]) <= Fraction(15, 100)


def test_people_get_the_smallest_part_that_exceeds_the_noise():
    budget, unit = Budget.split(1, SHARES), Unit.user(50)

    def part(people):
        more = with_people(budget, unit, people, lambda share: 0.5 / float(share) ** 0.5, parts=PEOPLE_SHARES_OF_RHO)
        asked = sum(share for name, share in more.shares.items() if name.startswith("people/"))
        assert sum(more.shares.values(), Fraction(0)) == budget.epsilon
        return asked / (1 - budget["count"])

    # 8 noise units of 0.5 / sqrt(.99 · part / 11) people
    fewer_and_fewer = [part(people) for people in (1e6, 60.0, 59.0, 43.0, 41.0, 35.0, 34.0)]
    assert fewer_and_fewer == [Fraction(number, 100) for number in (5, 5, 10, 10, 15, 15, 0)]


@pytest.mark.parametrize(("unit", "people"), [(Unit.trajectory(), 1e9), (Unit.user(2), 1e9), (Unit.user(5), 100.0)])
def test_people_are_not_asked_about_single_trips_or_where_noise_hides_them(unit, people):
    budget = Budget.split(1, SHARES)
    assert with_people(budget, unit, people, lambda share: 1 / float(share)) is budget


@pytest.fixture(scope="module")
def residents():
    city = simulate_city(0, size_km=(4, 4))
    return city, simulate_trajectories(city, 1500, seed=1, behaviour=Behaviour(diaries=True))


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_a_release_holds_the_answers_about_people_with_the_noise_of_one_user(residents, delta):
    city, data = residents
    with mock.patch.object(shares, "LEAST_PEOPLE", 0.0), mock.patch.object(shares, "FULL_SIGNAL", 3.01):
        release = measure(data, city.scope, epsilon=20, delta=delta, unit="user", max_per_user=20, noise=SeededNoise(1))
    again = release_from_json(release_to_json(release))
    assert sum(cost for _, cost in again.ledger) == 20
    users = len(np.unique(data.user))
    trips = again["people/trips"]
    assert trips.counts.sum() == pytest.approx(users, abs=6 * trips.noise * 2**0.5 * len(trips.counts) ** 0.5)
    share = float(trips.epsilon)
    norms = {answer.question.norm for answer in again.answers if answer.name.startswith("people/")}
    assert norms == {1 if delta == "0" else 2}
    if delta == "0":
        assert trips.scale == pytest.approx(trips.question.resolution / share, rel=1e-3)
    continuity = again["people/continuity"].counts.sum(axis=0)
    assert continuity[1] > 5 * abs(continuity[0])  # everybody starts where the last trip ended


def test_trip_level_releases_have_no_answers_about_people(residents):
    city, data = residents
    release = measure(data, city.scope, epsilon=50, unit="trajectory", noise=SeededNoise(1))
    assert not [answer for answer in release.answers if answer.name.startswith("people/")]

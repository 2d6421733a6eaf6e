"""Measures of people against hand-computed values and the published formulas of scikit-mobility and trackintel."""

import numpy as np
import pytest

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.evaluation.people import evaluate_people
from wayveil.evaluation.people.evaluate import PeopleScore, divergence
from wayveil.evaluation.people.measures import MEASURES, people_trips, zipf_exponent
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.simulate.generate import Behaviour

SCOPE = Scope(name="flat", south=0.0, west=0.0, north=0.05, east=0.05)
CITY = simulate_city(0, size_km=(4, 4))


def people(rows):
    """Trips (user, x0, y0, x1, y1, t0, t1) with places in metres."""
    table = np.array([row[1:] for row in rows], float)
    lon, lat = SCOPE.to_degrees(table[:, [0, 2]].ravel(), table[:, [1, 3]].ravel())
    return Trajectories(2 * np.arange(len(rows) + 1), lon, lat, table[:, [4, 5]].ravel(), [row[0] for row in rows])


WEEK = [
    ("a", 100, 100, 2100, 100, 0, 600),
    ("a", 2100, 100, 100, 100, 30_000, 30_600),
    ("a", 100, 100, 100, 3100, 90_000, 90_600),
    ("b", 4100, 4100, 4100, 4100, 10, 20),
]


def values(name, data):
    person, found = MEASURES[name].values(people_trips(data, SCOPE))
    return {int(p): [float(v) for v in found[person == p]] for p in np.unique(person)}


def test_each_measure_of_a_hand_made_week():
    data = people(WEEK)
    assert values("trips", data) == {0: [3.0], 1: [1.0]}
    assert values("days", data) == {0: [2.0], 1: [1.0]}
    assert values("day_trips", data) == {0: [2.0, 1.0], 1: [1.0]}
    assert values("places", data) == {0: [3.0], 1: [1.0]}
    assert values("waiting", data) == {0: [pytest.approx(30_000 / 3600), pytest.approx(60_000 / 3600)]}
    assert values("continuous", data) == {0: [1.0, 1.0]}
    assert values("returns", data) == {}
    assert values("visits", data)[0] == [1.0, 2.0, 1.0, 2.0, 1.0, 3.0]
    # scikit-mobility: −Σ p log2 p with p = 3/6, 2/6, 1/6.
    p = np.array([3, 2, 1]) / 6
    assert values("entropy", data)[0] == [pytest.approx(-(p * np.log2(p)).sum())]


def test_the_radius_of_gyration_is_that_of_scikit_mobility():
    """sqrt(1/n Σ |r − centre|²) over all recorded visits."""
    visits = np.array([(100, 100), (2100, 100), (2100, 100), (100, 100), (100, 100), (100, 3100)], float)
    expected = np.sqrt(((visits - visits.mean(axis=0)) ** 2).sum(axis=1).mean()) / 1000
    assert values("gyration", people(WEEK))[0] == [pytest.approx(expected, rel=1e-6)]


def test_the_zipf_exponent_of_an_exact_power_law_is_found():
    """Places visited 60, 30, 20, 15 and 12 times: f ∝ 1/rank."""
    rows, t0 = [], 0
    for rank in range(5):
        for _ in range(60 // (rank + 1)):
            x = 250 + 600 * rank
            rows.append(("a", x, 250, x, 250, t0, t0 + 10))
            t0 += 1000
    assert zipf_exponent(people_trips(people(rows), SCOPE)) == pytest.approx(1.0, abs=1e-6)


def test_divergences_are_zero_for_equal_and_one_for_disjoint_shares():
    assert divergence(np.array([1.0, 3.0]), np.array([2.0, 6.0])) == 0
    assert divergence(np.array([1.0, 0.0]), np.array([0.0, 6.0])) == pytest.approx(1.0)


def test_equal_people_score_the_floor_and_randomly_assigned_trips_do_not():
    one, other = (simulate_trajectories(CITY, 700, seed=seed, behaviour=Behaviour(diaries=True)) for seed in (1, 2))
    shuffled = Trajectories(
        other.offsets, other.lon, other.lat, other.t_utc, np.random.default_rng(0).permutation(other.user)
    )
    same, chance = (evaluate_people(one, side, CITY.scope) for side in (other, shuffled))
    assert same.overlaps == same.jumps == 0 and chance.overlaps + chance.jumps > 0
    for good in same.scores:
        assert good.value <= 3 * good.floor + 0.02, good.name
    assert sum(bad.value > 3 * good.value + 0.02 for good, bad in zip(same.scores, chance.scores)) >= 5
    assert same.classifier < 0.65 < chance.classifier
    assert "classifier" in str(same) and same.to_dict()["people"] == same.people
    assert same.verdict.startswith("People: good") and chance.verdict.startswith("People: poor")
    assert str(same).startswith(same.verdict)


def test_the_columns_of_the_table_of_people_are_aligned():
    one, other = (simulate_trajectories(CITY, 100, seed=seed, behaviour=Behaviour(diaries=True)) for seed in (1, 2))
    head, *rows = str(evaluate_people(one, other, CITY.scope)).splitlines()[2:]
    ends = [head.index(name) + len(name) for name in ("value", "floor", "shuffled")]
    for row in filter(None, rows):
        assert all(end >= len(row) or row[end : end + 1] == " " for end in ends), row
        assert len(row) in ends, row


def test_a_measure_is_good_near_the_floor_and_poor_above_shuffled_trips():
    words = [PeopleScore("x", "x", value, 0.02, 0.3).word for value in (0.04, 0.09, 0.11, 0.29, 0.31)]
    assert words == ["good", "good", "rough", "rough", "poor"]


def test_sides_without_users_are_refused():
    data = people(WEEK)
    bare = Trajectories(data.offsets, data.lon, data.lat, data.t_utc)
    with pytest.raises(InputError, match="real trajectories have no users"):
        evaluate_people(bare, data, SCOPE)
    with pytest.raises(InputError, match="needs at least"):
        evaluate_people(data, data, SCOPE)

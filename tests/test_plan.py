"""`wayveil plan`: expected errors before anything is spent."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import wayveil
from wayveil.cli.main import app
from wayveil.errors import InputError
from wayveil.measurement import measure
from wayveil.measurement.signal_check import noise_words
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.questions.count import Count
from wayveil.questions.norms import NormBins
from wayveil.release.kinds import KINDS
from wayveil.release.number import estimate_number
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.workflow.expected_number import People

SCOPE = "san-francisco"


def errors_of(**how):
    return [result.error for result in wayveil.plan(scope=SCOPE, **how).results]


def test_more_of_anything_never_makes_it_worse():
    few = errors_of(trips=1_000, epsilon="0.1")
    for more in ({"trips": 10_000, "epsilon": "0.1"}, {"trips": 1_000, "epsilon": 1}):
        assert all(a <= b for a, b in zip(errors_of(**more), few, strict=True))


def test_only_the_product_of_trips_and_epsilon_matters_for_the_noise():
    a, b = (errors_of(trips=trips, epsilon=epsilon) for trips, epsilon in ((50_000, 1), (500_000, "0.1")))
    assert a == pytest.approx(b)


def test_users_need_more_and_a_delta_helps_them():
    how = {"trips": 20_000, "users": 400, "epsilon": 1, "unit": "user", "max_per_user": 50}
    pure, gaussian = wayveil.plan(scope=SCOPE, **how), wayveil.plan(scope=SCOPE, delta="1e-6", **how)
    assert pure["streets"].error > gaussian["streets"].error > wayveil.plan(
        scope=SCOPE, trips=20_000, epsilon=1
    )["streets"].error  # fmt: skip
    assert 400 < pure.trips_used < 20_000
    assert {(other.epsilon, other.delta > 0) for other in pure.others} == {("3", False), ("1", True), ("1", False)}


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"trips": 0, "epsilon": 1}, "trips="),
        ({"trips": 10, "epsilon": 0}, "epsilon"),
        ({"trips": 10, "epsilon": 1, "unit": "user", "max_per_user": 2}, "users="),
        ({"trips": 10, "users": 20, "epsilon": 1}, "larger than trips="),
    ],
)
def test_impossible_numbers_and_units_are_refused(how, said):
    with pytest.raises(InputError, match=said):
        wayveil.plan(scope=SCOPE, **how)


def test_the_command_says_the_same_as_the_call():
    how = ["plan", "--trips", "20000", "--epsilon", "1", "--scope", SCOPE]
    told = CliRunner().invoke(app, [*how, "--json"])
    assert json.loads(told.stdout) == wayveil.plan(trips=20_000, epsilon=1, scope=SCOPE).to_dict()
    table = CliRunner().invoke(app, how)
    assert table.exit_code == 0 and "good" in table.stdout


def test_the_short_form_names_every_kind():
    sentence = str(wayveil.plan(trips=20_000, epsilon=1, scope=SCOPE))
    assert all(kind.title in sentence for kind in KINDS.values())


@pytest.fixture(scope="module")
def city_and_trips():
    """1,200 trips of about 140 users, whose numbers of trips have a geometric distribution."""
    city = simulate_city(5, size_km=(4, 4))
    data = simulate_trajectories(city, 1_200, seed=1)
    random = np.random.default_rng(2)
    user = random.permutation(np.repeat(np.arange(1_200), random.geometric(140 / 1_200, 1_200))[:1_200])
    return city.scope, replace(data, user=user)


@pytest.mark.parametrize(
    "promise",
    [
        {"epsilon": 2, "unit": "user", "max_per_user": 30, "delta": "1e-6"},
        {"epsilon": 2, "unit": "user", "max_per_user": 30},
        {"epsilon": 1, "unit": "trajectory", "delta": "1e-6"},
        {"epsilon": 1, "unit": "trajectory"},
    ],
)
def test_plan_and_release_say_how_far_off_the_number_is(city_and_trips, promise):
    """The standard error of a mean of 16 absolute errors is a fifth of it; 0.45 is more than two of them."""
    scope, data = city_and_trips
    people = len(np.unique(data.user))
    by_user = promise["unit"] == "user"
    expected = wayveil.plan(trips=1_200, scope=scope, users=people if by_user else None, **promise)
    used = np.minimum(np.bincount(data.user), promise["max_per_user"]).sum() if by_user else 1_200
    found = [
        estimate_number(measure(data, scope, noise=SeededNoise(seed), accept_low_signal=True, **promise))
        for seed in range(16)
    ]
    true = np.mean([abs(one.value / used - 1) for one in found])
    assert expected["number"].error == pytest.approx(true, rel=0.45)
    assert np.mean([one.mean_error / one.value for one in found]) == pytest.approx(true, rel=0.45)


def test_the_users_of_a_plan_have_the_stated_number_of_trips():
    people, unit = People(400, 6_000, 50), Unit.user(50)
    random = np.random.default_rng(3)
    drawn = np.minimum(random.geometric(400 / 6_000, 400_000), 50)
    assert people.used(50) == pytest.approx(400 * drawn.mean(), rel=0.01)
    bins = NormBins.of(Count, unit)
    among = np.histogram(drawn, bins.edges + 1e-9)[0] / 1_000
    assert people.histogram(bins) == pytest.approx(among, abs=3)
    assert People(400, 400, 50).used(50) == 400


def test_the_note_before_a_measurement_says_when_its_noise_is_the_largest_possible():
    users, trips = Unit.user(50), Unit.trajectory()
    assert "± 1,200 at most" in noise_words(1200.0, users, delta=True)
    for words in (noise_words(1200.0, users, delta=False), noise_words(1200.0, trips, delta=True)):
        assert "± 1,200; with the other answers" in words

"""`wayveil plan`: expected errors before anything is spent."""

import json

import pytest
from typer.testing import CliRunner

import wayveil
from wayveil.cli.main import app
from wayveil.errors import InputError
from wayveil.release.kinds import KINDS

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

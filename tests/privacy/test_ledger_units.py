"""What is promised per trajectory and per user."""

import json
import math
import re
import shlex
import sqlite3
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from wayveil.cli.main import app
from wayveil.errors import BudgetError, InputError
from wayveil.privacy.accounts import Charge, Loss, exp_above
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit

TRIP, USER, ONCE = Unit.trajectory(), Unit.user(10), Unit.user(1)
ONE = [Spend("count", Fraction(1, 4), "test"), Spend("ends", Fraction(3, 4), "test")]
MILLIONTH = Fraction(1, 10**6)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite", timeout_s=5)


def losses(dataset):
    return [None if account.spent is None else account.spent.epsilon for account in (dataset.trajectory, dataset.user)]


def waive(ledger):
    ledger.allow("rides", None, "no promise per user", unit="user")


def test_what_one_measurement_costs_the_other_unit():
    loss = Loss(Fraction(1), MILLIONTH)
    assert Charge(loss, TRIP).per("trajectory") == loss and Charge(loss, TRIP).per("user") is None
    pure = Loss(Fraction(1))
    assert Charge(loss, USER).per("user") == loss and Charge(pure, Unit.user(2)).per("trajectory") == pure
    assert Charge(pure, ONCE).per("trajectory") == Loss(Fraction(2))
    # With a delta a user is clipped as a whole, to a bound that may be less than two trajectories can add.
    twice = Charge(loss, Unit.user(50)).per("trajectory")
    assert twice == Charge(loss, ONCE).per("trajectory")
    assert twice.epsilon == 2 and MILLIONTH * (1 + math.e) <= twice.delta < MILLIONTH * (1 + math.e) * 1.000001
    assert Charge(Loss(Fraction(1000), MILLIONTH), ONCE).per("trajectory").delta == 1
    for value in (Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(100)):
        assert 1 <= float(exp_above(value)) / math.exp(value) < 1 + 1e-10


@pytest.mark.parametrize("most", [1, 2, 5])
def test_one_trajectory_moves_a_user_level_sum_by_at_most_two(most):
    """The claim behind the cost per trajectory, for the way in which `draw_kept` draws."""
    random = np.random.default_rng(0)
    for _ in range(300):
        count = random.integers(1, 12)
        keys, features = random.random(count), random.uniform(-1, 1, count)
        with_it = features[np.argsort(keys)[:most]].sum()
        without = features[1:][np.argsort(keys[1:])[:most]].sum()
        kept = set(np.argsort(keys)[:most])
        kept_without = {k + 1 for k in np.argsort(keys[1:])[:most]}
        assert len(kept ^ kept_without) <= 2 and abs(with_it - without) <= 2


def test_trajectory_and_user_level_do_not_add_up_to_one_number(ledger):
    """A user with 30 trajectories has lost up to 31, where one number said 2 of 2."""
    ledger.open_dataset("rides", Fraction(2), unit="trajectory")
    ledger.spend("rides", ONE, unit=TRIP)
    with pytest.raises(BudgetError, match="no bound on what a user loses") as caught:
        ledger.spend("rides", ONE, unit=USER)
    assert "allow('rides', None, '...', unit='user')" in str(caught.value)
    assert "wayveil ledger allow rides --unit user --total none" in caught.value.command_line_text
    waive(ledger)
    dataset = ledger.spend("rides", ONE, unit=USER).dataset
    assert losses(dataset) == [2, None]
    assert dataset.words("trajectory") == "Each trajectory: at most ε = 2 of 2; 0 left."
    words = dataset.words("user")
    assert words.startswith("Each user: no bound, because ε = 1 was spent at trajectory level")
    assert words.endswith("a user with k trajectories: up to ε = k + 1.")
    with pytest.raises(BudgetError, match="1 per trajectory, but 0 of 2 remains"):
        ledger.spend("rides", ONE, unit=USER)


def test_a_dataset_is_opened_for_the_unit_of_its_first_measurement(ledger):
    people = ledger.spend("people", ONE, unit=USER, total_if_new=Fraction(1)).dataset
    assert (people.user.total.epsilon, people.trajectory.total) == (1, None) and losses(people) == [1, 1]
    assert "no total per trajectory is set" in people.words("trajectory")
    with pytest.raises(BudgetError, match="1 per user, but 0 of 1 remains"):
        ledger.spend("people", ONE, unit=USER)
    trips = ledger.spend("trips", ONE, unit=TRIP, total_if_new=Fraction(1)).dataset
    assert (trips.trajectory.total.epsilon, trips.user.total) == (1, None) and losses(trips) == [1, None]


def test_a_total_per_user_refuses_trajectory_level(ledger):
    ledger.open_dataset("rides", Fraction(5), unit="user")
    ledger.allow("rides", Fraction(5), "both", unit="trajectory")
    with pytest.raises(BudgetError, match="promises each user a total of 5") as caught:
        ledger.spend("rides", ONE, unit=TRIP)
    assert "None, '...', unit='user'" in str(caught.value) and caught.value.exit_code == 3
    ledger.spend("rides", ONE, unit=USER)
    waive(ledger)
    assert losses(ledger.spend("rides", ONE, unit=TRIP).dataset) == [2, None]


def test_either_order_of_the_units_needs_a_statement(ledger):
    ledger.open_dataset("rides", Fraction(5), unit="trajectory")
    ledger.spend("rides", ONE, unit=USER)
    with pytest.raises(BudgetError, match="has user-level measurements"):
        ledger.spend("rides", ONE, unit=TRIP)
    waive(ledger)
    ledger.spend("rides", ONE, unit=TRIP)


def test_one_trajectory_per_user_costs_each_trajectory_twice(ledger):
    ledger.open_dataset("rides", Fraction(3), unit="trajectory")
    assert losses(ledger.spend("rides", ONE, unit=ONCE).dataset) == [2, 1]
    with pytest.raises(BudgetError, match=r"2 per trajectory \(twice its epsilon.*, but 1 of 3 remains"):
        ledger.spend("rides", ONE, unit=ONCE)
    ledger.spend("rides", ONE, unit=USER)


def test_delta_is_accounted_by_unit(ledger):
    gauss = [Spend("all", Fraction(1), delta=MILLIONTH)]
    ledger.open_dataset("rides", Fraction(9), unit="trajectory", total_delta=3 * MILLIONTH)
    with pytest.raises(BudgetError, match=r"delta of 0\.00000372 per trajectory"):  # (1 + e) / 10^6
        ledger.spend("rides", gauss, unit=ONCE)
    ledger.allow("rides", Fraction(9), "more", unit="trajectory", total_delta=12 * MILLIONTH)
    ledger.spend("rides", gauss, unit=USER)
    ledger.spend("rides", gauss, unit=USER)
    ledger.allow("rides", Fraction(9), "people too", unit="user", total_delta=3 * MILLIONTH)
    dataset = ledger.spend("rides", gauss, unit=USER).dataset
    assert dataset.user.spent == Loss(Fraction(3), 3 * MILLIONTH)
    assert dataset.trajectory.spent.epsilon == 6 and dataset.trajectory.spent.delta > 11 * MILLIONTH
    with pytest.raises(BudgetError, match=r"delta of 0\.00000372 per trajectory, but its total is 0\.000012"):
        ledger.spend("rides", gauss, unit=USER)


def test_totals_that_cannot_be_promised(ledger):
    ledger.spend("rides", ONE, unit=TRIP, total_if_new=Fraction(1))
    with pytest.raises(BudgetError, match="cannot promise a total per user"):
        ledger.allow("rides", Fraction(100), "people", unit="user")
    with pytest.raises(BudgetError, match="has already spent 1 per trajectory"):
        ledger.allow("rides", Fraction(1, 2), "less")
    with pytest.raises(InputError, match="unit='trajectory' or unit='user'"):
        ledger.allow("rides", Fraction(3), "which", unit="city")
    waive(ledger)
    ledger.allow("rides", None, "nothing is promised", unit="trajectory")
    with pytest.raises(BudgetError, match="has no total; set one"):
        ledger.spend("rides", ONE, unit=TRIP)
    with pytest.raises(InputError, match="has no total; add unit="):
        ledger.allow("rides", Fraction(3), "which")
    ledger.allow("rides", Fraction(3), "again", unit="trajectory")
    ledger.spend("rides", ONE, unit=TRIP)


def test_suggested_commands_name_the_ledger(tmp_path):
    """A suggestion without `--ledger` would change the default ledger instead."""
    path = tmp_path / "my ledger.sqlite"
    ledger = Ledger(path)
    ledger.spend("rides", ONE, unit=TRIP, total_if_new=Fraction(1))
    with pytest.raises(BudgetError) as refused:
        ledger.spend("rides", ONE, unit=TRIP)
    command = re.search(r"wayveil ledger allow .*(?=\.$)", refused.value.command_line_text)[0]
    words = shlex.split(command)
    assert words[:4] == ["wayveil", "ledger", "allow", "rides"] and words[-2:] == ["--ledger", str(path)]
    for again in (
        lambda: ledger.spend("trams", ONE, unit=TRIP),
        lambda: ledger.allow("rides", Fraction(2), "people", unit="user"),
    ):
        with pytest.raises(BudgetError, match=r"wayveil\.Ledger\('.*my ledger.sqlite'\)") as refused:
            again()
        assert "--ledger" in refused.value.command_line_text and "--ledger" not in str(refused.value)


def test_the_call_that_a_refusal_suggests_works(tmp_path):
    import wayveil

    ledger = Ledger(tmp_path / "my ledger.sqlite")
    ledger.spend("it's", ONE, unit=TRIP, total_if_new=Fraction(1))
    with pytest.raises(BudgetError) as refused:
        ledger.spend("it's", ONE, unit=TRIP)
    call = re.search(r"wayveil\.Ledger\(.*\)(?=\.$)", str(refused.value))[0]
    eval(call, {"wayveil": wayveil})
    ledger.spend("it's", ONE, unit=TRIP)


@pytest.mark.parametrize(
    ("first", "requested", "delta", "steps"),
    [
        (TRIP, USER, MILLIONTH, ["None, '...', unit='user'", "3, '...', unit='trajectory', total_delta=0.00000372"]),
        (TRIP, USER, 0, ["None, '...', unit='user'", "2, '...', unit='trajectory'"]),
        (TRIP, TRIP, MILLIONTH, ["2, '...', unit='trajectory', total_delta=0.000001"]),
        (USER, TRIP, 0, ["None, '...', unit='user'", "2, '...', unit='trajectory'"]),
        (USER, ONCE, 0, ["2, '...', unit='user'"]),
    ],
)
@pytest.mark.parametrize("shell", [False, True])
def test_one_refusal_names_everything_that_allows_the_measurement(ledger, first, requested, delta, steps, shell):
    import wayveil

    asked = [Spend("all", Fraction(1), delta=Fraction(delta))]
    ledger.spend("rides", ONE, unit=first, total_if_new=Fraction(1))
    with pytest.raises(BudgetError) as refused:
        ledger.spend("rides", asked, unit=requested)
    if shell:
        for command in refused.value.remedy.command.split(" && "):
            assert CliRunner().invoke(app, shlex.split(command)[1:]).exit_code == 0
    else:
        calls = refused.value.remedy.call.split("; ")
        assert [re.search(r"allow\('rides', (.*)\)", call)[1] for call in calls] == steps
        exec(refused.value.remedy.call, {"wayveil": wayveil})
    ledger.spend("rides", asked, unit=requested)


def test_a_dataset_with_both_units_and_no_total_is_given_one_per_trajectory(ledger):
    ledger.spend("rides", ONE, unit=TRIP, total_if_new=Fraction(1))
    waive(ledger)
    ledger.allow("rides", None, "nothing is promised", unit="trajectory")
    with pytest.raises(BudgetError, match="has no total; set one") as refused:
        ledger.spend("rides", ONE, unit=USER)
    assert "allow('rides', 2, '...', unit='trajectory')" in refused.value.remedy.call


def test_the_unit_of_a_total_may_be_left_out_where_there_is_only_one(ledger):
    ledger.open_dataset("rides", Fraction(1), unit="user")
    assert ledger.allow("rides", Fraction(2), "more").user.total.epsilon == 2
    ledger.allow("rides", Fraction(4), "trips too", unit="trajectory")
    with pytest.raises(InputError, match="a total per trajectory and one per user; add unit="):
        ledger.allow("rides", Fraction(3), "which")


def test_the_table_has_both_units_and_every_line_its_own(ledger):
    ledger.open_dataset("rides", Fraction(2), unit="trajectory")
    ledger.spend("rides", ONE, unit=TRIP)
    waive(ledger)
    ledger.spend("rides", ONE, unit=USER)
    (table,) = json.loads(json.dumps(Ledger(ledger.path).table()))
    assert (table["trajectory"]["total"], table["trajectory"]["spent"], table["trajectory"]["left"]) == ("2", "2", "0")
    assert table["user"]["spent"] is None and not table["user"]["bounded"] and table["user"]["total"] is None
    assert table["user"]["spent_at_this_level"] == "1"
    kinds = [(line["kind"], line["unit"], line["max_per_user"]) for line in table["lines"]]
    assert kinds == [
        ("open", "trajectory", None), *[("spend", "trajectory", None)] * 2, ("waive", "user", None),
        *[("spend", "user", 10)] * 2,
    ]  # fmt: skip


def test_a_changed_unit_is_noticed(ledger):
    ledger.spend("rides", ONE, unit=ONCE, total_if_new=Fraction(2))
    with sqlite3.connect(ledger.path) as db:
        db.execute("UPDATE entries SET max_per_user = '10' WHERE kind = 'spend'")
    with pytest.raises(InputError, match="altered"):
        ledger.datasets()

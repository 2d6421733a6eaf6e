import json
from fractions import Fraction

import pytest
import typer
from typer.testing import CliRunner

from wayveil.cli import ledger as verb
from wayveil.errors import BudgetError, InputError
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit

SENTINEL = 37.123456
ROWS = "traj_id,lat,lon,t\n" + "".join(
    f"secret-{i},{SENTINEL + i / 1000},-122.4{i},2008-05-17T10:0{step}:00Z\n" for i in range(3) for step in range(2)
)


@pytest.fixture
def run(tmp_path):
    app = typer.Typer()
    app.callback()(lambda: None)
    verb.register(app)

    def call(*words, stop=None):
        result = CliRunner().invoke(app, ["ledger", *words, "--ledger", str(tmp_path / "ledger.sqlite")])
        if stop is not None:
            assert isinstance(result.exception, stop), result.output
            return result.exception.command_line_text
        assert result.exit_code == 0, (result.output, result.exception)
        assert str(SENTINEL)[:6] not in result.output and "secret-" not in result.output
        return result.stdout, result.stderr

    return call


def test_open_allow_and_show(run, tmp_path):
    file = tmp_path / "rides.csv"
    file.write_text(ROWS)
    assert "empty" in run("show")[1]
    assert not (tmp_path / "ledger.sqlite").exists()
    assert (
        "1.5 per trajectory may be spent"
        in run("open", str(file), "--dataset", "rides", "--unit", "trajectory", "--total", "1.5")[0]
    )
    assert "already open" in run(
        "open", str(file), "--dataset", "rides", "--unit", "trajectory", "--total", "9", stop=BudgetError
    )
    assert "ε = 0 of 2; 2 left" in run("allow", "rides", "--total", "2", "--reason", "a second year")[0]
    text, _ = run("show")
    assert "Each trajectory: at most ε = 0 of 2; 2 left." in text and "a second year" in text
    (account,) = json.loads(run("show", "--json")[0])["datasets"]
    assert (
        account["trajectory"]["total"] == "2"
        and account["user"]["total"] is None
        and [line["kind"] for line in account["lines"]] == ["open", "allow"]
    )
    assert run("show", "rides")[0] == text
    assert "'cabs' is not on the ledger" in run("show", "cabs", stop=InputError)
    assert "digest" not in json.dumps(account) and Ledger(tmp_path / "ledger.sqlite").secret.hex() not in str(account)


def test_the_same_content_under_another_name_warns_whatever_the_order(run, tmp_path):
    header, *rows = ROWS.splitlines()
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / "b.csv").write_text("\n".join([header, *rows[4:], *rows[2:4], *rows[:2]]) + "\n")
    (tmp_path / "c.csv").write_text("\n".join([header, *rows[:4]]) + "\n")
    assert "Warning" not in run("open", str(tmp_path / "a.csv"), "--dataset", "a", "--unit", "user", "--total", "1")[1]
    assert (
        "as 'a' and as 'b'"
        in run("open", str(tmp_path / "b.csv"), "--dataset", "b", "--unit", "user", "--total", "1")[1]
    )
    assert "Warning" not in run("open", str(tmp_path / "c.csv"), "--dataset", "c", "--unit", "user", "--total", "1")[1]


def test_invalid_arguments_are_refused(run, tmp_path):
    file = tmp_path / "rides.csv"
    file.write_text(ROWS)
    run(
        "open",
        str(tmp_path / "missing.csv"),
        "--dataset",
        "rides",
        "--unit",
        "trajectory",
        "--total",
        "1",
        stop=InputError,
    )
    for total in ("0", "-1", "nan", "x", "1001"):
        assert "--total" in run(
            "open", str(file), "--dataset", "rides", "--unit", "trajectory", f"--total={total}", stop=InputError
        )
    run("allow", "trams", "--total", "1", "--reason", "why", stop=BudgetError)
    run("open", str(file), "--dataset", "rides", "--unit", "trajectory", "--total", "1")
    run("allow", "rides", "--total", "2", "--reason", " ", stop=InputError)
    (tmp_path / "ledger.sqlite").unlink()
    assert "ledger accept" in run("show", stop=BudgetError)
    run("accept", "--reason", "begun anew")
    run("show")


def test_show_says_what_each_trajectory_and_each_user_lost(run, tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_dataset("rides", Fraction(2), unit="trajectory")
    lines = [Spend("count", Fraction(1, 4), "measure"), Spend("ends", Fraction(3, 4), "measure")]
    ledger.spend("rides", lines, unit=Unit.trajectory())
    said = run("allow", "rides", "--unit", "user", "--total", "none", "--reason", "yearly report")[0]
    assert "Each user: no bound" in said
    ledger.spend("rides", lines, unit=Unit.user(10))
    text = run("show")[0].splitlines()
    assert text[0] == "rides" and text[1] == "  Each trajectory: at most ε = 2 of 2; 0 left."
    assert "no bound" in text[2] and text[2].endswith("a user with k trajectories: up to ε = k + 1.")
    assert [line.split("Z  ")[1] for line in text[3:]] == [
        "open   2 per trajectory", "spend  1 at trajectory level  measure",
        "allow  no total per user  yearly report", "spend  1 at user level, at most 10 per user  measure",
    ]  # fmt: skip
    verbose = run("show", "--verbose")[0]
    assert verbose.count("spend  ") == 4 and "spend  0.25 at trajectory level  count (measure)" in verbose

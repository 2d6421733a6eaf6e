"""The demo: complete, repeatable, and careful with folders that are not its own."""

import json
import os
import shlex
import sys
from functools import partial

import pytest

import repeatable
from wayveil.errors import InputError


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A demo in a smaller city than usual, its folder's home, and the state folder that was set afterwards."""
    from wayveil import simulate
    from wayveil.synthesis import model
    from wayveil.workflow.demo import run_demo

    folder = tmp_path_factory.mktemp("demo") / "a demo"
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(home / "data"))
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        patch.setattr(simulate, "simulate_city", partial(simulate.simulate_city, size_km=(4, 4)))
        repeatable.patched(patch)
        patch.setattr(model, "SETTINGS", model.ModelSettings(balance_trips=800))
        return run_demo(folder, 400), home, os.environ["XDG_STATE_HOME"]


def test_the_demo_writes_every_file(demo):
    files = demo[0].files
    assert all(file.stat().st_size > 0 for file in (*files.all_files, files.ledger))
    assert [step.name for step in demo[0].steps] == [
        "simulate", "check", "measure", "synthesize", "evaluate", "audit", "report", "report --internal",
    ]  # fmt: skip


def test_the_users_own_folders_stay_empty(demo):
    _, home, state = demo
    assert not list(home.iterdir())
    assert state == str(home / "state")  # and the environment is as it was


def test_the_ledger_is_charged_and_the_release_private(demo):
    from wayveil.privacy.ledger import Ledger
    from wayveil.release import read_release

    (account,) = Ledger(demo[0].files.ledger).table()
    assert (account["name"], account["trajectory"]["spent"], account["trajectory"]["left"]) == ("demo", "1", "0")
    assert read_release(demo[0].files.release).private


def test_public_and_private_are_kept_apart(demo):
    files = demo[0].files
    assert "not for publication" in files.report.read_text(encoding="utf-8").lower()
    assert "not for publication" not in files.sheet.read_text(encoding="utf-8").lower()
    assert all(file.stat().st_mode & 0o077 == 0 for file in (files.report, files.audit, files.evaluation))
    assert json.loads(files.audit.read_text())["verdict"]


def test_the_synthetic_data_obeys_the_rules(demo):
    assert "; 0 of them violate one of" in demo[0].steps[3].outcome


def test_the_commands_that_it_shows_are_commands(demo):
    import typer

    from wayveil.cli.main import app

    for step in demo[0].steps:
        words = shlex.split(step.command.partition(" > ")[0])
        group = typer.main.get_command(app)
        verb = group.commands[words[1]]
        verb.make_context(words[1], words[2:])


def test_an_earlier_demo_is_overwritten_only_with_force(demo, tmp_path, monkeypatch):
    from wayveil.workflow.demo import run_demo
    from wayveil.workflow.demo_files import make_room

    files = demo[0].files
    with pytest.raises(InputError, match="force=True"):
        run_demo(files.folder, 300)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("three years")
    with pytest.raises(InputError, match="not an earlier demo"):
        run_demo(mine, 300, force=True)
    assert (mine / "thesis.txt").read_text() == "three years"
    make_room(type(files)(tmp_path / "new"), force=False)
    (tmp_path / "new" / "public" / "note.txt").write_text("kept")
    (tmp_path / "new" / "ledger" / "ledger.sqlite").write_text("old")
    make_room(type(files)(tmp_path / "new"), force=True)
    assert (tmp_path / "new" / "public" / "note.txt").exists()
    assert not list((tmp_path / "new" / "ledger").iterdir())


def test_an_impossible_size_is_refused(tmp_path):
    from wayveil.workflow.demo import run_demo

    with pytest.raises(InputError, match="n= must be"):
        run_demo(tmp_path / "demo", 3)
    assert not (tmp_path / "demo").exists()


def test_the_command_runs_the_demo(tmp_path, monkeypatch, capsys):
    import wayveil.workflow.demo as module
    from wayveil.cli.main import main

    steps = tuple((name, command, lambda *given: "done") for name, command, _ in module._STEPS[:2])
    monkeypatch.setattr(module, "_STEPS", steps)
    monkeypatch.setattr(sys, "argv", ["wayveil", "demo", "-o", str(tmp_path / "d"), "-n", "200"])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr()
    assert not stop.value.code
    assert str(tmp_path / "d" / "public" / "synthetic.parquet") in said.out
    assert said.err.count("$ wayveil") == 2

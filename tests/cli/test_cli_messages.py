"""Bad input through the command line: one sentence, the cure, the right exit code, and no file."""

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from small_town import MEASURE, SCOPE

import wayveil.workflow.measure_file as steps
from real_components import ordinary_user_prefix
from wayveil.cli.main import COMMANDS
from wayveil.errors import CHARGED, InputError
from wayveil.io.outputs import unwritable
from wayveil.privacy.ledger import Ledger
from wayveil.release import read_release

HEAD = "traj_id,lat,lon,t\n"


def rows(count=6, lat=30.01, lon=-39.99):
    points = [(k, lat + i / 1000, lon, 1_700_000_000 + 60 * i) for k in range(count) for i in range(4)]
    return HEAD + "".join(f"{k},{y},{x},{t}\n" for k, y, x, t in points)


@pytest.fixture
def folder(tmp_path, wayveil):
    (tmp_path / "small.toml").write_text(SCOPE)
    (tmp_path / "rides.csv").write_text(rows())
    return tmp_path


def changed(**options):
    words = list(MEASURE)
    for name, value in options.items():
        words[words.index("-o" if name == "output" else "--" + name.replace("_", "-")) + 1] = value
    return words


BAD_FILES = {
    "missing column": ("traj_id,lat,t\n1,30.01,0\n", "is recognized as longitude; name it with --lon-column"),
    "trip table": ("ride,x1,y1,t1,x2,y2,t2\n1,-40,30,0,-39,30,60\n", "name its columns with --trip-columns"),
    "two candidates": ("traj_id,lat,latitude,lon,t\n1,30,30,-39,0\n", "choose one with --lat-column NAME"),
    "nothing at all": ("", "empty"),
}
USELESS_ROWS = {
    "not a number": (HEAD + "1,nan,-39.99,0\n1,north,-39.99,60\n", "missing coordinate"),
    "swapped": (HEAD + "1,-139.99,30.01,0\n1,-139.98,30.01,60\n", "swap --lat-column and --lon-column"),
    "no row": (HEAD, "has no rows"),
    "not a time": (HEAD + "1,30.01,-39.99,noon\n", "unreadable time"),
    "no zone": (HEAD + "1,30.01,-39.99,2024-03-04 07:30:00\n", "--timezone"),
    "outside": (rows(lat=50.0), "scope is probably wrong"),
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files(wayveil, folder, text, message):
    (folder / "rides.csv").write_text(text)
    said = wayveil("measure", "rides.csv", *MEASURE)
    assert said.code == 2 and message in said.err, said
    assert said.err.startswith("wayveil: ") and said.err.count("\n") == 1  # no note about noise before the refusal
    assert "Traceback" not in said.all and said.out == ""
    assert not (folder / "x.release.json").exists() and not Ledger().datasets()


def test_data_outside_the_scope_is_measured_like_any_other(wayveil, folder):
    """A refusal would publish that no trajectory is inside; the noisy count and `check` tell the owner."""
    (folder / "rides.csv").write_text(rows(lat=50.0))
    said = wayveil("measure", "rides.csv", *MEASURE)
    assert said.code == 0 and read_release("x.release.json").private, said
    assert "wayveil check FILE --scope SCOPE" in said.err
    (folder / "rides.csv").write_text(rows())
    inside = wayveil("measure", "rides.csv", *changed(dataset="inside", output="y.release.json"))
    assert inside.code == 0


@pytest.mark.parametrize(("text", "message"), USELESS_ROWS.values(), ids=USELESS_ROWS.keys())
def test_check_says_why_no_row_can_be_used_and_measure_does_not(wayveil, folder, text, message):
    (folder / "rides.csv").write_text(text)
    said = wayveil("check", "rides.csv", "--scope", dict(zip(MEASURE[::2], MEASURE[1::2]))["--scope"])
    assert said.code == 2 and message in said.err and "Traceback" not in said.all, said
    said = wayveil("measure", "rides.csv", *MEASURE)
    assert said.code == 0 and message not in said.all, said
    assert (folder / "x.release.json").exists()


BAD_OPTIONS = {
    "epsilon 0": (changed(epsilon="0"), "epsilon must be above 0"),
    "epsilon below": (changed(epsilon="-1"), "epsilon must be above 0"),
    "epsilon word": (changed(epsilon="one"), "not a decimal number"),
    "unit": (changed(unit="city"), "--unit must be 'trajectory'"),
    "user without cap": (changed(unit="user"), "--max-per-user"),
    "user without users": ([*changed(unit="user"), "--max-per-user", "2"], "--user-column"),
    "cap without user": ([*MEASURE, "--max-per-user", "2"], "leave it out"),
    "delta": ([*MEASURE, "--delta", "1"], "delta must be at least 0 and below 1"),
    "scope": (changed(scope="atlantis"), "There is no scope 'atlantis'"),
    "no folder": ([*MEASURE[:-1], "missing/x.release.json"], "choose another output"),
    "a folder": ([*MEASURE[:-1], "."], "folder"),
    "roads": ([*MEASURE, "--roads", "none.parquet"], "none.parquet"),
    "engine": ([*MEASURE, "--engine", "steam"], "steam"),
    "zone": ([*MEASURE, "--timezone", "Mars"], "--timezone"),
    "dataset": (changed(dataset=" "), "--dataset"),
    "column": ([*MEASURE, "--lat-column", "north"], "--lat-column"),
}


@pytest.mark.parametrize(("words", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS.keys())
def test_bad_options(wayveil, folder, words, message):
    said = wayveil("measure", "rides.csv", *words)
    assert said.code == 2 and message in said.err and "Traceback" not in said.all, said
    assert not list(folder.glob("*.release.json")) and not Ledger().datasets()


def test_a_missing_file_and_a_missing_option(wayveil, folder):
    assert "no file or folder" in wayveil("measure", "none.csv", *MEASURE).err
    said = wayveil("measure", "rides.csv", *MEASURE[:-2])
    assert said.code == 2 and "--output" in said.err
    assert wayveil("no-such-command").code == 2


@pytest.mark.needs("file permissions")
def test_an_unwritable_folder(folder):
    (folder / "locked").mkdir(mode=0o500)
    command = [*ordinary_user_prefix(), sys.executable, "-c", "from wayveil.cli.main import main; main()"]
    arguments = ["measure", "rides.csv", *MEASURE[:-1], "locked/x.release.json"]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2 and "choose another output" in done.stderr and not Ledger().datasets(), done.stderr


def test_a_folder_that_takes_no_files_is_not_called_missing():
    missing = FileNotFoundError(2, "No such file or directory")
    assert "create it first" in str(unwritable(Path("no-such-folder/x.toml"), missing))
    assert "Cannot write to the folder" in str(unwritable(Path("/x.toml"), missing))


def test_measure_says_if_it_asked_nothing_about_people(wayveil, folder):
    head, *lines = Path("rides.csv").read_text().splitlines()
    users = [f"{line},{line.split(',')[0]}" for line in lines]
    Path("rides.csv").write_text("\n".join([f"{head},user_id", *users]))
    people = [*MEASURE[:6], "--unit", "user", "--max-per-user", "5", "-o", "u.json"]
    said = wayveil("measure", "rides.csv", *people)
    assert said.code == 0, said
    asked = [answer.name for answer in read_release("u.json").answers if answer.question.about_people]
    assert not asked and "Nothing was asked about how the trips of a person are related" in said.err
    assert "Nothing was asked about how" in wayveil("describe", "u.json").out
    trips = wayveil("measure", "rides.csv", "--dataset", "other", *MEASURE[2:])
    assert trips.code == 0 and "trips of a person" not in trips.err


def test_the_budget_refuses_with_3_and_leaves_no_file(wayveil, folder):
    assert (
        wayveil("ledger", "open", "rides.csv", "--dataset", "rides", "--unit", "trajectory", "--total", "1.5").code == 0
    )
    first = wayveil("measure", "rides.csv", *MEASURE)
    assert first.code == 0 and first.out == "release: x.release.json\n"
    document = json.loads((folder / "x.release.json").read_text())
    assert sum(line["epsilon"] for line in document["ledger"]) == document["epsilon"] == 1
    second = wayveil("measure", "rides.csv", *MEASURE[:-1], "y.release.json")
    assert second.code == 3 and "0.5 of 1.5 remains" in second.err and second.out == ""
    assert not (folder / "y.release.json").exists()
    assert [path.name for path in folder.glob(".*")] == []


def test_an_existing_output_is_kept(wayveil, folder):
    (folder / "x.release.json").write_text("mine")
    said = wayveil("measure", "rides.csv", *MEASURE)
    assert said.code == 2 and "--force" in said.err and (folder / "x.release.json").read_text() == "mine"
    assert not Ledger().datasets()
    assert wayveil("measure", "rides.csv", *MEASURE, "--force").code == 0
    assert read_release(folder / "x.release.json").private


def test_a_ledger_held_by_another_process(wayveil, folder, monkeypatch):
    ledger = Ledger(folder / "mine.sqlite")
    ledger.open_dataset("other", 1, unit="trajectory")
    monkeypatch.setattr(Ledger.__init__, "__kwdefaults__", {"timeout_s": 0.1})
    holder = sqlite3.connect(folder / "mine.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    said = wayveil("measure", "rides.csv", *MEASURE, "--ledger", "mine.sqlite")
    holder.close()
    assert said.code == 2 and "held by another process" in said.err and not (folder / "x.release.json").exists()


def test_a_full_disk_after_the_spend_is_reported(wayveil, folder, monkeypatch):
    def full(release, path, *, force):
        from wayveil.io.atomic import atomic_path

        with atomic_path(path, private=False):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(steps, "write_release", full)
    said = wayveil("measure", "rides.csv", *MEASURE)
    assert said.code == 2 and "No space left" in said.err and CHARGED in said.err
    assert Ledger().datasets()[0].spent == 1 and not (folder / "x.release.json").exists()


def test_interruption_is_130(wayveil, folder, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(steps, "read_scope", stopped)
    said = wayveil("measure", "rides.csv", *MEASURE)
    assert said.code == 130 and "interrupted" in said.err and CHARGED not in said.err


def test_an_interruption_after_the_spend_is_reported(wayveil, folder, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(steps, "write_release", stopped)
    said = wayveil("measure", "rides.csv", *MEASURE)
    assert said.code == 130 and CHARGED in said.err


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_help_of_every_command_has_an_example(wayveil, verb):
    said = wayveil(verb, "-h")
    assert said.code == 0 and ("Example" in said.out or "Commands" in said.out), said


def test_debug_asks_for_confirmation(wayveil, folder, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("30.0123456 of sentinel-user")

    monkeypatch.setattr(steps, "write_release", broken)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    refused = wayveil("--debug", "measure", "rides.csv", *MEASURE)
    assert refused.code == 2 and "coordinates" in refused.err and "--debug=yes" in refused.err
    assert not Ledger().datasets()
    silent = wayveil("measure", "rides.csv", *MEASURE)
    assert silent.code == 1 and "ZeroDivisionError" in silent.err and "sentinel" not in silent.all
    assert CHARGED in silent.err and "wayveil.workflow.measure_file" in silent.err
    monkeypatch.setattr(sys, "argv", ["wayveil", "--debug=yes", "measure", "rides.csv", *MEASURE, "--dataset", "more"])
    from wayveil.cli.main import main

    with pytest.raises(ZeroDivisionError):
        main()


def test_run_files(wayveil, folder):
    template = wayveil("run", "--template")
    assert template.code == 0
    Path("rides.toml").write_text(template.out)
    said = wayveil("run", "rides.toml")
    assert said.code == 2 and "There is no scope 'my-city.toml'" in said.err
    for text, message in {
        "[measure]\n": "Field required",
        "x": "not valid TOML",
        template.out.replace('unit = "trajectory"', 'unit = "city"'): "measure.unit",
        template.out.replace("[synthesize]", "[synthesize]\nspeed = 1"): "synthesize.speed",
        template.out.replace("synthetic.parquet", "synthetic.doc"): "extension",
    }.items():
        Path("rides.toml").write_text(text.replace("my-city.toml", "small.toml"))
        said = wayveil("run", "rides.toml")
        assert said.code == 2 and message in said.err and said.err.count("\n") == 1, (said, message)
    assert wayveil("run").code == 2 and wayveil("run", "none.toml").code == 2
    assert not Ledger().datasets()


def test_a_run_continues_from_its_release(wayveil, folder):
    template = wayveil("run", "--template").out.replace("my-city.toml", "small.toml")
    (folder / "sub").mkdir()
    for name in ("small.toml", "rides.csv"):
        (folder / name).rename(folder / "sub" / name)
    Path("sub/rides.toml").write_text(template.replace("# n = 10000", "n = 20").replace("# seed", "seed"))
    said = wayveil("run", "sub/rides.toml", "--json")
    assert said.code == 0, said
    made = json.loads(said.out)
    assert made["spent"] and made["differentially_private"] and made["trajectories"] == 20
    assert sorted(path.name for path in (folder / "sub").iterdir() if path.suffix != ".toml") == [
        "rides.csv", "rides.html", "rides.release.json", "synthetic.parquet",
    ]  # fmt: skip
    again = wayveil("run", "sub/rides.toml")
    assert again.code == 0 and "nothing was spent" in again.err and Ledger().datasets()[0].spent == 1
    assert not made["other_trips"] and "other trips" not in again.err  # they are the same: the file has a seed
    before = Path("sub/synthetic.parquet").read_bytes()
    Path("sub/rides.toml").write_text(template.replace("# n = 10000", "n = 20"))
    other = wayveil("run", "sub/rides.toml")
    assert other.code == 0 and "Replaced the existing file 'synthetic.parquet'" in other.err, other
    assert Path("sub/synthetic.parquet").read_bytes() != before
    Path("sub/rides.toml").write_text(template.replace('epsilon = "1"', 'epsilon = "2"'))
    assert "measured with other settings" in wayveil("run", "sub/rides.toml").err


def test_describe_and_synthesize(wayveil, folder):
    assert wayveil("measure", "rides.csv", *MEASURE, "--json").code == 0
    words = wayveil("describe", "x.release.json")
    assert words.code == 0 and "The promise" in words.out and words.err == ""
    assert json.loads(wayveil("describe", "x.release.json", "--json").out)["epsilon"] == "1"
    made = wayveil("synthesize", "x.release.json", "-n", "12", "--seed", "1", "-o", "s.csv", "--json")
    assert made.code == 0 and json.loads(made.out)["trajectories"] == 12, made
    lines = Path("s.csv").read_text().splitlines()
    assert lines[0] == "traj_id,lat,lon,t" and len({line.split(",")[0] for line in lines[1:]}) == 12
    notes = json.loads(Path("s.csv.meta.json").read_text())
    assert notes["differentially_private"] == "true" and notes["epsilon"] == "1" and "synthetic" in notes["origin"]
    for words, message in {
        ("-o", "s.doc"): "extension",
        ("-o", "none/s.csv"): "choose another output",
        ("-o", "s.csv", "--estimator", "guess"): "Estimator",
        ("-o", "s.csv", "--rules", "none.geojson"): "none.geojson",
    }.items():
        said = wayveil("synthesize", "x.release.json", *words)
        assert said.code == 2 and message in said.err, said
    Path("x.release.json").write_text("{}")
    assert "not a wayveil release" in wayveil("synthesize", "x.release.json", "-o", "s.csv").err
    assert wayveil("describe", "x.release.json").code == 2
    Path("x.release.json").write_text("traj_id,lat,lon,t\n")
    assert "not a wayveil release" in wayveil("synthesize", "x.release.json", "-o", "s.csv").err


def test_an_unknown_extension_names_those_of_the_command(wayveil, folder):
    assert wayveil("measure", "rides.csv", *MEASURE).code == 0
    (folder / "rides.doc").write_text("not a table")
    for words, cure, none in (
        (("synthesize", "x.release.json", "-n", "5", "-o", "s.doc"), "use one of these", "--"),
        (("convert", "rides.csv", "s.doc"), "or choose the format with --to", "--format"),
        (("check", "rides.doc"), "with --format", "--to"),
    ):
        said = wayveil(*words)
        assert said.code == 2 and ".doc' has no " in said.err and "extension" in said.err, said
        assert cure in said.err and none not in said.err and said.err.count("\n") == 1, said


def test_an_unreadable_file_is_reported_as_such(wayveil, folder, monkeypatch):
    import wayveil.io.parquet_files as parquet

    assert wayveil("convert", "rides.csv", "rides.parquet").code == 0

    def denied(*_):
        raise PermissionError(13, "Permission denied", "/home/somebody/rides.parquet")

    with monkeypatch.context() as locked:
        locked.setattr(parquet, "_stream", denied)
        for words in (("measure", "rides.parquet", *MEASURE), ("check", "rides.parquet")):
            assert wayveil(*words).err.endswith("wayveil: Cannot read 'rides.parquet': Permission denied.\n")
        with pytest.raises(InputError, match=r"^Cannot read 'rides': Permission denied\.$"):
            parquet.groups_of("rides.parquet", "rides")
    monkeypatch.setattr("wayveil.io.scope_files.read_text", denied)
    assert wayveil("measure", "rides.csv", *MEASURE).err == (
        "wayveil: Cannot read the scope 'small.toml': Permission denied.\n"
    )


def test_numbers_have_no_underscores(wayveil, folder):
    for option, value in (("--epsilon", "1_0"), ("--delta", "1e-0_6"), ("--max-per-user", "1_0")):
        words = list(MEASURE)
        if option in words:
            words[words.index(option) + 1] = value
        else:
            words += [option, value]
        said = wayveil("measure", "rides.csv", *words)
        assert said.code == 2 and option.strip("-") in said.err, said
    template = wayveil("run", "--template").out.replace("my-city.toml", "small.toml")
    user = 'unit = "user"\nmax_per_user = "1_0"'
    for old, new in (('epsilon = "1"', 'epsilon = "1_0"'), ('unit = "trajectory"', user)):
        assert old in template
        Path("rides.toml").write_text(template.replace(old, new))
        said = wayveil("run", "rides.toml")
        assert said.code == 2 and new.split(" ")[-3].split("\n")[-1] in said.err, said
    assert not Ledger().datasets()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_termination_is_143_and_removes_temporary_files(wayveil, folder, monkeypatch):
    def stopped(*_, **__):
        from wayveil.io.atomic import atomic_path

        with atomic_path("copy.csv", private=True) as part:
            part.write_text("half")
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(1000):
                pass

    monkeypatch.setattr("wayveil.io.convert.convert", stopped)
    before, handler = set(folder.iterdir()), signal.getsignal(signal.SIGTERM)
    said = wayveil("convert", "rides.csv", "copy.csv")
    assert said.code == 143 and "terminated; no file was left half-written" in said.err, said
    assert set(folder.iterdir()) == before and signal.getsignal(signal.SIGTERM) == handler


def test_noise_that_would_hide_the_data_needs_a_yes(wayveil, folder):
    many = [*changed(unit="user"), "--max-per-user", "20", "--user-column", "traj_id", "--traj-column", "t"]
    said = wayveil("measure", "missing.csv", *many, "--expected-trips", "300")
    assert said.code == 2 and "± 2,000" in said.err and said.err.endswith("to measure anyway, add --yes.\n"), said
    for option in ("--epsilon", "--max-per-user", "--delta"):
        assert option in said.err
    said = wayveil("measure", "rides.csv", *MEASURE, "--expected-trips", "20")
    assert (
        said.code == 2 and "lower" not in said.err and not Path("x.release.json").exists() and not Ledger().datasets()
    )
    said = wayveil("measure", "rides.csv", *MEASURE, "--expected-trips", "20", "--yes")
    assert said.code == 0 and said.err.startswith("The count of trajectories will carry noise of about ± 100; with")
    assert wayveil("measure", "rides.csv", *MEASURE, "--expected-trips", "0").code == 2


def test_a_run_file_says_what_is_expected_and_accepted(wayveil, folder):
    text = """[measure]
file = "rides.csv"
dataset = "rides"
scope = "small.toml"
epsilon = 1
unit = "trajectory"
expected_trips = 20
{more}
[output]
release = "r.release.json"
synthetic = "s.csv"
"""
    (folder / "run.toml").write_text(text.format(more=""))
    said = wayveil("run", "run.toml")
    assert said.code == 2 and "set accept_low_signal = true under [measure]" in said.err and "--" not in said.err, said
    assert not Ledger().datasets()
    (folder / "run.toml").write_text(text.format(more="accept_low_signal = true"))
    assert wayveil("run", "run.toml").code == 0 and Path("s.csv").exists()


@pytest.mark.parametrize("code", [130, 143])
def test_an_interrupted_program_ends_without_shutting_down_native_threads(code):
    """Threads of jax that still compile would crash the interpreter while it shuts down; `os.abort` stands for them."""
    lines = (
        "import atexit, os, sys, wayveil.cli.main as command_line",
        "atexit.register(os.abort)",
        f"command_line.main = lambda: sys.exit({code})",
        "command_line.console_script()",
    )
    assert subprocess.run([sys.executable, "-c", "; ".join(lines)], check=False).returncode == code

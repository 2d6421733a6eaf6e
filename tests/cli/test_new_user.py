"""Where a new user stumbled: each place stays mended."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from small_town import MEASURE, SCOPE

from wayveil.cli.main import app
from wayveil.privacy.ledger import Ledger


@pytest.fixture
def folder(tmp_path, wayveil):
    points = [(k, 30.01 + i / 1000, -39.99, 1_700_000_000 + 60 * i) for k in range(6) for i in range(4)]
    (tmp_path / "small.toml").write_text(SCOPE)
    (tmp_path / "rides.csv").write_text("trip_id,lat,lon,ts\n" + "".join(f"{k},{y},{x},{t}\n" for k, y, x, t in points))
    return tmp_path


def commands(group, path=()):
    for name, command in group.commands.items():
        yield " ".join((*path, name)), command
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_an_example_that_it_accepts(words):
    example = COMMANDS[words].epilog or ""
    assert example.startswith("Example: wayveil " + words.split()[0])
    known = {option for command in COMMANDS.values() for one in command.params for option in one.opts}
    assert {word for word in example.split() if word.startswith("--")} <= known


def test_measure_states_what_was_spent_and_what_is_left(wayveil, folder):
    assert (
        wayveil("ledger", "open", "rides.csv", "--dataset", "rides", "--unit", "trajectory", "--total", "3").code == 0
    )
    said = wayveil("measure", "rides.csv", *MEASURE)
    assert said.code == 0 and "2 of 3 is left on the ledger" in said.err
    assert "wayveil synthesize x.release.json" in said.err
    shown = wayveil("ledger", "show", "--json")
    assert shown.err.startswith("Ledger: ") and json.loads(shown.out)["datasets"][0]["trajectory"]["left"] == "2"


def test_few_trajectories_cause_a_warning(wayveil, folder):
    # The noise decides which.
    few = re.compile(r"are few for ε = 1|number of trajectories, estimated from all answers, is near zero")
    assert few.search(wayveil("measure", "rides.csv", *MEASURE).err)
    assert few.search(wayveil("describe", "x.release.json").out.replace("\n    ", " "))
    assert few.search(wayveil("synthesize", "x.release.json", "-n", "5", "-o", "s.csv").err)
    Ledger().allow("rides", 1000, "test")
    words = [{"1": "900", "x.release.json": "y.release.json"}.get(word, word) for word in MEASURE]
    assert "few" not in wayveil("measure", "rides.csv", *words).err


def test_no_output_replaces_the_data(wayveil, folder):
    before = Path("rides.csv").read_bytes()
    assert wayveil("measure", "rides.csv", *MEASURE).code == 0
    for words in (
        ("synthesize", "x.release.json", "-n", "5", "-o", "rides.csv"),
        ("convert", "rides.csv", "rides.csv"),
    ):
        said = wayveil(*words)
        assert said.code == 2 and "must not be overwritten" in said.err and Path("rides.csv").read_bytes() == before, (
            said
        )
    assert wayveil("synthesize", "x.release.json", "-n", "5", "-o", "s.csv").code == 0
    assert wayveil("synthesize", "x.release.json", "-n", "6", "-o", "s.csv").code == 0  # its own output it may replace
    said = wayveil("report", "x.release.json", "s.csv", "-o", "rides.csv")
    assert said.code == 2 and "must not be overwritten" in said.err and Path("rides.csv").read_bytes() == before
    assert wayveil("convert", "rides.csv", "other.csv").code == 0
    said = wayveil("synthesize", "x.release.json", "-n", "5", "-o", "other.csv")
    assert said.code == 2 and "delete the file first" in said.err and "--force" not in said.err, said
    # Another process may have measured it, so that it is private.
    before = Path("other.csv").read_bytes()
    said = wayveil("synthesize", "x.release.json", "-n", "5", "-o", "other.csv", "--force")
    assert said.code == 2 and "that are private" in said.err and Path("other.csv").read_bytes() == before, said
    Path("other.csv").write_text("a shopping list")
    assert wayveil("synthesize", "x.release.json", "-n", "5", "-o", "other.csv").code == 2
    assert wayveil("synthesize", "x.release.json", "-n", "5", "-o", "other.csv", "--force").code == 0
    # Columns that are not recognised may be the private data all the same.
    Path("odd.csv").write_text("ride;north;east;when\n1;30.01;-39.99;2023-11-14\n")
    before = Path("odd.csv").read_bytes()
    said = wayveil("synthesize", "x.release.json", "-n", "5", "-o", "odd.csv", "--force")
    assert said.code == 2 and "delete the file first" in said.err and Path("odd.csv").read_bytes() == before, said


def test_a_run_makes_its_folders_and_keeps_the_data(wayveil, folder):
    text = wayveil("run", "--template").out.replace("my-city.toml", "small.toml").replace("# n = 10000", "n = 5")
    for name in ("rides.release.json", "synthetic.parquet", "rides.html"):
        text = text.replace(f'"{name}"', f'"out/deep/{name}"')
    text = text.replace("# [measure.columns]", "[measure.columns]")
    with open("rides.csv", "a") as data:
        data.write("7,,,1700000000\n")
    Path("rides.toml").write_text(text.replace("out/deep/synthetic.parquet", "rides.csv"))
    said = wayveil("run", "rides.toml")
    assert said.code == 2 and "one of the inputs" in said.err and not Ledger().datasets()
    Path("rides.toml").write_text(text)
    assert wayveil("run", "rides.toml").code == 0
    assert len(list(Path("out/deep").iterdir())) == 3


def test_a_missing_folder_is_named_as_such(wayveil, folder):
    said = wayveil("measure", "rides.csv", *MEASURE[:-1], "none/x.release.json")
    assert said.code == 2 and "folder" in said.err and "mkdir" in said.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_lists_the_commands(shell, tmp_path):
    ask = {
        "bash": {"COMP_WORDS": "wayveil syn", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "wayveil syn"},
        "fish": {"_TYPER_COMPLETE_ARGS": "wayveil syn", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    said = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'wayveil'; from wayveil.cli.main import main; main()"],
        env={"_WAYVEIL_COMPLETE": f"complete_{shell}", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **ask},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "synthesize" in said.stdout and "Traceback" not in said.stderr


def test_simulate_follows_the_extension_and_overwrites_nothing(wayveil, folder):
    words = ("simulate", "-n", "20", "--size-km", "2", "2")
    assert wayveil(*words, "-o", "city.csv").code == 0
    assert Path("city.csv").read_text().startswith("traj_id,")
    before = Path("small.toml").read_text()
    said = wayveil(*words, "-o", "new.csv", "--scope-out", "small.toml")
    assert said.code == 2 and "--force" in said.err and Path("small.toml").read_text() == before
    assert not Path("new.csv").exists()


def test_evaluate_takes_what_measure_takes(wayveil, folder):
    import pandas as pd

    from wayveil import evaluate, read, read_scope
    from wayveil.core.trajectories import concatenate

    frame = pd.read_csv("rides.csv").rename(columns={"trip_id": "tour"})
    frame.to_csv("tours.csv", index=False)
    trips, names = read("rides.csv"), ["length", "density_500"]
    expected = evaluate(trips, trips, read_scope("small.toml"), metrics=names)
    assert evaluate("rides.csv", "rides.csv", "small.toml", metrics=names) == expected
    assert evaluate(frame, frame, "small.toml", metrics=names, traj_id="tour") == expected
    assert evaluate("tours.csv", "rides.csv", "small.toml", metrics=names, traj_id="tour") == expected
    lines = str(expected).splitlines()
    assert lines[0].startswith("Nothing can be concluded") and expected.too_few
    assert [line.split()[0] for line in lines[1:]] == ["metric", *names]
    many = evaluate(*(concatenate([trips] * 10),) * 2, read_scope("small.toml"), metrics=names)
    assert "±" in str(many).splitlines()[2] and not many.too_few


def test_stdout_contains_only_json(wayveil, folder):
    for words in (
        ("convert", "rides.csv", "rides.parquet"),
        ("check", "rides.csv", "--scope", "small.toml"),
        ("scope", "list"),
        ("scope", "show", "small.toml"),
        ("ledger", "open", "rides.csv", "--dataset", "rides", "--unit", "trajectory", "--total", "1"),
        ("ledger", "allow", "rides", "--total", "2", "--reason", "why not"),
        ("measure", "rides.csv", *MEASURE),
        ("describe", "x.release.json"),
        ("synthesize", "x.release.json", "-n", "5", "-o", "s.parquet"),
        ("report", "x.release.json", "s.parquet", "-o", "x.html"),
        ("evaluate", "rides.csv", "s.parquet", "--scope", "small.toml", "--headline"),
        ("ledger", "show"),
    ):
        said = wayveil(*words, "--json")
        assert said.code == 0 and json.loads(said.out), (words, said)


def test_an_interrupted_synthesis_says_how_to_resume(wayveil, folder, monkeypatch):
    import wayveil.synthesis.resume as stream
    import wayveil.synthesis.shard as shard

    assert wayveil("measure", "rides.csv", *MEASURE).code == 0

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(stream, "make_model", stopped)
        said = wayveil("synthesize", "x.release.json", "-n", "5", "-o", "s.parquet")
        assert said.code == 130 and "parts" not in said.err and not Path("s.parquet.parts").exists()  # all or nothing
        broken.setattr(shard, "SHARD", 2)
        said = wayveil("synthesize", "x.release.json", "-n", "5", "-o", "s.parquet")
    assert said.code == 130 and "'s.parquet.parts'" in said.err and not Path("s.parquet").exists()
    assert (
        "holds the finished part" in said.err and "no file was written" not in said.err
    )  # one sentence must not deny the other
    assert wayveil("synthesize", "x.release.json", "-n", "5", "-o", "s.parquet").code == 0
    assert not Path("s.parquet.parts").exists()


def test_synthesize_states_what_it_made(wayveil, folder):
    from wayveil.cli.console import synthesis_summary

    assert wayveil("measure", "rides.csv", *MEASURE).code == 0
    said = wayveil("synthesize", "x.release.json", "-n", "5", "-o", "s.csv")
    assert said.out == "synthetic: s.csv\n" and "5 synthetic trajectories.\n" in said.err  # there is no rule to break
    found = {"park": {"points": 9, "trajectories": 3}, "bounds": {"points": 0, "trajectories": 0}}
    made = {"trajectories": 1234, "diagnostics": {"violations_after": found}}
    assert synthesis_summary(made) == "1,234 synthetic trajectories; 3 violate 'park'."
    obeyed = {"violations_after": {}, "changed": {"moved": 74, "retimed": 1469, "replaced": 0}}
    said = synthesis_summary({"trajectories": 1, "rules": ["park"], "diagnostics": obeyed})
    assert said == "1 synthetic trajectory; all obey the rules (to obey them: 1,469 given new times, 74 moved)."


def test_measuring_a_synthetic_file_causes_a_note(wayveil, folder):
    said = wayveil("measure", "rides.csv", *MEASURE)
    assert said.code == 0 and "synthetic already" not in said.err
    assert wayveil("synthesize", "x.release.json", "-n", "20", "-o", "s.csv").code == 0
    assert "'s.csv' is marked as synthetic" in wayveil("measure", "s.csv", *MEASURE, "--force").err


def test_synthesize_in_python_takes_files_too(wayveil, folder):
    import wayveil as wv

    line = {"type": "LineString", "coordinates": [[-39.99, 30.01], [-39.97, 30.01]]}
    streets = [{"type": "Feature", "geometry": line, "properties": {"highway": "primary"}}]
    limits = [{"type": "Feature", "geometry": None, "properties": {"rule": "speed_limit", "kmh": 50}}]
    for name, features in (("streets", streets), ("rules", limits)):
        Path(f"{name}.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    wv.write_release(
        wv.measure("rides.csv", "small.toml", epsilon=1, unit="trajectory", roads="streets.geojson"), "x.release.json"
    )
    release, roads = wv.read_release("x.release.json"), wv.read_roads("streets.geojson")
    rules = wv.rules.read_rules("rules.geojson", release.scope, roads)
    expected = wv.synthesize(release, roads=roads, rules=rules, n=5, seed=1)
    for kind in (str, Path):
        words = {"roads": kind("streets.geojson"), "rules": kind("rules.geojson")}
        made = wv.synthesize(kind("x.release.json"), **words, n=5, seed=1)
        assert made.trajectories == expected.trajectories and made.notes == expected.notes
    assert wv.synthesize(release, rules=json.loads(Path("rules.geojson").read_text()), n=2, seed=1)


def test_errors_in_python_name_python_arguments(wayveil, folder):
    import wayveil as wv

    maker = wv.Synthesizer(scope="small.toml", epsilon=1, unit="trajectory").fit("rides.csv")
    for make in (lambda **words: wv.synthesize(maker.release, **words), maker.sample):
        for words in ({"seed": -1}, {"seed": "a"}, {"n": "5"}, {"n": 10.5}, {"n": 0}):
            with pytest.raises(wv.errors.InputError, match=f"^{next(iter(words))}= must be a whole number [^.]*[.]$"):
                make(**words)
    for release, said in (("none.json", "no file 'none.json'"), (7, "release must be the result of wayveil.measure")):
        with pytest.raises(wv.errors.InputError, match=said):
            wv.synthesize(release)
    wv.write_release(maker.release, "x.release.json")
    assert "n must be a whole number from 1" in wayveil("synthesize", "x.release.json", "-n", 10**9, "-o", "s.csv").err


def test_a_scope_without_a_time_zone_means_utc_and_a_note_says_so(wayveil, folder):
    law = {"type": "Feature", "geometry": None, "properties": {"rule": "closed", "from": "22:00", "to": "06:00"}}
    Path("night.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [law]}))
    law["properties"] = {"rule": "speed_limit", "kmh": 50}
    Path("speed.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [law]}))
    run = wayveil("run", "--template").out.replace("my-city.toml", "small.toml").replace("# n = 10000", "n = 5")
    Path("rides.toml").write_text(run)
    Ledger().open_dataset("rides", 10, unit="trajectory")
    verbs = (
        ("check", "rides.csv", "--scope", "small.toml"), ("rules", "check", "night.geojson", "--scope", "small.toml"),
        ("measure", "none.csv", *MEASURE), ("measure", "rides.csv", *MEASURE, "--force"), ("run", "rides.toml"),
    )  # fmt: skip
    for zone, silent in (("", False), ('timezone = "UTC"\n', True)):
        Path("small.toml").write_text(SCOPE.replace('timezone = "UTC"\n', zone))
        Path("rides.release.json").unlink(missing_ok=True)
        for words in verbs:
            said = wayveil(*words)
            assert said.code == (2 if "none.csv" in words else 0), said
            assert ("'small' names no time zone" in said.err and "counted in UTC" in said.err) != silent, said
            if words[0] == "measure" and not silent:
                assert said.err.startswith("The scope 'small'")  # before anything is read or spent
    Path("small.toml").write_text(SCOPE.replace('"UTC"', '"Europe/Paris"'))
    words = ("rules", "check", "night.geojson", "--scope", "small.toml")
    assert "Hours are in the time zone Europe/Paris." in wayveil(*words).out
    assert json.loads(wayveil(*words, "--json").out)["timezone"] == "Europe/Paris"
    assert "Hours are" not in wayveil("rules", "check", "speed.geojson", "--scope", "small.toml").out


def test_invalid_rules_are_refused_before_anything_is_spent(wayveil, folder):
    import wayveil as wv

    limit = {"type": "Feature", "geometry": None, "properties": {"rule": "speed_limit", "kmh": 50}}
    for wrong in ([{"a": 1}], [limit], ["rules.geojson"]):
        with pytest.raises(wv.errors.InputError, match=r"rules must be wayveil\.rules\.Rule objects"):
            wv.Synthesizer(scope="small.toml", epsilon=1, unit="trajectory", rules=wrong)
    limits = {"type": "FeatureCollection", "features": [limit]}
    (one,) = wv.rules.read_rules(limits, "small.toml")
    assert wv.Synthesizer(scope="small.toml", epsilon=1, unit="trajectory", rules=one).rules == (one,)


def test_rules_in_python_are_checked_like_those_of_a_file(wayveil, folder):
    import wayveil as wv

    release = wv.measure("rides.csv", "small.toml", epsilon=50, unit="trajectory")
    impossible = (
        [wv.rules.closed(None, release.scope)], [wv.rules.speed_limit(30), wv.rules.min_speed(40)],
        wv.rules.min_speed(400),
    )  # fmt: skip
    for rules in impossible:
        with pytest.raises(wv.errors.RuleError, match="The rules contradict each other"):
            wv.synthesize(release, rules=rules, n=20, seed=1)
    with pytest.raises(wv.errors.RuleError, match="None of 20 trajectories could be made to obey"):
        wv.synthesize(release, rules=lambda x, y, t: 1 + 0 * x, n=20, seed=1)
    with pytest.raises(wv.errors.InputError, match="functions of"):
        wv.synthesize(release, rules=3, n=20, seed=1)

    for wrong, said in ((lambda x, y, t: 0, "one value for each point"), (lambda x, y, t: x > 5, "returns booleans"),
                        (lambda x, y: 0 * x, "takes 2 positional arguments")):  # fmt: skip
        with pytest.raises(wv.errors.RuleError, match=said):
            wv.synthesize(release, rules=wrong, n=20, seed=1)

    def western_half(x, y, t):
        return x - release.scope.width_m / 2

    made = wv.synthesize(release, rules=[western_half], n=20, seed=1)
    assert len(made.trajectories) == 20
    assert made.trajectories.lon.max() <= (release.scope.west + release.scope.east) / 2 + 1e-6
    assert made.diagnostics["violations_after"]["western_half"]["points"] == 0


def test_numpy_and_decimal_arguments_are_accepted(wayveil, folder):
    import numpy as np

    import wayveil as wv

    rides = Path("rides.csv").read_text().replace("\n", ",me\n").replace("ts,me", "ts,user")
    Path("rides.csv").write_text(rides)
    release = wv.measure("rides.csv", "small.toml", epsilon=50, unit="user", max_per_user=np.int64(2))
    made = wv.synthesize(release, n=20, seed=1)
    found = wv.evaluate("rides.csv", made, "small.toml", metrics="length")
    assert found.values == wv.evaluate("rides.csv", made.trajectories, "small.toml", metrics=["length"]).values
    for unit in (None, 3, "foo"):
        with pytest.raises(wv.errors.InputError, match="unit= must be"):
            wv.measure("rides.csv", "small.toml", epsilon=1, unit=unit)
    with pytest.raises(wv.errors.InputError, match="max_per_user"):
        wv.measure("rides.csv", "small.toml", epsilon=1, unit="user", max_per_user=True)

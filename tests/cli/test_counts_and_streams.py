"""Numbers that a release cannot support, files that never end, text that acts on a terminal, and a full stdout."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_town import SCOPE

import wayveil as wv
from repeatable import RepeatableNoise
from wayveil.errors import InputError, RuleError, printable
from wayveil.rules.days import days_of
from wayveil.synthesis.arguments import default_count, duration_words, wanted_count, why_count_unsuitable
from wayveil.workflow.synthesize_file import _count

MEASURE = {"unit": "trajectory", "epsilon": "900", "noise": RepeatableNoise(1)}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A release as JSON."""
    folder = tmp_path_factory.mktemp("release")
    points = [(k, 30.01 + i / 1000, -39.99, 1_700_000_000 + 60 * i) for k in range(30) for i in range(4)]
    (folder / "small.toml").write_text(SCOPE)
    (folder / "rides.csv").write_text("traj_id,lat,lon,t\n" + "".join(f"{k},{y},{x},{t}\n" for k, y, x, t in points))
    return wv.release.release_to_json(wv.measure(folder / "rides.csv", folder / "small.toml", **MEASURE))


@pytest.fixture
def folder(text, tmp_path, wayveil):
    Path("x.release.json").write_text(text)
    Path("small.toml").write_text(SCOPE)
    return tmp_path


def counting(release, count, noise):
    """The release with another noisy count, and another scale of its noise; the other answers tell nothing about it."""
    answer = release["count"]
    noisy, scale = np.array([count * answer.resolution]), noise * answer.resolution
    other = replace(answer, noisy=noisy, scale=scale, mechanism="laplace")
    silent = (replace(one, scale=1e12 * one.resolution, mechanism="laplace") for one in release.answers)
    return replace(release, answers=tuple(other if one.name == "count" else one for one in silent))


@pytest.mark.parametrize(
    ("count", "noise", "why"),
    [
        (20_000, 5e3, None),  # seconds of work, whatever the count is worth
        (1_000_000, 1e5, None),
        (1_000_000, 2e5, "inexact (its noise is about 200,000), and making them takes about 3 min"),
        (10_000_000, 10.0, None),
        (10_000_001, 10.0, "more than 10,000,000, and making them takes about 33 min (at 5,000 a second)"),
    ],
)
def test_a_count_that_the_release_does_not_support_needs_n_or_yes(text, count, noise, why):
    release = counting(wv.release.release_from_json(text), count, noise)
    assert default_count(release) == pytest.approx(count, rel=0.01)  # positive, so a little more where noise is large
    if why is None:
        assert why_count_unsuitable(release) is None and wanted_count(release, None) == _count(release, None, yes=False)
        assert wanted_count(release, None) == default_count(release)
        return
    assert why in why_count_unsuitable(release)
    with pytest.raises(InputError, match="say how many with n="):
        wv.synthesize(release)
    with pytest.raises(InputError, match=r"n= \(n in a run file\), or confirm it with yes=True"):
        _count(release, None, yes=False)
    assert _count(release, None, yes=True) == default_count(release) and _count(release, 7, yes=False) == 7


def test_a_forged_count_is_refused(wayveil, folder, text):
    document = json.loads(text)
    next(entry for entry in document["answers"] if entry["name"] == "count")["noisy"] = [9 * 10**18]
    Path("x.release.json").write_text(json.dumps(document))
    said = wayveil("synthesize", "x.release.json", "-o", "s.parquet")
    assert said.code == 2 and "about 6 h" in said.err and "--yes" in said.err and said.err.count("wayveil: ") == 1, said
    assert not list(folder.glob("*s.parquet*"))
    said = wayveil("synthesize", "x.release.json", "-n", "5", "-o", "s.parquet")
    assert said.code == 0, said


def test_the_expected_duration_is_stated_first(wayveil, folder, monkeypatch):
    order = []
    monkeypatch.setattr("wayveil.workflow.synthesize_file.synthesize_to_parquet", lambda *a, **k: 1 / 0)
    monkeypatch.setattr("wayveil.cli.synthesize.note", order.append)
    said = wayveil("synthesize", "x.release.json", "-n", "600000", "-o", "s.parquet")
    assert said.code == 1 and order == ["Making 600,000 trajectories takes about 2 min (at 5,000 a second)."]
    assert duration_words(25_000) is None


def fifo(name):
    os.mkfifo(name)
    return name


@pytest.mark.skipif(os.name != "posix", reason="devices")
@pytest.mark.parametrize("make", [lambda name: "/dev/zero", fifo], ids=["device", "fifo"])
@pytest.mark.parametrize(
    "words",
    [
        ("describe", "odd"), ("run", "odd"), ("scope", "show", "odd"), ("rules", "check", "odd"), ("check", "odd"),
        ("check", "odd", "--format", "csv"), ("check", "odd", "--format", "gpx"),
        ("check", "odd", "--format", "parquet"),
        ("rules", "check", "rules.geojson", "--roads", "odd"), ("synthesize", "odd", "-o", "s.parquet"),
        ("synthesize", "x.release.json", "-n", "5", "--rules", "odd", "-o", "s.parquet"),
        ("report", "odd", "s.parquet", "-o", "page.html"), ("report", "x.release.json", "odd", "-o", "page.html"),
        ("measure", "odd", "--dataset", "d", "--scope", "small.toml", "--epsilon", "1", "--unit", "trajectory",
         "-o", "r"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_file_without_an_end_is_refused_at_once(wayveil, folder, words, make):
    feature = {"type": "Feature", "geometry": None, "properties": {"rule": "speed_limit", "kmh": 50}}
    Path("rules.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    odd = make("odd")
    said = wayveil(*[odd if word == "odd" else word for word in words])
    assert said.code == 2 and said.err.count("wayveil: ") == 1, said


@pytest.mark.skipif(os.name != "posix", reason="FIFOs")
@pytest.mark.parametrize("name", ["Data/1/Trajectory/x.plt", "new_x.txt", "7.txt", "a.gpx"])
def test_a_fifo_in_a_folder_is_refused_at_once(wayveil, folder, name):
    place = Path("data") / name
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    said = wayveil("check", "data")
    assert said.code == 2 and said.err.count("wayveil: ") == 1, said


def test_control_characters_in_days_are_escaped(wayveil, folder):
    with pytest.raises(RuleError) as error:
        days_of("\x1b[2J\x07mon\u202e")
    assert str(error.value).isprintable() and r"\x1b[2J\x07mon\u202e" in str(error.value)
    properties = {"rule": "closed", "days": "\x1b[2Jmon"}
    shape = {"type": "Polygon", "coordinates": [[[-39.99, 30.01], [-39.98, 30.01], [-39.98, 30.02], [-39.99, 30.01]]]}
    feature = {"type": "Feature", "geometry": shape, "properties": properties}
    Path("odd.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    said = wayveil("rules", "check", "odd.geojson", "--scope", "small.toml")
    assert said.code == 2 and said.err.rstrip("\n").isprintable(), said


def test_control_characters_in_messages_are_escaped(wayveil, folder):
    assert str(InputError("a\x1b[31mb\nc\udcff")) == r"a\x1b[31mb\nc\udcff" and printable("é ε") == "é ε"
    for words in (("describe", "\x1b[2J"), ("check", "a\x07\n.csv"), ("convert", "a\udcff.csv", "b\x1b.csv")):
        said = wayveil(*words)
        assert said.code == 2 and said.err.rstrip("\n").isprintable(), said


@pytest.mark.parametrize("content", ["[]", "7", "null", '"x"', '{"files": []}', '{"files": {"a": []}}', "[[]]"])
def test_an_evaluation_of_another_shape_is_refused(wayveil, folder, content):
    from wayveil.report.internal import make_internal

    if content == "null":
        assert make_internal(json.loads(content), None).metrics == ()
        return
    with pytest.raises(InputError, match="no 'scores'"):
        make_internal(json.loads(content), None)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full")
@pytest.mark.parametrize(
    "words", [("describe", "x.release.json"), ("describe", "x.release.json", "--json"), ("--help",)]
)
def test_a_full_disk_behind_stdout_is_bad_input(folder, words):
    call = [sys.executable, "-c", "from wayveil.cli.main import main; main()", *words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2, done
    assert done.stderr.startswith("wayveil: Cannot write the result to standard output: No space left") and (
        done.stderr.count("\n") == 1
    )

"""What is in a release, what is not, and that an altered one is refused."""

import json
import os
import re
import sqlite3
import stat
from dataclasses import replace

import numpy as np
import pytest

from wayveil.errors import ReleaseError
from wayveil.measurement import measure
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.noise import SeededNoise
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.detail_weights import FEWEST, MOST
from wayveil.questions.median_interval import MedianInterval
from wayveil.release import read_release, release_from_json, release_to_json, write_release
from wayveil.release.check import check_complete
from wayveil.release.describe import describe
from wayveil.simulate import simulate_city, simulate_trajectories

COUNT = 317


@pytest.fixture(scope="module")
def city():
    return simulate_city(0, size_km=(4, 4))


@pytest.fixture(scope="module")
def data(city):
    return simulate_trajectories(city, COUNT, seed=3)


@pytest.fixture(scope="module")
def release(city, data):
    return measure(data, city.scope, epsilon="0.5", unit="trajectory", noise=SeededNoise(1))


def test_round_trip(release, tmp_path):
    umask = os.umask(0o027)
    try:
        write_release(release, tmp_path / "x.release.json")
    finally:
        os.umask(umask)
    again = read_release(tmp_path / "x.release.json")
    assert release_to_json(again) == release_to_json(release)
    assert again.ledger == release.ledger and again.scope == release.scope and not again.private
    for mine, other in zip(release.answers, again.answers):
        assert np.array_equal(mine.noisy, other.noisy) and mine.noise == other.noise
    assert stat.S_IMODE(os.stat(tmp_path / "x.release.json").st_mode) == 0o640
    check_complete(again)


def test_a_release_contains_no_digest_of_records(city, data, tmp_path):
    """No digest, no secret, no seed, no exact count, no float that noise has not been through."""
    ledger = Ledger(tmp_path / "d.sqlite")
    text = release_to_json(measure(data, city.scope, epsilon=1, unit="trajectory", dataset="d", ledger=ledger))
    document = json.loads(text)
    assert set(document) == {
        "format", "version", "software", "private", "epsilon", "epsilon_exact", "delta", "unit", "max_per_user",
        "neighbours", "scope", "ledger", "answers",
    }  # fmt: skip
    for entry in document["answers"]:
        assert set(entry) == {"name", "parameters", "shape", "resolution", "mechanism", "scale", "noisy"}
        assert all(type(value) is int for value in entry["noisy"])
        assert set(entry["parameters"]) <= {
            "side", "sides", "parts", "cell_m", "edges", "displacement_edges", "length_edges", "duration_edges",
            "weekday_edges", "hour_edges", "cuts",
        }  # fmt: skip
    lowered = text.lower()
    assert not any(word in lowered for word in ("digest", "secret", "seed", "hash", "sha256", "d.sqlite"))
    assert ledger.secret.hex() not in lowered
    with sqlite3.connect(ledger.path) as db:
        digests = {row[0] for row in db.execute("SELECT digest FROM entries") if row[0]}
    assert len(digests) == 1 and not any(digest in lowered for digest in digests)


def test_the_count_is_noisy_everywhere(city, data):
    """Histograms whose exact sum is the count must not add up to it."""
    hits = 0
    for _ in range(3):
        release = measure(data, city.scope, epsilon="0.1", unit="trajectory")
        totals = [release[name].counts.sum() for name in ("count", "departure_hour", "departure_week", "duration")]
        hits += sum(total == COUNT for total in totals)
    assert hits <= 3  # each is hit by chance less than once in a hundred


def put(path, value):
    def change(document):
        *way, last = path
        for key in way:
            document = document[key]
        document[last] = value

    return change


def drop_answer(document):
    document["answers"].pop()


def drop_line(document):
    document["ledger"].pop()


def same_name_twice(document):
    document["answers"].append(document["answers"][0])


def less_noise(document):
    for entry in document["answers"]:
        entry["scale"] /= 2


def smaller_epsilon(document):
    """Lines and total changed alike: only the scales betray it."""
    document["epsilon"] /= 2
    document["epsilon_exact"] = "0.25"
    for line in document["ledger"]:
        line["epsilon"] /= 2
        line["epsilon_exact"] = f"{line['epsilon']:.30f}".rstrip("0")


ALTERED = {
    "format": put(["format"], "other"),
    "version": put(["version"], 2),
    "epsilon": put(["epsilon"], 0.1),
    "exact epsilon": put(["epsilon_exact"], "0.1"),
    "a number that takes for ever": put(["epsilon_exact"], "1e999999999"),
    "epsilon of no kind": put(["epsilon_exact"], ["0.5"]),
    "delta": put(["delta"], 1e-6),
    "impossible delta": put(["delta"], 2),
    "unit": put(["unit"], "user"),
    "unknown unit": put(["unit"], "city"),
    "cap": put(["max_per_user"], 7),
    "cap of no kind": put(["max_per_user"], "1"),
    "scope": put(["scope", "north"], -89.0),
    "moved scope": put(["scope", "north"], 40.0),
    "unknown key of the scope": put(["scope", "extra"], 1),
    "one line": put(["ledger", 3, "epsilon_exact"], "0.4"),
    "line lost": drop_line,
    "answer lost": drop_answer,
    "same name twice": same_name_twice,
    "less noise": less_noise,
    "smaller epsilon": smaller_epsilon,
    "zero scale": put(["answers", 0, "scale"], 0),
    "mechanism": put(["answers", 0, "mechanism"], "gaussian"),
    "unknown mechanism": put(["answers", 0, "mechanism"], "none"),
    "resolution": put(["answers", 1, "resolution"], 1),
    "shape": put(["answers", 1, "shape"], [1, 2]),
    "huge shape": put(["answers", 1, "shape"], [1 << 40, 1 << 40]),
    "no shape": put(["answers", 1, "shape"], []),
    "floats": put(["answers", 0, "noisy"], [317.0]),
    "truth": put(["answers", 0, "noisy"], [True]),
    "beyond int64": put(["answers", 0, "noisy"], [1 << 80]),
    "side": put(["answers", 1, "parameters", "side"], 3),
    "cell": put(["answers", 1, "parameters", "cell_m"], 99.0),
    "parameters": put(["answers", 1, "parameters"], None),
    "no answers": put(["answers"], []),
    "answers of no kind": put(["answers"], {"a": 1}),
    "name of no kind": put(["answers", 0, "name"], 5),
}


@pytest.mark.parametrize("change", ALTERED.values(), ids=ALTERED.keys())
def test_an_altered_release_is_refused(release, change):
    document = json.loads(release_to_json(release))
    change(document)
    with pytest.raises(ReleaseError):
        release_from_json(json.dumps(document))


@pytest.mark.parametrize("name", ["length", "origin_destination/fine", "displacement_length"])
def test_altered_parameters_are_refused(release, name):
    document = json.loads(release_to_json(release))
    (entry,) = [entry for entry in document["answers"] if entry["name"] == name]
    for key in entry["parameters"]:
        for value in ([], [1.0], "x", None, entry["parameters"][key][::-1], entry["parameters"][key][:-1]):
            altered = json.loads(json.dumps(document))
            next(v for v in altered["answers"] if v["name"] == name)["parameters"][key] = value
            if key == "cuts" and value == entry["parameters"][key][::-1]:
                continue  # other cuts of the same number are other regions, no contradiction
            with pytest.raises(ReleaseError):
                release_from_json(json.dumps(altered))


@pytest.mark.parametrize("place", [-1, 100_000])
def test_regions_cut_outside_the_grid_are_refused(release, place):
    document = json.loads(release_to_json(release))
    (entry,) = [entry for entry in document["answers"] if entry["name"] == "origin_destination/fine"]
    for cut in entry["parameters"]["cuts"][:2]:
        kept, cut[1] = cut[1], place
        with pytest.raises(ReleaseError, match="altered"):
            release_from_json(json.dumps(document))
        cut[1] = kept
    assert release_from_json(json.dumps(document)).epsilon == release.epsilon


def first_part(parts, value):
    return [[value, *parts[0][1:]], *parts[1:]]


DETAIL = {
    "no sides": ("sides", lambda known: None),
    "three sides": ("sides", lambda known: [*known["sides"], 1]),
    "sides that do not divide": ("sides", lambda known: [known["sides"][0] - 1, known["sides"][1]]),
    "sides the wrong way round": ("sides", lambda known: known["sides"][::-1]),
    "sides as large as blocks": ("sides", lambda known: [16, 16]),
    "sides of no kind": ("sides", lambda known: [float(side) for side in known["sides"]]),
    "truth for a side": ("sides", lambda known: [known["sides"][0], True]),
    "a side of zero": ("sides", lambda known: [known["sides"][0], 0]),
    "cell": ("cell_m", lambda known: 99.0),
    "no cell": ("cell_m", lambda known: None),
    "no parts": ("parts", lambda known: None),
    "empty parts": ("parts", lambda known: []),
    "parts in one row": ("parts", lambda known: [part for row in known["parts"] for part in row]),
    "a row lost": ("parts", lambda known: known["parts"][:-1]),
    "a column lost": ("parts", lambda known: [row[:-1] for row in known["parts"]]),
    "a part lost": ("parts", lambda known: [known["parts"][0][1:], *known["parts"][1:]]),
    "too few parts": ("parts", lambda known: first_part(known["parts"], FEWEST - 1)),
    "too many parts": ("parts", lambda known: first_part(known["parts"], MOST + 1)),
    "parts of no kind": ("parts", lambda known: first_part(known["parts"], 5.0)),
    "truth for parts": ("parts", lambda known: first_part(known["parts"], True)),
}


@pytest.mark.parametrize("name", ["occupancy/detail", "end_points/detail"])
@pytest.mark.parametrize(("key", "value"), DETAIL.values(), ids=DETAIL.keys())
def test_an_altered_detail_is_refused(release, name, key, value):
    document = json.loads(release_to_json(release))
    (entry,) = [entry for entry in document["answers"] if entry["name"] == name]
    entry["parameters"][key] = value(entry["parameters"])
    with pytest.raises(ReleaseError, match=f"'{name}' does not match its own description; the release was altered"):
        release_from_json(json.dumps(document))
    del entry["parameters"][key]
    with pytest.raises(ReleaseError, match="does not match"):
        release_from_json(json.dumps(document))


@pytest.mark.parametrize("wrong", [lambda e: [e[0] + 0.7, *e[1:]], lambda e: [*e[:-1], e[-1] + 900],
                                   lambda e: [e[0], e[1] + 0.25, *e[2:]]])  # fmt: skip
def test_bins_in_which_nothing_is_asked_are_refused(release, wrong):
    document = json.loads(release_to_json(release))
    (entry,) = [entry for entry in document["answers"] if entry["name"] == MedianInterval.name]
    # One bit more or less, as another processor may have it, is no alteration.
    entry["parameters"]["edges"] = [edge * (1 + 2e-16) for edge in entry["parameters"]["edges"]]
    release_from_json(json.dumps(document))
    entry["parameters"]["edges"] = wrong(entry["parameters"]["edges"])
    with pytest.raises(ReleaseError, match=f"'{MedianInterval.name}' does not match its own description"):
        release_from_json(json.dumps(document))


def test_other_valid_parts_are_accepted(release):
    """The rule that chose them may change; what they mean does not."""
    document = json.loads(release_to_json(release))
    (entry,) = [entry for entry in document["answers"] if entry["name"] == "occupancy/detail"]
    entry["parameters"]["parts"] = [[FEWEST + MOST - part for part in row] for row in entry["parameters"]["parts"]]
    check_complete(release_from_json(json.dumps(document)))


def test_a_release_without_an_answer_that_synthesis_needs_is_incomplete(release):
    for name, question in QUESTIONS.items():
        less = replace(release, answers=tuple(answer for answer in release.answers if answer.name != name))
        if question.optional:
            check_complete(less)
            continue
        with pytest.raises(ReleaseError, match=f"no answer to '{name}'"):
            check_complete(less)


def test_an_answer_of_another_version_is_named(release):
    document = json.loads(release_to_json(release))
    for part in (document["answers"], document["ledger"]):
        part[-1]["name"] = "shoe_size"
    with pytest.raises(ReleaseError, match="a question 'shoe_size' that this version of wayveil does not know"):
        release_from_json(json.dumps(document))


EMPTY = '{"format": "wayveil-release", "version": 1}'


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, EMPTY, "\x00"], ids=range(7))
def test_other_texts_are_refused(text):
    with pytest.raises(ReleaseError):
        release_from_json(text)


def test_infinity_and_a_missing_file_are_refused(release, tmp_path):
    text = release_to_json(release).replace('"delta":0.0', '"delta":NaN')
    with pytest.raises(ReleaseError):
        release_from_json(text)
    with pytest.raises(ReleaseError):
        read_release(tmp_path / "missing.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReleaseError):
        read_release(tmp_path / "binary.json")


def test_descriptions_have_readable_costs():
    """Rounded decimals and shares for readers; exact fractions stay in the plain values."""
    city = simulate_city(size_km=(3, 3))
    rides = simulate_trajectories(city, 50)
    release = measure(rides, city.scope, epsilon="0.7", unit="trajectory")
    assert describe(release).startswith("This release may be published: it is differentially private")
    costs = describe(release).split("What it cost")[1].splitlines()[1:-1]
    assert len(costs) == len(release.answers)
    assert all(re.match(r"  \S+ +[\d.e-]{1,8} +[\d.]+%  \S", line) for line in costs), costs

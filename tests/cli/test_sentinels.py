"""Every command on data with marked values: no coordinate, no id and no exact count in anything it says.

The tables of `check`, `evaluate` and `audit` are computed from the private data and say so; their messages are searched
for ids all the same.
"""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wayveil.exact as exact
from wayveil.cli.main import VERBS

TRAJECTORIES, POINTS_EACH = 613, 7
LAT, LON = 30.0123456, -39.9876543
SCOPE = """name = "small"
south = 30.0
west = -40.0
north = 30.04
east = -39.96
"""
RULES = {
    "type": "FeatureCollection",
    "features": [{"type": "Feature", "properties": {"rule": "speed_limit", "kmh": 90}, "geometry": None}],
}
MARKS = re.compile(
    r"sentinel|30\.0123|39\.9876|"
    rf"(?<![\d.]){TRAJECTORIES}(?![\d])|(?<![\d.]){TRAJECTORIES * POINTS_EACH:}(?![\d])|4,291|17000012\d\d"
)
EPSILON = ("--scope", "small.toml", "--epsilon", "1")
TRIP = (*EPSILON, "--unit", "trajectory")


@pytest.fixture
def folder(tmp_path, wayveil):
    random = np.random.default_rng(0)
    walks = random.normal(0, 2e-5, (2, TRAJECTORIES, POINTS_EACH)).cumsum(axis=2)
    walks[:, :, 0] = 0
    table = pa.table(
        {
            "traj_id": [f"sentinel-ride-{k:04}" for k in range(TRAJECTORIES) for _ in range(POINTS_EACH)],
            "user_id": [f"sentinel-user-{k % 90}" for k in range(TRAJECTORIES) for _ in range(POINTS_EACH)],
            "lat": LAT + walks[0].ravel(),
            "lon": LON + walks[1].ravel(),
            "t": np.tile(1_700_001_200 + 17 * np.arange(POINTS_EACH), TRAJECTORIES),
        }
    )
    pq.write_table(table, tmp_path / "rides.parquet")
    broken = {name: table[name].to_pylist()[:20] for name in table.column_names}
    broken["lat"][3] = float("nan")
    pq.write_table(pa.table(broken), tmp_path / "broken.parquet")
    swapped = table.rename_columns(["traj_id", "user_id", "lon", "lat", "t"])
    pq.write_table(swapped, tmp_path / "swapped.parquet")
    text = "\n".join(",".join(map(str, row.values())) for row in table.slice(0, 40).to_pylist())
    (tmp_path / "headless.csv").write_text(text)
    (tmp_path / "words.csv").write_text("traj_id,user_id,lat,lon,t\nsentinel-ride-1,sentinel-user-1,30.0123N,x,noon\n")
    (tmp_path / "small.toml").write_text(SCOPE)
    (tmp_path / "far.toml").write_text(SCOPE.replace("30.0", "50.0"))
    (tmp_path / "rules.geojson").write_text(json.dumps(RULES))
    (tmp_path / "run.toml").write_text(
        '[measure]\nfile = "rides.parquet"\ndataset = "run"\nscope = "small.toml"\nepsilon = 1\nunit = "user"\n'
        'max_per_user = 3\n[synthesize]\nn = 30\n[output]\nrelease = "run.json"\nsynthetic = "run.csv"\n'
    )
    return tmp_path


COMMANDS = [
    (0, "ledger open rides.parquet --dataset opened --total 2"),
    (0, "measure rides.parquet --dataset opened -o a.json", *TRIP),
    (0, "measure rides.parquet --dataset opened -o b.json --json", *EPSILON, "--unit", "user", "--max-per-user", "2"),
    (3, "measure rides.parquet --dataset opened -o c.json", *TRIP),
    (0, "measure rides.parquet --dataset other -o d.json --delta 1e-6", *TRIP),
    (2, "measure broken.parquet --dataset x -o e.json", *TRIP),
    (2, "measure swapped.parquet --dataset x -o e.json", *TRIP),
    (2, "measure headless.csv --dataset x -o e.json", *TRIP),
    (2, "measure words.csv --dataset x -o e.json", *TRIP),
    (2, "measure rides.parquet --dataset x -o e.json --scope far.toml --epsilon 1 --unit trajectory"),
    (2, "measure rides.parquet --dataset x -o e.json --traj-column lat", *TRIP),
    (0, "ledger allow opened --total 5 --reason more"),
    (0, "ledger show"),
    (0, "ledger show --json"),
    (0, "describe a.json"),
    (0, "describe b.json --json"),
    (0, "synthesize a.json -o s.parquet -n 40"),
    (0, "synthesize d.json -o s.csv -n 40 --seed 3 --rules rules.geojson --json"),
    (0, "rules check rules.geojson --scope small.toml"),
    (0, "report a.json s.parquet -o sheet.html"),
    (0, "run run.toml"),
    (0, "run run.toml --json"),
    (0, "convert rides.parquet copy.csv"),
    (2, "convert broken.parquet copy.gpx"),
    (2, "convert headless.csv copy.parquet"),
    (0, "scope show small.toml"),
    (0, "simulate -o city.parquet -n 20 --size-km 3 3 --json"),
]
TABLES = [
    "check rides.parquet --scope small.toml",
    "check broken.parquet",
    "check headless.csv",
    "check words.csv",
    "evaluate rides.parquet s.parquet --scope small.toml --headline",
    "evaluate broken.parquet s.parquet --scope small.toml --headline",
    "audit rides.parquet s.parquet --scope small.toml",
    "audit broken.parquet s.parquet --scope small.toml",
    "report a.json s.parquet -o internal.html --internal --real broken.parquet",
]


def test_no_command_says_anything_private(wayveil, folder):
    for code, text, *more in COMMANDS:
        said = wayveil(*text.split(), *more)
        assert said.code == code, (text, said)
        found = MARKS.search(said.all)
        assert found is None, (text, found, said)
        assert "Traceback" not in said.all
    for text in TABLES:
        said = wayveil(*text.split())
        assert said.code in (0, 2) and "sentinel" not in said.all, (text, said)
        assert said.code == 2 or "not for publication" in said.all.lower(), text
        # Whatever goes wrong is told without values, in these verbs as well.
        assert said.code == 0 or MARKS.search(said.err) is None, (text, said)


def test_every_verb_that_reads_private_data_is_tried():
    tried = {text.split()[0] for _, text, *_ in COMMANDS} | {text.split()[0] for text in TABLES}
    # These read public or invented data; `paper` and `bench` print tables of experiments, stamped as such.
    assert set(VERBS) - tried == {"demo", "bench", "paper"}


def test_the_marks_would_be_seen(folder):
    for text in ("613 trajectories", "at 30.01234", "-39.98765", "4291", "sentinel-user-1", "t = 1700001217"):
        assert MARKS.search(text), text
    for text in ("0.613", "16130", "epsilon 1", "2026-11-15"):
        assert not MARKS.search(text), text


def test_an_unexpected_error_is_told_without_its_words(wayveil, folder, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError(f"could not place sentinel-user-3 at {LAT}, {LON}")

    monkeypatch.setattr(exact, "prepared_batches", fail)
    said = wayveil("measure", "rides.parquet", "--dataset", "x", "-o", "e.json", *TRIP)
    assert said.code == 1 and "RuntimeError" in said.err and MARKS.search(said.all) is None, said
    assert "stays charged" not in said.err and not (folder / "e.json").exists()


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("wayveil.formats.convert.convert", "convert rides.parquet copy.csv"),
        ("wayveil.release.read_release", "describe a.json"),
        ("wayveil.runfile.read_run", "run run.toml"),
        ("wayveil.rules.read_rules", "rules check rules.geojson --scope small.toml"),
        ("wayveil.formats.check.check", "check rides.parquet"),
    ],
)
def test_an_unexpected_error_of_any_verb_keeps_its_words(wayveil, folder, monkeypatch, place, command):
    def fail(*_, **__):
        raise KeyError("sentinel-user-3", LAT, TRAJECTORIES)

    monkeypatch.setattr(place, fail)
    said = wayveil(*command.split())
    assert said.code == 1 and "KeyError" in said.err and MARKS.search(said.all) is None, said
    refused = wayveil("--debug", *command.split())
    assert refused.code == 2 and "may show" in refused.err and MARKS.search(refused.all) is None, refused

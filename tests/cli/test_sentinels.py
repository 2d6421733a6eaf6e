"""Every command on data with marked values: no coordinate, no id and no exact count in anything it says.

The tables of `check`, `evaluate`, `audit` and `bench` are computed from the private data and say so; they are searched
for ids all the same. What may be published (releases, synthetic files, data sheets) is searched as files.
"""

import json
import logging
import re
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wayveil.measurement.exact as exact
from repeatable import patched
from wayveil.cli.main import COMMANDS as TOP_LEVEL
from wayveil.cli.main import app

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
    r"sentinel|30\.0123|39\.9876|37\.7712|122\.4123|"
    rf"(?<![\d.]){TRAJECTORIES}(?![\d])|(?<![\d.]){TRAJECTORIES * POINTS_EACH:}(?![\d])|4,291|17000012\d\d"
)
LOGGED = re.compile(r"sentinel|30\.0123|39\.9876|37\.7712|122\.4123|17000012\d\d")
EPSILON = ("--scope", "small.toml", "--epsilon", "1")
TRIP = (*EPSILON, "--unit", "trajectory")


def rides(lat, lon):
    random = np.random.default_rng(0)
    walks = random.normal(0, 2e-5, (2, TRAJECTORIES, POINTS_EACH)).cumsum(axis=2)
    walks[:, :, 0] = 0
    return pa.table(
        {
            "traj_id": [f"sentinel-ride-{k:04}" for k in range(TRAJECTORIES) for _ in range(POINTS_EACH)],
            "user_id": [f"sentinel-user-{k % 90}" for k in range(TRAJECTORIES) for _ in range(POINTS_EACH)],
            "lat": lat + walks[0].ravel(),
            "lon": lon + walks[1].ravel(),
            "t": np.tile(1_700_001_200 + 17 * np.arange(POINTS_EACH), TRAJECTORIES),
        }
    )


@pytest.fixture
def folder(tmp_path, wayveil):
    table = rides(LAT, LON)
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
    (0, "ledger open rides.parquet --dataset opened --unit trajectory --total 2"),
    (0, "measure rides.parquet --dataset opened -o a.json", *TRIP),
    (3, "measure rides.parquet --dataset opened -o b.json", *EPSILON, "--unit", "user", "--max-per-user", "2"),
    (0, "ledger allow opened --unit user --total none --reason both"),
    (0, "measure rides.parquet --dataset opened -o b.json --json", *EPSILON, "--unit", "user", "--max-per-user", "2"),
    (3, "measure rides.parquet --dataset opened -o c.json", *TRIP),
    (0, "measure rides.parquet --dataset other -o d.json --delta 1e-6", *TRIP),
    (0, "measure broken.parquet --dataset x1 -o e1.json", *TRIP),
    (0, "measure swapped.parquet --dataset x2 -o e2.json", *TRIP),
    (2, "measure headless.csv --dataset x -o e.json", *TRIP),
    (0, "measure words.csv --dataset x3 -o e3.json", *TRIP),
    (0, "measure rides.parquet --dataset x4 -o e4.json --scope far.toml --epsilon 1 --unit trajectory"),
    (2, "measure rides.parquet --dataset x -o e.json --traj-column lat", *TRIP),
    (0, "ledger allow opened --total 5 --reason more"),
    (0, "ledger show"),
    (0, "ledger show --verbose"),
    (0, "ledger accept --reason moved"),
    (0, "ledger show --json"),
    (0, "describe a.json"),
    (0, "describe b.json --json"),
    (0, "synthesize a.json -o s.parquet -n 40"),
    (0, "synthesize d.json -o s.csv -n 40 --seed 3 --rules rules.geojson --json"),
    (0, "rules check rules.geojson --scope small.toml"),
    (0, "report a.json s.parquet -o sheet.html"),
    (0, "tables a.json s.parquet -o tables"),
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


INVENTED = [
    "scope list",
    "scope new -o new.toml",
    "audit self-check --quick",
    "bench methods",
    "bench conformance --methods coordinate-noise",
    "plan --trips 300 --epsilon 1 --scope small.toml",
    "rules draw --scope small.toml -o draw.html",
    "paper parameters -o parameters --quick --json",
    "paper constraints -o constraints --quick",
]
COMPARED = [
    "bench utility data -o bench --scope small.toml --epsilons 1 --seeds 1 --methods wayveil --datasets rides",
    "bench utility data -o bench --scope small.toml --epsilons 1 --seeds 1 --methods wayveil --datasets rides --json",
    "paper synthesize rides.parquet --scope small.toml --epsilon 1 --subset 30 --iterations 2 -o dpe.csv",
    "paper synthesize broken.parquet --scope small.toml --epsilon 1 --iterations 2 -o dpe2.csv",
    "paper comparison city -o comparison --methods dpe --quick --subset 30 --iterations 2 --json",
    "paper comparison broken -o comparison2 --methods dpe --quick --subset 30 --iterations 2",
]
PUBLIC = ["a.json", "b.json", "d.json", "run.json", "s.parquet", "s.csv", "run.csv", "sheet.html"]


def searched(said, caplog, marks=MARKS):
    """What was said, after a search of it and of everything that any library wrote to a log."""
    found = marks.search(said.all) or LOGGED.search(caplog.text)
    caplog.clear()
    assert found is None and "Traceback" not in said.all, (found, said)
    return said


def test_no_command_prints_anything_private(wayveil, folder, caplog, monkeypatch):
    patched(monkeypatch, first=100)  # of the first seeds, one gives almost no noise
    caplog.set_level(logging.DEBUG)
    for code, text, *more in COMMANDS:
        said = searched(wayveil(*text.split(), *more), caplog)
        assert said.code == code, (text, said)
    for text in TABLES:
        said = searched(wayveil(*text.split()), caplog, re.compile("sentinel"))
        assert said.code in (0, 2), (text, said)
        assert said.code == 2 or "not for publication" in said.all.lower(), text
        # Whatever goes wrong is reported without values, in these commands as well.
        assert said.code == 0 or MARKS.search(said.err) is None, (text, said)
    for name in PUBLIC:
        content = (folder / name).read_bytes()
        assert b"sentinel" not in content and b"rides.parquet" not in content, name
    for name in ("s.parquet", "s.csv", "run.csv"):
        assert not copied(folder / name), name


def copied(path):
    """Whether a file holds the place where every ride begins."""
    from wayveil.io.files import read

    made = read(path)
    return bool(((made.lat == LAT) & (made.lon == LON)).any())


def test_the_search_of_files_would_see_a_copy(folder):
    assert copied(folder / "rides.parquet")


def test_comparisons_print_nothing_private(wayveil, folder, caplog):
    """`bench` and `paper` on private files; what they print is stamped."""
    caplog.set_level(logging.DEBUG)
    for name, file, place in (("data", "rides", (LAT, LON)), ("city", "cabspotting", (37.7712345, -122.4123456))):
        (folder / name).mkdir()
        pq.write_table(rides(*place), folder / name / f"{file}.parquet")
    (folder / "broken").mkdir()
    (folder / "broken.parquet").rename(folder / "broken" / "cabspotting.parquet")
    pq.write_table(pq.read_table(folder / "broken" / "cabspotting.parquet"), folder / "broken.parquet")
    for text in COMPARED:
        said = searched(wayveil(*text.split()), caplog, LOGGED)
        assert MARKS.search(said.err) is None, (text, said)
        assert said.code == (2 if "broken" in text else 0), (text, said)
        assert re.search("not for publication|NOT differentially private", said.all, re.I), text
    for name in ("bench", "comparison"):
        files = [file for file in (folder / name).rglob("*") if file.is_file()]
        assert files and not any(b"sentinel" in file.read_bytes() for file in files), name
    assert "NOT" in (folder / "dpe.csv.json").read_text().upper()


def test_commands_on_simulated_data_print_nothing_private(wayveil, folder, caplog, monkeypatch):
    """`demo`, with marked ids in its private file, and the commands that make their own data, all of them small."""
    import wayveil.audit.cases as cases
    import wayveil.audit.selfcheck as selfcheck
    import wayveil.reproduction.constraints as constraints
    import wayveil.reproduction.parameters as parameters
    import wayveil.simulate as simulate
    import wayveil.workflow.demo as demo

    def marked(path, n, *more, make=simulate.simulate_to_parquet, **options):
        make(path, n, *more, **options)
        table = pq.read_table(path)
        for name in ("traj_id", "user_id"):
            at = table.column_names.index(name)
            table = table.set_column(at, name, pa.array([f"sentinel-{one}" for one in table[name].to_pylist()]))
        pq.write_table(table, path)

    monkeypatch.setattr(selfcheck, "QUICK", selfcheck.Effort(questions=60, releases=4, samples=6, published=6))
    monkeypatch.setattr(parameters, "run", partial(parameters.run, m=6, points=5, losses=("mean-square",)))
    monkeypatch.setattr(parameters, "grid", lambda quick, full: ([4], [1.0]))  # every other size is compiled anew
    monkeypatch.setattr(constraints, "run", partial(constraints.run, m=6, points=5, cases=constraints.CASES[:1]))
    for module in (simulate, cases, demo):
        monkeypatch.setattr(module, "simulate_city", partial(simulate.simulate_city, size_km=(3, 3)))
    monkeypatch.setattr(simulate.generate, "simulate_to_parquet", marked)
    monkeypatch.setattr(simulate.files, "rules_text", lambda city: json.dumps(RULES))  # test_demo.py has all the rules
    caplog.set_level(logging.DEBUG)
    for text in INVENTED:
        said = searched(wayveil(*text.split()), caplog, LOGGED)
        assert said.code in (0, 1) if "self-check" in text else said.code == 0, (text, said)
    said = searched(wayveil("demo", "-o", "demo", "-n", "100"), caplog, LOGGED)
    assert said.code == 0, said
    assert b"sentinel" in (folder / "demo" / "private" / "rides.parquet").read_bytes()
    public = list((folder / "demo" / "public").iterdir())
    assert len(public) >= 3 and not any(b"sentinel" in file.read_bytes() for file in public)


def leaves(command, path=()):
    """Every command that can be run, as words."""
    inner = getattr(command, "commands", None)
    if not inner or getattr(command, "invoke_without_command", False):
        yield " ".join(path)
    for name, one in (inner or {}).items():
        yield from leaves(one, (*path, name))


def test_every_command_is_tried():
    import typer

    texts = [text for _, text, *_ in COMMANDS] + TABLES + INVENTED + COMPARED + ["demo -o demo"]
    every = set(leaves(typer.main.get_command(app)))
    assert {name.split()[0] for name in every} == set(TOP_LEVEL)
    tried = {name for name in every for text in texts if f"{text} ".startswith(f"{name} ")}
    assert every - tried == {"audit files"}  # what `audit FILE` means; it is among the tables
    assert any(text.startswith("audit ") for text in TABLES)


def test_the_search_finds_each_kind_of_mark(folder):
    for text in ("613 rides", "30.01234", "-39.98765", "4291", "sentinel-user-1", "at 1700001217", "37.77123"):
        assert MARKS.search(text), text
    for text in ("0.613", "16130", "epsilon 1", "2026-11-15"):
        assert not MARKS.search(text), text


def test_the_text_of_an_unexpected_error_is_not_shown(wayveil, folder, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError(f"could not place sentinel-user-3 at {LAT}, {LON}")

    monkeypatch.setattr(exact, "part_batches", fail)
    said = wayveil("measure", "rides.parquet", "--dataset", "x", "-o", "e.json", *TRIP)
    assert said.code == 1 and "RuntimeError" in said.err and MARKS.search(said.all) is None, said
    assert "stays charged" not in said.err and not (folder / "e.json").exists()


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("wayveil.io.convert.convert", "convert rides.parquet copy.csv"),
        ("wayveil.release.read_release", "describe a.json"),
        ("wayveil.workflow.run_file.read_run", "run run.toml"),
        ("wayveil.rules.checking.read_rules", "rules check rules.geojson --scope small.toml"),
        ("wayveil.io.check.check", "check rides.parquet"),
    ],
)
def test_no_command_shows_the_text_of_an_unexpected_error(wayveil, folder, monkeypatch, place, command):
    def fail(*_, **__):
        raise KeyError("sentinel-user-3", LAT, TRAJECTORIES)

    monkeypatch.setattr(place, fail)
    said = wayveil(*command.split())
    assert said.code == 1 and "KeyError" in said.err and MARKS.search(said.all) is None, said
    refused = wayveil("--debug", *command.split())
    assert refused.code == 2 and "may show" in refused.err and MARKS.search(refused.all) is None, refused

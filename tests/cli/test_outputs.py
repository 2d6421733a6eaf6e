"""An output never destroys an input, a ledger, another output, or anything that is not a regular file."""

import json
import os
import shutil
import stat
import warnings
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_town import MEASURE, SCOPE

import wayveil as wv
from wayveil.io.convert import convert
from wayveil.io.ledger_paths import SUFFIXES
from wayveil.privacy.ledger import default_path
from wayveil.report.from_files import write_report
from wayveil.workflow.measure_file import FileMeasurement, measure_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="inodes, links and devices")

PUBLIC, PRIVATE = 0o640, 0o600
UMASK = 0o027


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """Private data, a release, a synthetic file, and the ledger L on which rides has spent 1 of 1."""
    here = tmp_path_factory.mktemp("made")
    points = [(k, 30.01 + i / 1000, -39.99, 1_700_000_000 + 60 * i) for k in range(25) for i in range(4)]
    (here / "small.toml").write_text(SCOPE)
    (here / "rides.csv").write_text("traj_id,lat,lon,t\n" + "".join(f"{k},{y},{x},{t}\n" for k, y, x, t in points))
    wv.write(wv.read(here / "rides.csv"), here / "rides.parquet")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, str(here / "xdg"))
        wanted = FileMeasurement(
            here / "rides.parquet", here / "small.toml", "1", wv.Unit.trajectory(), "rides", here / "L"
        )
        release = measure_file(wanted, here / "x.release.json")
        wv.write(wv.synthesize(release, n=5, seed=1), here / "s.parquet")
    shutil.rmtree(here / "xdg", ignore_errors=True)
    return here


@pytest.fixture
def released(made_once, tmp_path, wayveil):
    shutil.copytree(made_once, tmp_path, dirs_exist_ok=True)
    before = os.umask(UMASK)
    yield tmp_path
    os.umask(before)


@pytest.fixture
def folder(released):
    """The same before anything was measured."""
    for name in ("x.release.json", "s.parquet", "L", "L.witness", "L.lock"):
        Path(name).unlink(missing_ok=True)
    return released


def contents(folder):
    """Every file but the ledger's journal, whose coming and going is SQLite's own."""
    found = (path for path in sorted(Path(folder).rglob("*")) if path.is_file() and not path.name.endswith("-journal"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def measured_to(output, ledger="L", data="rides.parquet", *more):
    words = [{"x.release.json": output}.get(word, word) for word in MEASURE]
    return ("measure", data, *words, "--ledger", ledger, "--force", *more)


def refused(wayveil, folder, *words, why):
    """The command is refused in one sentence that has `why` in it, and no file has changed."""
    before = contents(folder)
    said = wayveil(*words)
    assert said.code == 2 and why in said.err, said
    assert said.err.count("wayveil: ") == 1 and said.err.endswith(".\n"), said
    assert contents(folder) == before


LEDGER = "belongs to a privacy ledger"
INPUT = "one of the inputs"
LINK = "symbolic link"


@pytest.mark.parametrize("ending", ["", *SUFFIXES])
def test_measure_never_writes_to_its_ledger(wayveil, released, ending):
    refused(wayveil, released, *measured_to(f"L{ending}"), why=LEDGER)
    # Nor where the ledger is to be made by this very call.
    refused(wayveil, released, *measured_to(f"new{ending}", ledger="new"), why=LEDGER)


def test_links_to_the_ledger_are_the_ledger(wayveil, released):
    os.link("L", "hard.json")
    os.symlink("L", "soft.json")
    os.link("L.witness", "witness.json")
    refused(wayveil, released, *measured_to("hard.json"), why=LEDGER)
    refused(wayveil, released, *measured_to("witness.json"), why=LEDGER)
    refused(wayveil, released, *measured_to("soft.json"), why=LINK)
    Path("sub").mkdir()
    os.symlink("..", "sub/up")
    refused(wayveil, released, *measured_to("sub/up/L"), why=LEDGER)


@pytest.mark.parametrize("name", ["L", "L.witness", "default"])
def test_no_command_and_no_function_replaces_a_ledger(wayveil, released, name):
    assert wayveil("ledger", "open", "rides.csv", "--dataset", "d", "--unit", "trajectory", "--total", "1").code == 0
    target = str(default_path()) if name == "default" else name
    synthesize = ("synthesize", "x.release.json", "-n", "5", "--force", "-o")
    for words in (
        ("convert", "rides.csv", target, "--to", "csv", "--force"),
        ("scope", "new", "-o", target, "--force"),
        ("simulate", "-n", "10", "-o", "sim.parquet", "--scope-out", target, "--force"),
        ("report", "x.release.json", "s.parquet", "-o", target),
        ("audit", "rides.csv", "s.parquet", "--scope", "small.toml", "-o", target),
        ("evaluate", "rides.csv", "s.parquet", "--scope", "small.toml", "-o", target),
    ):
        refused(wayveil, released, *words, why=LEDGER)
    os.rename("L", "L.parquet")
    os.rename("L.witness", "L.parquet.witness")
    refused(wayveil, released, *synthesize, "L.parquet", why=LEDGER)
    before = contents(released)
    release = wv.read_release("x.release.json")
    with pytest.raises(wv.errors.InputError, match=LEDGER):
        wv.write_release(release, "L.parquet.witness")
    with pytest.raises(wv.errors.InputError, match=LEDGER):
        wv.write(wv.read("rides.csv"), "L.parquet")
    with pytest.raises(wv.errors.InputError, match=LEDGER):
        write_report(Path("x.release.json"), Path("s.parquet"), Path("L.parquet"))
    assert contents(released) == before


def test_measure_never_replaces_its_data(wayveil, folder):
    os.link("rides.parquet", "hard.parquet")
    os.symlink("rides.parquet", "soft.parquet")
    Path("many").mkdir()
    shutil.copy("rides.parquet", "many/a.parquet")
    Path("far").mkdir()
    shutil.copy("rides.parquet", "far/b.parquet")
    os.symlink("../far/b.parquet", "many/b.parquet")
    os.link("many/a.parquet", "other-name")
    for output, data in (
        ("rides.parquet", "rides.parquet"), ("hard.parquet", "rides.parquet"), ("rides.parquet", "soft.parquet"),
        ("many/a.parquet", "many"), ("other-name", "many"), ("far/b.parquet", "many"), ("small.toml", "rides.parquet"),
    ):  # fmt: skip
        refused(wayveil, folder, *measured_to(output, "new", data), why=INPUT)
    refused(wayveil, folder, *measured_to("soft.parquet", "new", "rides.parquet"), why=LINK)
    assert not Path("new").exists()


UNREADABLE = {
    "columns.csv": b"ride;north;east;when\n1;30.01;-39.99;2023-11-14\n",
    "headless.csv": b"7,30.01,-39.99,1700000000\n8,30.02,-39.99,1700000000\n",
    "bad.csv": b"traj_id,lat,lon,t\n7,,,\n",
    "broken.jsonl": b'{"traj_id": 1, "lat": 30.01,\n',
    "broken.geojson": b'{"type": "FeatureCollection", "features": [{"type": 7',
    "cut.parquet": b"PAR1 and then nothing",
    "cut.gpx": b"<gpx><trk><trkseg><trkpt lat='30.01' lon='-39.99'>",
}


@pytest.mark.parametrize("name", [*UNREADABLE, "columns.parquet", "sub.rou.xml", "copy.gpkg", "copy.fgb"])
def test_synthetic_data_never_replaces_what_may_be_private(wayveil, released, name):
    """Whatever this process has not measured: unrecognised columns, damaged files, formats that are not read."""
    if name in UNREADABLE:
        Path(name).write_bytes(UNREADABLE[name])
    elif name == "columns.parquet":
        table = pq.read_table("rides.parquet").rename_columns(["ride", "north", "east", "when"])
        pq.write_table(table, name)
    else:
        assert wayveil("convert", "rides.parquet", name).code == 0
    target = Path(name).with_suffix({".jsonl": ".geojson"}.get(Path(name).suffix, Path(name).suffix))
    os.rename(name, target)
    why = "may contain trajectories that are private"
    refused(wayveil, released, "synthesize", "x.release.json", "-n", "5", "-o", str(target), "--force", why=why)
    made = wv.synthesize("x.release.json", n=5, seed=1)
    with pytest.raises(wv.errors.InputError, match=why):
        wv.write(made, target, force=True)
    os.unlink(target)
    wv.write(made, target)


@pytest.mark.parametrize("ending", [
    "parquet", "geo.parquet", "csv", "tsv", "trips.csv", "gpx", "geojson", "kepler.json", "gpkg", "fgb", "rou.xml",
    "plans.xml",
])  # fmt: skip
def test_an_earlier_synthetic_file_is_replaced_in_every_format(released, ending):
    for seed in (1, 2):
        wv.write(wv.synthesize("x.release.json", n=5, seed=seed), f"made.{ending}")
    private = wv.read("rides.csv")
    os.unlink(f"made.{ending}")
    wv.write(private, f"made.{ending}")
    with pytest.raises(wv.errors.InputError, match="not marked as made by wayveil"):
        wv.write(wv.synthesize("x.release.json", n=5, seed=1), f"made.{ending}")
    with pytest.raises(wv.errors.InputError, match="already exists"):
        wv.write(private, f"made.{ending}")
    wv.write(private, f"made.{ending}", force=True)


def test_a_paid_release_is_overwritten_only_on_request(wayveil, released):
    release, before = wv.read_release("x.release.json"), contents(released)
    with pytest.raises(wv.errors.InputError, match="force=True"):
        wv.write_release(release, "x.release.json")
    for private in ("rides.csv", "rides.parquet"):
        with pytest.raises(wv.errors.InputError, match="is not a release"):
            wv.write_release(release, private, force=True)
        refused(wayveil, released, *measured_to(private, "new", "s.parquet"), why="is not a release")
    assert contents(released) == before
    Path("empty.json").write_text("")
    for target in ("x.release.json", "empty.json"):
        wv.write_release(release, target, force=True)
        assert Path(target).read_text() == before["x.release.json"].decode()


def test_public_outputs_do_not_replace_private_data(wayveil, released):
    why = "may contain trajectories"
    refused(wayveil, released, "scope", "new", "-o", "rides.csv", "--force", why=why)
    refused(wayveil, released, "simulate", "-n", "10", "-o", "rides.parquet", "--force", why=why)
    assert wayveil("scope", "new", "-o", "small.toml", "--force").code == 0
    for _ in range(2):
        assert wayveil("simulate", "-n", "10", "--size-km", "3", "3", "-o", "city.csv", "--force").code == 0


def test_two_measurements_do_not_share_an_output(released):
    """The second run stops with a message before anything is read or spent."""
    from wayveil.io.output_lock import output_lock

    before = contents(released)
    wanted = FileMeasurement("rides.parquet", "small.toml", "1", wv.Unit.trajectory(), "other", Path("M"))
    with output_lock("y.release.json"), pytest.raises(wv.errors.InputError, match=f"process {os.getpid()} "):
        measure_file(wanted, Path("y.release.json"))
    assert contents(released) == before


def test_python_never_replaces_what_it_measured(wayveil, released):
    os.link("rides.parquet", "hard.parquet")
    before = contents(released)
    release = wv.measure("rides.parquet", "small.toml", epsilon="900", unit="trajectory")
    for target in ("rides.parquet", "hard.parquet"):
        with pytest.raises(wv.errors.InputError, match="measured as private data"):
            wv.write_release(release, target, force=True)
        with pytest.raises(wv.errors.InputError, match="measured as private data"):
            wv.write(wv.synthesize(release, n=5, seed=1), target, force=True)
        with pytest.raises(wv.errors.InputError, match="was measured as private data"):
            wv.write(wv.synthesize(release, n=5, seed=1), target)
    with pytest.raises(wv.errors.InputError, match=INPUT):
        convert("rides.csv", "rides.csv", to="csv", force=True)
    assert contents(released) == before
    os.unlink("rides.parquet")
    os.unlink("hard.parquet")
    wv.write_release(release, "rides.parquet")  # nothing is lost now


@pytest.mark.parametrize(
    "words",
    [
        ("convert", "rides.csv", "rides.csv", "--force"),
        ("convert", "rides.csv", "hard", "--to", "parquet", "--force"),
        ("synthesize", "x.release.json", "-n", "5", "-o", "release.parquet", "--force"),
        ("synthesize", "x.release.json", "-n", "5", "-o", "roads.parquet", "--force", "--roads", "roads.parquet"),
        ("report", "x.release.json", "s.parquet", "-o", "s.parquet"),
        ("report", "x.release.json", "s.parquet", "-o", "page.html", "--internal", "--real", "page.html"),
        ("audit", "rides.csv", "s.parquet", "--scope", "small.toml", "-o", "hard"),
        ("evaluate", "rides.csv", "s.parquet", "--scope", "small.toml", "-o", "hard"),
        ("rules", "check", "rules.png", "-o", "rules.png"),
        ("paper", "synthesize", "rides.csv", "--scope", "small.toml", "--epsilon", "1", "-o", "hard.csv"),
        ("paper", "synthesize", "rides.csv.json", "--scope", "small.toml", "--epsilon", "1", "-o", "rides.csv"),
    ],
    ids=lambda words: " ".join(words[:2] + words[-2:]),
)
def test_no_command_replaces_an_input(wayveil, released, words):
    os.link("rides.csv", "hard")
    os.link("rides.csv", "hard.csv")
    os.link("x.release.json", "release.parquet")
    Path("page.html").write_text("<!doctype html>")
    Path("rules.png").write_text("{}")
    Path("rides.csv.json").write_text("{}")
    line = {"type": "LineString", "coordinates": [[-39.99, 30.01], [-39.97, 30.01]]}
    features = [{"type": "Feature", "geometry": line, "properties": {"highway": "primary"}}]
    Path("roads.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    wv.io.roads.write_roads(wv.read_roads("roads.geojson"), "roads.parquet")
    before = contents(released)
    said = wayveil(*words)
    assert said.code == 2 and INPUT in said.err and contents(released) == before, said


def test_two_outputs_must_be_different_files(wayveil, folder):
    why = "used for two outputs"
    Path("old.toml").write_text("")
    os.link("old.toml", "old.geojson")
    simulate = ("simulate", "-n", "10", "-o")
    refused(wayveil, folder, *simulate, "a.parquet", "--roads", "./a.parquet", why=why)
    refused(wayveil, folder, *simulate, "a.csv", "--rules", "a.csv.meta.json", why=why)
    words = (*simulate, "a.parquet", "--force", "--rules", "old.geojson", "--scope-out", "old.toml")
    refused(wayveil, folder, *words, why=why)


def run_file(**outputs):
    named = {"release": "x.release.json", "synthetic": "s.parquet", "report": "page.html"} | outputs
    ledger = named.pop("ledger", "L")
    Path("run.toml").write_text(
        f'[measure]\nfile = "rides.parquet"\ndataset = "rides"\nscope = "small.toml"\nepsilon = "1"\n'
        f'unit = "trajectory"\nledger = "{ledger}"\n[synthesize]\nn = 5\n'
        + "".join(f'{key} = "{named.pop(key)}"\n' for key in ("roads", "rules") if key in named)
        + "[output]\n"
        + "".join(f'{key} = "{value}"\n' for key, value in named.items())
    )
    return ("run", "run.toml")


@pytest.mark.parametrize(
    ("outputs", "why"),
    [
        ({"release": "L"}, LEDGER),
        ({"release": "L.witness"}, LEDGER),
        ({"synthetic": "L.parquet", "ledger": "L.parquet"}, LEDGER),
        ({"report": "L-journal"}, LEDGER),
        ({"release": "rides.parquet"}, INPUT),
        ({"synthetic": "rides.parquet"}, INPUT),
        ({"report": "small.toml"}, INPUT),
        ({"release": "same.parquet", "synthetic": "same.parquet"}, "used for two outputs"),
        ({"report": "x.release.json"}, "used for two outputs"),
        ({"synthetic": "s.csv", "report": "s.csv.meta.json"}, "used for two outputs"),
        ({"report": "notes.txt"}, "is not a page"),
        ({"report": "many"}, "is a folder"),
        ({"synthetic": "notes.csv"}, "was not synthesized by wayveil"),
        ({"roads": "far.geojson"}, "No road of the map lies inside"),
        ({"rules": "notes.txt"}, "not valid JSON"),
    ],
    ids=str,
)
def test_a_run_is_checked_as_a_whole_before_it_spends(wayveil, folder, outputs, why):
    for name in ("notes.txt", "notes.csv"):
        Path(name).write_text("mine\n")
    Path("many").mkdir()
    line = {"type": "LineString", "coordinates": [[-39.99, 50.01], [-39.97, 50.01]]}
    features = [{"type": "Feature", "geometry": line, "properties": {"highway": "primary"}}]
    Path("far.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    refused(wayveil, folder, *run_file(**outputs), why=why)
    assert not Path("L").exists() and not Path("L.parquet").exists()


def test_a_correct_run_file_runs(wayveil, folder):
    said = wayveil(*run_file())
    assert said.code == 0, said
    modes = {name: stat.S_IMODE(os.stat(name).st_mode) for name in ("x.release.json", "s.parquet", "page.html", "L")}
    assert modes == {"x.release.json": PUBLIC, "s.parquet": PUBLIC, "page.html": PUBLIC, "L": PRIVATE}


def special(kind, name):
    if kind == "fifo":
        os.mkfifo(name)
    elif kind == "device":
        try:
            os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # as /dev/null is
        except PermissionError:
            pytest.skip("device nodes need root")
    else:
        os.symlink("nothing-there", name)


@pytest.mark.parametrize("kind", ["fifo", "device", "dangling link"])
def test_only_regular_files_are_replaced(wayveil, released, kind):
    outputs = {"html": None, "json": None, "parquet": None, "csv": None, "toml": None, "png": None}
    for ending in outputs:
        special(kind, f"odd.{ending}")
        outputs[ending] = os.lstat(f"odd.{ending}")
    Path("rules.geojson").write_text(
        '{"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": null, '
        '"properties": {"rule": "speed_limit", "kmh": 50}}]}'
    )
    compare = ("rides.csv", "s.parquet", "--scope", "small.toml", "-o", "odd.json")
    for words in (
        ("report", "x.release.json", "s.parquet", "-o", "odd.html"),
        ("audit", *compare),
        ("evaluate", *compare),
        measured_to("odd.json"),
        ("convert", "rides.csv", "odd.csv", "--force"),
        ("synthesize", "x.release.json", "-n", "5", "-o", "odd.parquet", "--force"),
        ("scope", "new", "-o", "odd.toml", "--force"),
        ("simulate", "-n", "10", "-o", "odd.csv", "--force"),
        ("rules", "check", "rules.geojson", "--scope", "small.toml", "-o", "odd.png"),
        ("paper", "synthesize", "rides.csv", "--scope", "small.toml", "--epsilon", "1", "-o", "odd.csv"),
    ):
        said = wayveil(*words)
        assert said.code == 2 and ("not a regular file" in said.err or LINK in said.err), said
    with pytest.raises(wv.errors.InputError, match=r"not a regular file|symbolic link"):
        wv.write_release(wv.read_release("x.release.json"), "odd.json")
    for ending, before in outputs.items():
        now = os.lstat(f"odd.{ending}")
        assert (now.st_ino, now.st_mode, now.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)


def test_private_outputs_are_readable_by_their_owner_only(wayveil, released):
    """Trusted-side outputs are 0600; what may be published follows the umask."""
    assert wayveil(*measured_to("y.release.json", "M")).code == 0
    assert wayveil("convert", "rides.parquet", "again.csv").code == 0
    assert wayveil("convert", "s.parquet", "s.csv").code == 0  # with notes beside it
    assert wayveil("convert", "rides.csv", "a.gpx").code == 0
    compare = ("rides.csv", "s.parquet", "--scope", "small.toml")
    assert wayveil("audit", *compare, "-o", "audit.json").code == 0
    assert wayveil("evaluate", *compare, "-o", "evaluation.json").code == 0
    page = ("report", "x.release.json", "s.parquet", "-o")
    internal = ("--internal", "--real", "rides.csv", "--evaluation", "evaluation.json", "--audit", "audit.json")
    assert wayveil(*page, "internal.html", *internal).code == 0
    assert wayveil(*page, "sheet.html").code == 0
    assert wayveil("synthesize", "x.release.json", "-n", "5", "-o", "t.csv").code == 0
    assert wayveil("synthesize", "x.release.json", "-n", "5", "-o", "t.parquet").code == 0
    assert wayveil("scope", "new", "-o", "new.toml").code == 0
    wv.write(wv.read("rides.csv"), "python.parquet")
    wv.write(wv.synthesize(wv.read_release("x.release.json"), n=5, seed=1), "made.parquet")
    private = ("again.csv", "s.csv", "s.csv.meta.json", "a.gpx", "audit.json", "evaluation.json",
               "internal.html", "python.parquet")  # fmt: skip
    public = ("y.release.json", "t.parquet", "sheet.html", "t.csv", "t.csv.meta.json", "new.toml", "made.parquet")
    modes = {name: oct(stat.S_IMODE(os.stat(name).st_mode)) for name in (*private, *public)}
    assert modes == dict.fromkeys(private, oct(PRIVATE)) | dict.fromkeys(public, oct(PUBLIC))


def test_a_foreign_notes_file_next_to_a_csv_is_kept(wayveil, released):
    Path("out.csv.meta.json").write_text('{"licence": "mine"}')
    assert wayveil("convert", "rides.csv", "out.csv").code == 0
    assert Path("out.csv.meta.json").read_text() == '{"licence": "mine"}'
    Path("out.csv").write_text("not trajectories")
    said = wayveil("synthesize", "x.release.json", "-n", "5", "-o", "out.csv", "--force")
    assert said.code == 2 and "was not written by wayveil" in said.err, said
    assert Path("out.csv.meta.json").read_text() == '{"licence": "mine"}'

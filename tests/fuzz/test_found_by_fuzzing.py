"""What the fuzzers found, each in its smallest form: refused in one sentence ever since."""

import json
import sqlite3
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz_files import RUN, SCOPE, good_release
from fuzz_maps import geojson_roads, road_table

from wayveil.errors import InputError, ReleaseError, WayveilError
from wayveil.io.files import read
from wayveil.io.roads import read_roads
from wayveil.io.scope_files import parse_scope, read_scope
from wayveil.privacy import witness
from wayveil.privacy.budget import exact_delta
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit, parse_unit
from wayveil.release import release_from_json
from wayveil.workflow.run_file import read_run

TRIP = Unit.trajectory()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("south = 30.0", "south = 1" + "0" * 400),
        ("south = 30.0", "south = " + "9" * 5000),
        ("points = 500", '"a\\nb" = 1'),
        ("points = 500", '"' + "a" * 5000 + '" = 1'),
        ('name = "small"', 'name = "\\u001b[2J"'),
        ("last_day = 2024-03-31", "last_day = 9999-12-31"),
        ("first_day = 2024-01-01", "first_day = 0001-01-01"),
    ],
)
def test_scope(old, new):
    assert old in SCOPE
    parse_scope(SCOPE, "x")
    with pytest.raises(InputError) as refused:
        parse_scope(SCOPE.replace(old, new), "x")
    assert str(refused.value).isprintable() and len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('file = "none.csv"', 'file = "~no-such-user/x.csv"'),
        ('rules = "rules.geojson"', 'rules = "a\\u0000b"'),
        ('synthetic = "synthetic.parquet"', 'synthetic = "a\\nb"'),
        ('release = "rides.release.json"', 'release = "' + "a" * 300 + '"'),
        ('traj_id = "ride"', 'traj_id = "\\u001b[2J"'),
        ("seed = 1", "seed = " + "9" * 5000),
    ],
)
def test_run(tmp_path, old, new):
    assert old in RUN
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    read_run(path)
    path.write_text(RUN.replace(old, new))
    with pytest.raises(InputError) as refused:
        read_run(path)
    assert str(refused.value).isprintable() and len(str(refused.value)) < 400


def test_numbers_that_cannot_be_written_out():
    with pytest.raises(InputError, match="max_per_user="):
        parse_unit("user", 16**5000)
    with pytest.raises(InputError, match="delta"):
        exact_delta(16**5000)


def test_a_name_of_a_scope_that_no_file_can_have():
    with pytest.raises(InputError, match="no scope"):
        read_scope("a" * 300)


@pytest.mark.parametrize("software", ["\ud800", "\x1b]0;title\x07", "two\nlines"])
def test_release(software):
    release_from_json(json.dumps(good_release()))
    with pytest.raises(ReleaseError):
        release_from_json(json.dumps(good_release() | {"software": software}))


POINT = '<trkpt lat="1" lon="2"><time>2024-01-01T00:00:00Z</time></trkpt>'
USER = '<extensions><w:user xmlns:w="urn:wayveil:gpx:1">"u"</w:user></extensions>'


@pytest.mark.parametrize(
    "inner",
    [
        f"<trk>{USER}<trkseg>{POINT}</trkseg></trk>{POINT}",
        f"<trk>{USER}<trkseg>{POINT}</trkseg><trk>{USER}<trkseg>{POINT}</trkseg></trk></trk>",
    ],
)
def test_gpx_points_without_a_track_have_no_user(tmp_path, inner):
    path = tmp_path / "x.gpx"
    path.write_text(f"<gpx>{inner}</gpx>")
    with pytest.raises(InputError, match="missing user"):
        read(path)
    assert len(read(path, on_bad_rows="drop")) == 1


def test_road_tags_in_lists_are_read(tmp_path):
    """OSMnx merges tags into lists; dictionary_encode does not take them."""
    path = tmp_path / "r.parquet"
    table = road_table()
    for name, values in (("highway", [["primary", "service"]] * 4), ("maxspeed_kmh", [["50", "30"]] * 4)):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    pq.write_table(table, path)
    roads = read_roads(path)
    assert set(roads.road_class) == {2} and set(roads.maxspeed_kmh) == {50.0}


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("highway", pa.array([2**62] * 4, pa.timestamp("ms"))),
        ("lon", pa.array([["a", "b"]] * 4)),
        ("lat", pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2))),
    ],
)
def test_road_columns_of_other_kinds(tmp_path, column, values):
    path = tmp_path / "r.parquet"
    table = road_table()
    pq.write_table(table.set_column(table.column_names.index(column), column, values), path)
    with pytest.raises(InputError):
        read_roads(path)


@pytest.mark.parametrize("coordinates", [5, True, "a", {"a": 1}, [[10**400, 1], [2, 3]], [[[10**400, 1], [2, 3]]]])
@pytest.mark.parametrize("kind", ["LineString", "MultiLineString"])
def test_road_lines_that_are_not_lists(tmp_path, kind, coordinates):
    document = geojson_roads()
    document["features"][0]["geometry"] = {"type": kind, "coordinates": coordinates}
    path = tmp_path / "r.geojson"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError):
        read_roads(path)


def test_road_numbers_of_thousands_of_digits(tmp_path):
    path = tmp_path / "r.geojson"
    path.write_text("9" * 10_000)
    with pytest.raises(InputError, match="not readable GeoJSON"):
        read_roads(path)


SPEND = [Spend("a", Fraction(1, 8))]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET epsilon = '1e999999999' WHERE seq = 2",  # a number that would take for ever to compute
        "UPDATE entries SET epsilon = '1e-9' WHERE seq = 2",
        "UPDATE entries SET kind = 'note' WHERE seq = 1",
        "UPDATE entries SET chain = '\u00e9' WHERE seq = 2",
        "UPDATE entries SET name = x'ff' WHERE seq = 2",
        "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
        "ALTER TABLE entries ADD COLUMN more TEXT",
        "UPDATE meta SET value = '../../../x' WHERE key = 'id'",
    ],
)
def test_an_altered_ledger_spends_nothing(tmp_path, statement):
    path = tmp_path / "ledger.sqlite"
    Ledger(path).spend("rides", SPEND, total_if_new=Fraction(2), unit=TRIP)
    with sqlite3.connect(path) as db:
        db.execute(statement)
    db.close()
    with pytest.raises(WayveilError) as refused:
        Ledger(path).spend("rides", SPEND, unit=TRIP)
    assert str(refused.value).isprintable()
    assert not list(tmp_path.rglob("x.witness"))


def test_a_ledger_whose_damage_is_quoted_by_sqlite(tmp_path):
    path = tmp_path / "ledger.sqlite"
    Ledger(path).spend("rides", SPEND, total_if_new=Fraction(2), unit=TRIP)
    content = path.read_bytes()
    for old, new in ((b"tableentriesentries", b"tableentr\xeeesentries"), (b"TABLE entries (", b"TABLX entries (")):
        assert old in content
        content = content.replace(old, new)
    path.write_bytes(content)
    with pytest.raises(InputError):
        Ledger(path).spend("rides", SPEND, unit=TRIP)


NEGATIVE = json.dumps({"ledger": "a", "count": -(10**30), "head": ""})


@pytest.mark.parametrize("text", ["[" * 100_000, '{"ledger": "a", "count": 1e999, "head": ""}', "null", NEGATIVE])
def test_a_damaged_witness_is_ignored(tmp_path, text):
    path = tmp_path / "x.witness"
    path.write_text(text)
    assert witness.read(path) is None


def test_road_texts_of_any_size_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("wayveil.io.road_lines.MOST_TEXT_BYTES", 10)
    for name in ("r.geojson", "r.graphml"):
        (tmp_path / name).write_text(" " * 11)
        with pytest.raises(InputError, match="larger than"):
            read_roads(tmp_path / name)


def test_a_file_too_large_for_memory_is_refused_as_such(tmp_path, monkeypatch):
    def full(*_):
        raise MemoryError

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"traj_id": [1], "lat": [1.0], "lon": [1.0], "t": [1]}), path)
    read(path)
    monkeypatch.setattr("wayveil.io.readers.parquet.slices", full)
    with pytest.raises(InputError, match="does not fit into memory"):
        read(path)

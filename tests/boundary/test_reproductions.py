"""What was found between a file and the mechanism, each in its smallest form."""

import importlib
import json
import warnings
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import FAR, SCOPE, START_S

from wayveil.core.trajectories import Trajectories
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Serial
from wayveil.errors import InputError
from wayveil.io.files import read
from wayveil.io.readers import grouping
from wayveil.io.readers.numbers import numbers_of_text
from wayveil.io.source import MemorySource, open_source
from wayveil.measurement import measure
from wayveil.measurement.exact import draw_kept
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit


class Silent:
    """Noise that shows the exact count and nothing else: what `measure` would have counted."""

    private = False

    def __init__(self):
        self.count = None
        self.inner = SeededNoise(1)

    def laplace(self, sums, sensitivity, epsilon):
        self.count = int(sums[0]) if self.count is None else self.count
        return replace(self.inner.laplace(0 * sums, sensitivity, epsilon))


def counted(data, unit="trajectory", **options):
    noise = Silent()
    more = {"max_per_user": 100} if unit == "user" else {}
    measure(data, SCOPE, epsilon=1, unit=unit, noise=noise, **more, **options)
    return noise.count


def table(ids, **columns):
    n = len(ids)
    base = {"traj_id": ids, "lat": [48.005] * n, "lon": [2.005] * n, "t": [START_S + 30 * k for k in range(n)]}
    return pa.table({**base, **columns})


def saved(data, kind, tmp_path):
    if kind == "csv":
        pd.DataFrame(data.to_pydict()).to_csv(tmp_path / "x.csv", index=False)
        return tmp_path / "x.csv"
    pq.write_table(data, tmp_path / "x.parquet", row_group_size=50)
    return data if kind == "frame" else tmp_path / "x.parquet"


HASHES = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 100)
UNSIGNED = HASHES[np.argsort(HASHES.view(np.uint64))]


# Item 1: one trajectory counted many times.


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
@pytest.mark.parametrize(
    ("ids", "expected"), [([0, FAR, -FAR] * 200, 3), (UNSIGNED.tolist() * 3, 100)], ids=["in turn", "unsigned order"]
)
def test_ids_that_overflow_a_difference_are_counted_once(tmp_path, kind, ids, expected):
    assert counted(saved(table(ids), kind, tmp_path)) == expected


def test_labels_in_two_runs_are_refused():
    with pytest.raises(InputError, match="counted twice"):
        grouping._require_distinct_keys(np.array([1, 2, 1]), None)
    with pytest.raises(InputError, match="counted twice"):
        grouping._require_distinct_keys(np.array([1, 1, 1]), np.array([1, 2, 1]))


# Item 3: refusals that depend on one record.

GOOD = [("a", "u", "48.005", "2.005", "1700000000"), ("a", "u", "48.006", "2.005", "1700000030"),
        ("b", "v", "48.005", "2.005", "2023-11-14T22:13:20Z")]  # fmt: skip
BAD = {
    "empty latitude": [("c", "w", "", "2.005", "1700000000")],
    "two users": [("c", "w", "48.005", "2.005", "1700000000"), ("c", "x", "48.005", "2.005", "1700000001")],
    "long label": [("c" * 257, "w", "48.005", "2.005", "1700000000")],
    "naive time": [("c", "w", "48.005", "2.005", "2023-11-14T22:13:20")],
    "exchanged": [("c", "w", "148.005", "2.005", "1700000000")],
    "no number": [("c", "w", "abc", "2.005", "1700000000")],
    "NUL": [("c\0", "w", "48.005", "2.005", "1700000000")],
    "short line": [("c", "w")],
    "open quote": [("c", '"w', "48.005", "2.005", "1700000000")],
    "surrogate bytes": [("c\udcff", "w", "48.005", "2.005", "1700000000")],
}


def csv(path, rows):
    text = "\n".join(",".join(row) for row in [("traj_id", "user", "lat", "lon", "t"), *rows]) + "\n"
    path.write_bytes(text.encode(errors="surrogateescape"))
    return path


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("first", [True, False])
def test_one_bad_record_stops_nothing(tmp_path, kind, first):
    rows = [*BAD[kind], *GOOD] if first else [*GOOD, *BAD[kind]]
    assert counted(csv(tmp_path / "x.csv", rows)) == 2
    with pytest.raises(InputError):
        read(tmp_path / "x.csv")  # on the trusted side it is an error by default


@pytest.mark.parametrize("kind", BAD)
def test_nothing_but_bad_records_is_a_count_of_zero(tmp_path, kind):
    assert counted(csv(tmp_path / "x.csv", BAD[kind])) == 0
    assert counted(csv(tmp_path / "x.csv", [])) == 0


def test_a_trajectory_of_two_users_belongs_to_both_of_them_at_user_level(tmp_path):
    rows = [*GOOD, *BAD["two users"]]
    assert counted(csv(tmp_path / "x.csv", rows), "user") == 4
    assert counted(csv(tmp_path / "x.csv", rows[:-1]), "user") == 3


@pytest.mark.parametrize("column", ["lat", "traj_id", "t"])
def test_a_missing_column_or_a_wrong_type_is_still_refused(column):
    good = table([1, 2])
    with pytest.raises(InputError, match="column"):
        counted(good.drop_columns([column]))
    with pytest.raises(InputError, match="column"):
        counted(good.set_column(good.column_names.index(column), column, pa.array([[1], [2]])))
    with pytest.raises(InputError, match="user column"):
        counted(good.slice(0, 0), "user")


def test_an_opened_source_is_read_as_a_measurement_reads(tmp_path):
    path = csv(tmp_path / "x.csv", [*GOOD, *BAD["empty latitude"]])
    assert counted(open_source(path)) == 2
    pq.write_table(table([1, 1, 2], lat=[48.005, None, 48.005]), tmp_path / "x.parquet")
    assert counted(open_source(tmp_path / "x.parquet")) == 2


# Item 4: one file hides the others.

GPX = ('<gpx><trk><trkseg><trkpt lat="48.005" lon="2.005"><time>2023-11-14T22:13:20Z</time></trkpt></trkseg></trk>'
       "</gpx>")  # fmt: skip
PLT = "h\n" * 6 + "48.005,2.005,0,0,0,2023-11-14,22:13:20\n"
TAXI = "1,2023-11-15 06:13:20,2.005,48.005\n"
TREES = {
    "gpx": ("a/{}.gpx", "b/{}.gpx", "c.gpx", GPX),
    "tdrive": ("a/{}.txt", "b/1{}.txt", "99.txt", TAXI),
    "geolife": ("Data/a/Trajectory/{}.plt", "Data/b/Trajectory/{}.plt", "c/Trajectory/1.plt", PLT),
    "cabspotting": ("a/new_{}.txt", "b/new_b{}.txt", "new_c.txt", "48.005 2.005 1 1700000000\n"),
}


@pytest.mark.parametrize("kind", TREES)
def test_one_file_hides_no_others(tmp_path, kind):
    first, second, lone, text = TREES[kind]
    for k in range(10):
        for pattern in (first, second):
            path = tmp_path / "x" / pattern.format(k)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    assert counted(tmp_path / "x") == 20
    (tmp_path / "x" / lone).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "x" / lone).write_text(text)
    assert counted(tmp_path / "x") == 21
    (tmp_path / "x" / lone).write_bytes(b"\xff\xfe<gpx>" * 9)
    assert counted(tmp_path / "x") == 20
    with pytest.raises(InputError) as refused:
        read(tmp_path / "x")
    assert lone not in str(refused.value)
    (tmp_path / "x" / "other.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="several formats"):
        counted(tmp_path / "x")
    assert counted(tmp_path / "x", format=kind) == 20


@pytest.mark.parametrize(
    "other", ["more/b.csv", "B.TSV", "b.geojson", "b.jsonl", "b.gpkg", "b.shp", "b.gpx.gz", "b.csv.zip"]
)
@pytest.mark.parametrize("kind", TREES)
def test_data_that_is_not_read_from_folders_is_not_left_out_silently(tmp_path, kind, other):
    first, _, _, text = TREES[kind]
    for name in (first.format(1), "readme.md", "guide.pdf", "_notes/b.csv", ".hidden.csv"):
        (tmp_path / "x" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "x" / name).write_text(text)
    assert counted(tmp_path / "x") == 1
    (tmp_path / "x" / other).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "x" / other).write_text("")
    with pytest.raises(InputError, match="several formats") as refused:
        counted(tmp_path / "x")
    assert f"'{other}'" not in str(refused.value)
    assert counted(tmp_path / "x", format=kind) == 1


# Item 8: other cross-record effects.


@pytest.mark.needs("geopandas")
def test_a_missing_geometry_moves_no_other(tmp_path):
    import geopandas
    import shapely

    lines = [shapely.LineString([(2.001 + k / 1000, 48.001), (2.002 + k / 1000, 48.002)]) for k in range(5)]
    times = [f"[{START_S}, {START_S + 60}]"] * 5
    for missing in range(5):
        shapes = [None if k == missing else line for k, line in enumerate(lines)]
        frame = geopandas.GeoDataFrame({"traj_id": range(5), "times": times}, geometry=shapes, crs=4326)
        frame.to_file(tmp_path / "x.fgb", engine="pyogrio", SPATIAL_INDEX="NO", geometry_type="LineString")
        found = read(tmp_path / "x.fgb", on_bad_rows="drop")
        assert found.lon[::2].tolist() == [2.001 + k / 1000 for k in range(5) if k != missing]


@pytest.mark.parametrize("value", ["48.005", " 48.005", "+48.005", "4.8005e1", "nan", "1e0001", "NA", "48,005", "inf"])
def test_an_unparsable_coordinate_changes_no_other(tmp_path, value):
    mine = ("a", "u", value, "2.005", "1700000000")
    alone = counted(csv(tmp_path / "x.csv", [mine]))
    beside = counted(csv(tmp_path / "x.csv", [mine, ("b", "v", "abc", "2.005", "1700000000")]))
    assert alone == beside


digits = st.text("0123456789.+-eE ninfaNA_x\t", max_size=12)


@settings(max_examples=300, deadline=None)
@given(text=st.one_of(digits, st.floats().map(str), st.floats().map("{:.3e}".format)))
def test_both_ways_to_read_numbers_agree(text):
    alone = numbers_of_text(pa.chunked_array([[text]]))[0]
    beside = numbers_of_text(pa.chunked_array([[text, "no number"]]))[0]
    assert alone == beside or (np.isnan(alone) and np.isnan(beside))


def test_large_decimals_are_not_merged(tmp_path):
    ids = pa.array([Decimal(2**53), Decimal(2**53 + 1)] * 3, pa.decimal128(20, 0))
    assert counted(table(ids)) == 2
    assert counted(saved(table(ids.cast(pa.decimal128(38, 3))), "parquet", tmp_path)) == 2


def test_007_and_7_are_different_ids_among_any_others(tmp_path):
    rows = [("7", *GOOD[0][1:]), ("007", *GOOD[0][1:])]
    assert counted(csv(tmp_path / "x.csv", rows)) == counted(csv(tmp_path / "x.csv", [*rows, GOOD[0]])) - 1 == 2


@pytest.mark.parametrize("rows", [1, 100])
def test_users_that_end_in_nul_are_not_merged(tmp_path, monkeypatch, rows):
    monkeypatch.setattr("wayveil.io.source.BATCH_POINTS", rows)
    path = tmp_path / "x.parquet"
    pq.write_table(table([1, 2, 3], user=["u", "u\0", "u"]), path, row_group_size=rows)
    assert counted(path, "user") == 2


@pytest.mark.parametrize("missing", [float("nan"), None, pd.NA, ""])
def test_trajectories_without_a_user_do_not_escape_the_cap(missing):
    users = np.array([missing, "u"] * 20, object)
    some = Trajectories(np.arange(41), np.full(40, 2.005), np.full(40, 48.005), np.zeros(40), users)
    kept = draw_kept(Passes(MemorySource(some), Serial()), Unit.user(1))
    assert kept.sum() == 1 and not kept[::2].any()


def test_users_of_two_kinds_are_two_users():
    users = np.array([7, "7", 7.0, np.int32(7)], object)
    some = Trajectories(np.arange(5), np.zeros(4), np.zeros(4), np.zeros(4), users)
    assert some.user.tolist() == [7, "7", 7, 7]
    assert draw_kept(Passes(MemorySource(some), Serial()), Unit.user(1)).sum() == 2


# Everything published: equal schemas and equal messages.


class Blind(SeededNoise):
    """Noise around zero, whatever the sums: with it nothing that is published may depend on the data at all."""

    def laplace(self, sums, sensitivity, epsilon):
        return super().laplace(0 * sums, sensitivity, epsilon)

    def gaussian(self, sums, sensitivity, rho):
        return super().gaussian(0 * sums, sensitivity, rho)


def published(data, **how):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        release = measure(data, SCOPE, epsilon=1, noise=Blind(3), **how)
    return release, [(one.category, str(one.message)) for one in said]


def answered(answer):
    clipping = answer.clipping and (
        answer.clipping.bound,
        answer.clipping.kept,
        np.asarray(answer.clipping.norms).tolist(),
    )
    return answer.name, answer.question, answer.shape, answer.scale, answer.noisy.tolist(), clipping


def same(one, other):
    assert one[1] == other[1]
    assert [answered(answer) for answer in one[0].answers] == [answered(answer) for answer in other[0].answers]
    assert {**vars(one[0]), "answers": ()} == {**vars(other[0]), "answers": ()}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("how", [{"unit": "trajectory"}, {"unit": "user", "max_per_user": 2}])
def test_nothing_published_depends_on_a_unit_but_through_the_sums(tmp_path, kind, how, delta):
    how = {**how, "delta": delta}
    without = published(csv(tmp_path / "x.csv", GOOD), **how)
    same(without, published(csv(tmp_path / "x.csv", [*GOOD, *BAD[kind]]), **how))
    same(without, published(csv(tmp_path / "x.csv", GOOD[:2]), **how))
    same(without, published(csv(tmp_path / "x.csv", []), **how))


def test_the_command_line_says_the_same_about_both(tmp_path, monkeypatch, capfd):
    from wayveil.cli.main import main

    monkeypatch.setattr(importlib.import_module("wayveil.measurement.pipeline"), "OpenDPNoise", lambda: Blind(3))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(
        'name = "boundary"\nsouth = 48.0\nnorth = 48.01\nwest = 2.0\neast = 2.015\ntimezone = "UTC"\n'
    )
    said = []
    for k, rows in enumerate([GOOD, *([*GOOD, *bad] for bad in BAD.values()), []]):
        csv(tmp_path / "x.csv", rows)
        words = ["measure", "x.csv", "--scope", "s.toml", "--epsilon", "1", "--unit", "trajectory", "--dataset", "x",
                 "--ledger", f"{k}.sqlite", "-o", "x.release.json", "--force"]  # fmt: skip
        monkeypatch.setattr("sys.argv", ["wayveil", *words])
        try:
            code = main() or 0
        except SystemExit as end:
            code = end.code
        found = capfd.readouterr()
        said.append((code, found.out, found.err, json.loads((tmp_path / "x.release.json").read_text())))
        assert "x.csv" not in found.out + found.err and said[0][0] in (0, None)
    assert all(one == said[0] for one in said)


# The same through Ray itself, where it is installed.


@pytest.mark.needs("ray")
def test_ray_reads_the_same(tmp_path):
    from wayveil.engine.ray import RayEngine
    from wayveil.io.source import measured_source
    from wayveil.measurement import exact_answers
    from wayveil.questions.catalogue import finest_questions

    questions = finest_questions(SCOPE)
    ids = [0, FAR, -FAR] * 40
    data = table(ids, user=["u", "v", "v"] * 40, lat=[48.005, None, 48.003] * 40)
    path = saved(data, "parquet", tmp_path)
    engine = RayEngine(workers=1)
    for unit in ("trajectory", "user"):
        here, there = (
            exact_answers(measured_source(path, unit), SCOPE, questions, engine=one) for one in (None, engine)
        )
        assert all(np.array_equal(a, b) for a, b in zip(here, there)) and here[0][0] == 2

"""read(write(x)) == x, for every format that is written."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wayveil.core.trajectories import EMPTY, Trajectories
from wayveil.errors import InputError
from wayveil.io.files import read, read_metadata, write

ENDINGS = (".csv", ".parquet", ".geo.parquet", ".gpx")
finite = {"allow_nan": False, "allow_infinity": False}
# Surrogates are not UTF-8; a trailing NUL is not kept by numpy's own text type.
label = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(lambda s: s.rstrip("\0"))
whole_s = st.integers(-60_000_000_000, 90_000_000_000).map(float)
second = st.one_of(whole_s, st.floats(0, 2e9, **finite), st.floats(-6e10, 9e10, **finite))


@st.composite
def trajectory_sets(draw: st.DrawFn) -> Trajectories:
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    total = sum(counts)
    times = draw(st.sampled_from([whole_s, second]))
    t_utc = [sorted(draw(st.lists(times, min_size=n, max_size=n))) for n in counts]
    lon = draw(st.lists(st.floats(-180, 180, **finite), min_size=total, max_size=total))
    lat = draw(st.lists(st.floats(-90, 90, **finite), min_size=total, max_size=total))
    users = draw(st.sampled_from([None, st.integers(-(2**63), 2**63 - 1), label, st.integers(0, 99).map(str)]))
    user = None if users is None else np.array([draw(users) for _ in counts])
    return Trajectories(np.cumsum([0, *counts]), np.array(lon), np.array(lat), np.concatenate(t_utc), user)


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(trajectories=trajectory_sets())
def test_what_is_written_is_read_back(tmp_path, ending, trajectories):
    path = tmp_path / f"x{ending}"
    user = trajectories.user
    if ending == ".csv" and user is not None:
        user = user.astype(np.str_)  # labels of a CSV are text
        if any("\n" in one or "\r" in one for one in user.tolist()):  # and a record is one line
            with pytest.raises(InputError, match="line breaks"):
                write(trajectories, path, force=True)
            return
    write(trajectories, path, force=True)
    back = read(path)
    assert back == replace(trajectories, user=user)
    if user is not None:
        assert back.user.dtype.kind == user.dtype.kind


@pytest.fixture
def pair() -> Trajectories:
    return Trajectories([0, 2, 3], [2.5, 2.25, 2.0], [48.5, 48.25, 48.0], [10.0, 20.0, 30.0], np.array(["7", "8"]))


@pytest.mark.parametrize("ending", ENDINGS)
def test_notes_are_kept_with_the_file(tmp_path, ending, pair):
    path = tmp_path / f"x{ending}"
    notes = {"wayveil.private": "false", 'a<b>"': "x & y"}
    write(pair, path, extra_metadata=notes)
    assert read_metadata(path) == notes
    assert read(path) == pair
    write(pair, path, force=True)
    assert read_metadata(path) == {}


def test_written_columns_and_types(tmp_path, pair):
    write(pair, tmp_path / "x.parquet")
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert schema.names == ["traj_id", "lat", "lon", "t", "user_id"]
    assert schema.field("t").type == pa.int64()
    late = Trajectories(pair.offsets, pair.lon, pair.lat, pair.t_utc + 0.5)
    write(late, tmp_path / "y.parquet")
    schema = pq.read_schema(tmp_path / "y.parquet")
    assert schema.names == ["traj_id", "lat", "lon", "t"]
    assert schema.field("t").type == pa.float64()
    write(pair, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines()[:2] == ["traj_id,lat,lon,t,user_id", '0,48.5,2.5,10,"7"']


def test_geoparquet_is_what_other_tools_expect(tmp_path, pair):
    import shapely

    write(pair, tmp_path / "x.geo.parquet")
    table = pq.read_table(tmp_path / "x.geo.parquet")
    assert table.column_names == ["traj_id", "t", "user_id", "geometry"]
    geo = json.loads(table.schema.metadata[b"geo"])
    assert geo["primary_column"] == "geometry"
    assert geo["columns"]["geometry"] == {"encoding": "WKB", "geometry_types": ["Point"]}
    shapes = shapely.from_wkb(table["geometry"].to_numpy())
    assert shapely.to_wkt(shapes[0]) == "POINT (2.5 48.5)"


def test_gpx_is_valid_gpx_with_plain_decimals(tmp_path):
    from xml.etree import ElementTree

    tiny = Trajectories([0, 1], [1e-7], [-1e-9], [1.5])
    write(tiny, tmp_path / "x.gpx")
    point = ElementTree.parse(tmp_path / "x.gpx").getroot().find(".//{*}trkseg/{*}trkpt")
    assert point.attrib == {"lat": "-0.000000001", "lon": "0.0000001"}
    assert point.findtext("{*}time") == "1970-01-01T00:00:01.5Z"


@pytest.mark.parametrize(
    "user", [np.array([1.5]), np.array([""]), np.array(["x" * 300]), np.array([None]), np.array(["\ud800"])]
)
def test_users_that_cannot_come_back_are_refused(tmp_path, user):
    odd = Trajectories([0, 1], [0.0], [0.0], [0.0], user)
    for ending in ENDINGS:
        with pytest.raises(InputError):
            write(odd, tmp_path / f"x{ending}")
    assert list(tmp_path.iterdir()) == []


def test_times_that_cannot_come_back_are_refused(tmp_path):
    for t_utc in (np.nan, np.inf, 2e11, -2e11):
        odd = Trajectories([0, 1], [0.0], [0.0], [t_utc])
        for ending in ENDINGS:
            with pytest.raises(InputError):
                write(odd, tmp_path / f"x{ending}")
    assert list(tmp_path.iterdir()) == []


def test_no_trajectories_can_be_written_but_not_read(tmp_path):
    for ending in ENDINGS:
        write(EMPTY, tmp_path / f"x{ending}")
        with pytest.raises(InputError, match="no usable rows"):
            read(tmp_path / f"x{ending}")


def test_unknown_extension_and_unwritable_format(tmp_path, pair):
    with pytest.raises(InputError, match="format="):
        write(pair, tmp_path / "x.xyz")
    with pytest.raises(InputError, match="does not write"):
        write(pair, tmp_path / "x.csv", format="geolife")
    write(pair, tmp_path / "x.xyz", format="parquet")
    assert read(tmp_path / "x.xyz") == pair  # recognised by its first bytes


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_frames_are_written_as_trajectories_are(tmp_path, library, ending):
    user = np.array(["a", "b"])
    x = Trajectories(np.array([0, 2, 3]), np.array([1.5, 1.6, 2.5]), np.array([4.5, 4.25, 5.5]), np.array([6.0, 7, 8]))
    for trajectories in (x, Trajectories(x.offsets, x.lon, x.lat, x.t_utc, user)):
        frame = trajectories.to_pandas()
        if library != "pandas":
            frame = pa.Table.from_pandas(frame)
        if library == "polars":
            frame = __import__("polars").from_arrow(frame)
        write(frame, tmp_path / f"frame{ending}", force=True)
        assert read(tmp_path / f"frame{ending}") == trajectories == read(frame)


def test_frames_with_names_and_clocks_of_their_own_are_written(tmp_path):
    frame = EMPTY.to_pandas()
    assert list(frame.columns) == ["traj_id", "lat", "lon", "t"] and len(frame) == 0
    frame = __import__("pandas").DataFrame(
        {"ride": [7, 7], "lat": [1.0, 2.0], "lon": [3.0, 4.0], "when": ["2024-03-04 07:30:00", "2024-03-04 07:31:00"]}
    )
    with pytest.raises(InputError, match="trajectory"):
        write(frame, tmp_path / "x.csv")
    write(frame, tmp_path / "x.csv", traj_id="ride", time="when", timezone="Europe/Paris")
    assert read(tmp_path / "x.csv").t_utc.tolist() == [1_709_533_800.0, 1_709_533_860.0]


@pytest.mark.parametrize("wrong", [None, "x.csv", 7, [1, 2], {"lat": [1.0]}])
def test_objects_that_are_not_frames_are_refused(tmp_path, wrong):
    with pytest.raises(InputError, match=r"^Give Trajectories, the result of wayveil\.synthesize, or a pandas"):
        write(wrong, tmp_path / "y.csv")
    assert not list(tmp_path.iterdir())


def test_options_of_columns_are_for_frames(tmp_path):
    one = Trajectories(np.array([0, 1]), np.zeros(1), np.zeros(1), np.zeros(1))
    with pytest.raises(InputError, match="data frames only"):
        write(one, tmp_path / "y.csv", traj_id="ride")


def test_the_extension_of_an_output_is_believed(tmp_path, pair):
    for name in ("x.csv.gz", "x.parquet.zip", "x.gpx.GZ"):
        for format in (None, "csv"):
            with pytest.raises(InputError, match="wayveil does not write"):
                write(pair, tmp_path / name, format=format)
    with pytest.raises(InputError, match=r"'x\.parquet' means parquet, not csv"):
        write(pair, tmp_path / "x.parquet", format="csv")
    assert not list(tmp_path.iterdir())
    for name, format in (("a.csv", "trips"), ("b.parquet", "geoparquet"), ("c.geojson", "kepler"), ("d.xyz", "csv")):
        write(pair, tmp_path / name, format=format)
    write(pair, tmp_path / "x.tsv")
    assert (tmp_path / "x.tsv").read_text().startswith("traj_id\t") and read(tmp_path / "x.tsv") == pair

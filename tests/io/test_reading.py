"""Column names, times, frames, bad rows and bad files."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.files import read, write
from wayveil.io.options import ReadOptions
from wayveil.io.readers.times import to_utc_seconds
from wayveil.io.source import open_source

TWO = Trajectories([0, 2, 3], [2.5, 2.25, 2.0], [48.5, 48.25, 48.0], [10.0, 20.0, 30.0])
ROWS = "1,48.5,2.5,10\n1,48.25,2.25,20\n2,48.0,2.0,30\n"


def csv(tmp_path, text, name="x.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def columns(**changes):
    base = {"traj_id": [1, 1, 2], "lat": [48.5, 48.25, 48.0], "lon": [2.5, 2.25, 2.0], "t": [10, 20, 30]}
    return {**base, **changes}


@pytest.mark.parametrize(
    "header",
    [
        "traj_id,lat,lon,t",
        "TID,Latitude,lng,Timestamp",
        "trajectory_id, latitude ,longitude,datetime",
        "trip_id,lat,long,ts",
    ],
)
def test_names_of_the_field_are_recognised(tmp_path, header):
    assert read(csv(tmp_path, f"{header}\n{ROWS}")) == TWO


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_other_delimiters_and_line_ends(tmp_path, delimiter, end):
    text = ("\ufefftraj_id,lat,lon,t\n" + ROWS).replace(",", delimiter).replace("\n", end)
    assert read(csv(tmp_path, text)) == TWO


@pytest.mark.parametrize(
    ("header", "option"),
    [
        ("traj_id,lat,lon,t,time", "time="),
        ("traj_id,lat,lon,t,tid", "traj_id="),
        ("traj_id,lat,lon,t,lng", "lon="),
        ("traj_id,lat,lon,t,LAT", "lat="),
    ],
)
def test_two_candidates_name_the_option(tmp_path, header, option):
    path = csv(tmp_path, header + "\n" + ROWS.replace("\n", ",0\n"))
    with pytest.raises(InputError, match=option):
        read(path)


def test_two_user_candidates_are_settled_by_the_option(tmp_path):
    path = csv(tmp_path, "traj_id,lat,lon,t,user,uid\n" + ROWS.replace("\n", ",7,8\n"))
    with pytest.raises(InputError, match="user="):
        read(path)
    assert read(path, user="uid").user.tolist() == ["8", "8"]  # text, as everything in CSV


def test_named_columns(tmp_path):
    path = csv(tmp_path, f"ride,y,x,when\n{ROWS}")
    with pytest.raises(InputError, match='traj_id="NAME", lon="NAME", lat="NAME", time="NAME"'):
        read(path)
    assert read(path, traj_id="ride", lat="y", lon="x", time="when") == TWO
    with pytest.raises(InputError, match="no column 'z'"):
        read(path, traj_id="z")
    with pytest.raises(InputError, match="two roles"):
        read(path, traj_id="ride", lat="y", lon="y", time="when")


def test_a_missing_header_does_not_leak_the_first_row(tmp_path):
    with pytest.raises(InputError) as caught:
        read(csv(tmp_path, ROWS))
    assert "48.5" not in str(caught.value) and "columns are" not in str(caught.value)


def test_a_first_choice_of_name_wins_over_a_second(tmp_path):
    path = csv(tmp_path, "traj_id,lat,lon,t,trip_id,ts\n" + ROWS.replace("\n", ",7,8\n"))
    assert read(path) == TWO


@pytest.mark.parametrize(
    ("header", "shown"),
    [("tour;vehicle;datum;breite;laenge", True), ("a1;b;c;d", False), (";b;c;d", False), ("\x1b;b;c;d", False)],
)
def test_unknown_columns_are_listed_unless_they_could_be_data(tmp_path, header, shown):
    with pytest.raises(InputError) as caught:
        read(csv(tmp_path, f"{header}\nx;y;z;w;v\n"))
    said = str(caught.value)
    assert ("Its columns are: " + ", ".join(header.split(";")) in said) == shown
    assert 'traj_id="NAME"' in said and "split_minutes=" in said and "\x1b" not in said


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda c: pa.RecordBatch.from_pydict(c)])
def test_frames(make):
    assert read(make(columns())) == TWO
    assert read(make(columns(user=["a", "a", "b"]))).user.tolist() == ["a", "b"]


def test_categories_and_odd_integer_types():
    frame = pd.DataFrame(columns(user=["b", "b", "a"]))
    frame["user"] = frame["user"].astype("category")
    frame["traj_id"] = frame["traj_id"].astype("float64")
    assert read(frame).user.tolist() == ["b", "a"]
    assert len(read(pa.table(columns(traj_id=pa.array([1, 1, 2**64 - 1], pa.uint64()))))) == 2


@pytest.mark.parametrize("factor", [1, 1_000, 1_000_000, 1_000_000_000])
def test_units_of_unix_times(factor):
    seconds = np.array([1_700_000_000, 1_700_000_001, 1_700_000_002])
    assert read(pa.table(columns(t=seconds * factor))).t_utc.tolist() == seconds.tolist()


def test_times_with_and_without_a_zone(tmp_path):
    moments = ["2024-07-01 02:00:00", "2024-07-01 02:00:01.5", "2024-12-01"]
    naive = pd.DataFrame(columns(t=pd.to_datetime(moments, format="ISO8601")))
    with pytest.raises(InputError, match="timezone="):
        read(naive)
    expected = [1719792000.0, 1719792001.5, 1733007600.0]
    assert read(naive, timezone="Europe/Paris").t_utc.tolist() == expected
    aware = naive.assign(t=naive["t"].dt.tz_localize("Europe/Paris"))
    assert read(aware).t_utc.tolist() == expected
    text = "traj_id,lat,lon,t\n1,0,0,2024-07-01 02:00:00\n1,0,0,2024-07-01T02:00:01.5\n2,0,0,2024-12-01 00:00:00\n"
    with pytest.raises(InputError, match="timezone="):
        read(csv(tmp_path, text))
    assert read(csv(tmp_path, text), timezone="Europe/Paris").t_utc.tolist() == expected
    zoned = "traj_id,lat,lon,t\n1,0,0,2024-07-01T00:00:00Z\n1,0,0,2024-07-01T02:00:01.5+02:00\n"
    assert read(csv(tmp_path, zoned)).t_utc.tolist() == expected[:2]
    mixed = csv(tmp_path, zoned + "2,0,0,2024-12-01T00:00:00\n")
    with pytest.raises(InputError, match="timezone="):
        read(mixed)
    assert read(mixed, on_bad_rows="drop").t_utc.tolist() == expected[:2]
    assert read(mixed, timezone="Europe/Paris").t_utc.tolist() == expected
    with pytest.raises(InputError, match="timezone= must be"):
        read(naive, timezone="Nowhere/City")


def test_rows_are_sorted_stably():
    frame = pa.table({"tid": [2, 1, 2, 1, 1], "lat": [0, 1, 2, 3, 4], "lon": [0] * 5, "t": [30, 20, 10, 20, 5]})
    back = read(frame)
    assert back.offsets.tolist() == [0, 3, 5]
    assert back.lat.tolist() == [4, 1, 3, 2, 0]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"lat": [48.5, None, 48.0]}, "missing coordinate"),
        ({"lon": [2.5, float("inf"), 2.0]}, "missing coordinate"),
        ({"lon": [2.5, 181.0, 2.0]}, "out of range"),
        ({"t": [10, None, 30]}, "missing or unreadable time"),
        ({"traj_id": [1, None, 2]}, "missing trajectory id"),
        ({"user": ["a", "", "b"]}, "missing user"),
        ({"user": [1, None, 2]}, "missing user"),
    ],
)
def test_bad_rows_are_refused_or_dropped(change, kind):
    frame = pa.table(columns(**change))
    with pytest.raises(InputError, match=f"{kind}.*wayveil check.*on_bad_rows"):
        read(frame)
    assert read(frame, on_bad_rows="drop").t_utc.tolist() == [10, 30]


def test_swapped_coordinates_have_their_own_message():
    frame = pa.table(columns(lat=[116.5, 116.25, 116.0], lon=[39.5, 39.25, 39.0]))
    with pytest.raises(InputError, match="seem to be swapped"):
        read(frame)
    with pytest.raises(InputError, match="no usable rows"):
        read(frame, on_bad_rows="drop")


def test_a_trajectory_of_two_users_is_refused_or_left_out():
    frame = pa.table(columns(user=["a", "b", "b"]))
    with pytest.raises(InputError, match="unique across users"):
        read(frame)
    assert read(frame, on_bad_rows="drop").t_utc.tolist() == [30]


@pytest.mark.parametrize("change", [{"lat": [True, False, True]}, {"t": [[1], [2], [3]]}, {"traj_id": [{"a": 1}] * 3},
                                    {"user": [b"a", b"a", b"b"]}, {"lon": [[1], [2], [3]]}])  # fmt: skip
def test_wrong_column_types(change):
    with pytest.raises(InputError, match="column"):
        read(pa.table(columns(**change)), on_bad_rows="drop")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"lat": ["a", "b", "c"]}, "missing coordinate"),
        ({"traj_id": [0.5, 1.5, 2.5]}, "unreadable trajectory id"),
        ({"traj_id": [2.0**53, 2.0**60, float("inf")]}, "unreadable trajectory id"),
        ({"t": ["noon", "one", "two"]}, "unreadable time"),
        ({"user": ["x" * 257, "y" * 300, "z" * 999]}, "user longer than 256 bytes"),
        ({"user": ["x\0", "\0", "z\0\0"]}, "unreadable user"),
    ],
)
def test_values_that_cannot_be_used_are_bad_rows(change, kind):
    with pytest.raises(InputError, match=kind):
        read(pa.table(columns(**change)))
    with pytest.raises(InputError, match=r"no usable rows.*wayveil check"):
        read(pa.table(columns(**change)), on_bad_rows="drop")


def bomb(tmp_path):
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    text = f'<?xml version="1.0"?><!DOCTYPE gpx [<!ENTITY a0 "ha">{entities}]><gpx>&a11;</gpx>'
    return csv(tmp_path, text, "x.gpx")


def truncated(tmp_path):
    write(TWO, tmp_path / "whole.parquet")
    return csv(tmp_path, (tmp_path / "whole.parquet").read_bytes()[:-20], "x.parquet")


BAD_FILES = {
    "missing": lambda p: p / "nothing.csv",
    "empty csv": lambda p: csv(p, ""),
    "empty parquet": lambda p: csv(p, "", "x.parquet"),
    "empty gpx": lambda p: csv(p, "", "x.gpx"),
    "header only": lambda p: csv(p, "traj_id,lat,lon,t\n"),
    "garbage": lambda p: csv(p, np.random.default_rng(0).bytes(5000)),
    "parquet named csv": lambda p: csv(p, b"PAR1" + bytes(100)),
    "ragged": lambda p: csv(p, "traj_id,lat,lon,t\n1,2,3\n1,2,3,4,5\n"),
    "words for numbers": lambda p: csv(p, "traj_id,lat,lon,t\n1,north,3,4\n"),
    "unclosed quote": lambda p: csv(p, 'traj_id,lat,lon,t\n"1,2,3,4\n' + "1,2,3,4\n" * 10),
    "many columns": lambda p: csv(p, ",".join(f"c{i}" for i in range(100_000)) + "\n"),
    "huge header": lambda p: csv(p, "x" * 3_000_000),
    "huge field": lambda p: csv(p, "traj_id,lat,lon,t\n" + "9" * 20_000_000 + ",1,2,3\n"),
    "truncated parquet": truncated,
    "xml bomb": bomb,
    "other xml": lambda p: csv(p, "<kml></kml>", "x.gpx"),
    "cut xml": lambda p: csv(p, "<gpx><trk><trkseg>", "x.gpx"),
    "deep xml": lambda p: csv(p, "<gpx>" + "<a>" * 100_000, "x.gpx"),
    "folder": lambda p: p,
    "odd ending": lambda p: csv(p, "hello", "x.doc"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files_give_one_sentence(tmp_path, kind):
    with pytest.raises(InputError) as caught:
        read(BAD_FILES[kind](tmp_path))
    message = str(caught.value)
    assert len(message) < 300 and "\n" not in message and message.endswith(".")
    assert str(tmp_path) not in message


def test_wide_parquet_is_refused(tmp_path):
    pq.write_table(pa.table({f"c{i}": [1] for i in range(10_001)}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="columns"):
        read(tmp_path / "x.parquet")


def test_other_reference_systems_are_refused(tmp_path):
    write(TWO, tmp_path / "x.geo.parquet")
    table = pq.read_table(tmp_path / "x.geo.parquet")
    geo = table.schema.metadata[b"geo"].replace(
        b'"encoding"', b'"crs": {"id": {"authority": "EPSG", "code": 3857}}, "encoding"'
    )
    pq.write_table(table.replace_schema_metadata({"geo": geo}), tmp_path / "x.geo.parquet")
    with pytest.raises(InputError, match="EPSG:4326"):
        read(tmp_path / "x.geo.parquet")


def test_foreign_gpx(tmp_path):
    text = """<gpx version="1.0"><wpt lat="1" lon="1"/><trk><name>x</name><trkseg>
    <trkpt lat="48.5" lon="2.5"><ele>3</ele><time>1970-01-01T00:00:10</time></trkpt>
    <trkpt lat="48.25" lon="2.25"><time>1970-01-01T00:00:20</time></trkpt></trkseg>
    <trkseg><trkpt lat="48.0" lon="2.0"><time>1970-01-01T00:00:30</time></trkpt></trkseg></trk></gpx>"""
    assert read(csv(tmp_path, text, "x.gpx")) == TWO
    without = text.replace("<time>1970-01-01T00:00:20</time>", "")
    with pytest.raises(InputError, match="missing or unreadable time"):
        read(csv(tmp_path, without, "x.gpx"))


@pytest.mark.parametrize("bad", ["2024-13-45 99:00:00", "2024-02-30 10:00:00", "soon"])
@pytest.mark.parametrize("clock", ["", ".25"])
def test_a_few_unreadable_times_are_bad_rows(tmp_path, bad, clock):
    good = [f"7,1.0,2.0,2024-03-04 07:3{minute}:00{clock}" for minute in range(6)]
    path = csv(tmp_path, "\n".join(["traj_id,lat,lon,t", *good[:3], f"7,1.0,2.0,{bad}", *good[3:]]))
    with pytest.raises(InputError, match="missing or unreadable time"):
        read(path, timezone="UTC")
    kept = read(path, timezone="UTC", on_bad_rows="drop")
    assert len(kept.t_utc) == 6 and kept.t_utc[0] == 1_709_537_400.0 + float(clock or 0)


@pytest.mark.parametrize(
    ("times", "kept"),
    [
        (["soon", "later", "2024-03-04 07:30:00"], [1709537400.0]),
        (["2024-03-04 07:30:00", "2024-03-04 07:30:01", "1.5"], [1.5, 1709537400.0, 1709537401.0]),
        (["2024-03-04 07:30:00", "2024-03-04 08:30:01+01:00", "7"], [7.0, 1709537400.0, 1709537401.0]),
    ],
)
def test_every_time_is_read_by_itself(tmp_path, times, kept):
    text = "\n".join(["traj_id,lat,lon,t", *(f"7,1.0,2.0,{time}" for time in times)])
    assert read(csv(tmp_path, text), timezone="UTC", on_bad_rows="drop").t_utc.tolist() == kept


@pytest.mark.parametrize(
    "times",
    [
        ["1.211e9", "17", "18.25", "+19", ".5"],
        ["2300-03-04 00:00:00", "2024-03-04 07:30:00.123456789", "1969-12-31", "2024-03-04T07:30"],
        ["2024-03-04T07:30:00Z", "2024-03-04T07:30:00.5+01:00"],
    ],
)
def test_a_bad_time_changes_no_other(times):
    """What one row says must not hang on another's: that is half of every sensitivity proof."""
    alone, beside = (to_utc_seconds(pa.chunked_array([pa.array([*times, *bad])]), "UTC", "x") for bad in ([], ["soon"]))
    assert np.isfinite(alone).all() and np.array_equal(alone, beside[: len(alone)])


def test_a_named_column_is_not_taken_for_another_role(tmp_path):
    """The device's column is often called user_id; named as the trajectory, it is no user as well."""
    path = csv(tmp_path, "user_id,lat,lon,t\n7,1.0,2.0,10\n7,1.1,2.1,20\n8,1.0,2.0,10\n")
    found = read(path, traj_id="user_id")
    assert len(found) == 2 and found.user is None
    with pytest.raises(InputError, match="two roles"):
        read(path, traj_id="user_id", user="user_id")


def test_a_non_numeric_coordinate_is_a_bad_row(tmp_path):
    rows = "".join(f"a,{1 + k / 100},2.0,{10 * k}\n" for k in range(1, 6))
    path = csv(tmp_path, "traj_id,lat,lon,t\n" + rows + "a,abc,2.0,100\na,1.2, n/a ,110\n")
    with pytest.raises(InputError, match="missing coordinate"):
        read(path)
    assert read(path, on_bad_rows="drop").t_utc.tolist() == [10, 20, 30, 40, 50]
    commas = csv(tmp_path, "traj_id;lat;lon;t\n" + "a;1,5;2,5;10\n" * 5)
    with pytest.raises(InputError, match="no usable rows"):
        read(commas, on_bad_rows="drop")


@pytest.mark.parametrize("text", [True, False], ids=["all text", "numbers and text"])
def test_a_non_numeric_coordinate_is_a_bad_row_of_a_frame_too(tmp_path, text):
    frame = pd.DataFrame({
        "traj_id": ["a"] * 4 + ["b"] * 2, "lat": [30.01, 30.02, "#REF!", 30.04, 30.05, 30.06],
        "lon": [-39.9, -39.8, -39.7, "", 0.1 + 0.2, -39.4], "t": [60, 120, 180, 240, 300, "#N/A"],
    })  # fmt: skip
    frame.to_csv(tmp_path / "a.csv", index=False)
    if text:
        frame = frame.map(str)
    expected = read(tmp_path / "a.csv", on_bad_rows="drop")
    assert len(expected) == 2 and len(expected.lon) == 3
    for one in (frame, pa.Table.from_pandas(frame.map(str))):
        assert read(one, on_bad_rows="drop") == expected
        with pytest.raises(InputError, match=r'Some rows .* on_bad_rows="drop"'):
            read(one)
    assert next(iter(open_source(frame, ReadOptions(on_bad_rows="drop")).batches())) == expected
    frame["lat"] = "north"
    with pytest.raises(InputError, match="no usable rows"):
        read(frame, on_bad_rows="drop")


def test_labels_of_two_kinds_are_not_merged():
    frame = pd.DataFrame({"traj_id": [7, "7", 7.0, True, None], "lat": [1.0, 2.0, 3.0, 4.0, 5.0], "lon": [1.0] * 5,
                          "t": [0, 1, 2, 3, 4], "user": ["u", 8, "u", 8, 8]}, dtype=object)  # fmt: skip
    found = read(frame, on_bad_rows="drop")
    assert found.lat.tolist() == [1.0, 3.0, 2.0] and found.user.tolist() == ["u", 8]
    with pytest.raises(InputError, match="trajectory id"):
        read(frame)

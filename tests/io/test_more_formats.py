"""Formats beyond CSV, Parquet and GPX: real files made by the real libraries, read and written back."""

import bz2
import gzip
import importlib.resources
import json
import lzma
import os
import re
import stat
import zipfile
from pathlib import Path

import duckdb
import geopandas
import movingpandas
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.feather as feather
import pyogrio
import pytest
import shapely
from lxml import etree

import wayveil
from wayveil.core import optional
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.files import read, read_metadata, write
from wayveil.io.options import ENDINGS, FORMATS, READ_AS, WRITABLE
from wayveil.io.readers import packed
from wayveil.privacy.noise import SeededNoise

T0 = 1_709_537_400
SCHEMAS = Path(__file__).parent / "schemas"


def rides(users=True):
    """Three trajectories of 3, 2 and 1 points."""
    lon, lat = np.array([2.30, 2.31, 2.32, 2.40, 2.41, 2.35]), np.array([48.80, 48.81, 48.82, 48.85, 48.86, 48.9])
    t_utc = T0 + np.array([0, 15, 30, 100, 160, 7.0])
    return Trajectories([0, 3, 5, 6], lon, lat, t_utc, np.array(["ann", "bob", "ann"]) if users else None)


def same(a, b, users=True, degrees=0.0):
    assert np.array_equal(a.offsets, b.offsets)
    assert np.array_equal(a.t_utc, b.t_utc)
    for name in ("lon", "lat"):
        assert np.abs(getattr(a, name) - getattr(b, name)).max() <= degrees
    if users:
        assert list(a.user) == list(b.user)


def points():
    own = rides()
    owner = np.repeat(np.arange(3), np.diff(own.offsets))
    return pd.DataFrame({
        "trip_id": owner, "user": own.user[owner], "t": pd.to_datetime(own.t_utc, unit="s", utc=True),
        "lon": own.lon, "lat": own.lat,
    })  # fmt: skip


def point_frame():
    table = points()
    shapes = geopandas.points_from_xy(table.pop("lon"), table.pop("lat"))
    return geopandas.GeoDataFrame(table, geometry=shapes, crs=4326)


@pytest.mark.parametrize(
    ("name", "times"),
    [(name, times) for name in ("x.geojson", "x.gpkg", "x.fgb", "x.csv", "x.parquet", "x.geo.parquet")
     for times in ("iso", "unix")] + [("x.kepler.json", None), ("x.gpx", None)],
)  # fmt: skip
def test_what_is_written_reads_back(tmp_path, name, times):
    write(rides(), tmp_path / name, times=times, extra_metadata={"origin": "made up"})
    same(read(tmp_path / name), rides())
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) in ([name], [name, name + ".meta.json"])
    if not name.endswith(".fgb"):
        assert read_metadata(tmp_path / name)["origin"] == "made up"


def test_geopandas_reads_what_is_written(tmp_path):
    for name in ("x.gpkg", "x.fgb", "x.geojson"):
        write(rides(), tmp_path / name)
        frame = geopandas.read_file(tmp_path / name).sort_values("traj_id")
        assert list(frame.geometry.iloc[0].coords) == [(2.30, 48.80), (2.31, 48.81), (2.32, 48.82)]
        assert frame.crs.to_epsg() == 4326
        times = frame["times"].iloc[0]
        assert "2024-03-04T07:30:00Z" in times


@pytest.mark.parametrize("ending", ["gpkg", "fgb", "shp", "geojson", "geojsonl"])
@pytest.mark.parametrize("epsg", [4326, 2154])
def test_points_of_gis_files(tmp_path, ending, epsg):
    frame = point_frame()
    if ending == "shp":
        frame["t"] = frame["t"].astype(str)
    if ending == "geojsonl":
        epsg = 4326  # always in degrees
    digits = {"COORDINATE_PRECISION": 12} if "json" in ending else {}
    driver = {"geojsonl": "GeoJSONSeq", "geojson": "GeoJSON"}.get(ending)
    frame.to_crs(epsg).to_file(tmp_path / f"x.{ending}", engine="pyogrio", driver=driver, **digits)
    same(read(tmp_path / f"x.{ending}"), rides(), degrees=1e-7)


def test_a_zipped_shapefile(tmp_path):
    frame = point_frame()
    frame["t"] = frame["t"].astype(str)
    frame.to_file(tmp_path / "x.shp", engine="pyogrio")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for file in tmp_path.glob("x.???"):
            if file.suffix != ".zip":
                archive.write(file, f"trips/{file.name}")
    same(read(tmp_path / "x.zip"), rides(), degrees=1e-9)


def test_a_zipped_shapefile_is_read_within_limits(tmp_path, monkeypatch):
    frame = point_frame()
    frame["t"] = frame["t"].astype(str)
    frame.to_file(tmp_path / "x.shp", engine="pyogrio")
    parts = {file.name: file.read_bytes() for file in tmp_path.glob("x.???")}

    def pack(*more):
        with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in (*parts.items(), *more):
                archive.writestr(name, content)
        return tmp_path / "x.zip"

    with pytest.warns(UserWarning, match="Duplicate"):
        pack(("x.dbf", parts["x.dbf"]))
    with pytest.raises(InputError, match="same file twice"):
        read(tmp_path / "x.zip")
    same(read(pack(("notes.txt", b"0" * 1000))), rides(), degrees=1e-9)
    limit = sum(map(len, parts.values()))
    monkeypatch.setattr(packed, "MAX_UNPACKED_BYTES", limit)
    same(read(tmp_path / "x.zip"), rides(), degrees=1e-9)
    monkeypatch.setattr(packed, "MAX_UNPACKED_BYTES", limit - 1)
    with pytest.raises(InputError, match=r"'x\.zip' unpacks to too much data; unpack it first"):
        read(tmp_path / "x.zip")
    monkeypatch.undo()
    parts["x.dbf"] += b"\0" * (65 << 20)
    with pytest.raises(InputError, match="too much data"):
        read(pack())


def test_lines_with_m_values(tmp_path):
    own = rides()
    lines = [
        shapely.from_wkt("LINESTRING M (" + ", ".join(
            f"{own.lon[k]} {own.lat[k]} {own.t_utc[k]}" for k in range(own.offsets[i], own.offsets[i + 1])) + ")")
        for i in range(2)
    ]  # fmt: skip
    frame = geopandas.GeoDataFrame({"trip_id": [5, 6], "user": ["ann", "bob"]}, geometry=lines, crs=4326)
    expected = Trajectories([0, 3, 5], own.lon[:5], own.lat[:5], own.t_utc[:5], np.array(["ann", "bob"]))
    same(read(frame), expected)
    columns = {"trip_id": np.array([5, 6]), "user": np.array(["ann", "bob"], object)}
    pyogrio.raw.write(
        tmp_path / "x.gpkg", geometry=shapely.to_wkb(lines, flavor="iso"), field_data=list(columns.values()),
        fields=list(columns), geometry_type="Unknown", crs="EPSG:4326",
    )  # fmt: skip
    same(read(tmp_path / "x.gpkg"), expected)
    texts = [shapely.to_wkt(line, rounding_precision=9) for line in lines]
    pd.DataFrame({"trip_id": [5, 6], "user": ["ann", "bob"], "wkt": texts}).to_csv(tmp_path / "x.csv", index=False)
    same(read(tmp_path / "x.csv"), expected)
    frame.drop(columns="trip_id").to_parquet(tmp_path / "x.parquet")
    same(read(tmp_path / "x.parquet"), expected)


def test_frames_of_geopandas_and_movingpandas():
    same(read(point_frame()), rides())
    same(read(point_frame().to_crs(3857)), rides(), degrees=1e-9)
    indexed = point_frame().set_index("t")
    same(read(indexed), rides())
    naive = point_frame()
    naive["t"] = naive["t"].dt.tz_localize(None)
    collection = movingpandas.TrajectoryCollection(naive[naive.trip_id < 2], "trip_id", t="t")
    own = rides()
    expected = Trajectories([0, 3, 5], own.lon[:5], own.lat[:5], own.t_utc[:5], np.array(["ann", "bob"]))
    same(read(collection, timezone="UTC"), expected)
    assert len(read(collection.trajectories[0], timezone="UTC")) == 1
    with pytest.raises(InputError, match="timezone="):
        read(collection)
    with pytest.raises(InputError, match="no usable rows"):
        read(movingpandas.TrajectoryCollection([]), timezone="UTC")


def test_movingpandas_trajectories_from_two_columns():
    """MovingPandas makes their geometries when it first needs them."""
    own = rides()
    frame = pd.DataFrame({"t": pd.to_datetime(own.t_utc[:3], unit="s"), "east": own.lon[:3], "north": own.lat[:3]})
    trip = movingpandas.Trajectory(frame, 7, t="t", x="east", y="north", crs=4326)
    assert trip.df.geometry.isna().all()
    found = read(trip, timezone="UTC")
    assert np.array_equal(found.lon, own.lon[:3]) and np.array_equal(found.lat, own.lat[:3])


def test_lazy_frames_duckdb_and_feather(tmp_path):
    table = points()
    same(read(polars.from_pandas(table).lazy()), rides())
    same(read(duckdb.from_df(table)), rides())
    for compression in ("lz4", "zstd", "uncompressed"):
        feather.write_feather(pa.Table.from_pandas(table), tmp_path / "x.feather", compression=compression)
        same(read(tmp_path / "x.feather"), rides())
    polars.from_pandas(table).write_ipc_stream(tmp_path / "x.arrow")
    same(read(tmp_path / "x.arrow"), rides())


def test_portos_table(tmp_path):
    text = (
        '"TRIP_ID","CALL_TYPE","ORIGIN_CALL","ORIGIN_STAND","TAXI_ID","TIMESTAMP","DAY_TYPE","MISSING_DATA","POLYLINE"\n'
        '"1372636858620000589","C","","","20000589","1372636858","A","False","[[-8.618643,41.141412],[-8.618499,41.141376]]"\n'
        '"1372637303620000596","B","","7","20000596","1372637303","A","False","[]"\n'
    )
    (tmp_path / "train.csv").write_text(text)
    with zipfile.ZipFile(tmp_path / "train.csv.zip", "w") as archive:
        archive.write(tmp_path / "train.csv", "train.csv")
    for name in ("train.csv", "train.csv.zip"):
        found = read(tmp_path / name, on_bad_rows="drop")
        assert found.t_utc.tolist() == [1372636858, 1372636873]
        assert found.lon.tolist() == [-8.618643, -8.618499]
        assert list(found.user) == ["20000589"]
        report = wayveil.check(tmp_path / name)
        assert report.problems["line without positions, or without a time for each"] == 1


BIKES = {
    "new": "ride_id,rideable_type,started_at,ended_at,start_station_name,start_lat,start_lng,end_lat,end_lng,"
    "member_casual",
    "old": "tripduration,starttime,stoptime,start station latitude,start station longitude,end station latitude,"
    "end station longitude,bikeid",
    "taxi": "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,pickup_longitude,pickup_latitude,dropoff_longitude,"
    "dropoff_latitude",
}


@pytest.mark.parametrize("system", BIKES)
def test_trip_tables(tmp_path, system):
    cells = {"lat": ["40.7", "40.8"], "lon": ["-74.0", "-73.9"], "lng": ["-74.0", "-73.9"]}

    def cell(name):
        lower = name.lower()
        end = any(word in lower for word in ("end", "stop", "dropoff"))
        if any(word in lower for word in ("time", "_at")) and "duration" not in lower:
            return "2024-03-04 08:10:00" if end else "2024-03-04 08:00:00"
        for kind, (start, stop) in cells.items():
            if kind in lower and "station_name" not in lower:
                return stop if end else start
        return "x"

    lines = [BIKES[system], *[",".join(cell(name) for name in BIKES[system].split(","))] * 2]
    (tmp_path / "bikes.csv").write_text("\n".join(lines) + "\n")
    found = read(tmp_path / "bikes.csv", timezone="America/New_York")
    trips = 1 if system == "new" else 2  # the new table has an id, and here it is twice the same
    assert len(found) == trips and len(found.lon) == 4
    assert set(found.lon) == {-74.0, -73.9} and np.ptp(found.t_utc) == 600


def test_a_trip_table_is_written_and_read_again(tmp_path):
    write(rides(), tmp_path / "x.trips.csv")
    head, first, *_ = (tmp_path / "x.trips.csv").read_text().splitlines()
    assert head == "traj_id,start_time,end_time,start_lat,start_lon,end_lat,end_lon,user_id,trip_number"
    assert first.replace('"', "") == "0,2024-03-04T07:30:00Z,2024-03-04T07:30:30Z,48.8,2.3,48.82,2.32,ann,1"
    again = read(tmp_path / "x.trips.csv")
    assert np.diff(again.offsets).tolist() == [2, 2, 2] and list(again.user) == ["ann", "bob", "ann"]


def test_half_a_trip_contributes_nothing(tmp_path):
    head = "ride_id,started_at,ended_at,start_lat,start_lng,end_lat,end_lng\n"
    rows = [
        "a,2024-03-04T08:00:00Z,2024-03-04T08:10:00Z,40.7,-74,40.8,-73.9",
        "b,2024-03-04T08:00:00Z,2024-03-04T08:10:00Z,40.7,-74,,",
        "c,2024-03-04T08:00:00Z,2024-03-04T07:10:00Z,40.7,-74,40.8,-73.9",
        "d,2024-03-04T08:00:00Z,2024-03-04T08:10:00Z,140.7,-74,40.8,-73.9",
    ]
    (tmp_path / "x.csv").write_text(head + "\n".join(rows) + "\n")
    assert len(read(tmp_path / "x.csv", on_bad_rows="drop")) == 1


def test_trip_columns_with_other_names(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,c,d,e,f\n2.3,48.8,0,2.4,48.9,60\n")
    names = "start_lon=a,start_lat=b,start_time=c,end_lon=d,end_lat=e,end_time=f"
    assert read(tmp_path / "x.csv", trip_columns=names).lat.tolist() == [48.8, 48.9]
    by_role = dict(pair.split("=") for pair in names.split(","))
    assert read(tmp_path / "x.csv", trip_columns=by_role).lat.tolist() == [48.8, 48.9]
    assert wayveil.check(tmp_path / "x.csv", trip_columns=by_role).rows == 2
    assert "points:       2\n" in str(wayveil.check(tmp_path / "x.csv", trip_columns=by_role))
    with pytest.raises(InputError, match=r"one row per trip, name its columns with trip_columns="):
        read(tmp_path / "x.csv")
    for wrong in ({"start": "a"}, {"start_lon": 3}, "start_lon", ["start_lon=a"]):
        with pytest.raises(InputError, match="trip_columns= must be"):
            read(tmp_path / "x.csv", trip_columns=wrong)
    with pytest.raises(InputError, match="must also name end_time"):
        read(tmp_path / "x.csv", trip_columns=names[:-11])


def test_decimal_commas_and_days_first(tmp_path):
    (tmp_path / "x.csv").write_text(
        "trip_id;lat;lon;time\n1;48,8;2,3;4/3/2024 7:30\n1;48,81;2,31;04.03.2024 07:31:00\n"
        "2;x;2,31;2024-03-04 07:31:00\n"
    )
    options = {"decimal": ",", "timezone": "UTC", "on_bad_rows": "drop"}
    found = read(tmp_path / "x.csv", dayfirst=True, **options)
    assert found.lat.tolist() == [48.8, 48.81] and found.t_utc.tolist() == [T0, T0 + 60]
    american = read(tmp_path / "x.csv", dayfirst=False, **options)
    assert american.t_utc[0] - T0 == 30 * 86_400
    with pytest.raises(InputError, match="no usable rows"):
        read(tmp_path / "x.csv", **options)


def test_geojson_of_gpx_converters_and_fourth_coordinates(tmp_path):
    line = {"type": "MultiLineString", "coordinates": [[[2.3, 48.8], [2.31, 48.81]], [[2.32, 48.82]]]}
    nested = {"coordTimes": [["2024-03-04T07:30:00Z", "2024-03-04T07:30:15Z"], ["2024-03-04T07:30:30Z"]]}
    newer = {"coordinateProperties": {"times": nested["coordTimes"]}}
    fourth = {"type": "LineString", "coordinates": [[2.3, 48.8, 0, T0], [2.31, 48.81, 0, T0 + 15]]}
    features = [
        {"type": "Feature", "properties": nested, "geometry": line},
        {"type": "Feature", "properties": newer, "geometry": line},
        {"type": "Feature", "properties": {}, "geometry": fourth},
    ]
    (tmp_path / "x.json").write_text(json.dumps({"type": "FeatureCollection", "features": features}, indent=1))
    found = read(tmp_path / "x.json")
    assert np.diff(found.offsets).tolist() == [3, 3, 2] and found.t_utc[:3].tolist() == [T0, T0 + 15, T0 + 30]


def test_compressed_files_are_read_within_limits(tmp_path, monkeypatch):
    text = points().to_csv(index=False).encode()
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text))
    same(read(tmp_path / "x.csv.gz"), rides())
    bomb = text + b"1,ann,2024-03-04 07:30:00+00:00,2.3,48.8\n" * 4_000_000
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(bomb, 9))
    with pytest.raises(InputError, match="too much data"):
        read(tmp_path / "bomb.csv.gz")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(text)[:-20])
    (tmp_path / "not.zip").write_bytes(b"no zip")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", text)
        archive.writestr("b.csv", text)
    for name, said in (("cut.csv.gz", "truncated"), ("not.zip", "not a zip"), ("two.zip", "exactly one data file")):
        with pytest.raises(InputError, match=said):
            read(tmp_path / name)
    monkeypatch.setattr(packed, "MAX_UNPACKED_BYTES", 50)
    with pytest.raises(InputError, match="too much data"):
        read(tmp_path / "x.csv.gz")


@pytest.mark.parametrize("format", [None, "csv"])
@pytest.mark.parametrize(
    ("name", "said"),
    [("x.csv.bz2", "compressed with bzip2; decompress"), ("x.csv.xz", "compressed with xz; decompress"),
     ("x.csv", "compressed with gzip; rename it to 'x.csv.gz'"), ("x.tar.gz", "archive; unpack it"),
     ("x.parquet.gz", "decompress it first"), ("x.xlsx", "spreadsheet; save it as CSV")],
)  # fmt: skip
def test_other_packed_files_are_named_with_a_remedy_that_works(tmp_path, name, said, format):
    text = points().to_csv(index=False).encode()
    pack = {".bz2": bz2.compress, ".xz": lzma.compress}.get(Path(name).suffix, gzip.compress)
    (tmp_path / name).write_bytes(pack(text))
    with pytest.raises(InputError, match=said):
        read(tmp_path / name, format=format and ("parquet" if "parquet" in name else format))
    if "rename" in said:
        (tmp_path / name).rename(tmp_path / "x.csv.gz")
        same(read(tmp_path / "x.csv.gz"), rides())


def test_a_list_of_json_objects_is_named_with_a_remedy(tmp_path):
    points().to_json(tmp_path / "x.json", orient="records", date_format="iso")
    with pytest.raises(InputError, match="JSON list; write it as JSON lines"):
        read(tmp_path / "x.json")
    points().to_json(tmp_path / "x.jsonl", orient="records", date_format="iso", lines=True)
    same(read(tmp_path / "x.jsonl"), rides())


@pytest.mark.parametrize("interval", [1, 2, 15, 15.0])
def test_the_interval_of_lines_may_be_a_whole_number(tmp_path, interval):
    lines = pd.DataFrame({
        "id": [1, 2], "wkt": ["LINESTRING (2.3 48.8, 2.31 48.8)", "LINESTRING (2.3 48.9, 2.4 48.9)"],
        "start_time": ["2024-03-04T07:30:00Z"] * 2,
    })  # fmt: skip
    lines.to_csv(tmp_path / "x.csv", index=False)
    for source in (lines, tmp_path / "x.csv"):
        assert np.diff(read(source, interval_s=interval).t_utc)[[0, 2]].tolist() == [interval, interval]


def test_an_arrow_file_that_unpacks_to_gigabytes_is_refused(tmp_path):
    zeros = pa.table({"traj_id": np.zeros(1 << 21, np.int64)})
    zeros = zeros.append_column("lat", zeros["traj_id"]).append_column("lon", zeros["traj_id"])
    table = pa.concat_tables([zeros.append_column("t", zeros["traj_id"])] * 80)
    feather.write_feather(table, tmp_path / "x.feather", compression="zstd", chunksize=1 << 21)
    assert (tmp_path / "x.feather").stat().st_size < 1 << 22
    with pytest.raises(InputError, match="unpacks to more than 4 GB"):
        read(tmp_path / "x.feather")


def test_a_missing_extra_is_one_sentence(tmp_path, monkeypatch):
    write(rides(), tmp_path / "x.gpkg")
    real = optional.importlib.import_module

    def without(name):
        if name.startswith("pyogrio"):
            raise ImportError
        return real(name)

    monkeypatch.setattr(optional.importlib, "import_module", without)
    for work in (lambda: read(tmp_path / "x.gpkg"), lambda: write(rides(), tmp_path / "y.fgb")):
        with pytest.raises(InputError, match=r"pip install 'wayveil\[gis\]'"):
            work()


def test_gdal_gets_only_files_of_the_named_format(tmp_path):
    layer = '<OGRVRTLayer name="x"><SrcDataSource>/etc/passwd</SrcDataSource></OGRVRTLayer>'
    vrt = f"<OGRVRTDataSource>{layer}</OGRVRTDataSource>"
    for name in ("x.gpkg", "x.fgb", "x.shp"):
        (tmp_path / name).write_text(vrt)
        with pytest.raises(InputError, match="not in the expected format"):
            read(tmp_path / name)


@pytest.fixture(scope="module")
def sumo_schema():
    """SUMO's own schema of route files, from the package sumo-data."""
    xsd = importlib.resources.files("sumo_data") / "data" / "xsd" / "routes_file.xsd"
    return etree.XMLSchema(etree.parse(str(xsd)))


def test_sumo_trips_are_valid(tmp_path, sumo_schema):
    write(rides(), tmp_path / "x.rou.xml", extra_metadata={"note": "a -- b"})
    tree = etree.parse(tmp_path / "x.rou.xml")
    sumo_schema.assertValid(tree)
    wrong = etree.fromstring(etree.tostring(tree).replace(b"fromLonLat", b"fromLongLat"))
    assert not sumo_schema.validate(wrong)
    trips = tree.findall("trip")
    assert [trip.get("depart") for trip in trips] == ["27000.00", "27007.00", "27100.00"]
    assert trips[0].get("fromLonLat") == "2.3,48.8" and trips[0].get("toLonLat") == "2.32,48.82"
    assert [trip.find("param[@key='user_id']").get("value") for trip in trips] == ["ann", "ann", "bob"]
    with pytest.raises(InputError, match="writes but does not read"):
        read(tmp_path / "x.rou.xml")


def test_matsim_plans_are_valid(tmp_path):
    write(rides(), tmp_path / "x.plans.xml")
    tree = etree.parse(tmp_path / "x.plans.xml")
    for dtd in (SCHEMAS / "matsim_population.dtd", os.environ.get("MATSIM_POPULATION_DTD")):
        assert dtd is None or etree.DTD(str(dtd)).validate(tree.getroot())
    activities = tree.findall(".//person/plan/activity")
    # Two trips of one person and one of another.
    assert activities[0].get("end_time") == "07:30:00" and len(activities) == 3 + 2


def test_the_mode_of_matsim_plans_can_be_chosen(tmp_path):
    def modes(file):
        return {leg.get("mode") for leg in etree.parse(tmp_path / file).iter("leg")}

    write(rides(), tmp_path / "users.plans.xml", mode="bike")
    alone = Trajectories(rides().offsets, rides().lon, rides().lat, rides().t_utc)
    write(alone, tmp_path / "trips.plans.xml", mode="pt")
    write(alone, tmp_path / "x.parquet")
    wayveil.convert(tmp_path / "x.parquet", tmp_path / "usual.plans.xml")
    assert (modes("users.plans.xml"), modes("trips.plans.xml"), modes("usual.plans.xml")) == ({"bike"}, {"pt"}, {"car"})
    with pytest.raises(InputError, match="leave mode= out"):
        wayveil.convert(tmp_path / "x.parquet", tmp_path / "x.rou.xml", mode="bike")
    with pytest.raises(InputError, match="name of a MATSim mode"):
        write(alone, tmp_path / "y.plans.xml", mode='a"b')


def test_plans_of_users_are_chains_with_a_home(tmp_path):
    """One person per user, valid against MATSim's DTD; trip tables number the trips."""
    lon = [2.30, 2.40, 2.40, 2.30, 2.35, 2.36]
    times = [28_800, 30_000, 61_200, 62_400, 30_000, 31_000]
    week = Trajectories([0, 2, 4, 6], lon, [48.8] * 6, times, ["ann & co", "ann & co", "bob"])
    write(week, tmp_path / "x.plans.xml")
    tree = etree.parse(tmp_path / "x.plans.xml")
    assert etree.DTD(str(SCHEMAS / "matsim_population.dtd")).validate(tree.getroot())
    plans = {one.get("id"): one.findall("plan/activity") for one in tree.findall(".//person")}
    assert [one.get("type") for one in plans["ann & co"]] == ["home", "other", "home"]
    assert [one.get("end_time") for one in plans["ann & co"]] == ["08:00:00", "17:00:00", None]
    assert len(plans["bob"]) == 2
    write(week, tmp_path / "x.trips.csv")
    lines = (tmp_path / "x.trips.csv").read_text().splitlines()
    assert lines[0].endswith("user_id,trip_number") and [line[-1] for line in lines[1:]] == ["1", "2", "1"]


def declarations(dtd):
    """Content and attributes of every element of a DTD."""

    def content(node):
        if node is None:
            return None
        return node.name, node.type, node.occur, content(node.left), content(node.right)

    return {
        one.name: (
            content(one.content),
            {(a.name, a.type, a.default, a.default_value, tuple(a.values())) for a in one.attributes()},
        )
        for one in dtd.elements()
    }


def test_the_dtd_declares_what_the_public_one_does():
    """Compared with the original where MATSIM_POPULATION_DTD names it; and every declared name can be used."""
    own = declarations(etree.DTD(str(SCHEMAS / "matsim_population.dtd")))
    assert set(own) == {"population", "person", "attributes", "attribute", "plan", "activity", "leg", "route"}
    if original := os.environ.get("MATSIM_POPULATION_DTD"):
        assert own == declarations(etree.DTD(original))


@pytest.mark.parametrize("name", ["x.rou.xml", "x.plans.xml"])
def test_simulators_count_local_time(tmp_path, name):
    """From local midnight, in the zone of the release, of --timezone, or UTC; an hour stays the same hour in summer."""

    def departures(file):
        tree = etree.parse(file)
        found = [(one.get("depart") or one.get("dep_time")).split(":") for one in tree.iter("trip", "leg")]
        return [sum(float(part) * 60**k for k, part in enumerate(reversed(one))) for one in found]

    saturday = pd.Timestamp("2024-03-30 08:00", tz="Europe/Paris").timestamp()
    sunday = pd.Timestamp("2024-03-31 08:00", tz="Europe/Paris").timestamp()  # the clocks went forward at 2:00
    assert sunday - saturday == 23 * 3600
    days = Trajectories([0, 2, 4], [2.3] * 4, [48.8] * 4, [saturday, saturday + 60, sunday, sunday + 60])
    write(days, tmp_path / name, extra_metadata={"timezone": "Europe/Paris"})
    assert departures(tmp_path / name) == [8 * 3600, 32 * 3600]
    assert "midnight of 2024-03-30 in the time zone Europe/Paris" in (tmp_path / name).read_text()
    write(days, tmp_path / name, force=True)
    assert departures(tmp_path / name) == [7 * 3600, 30 * 3600]
    write(days, tmp_path / "days.parquet")
    wayveil.convert(tmp_path / "days.parquet", tmp_path / name, timezone="America/New_York", force=True)
    assert departures(tmp_path / name) == [3 * 3600, 26 * 3600]


def test_convert_chooses_the_format_by_the_extension(tmp_path):
    write(rides(), tmp_path / "x.parquet")
    for name in ("y.geojson", "y.gpkg", "y.fgb", "y.rou.xml", "y.plans.xml", "y.trips.csv", "y.kepler.json", "y.gpx"):
        wayveil.convert(tmp_path / "x.parquet", tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    same(read(tmp_path / "y.gpkg"), rides())
    with pytest.raises(InputError, match="prescribes how times"):
        wayveil.convert(tmp_path / "x.parquet", tmp_path / "z.rou.xml", times="iso")


def test_geoparquet_of_geopandas(tmp_path):
    for epsg in (4326, 2154):
        point_frame().to_crs(epsg).to_parquet(tmp_path / "x.parquet")
        same(read(tmp_path / "x.parquet"), rides(), degrees=1e-9)
    write(rides(), tmp_path / "y.geo.parquet", times="iso")
    frame = geopandas.read_parquet(tmp_path / "y.geo.parquet")
    assert frame.geometry.x.tolist() == rides().lon.tolist() and frame.crs.to_authority() == ("OGC", "CRS84")
    assert frame["t"].iloc[0] == pd.Timestamp("2024-03-04T07:30:00Z")


def test_kepler_trips_have_the_form_that_kepler_expects(tmp_path):
    """Lines of [longitude, latitude, altitude, Unix seconds], as in kepler.gl's guide to trip layers."""
    write(rides(), tmp_path / "x.kepler.json")
    collection = json.loads((tmp_path / "x.kepler.json").read_text())
    lines = [feature for feature in collection["features"] if feature["geometry"]["type"] == "LineString"]
    assert len(lines) == 2 and collection["type"] == "FeatureCollection"
    for line in lines:
        positions = line["geometry"]["coordinates"]
        assert all(len(position) == 4 for position in positions)
        assert [position[3] for position in positions] == sorted(position[3] for position in positions)


def test_a_trip_table_is_measured_and_written_as_a_trip_table(tmp_path, quick_synthesis):
    city = wayveil.simulate.simulate_city(size_km=(3, 3))
    write(wayveil.simulate.simulate_trajectories(city, 200), tmp_path / "bikes.trips.csv")
    assert (np.diff(read(tmp_path / "bikes.trips.csv").offsets) == 2).all()
    promise = {"epsilon": 5, "unit": "trajectory", "noise": SeededNoise(1)}
    release = wayveil.measure(tmp_path / "bikes.trips.csv", city.scope, **promise)
    made = wayveil.synthesize(release, n=50, seed=1)
    wayveil.write(made, tmp_path / "made.trips.csv")
    table = pd.read_csv(tmp_path / "made.trips.csv")
    assert len(table) == 50 and {"start_time", "end_time", "start_lat", "end_lon"} <= set(table.columns)
    start, end = (pd.to_datetime(table[name]) for name in ("start_time", "end_time"))
    assert (start <= end).all()
    assert (np.diff(read(tmp_path / "made.trips.csv").offsets) == 2).all()
    assert read_metadata(tmp_path / "made.trips.csv")["origin"].startswith("synthetic")


@pytest.mark.parametrize("name", ["x.csv.gz", "x.zip", "x.csv.bz2"])
def test_compressed_files_are_not_written_and_the_advice_works(tmp_path, name):
    for wanted in (None, "csv"):
        with pytest.raises(InputError, match=r"write 'x(\.csv)?' and compress it"):
            write(rides(), tmp_path / name, format=wanted)
    write(rides(), tmp_path / "x.csv")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress((tmp_path / "x.csv").read_bytes()))
    same(read(tmp_path / "x.csv.gz"), rides())


def test_the_error_about_an_extension_names_those_that_work(tmp_path):
    with pytest.raises(InputError, match="has no extension that wayveil writes") as error:
        write(rides(), tmp_path / "x.xyz")
    endings = str(error.value).split("use ")[1].split(", or choose")[0].split(", ")
    assert len(endings) == len(WRITABLE)
    for ending in endings:
        write(rides(), tmp_path / f"x{ending}")
        assert (tmp_path / f"x{ending}").stat().st_size


def test_the_table_of_formats_in_the_documentation_is_that_of_the_program():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| `(\w+)` \| ([^|]+) \| (yes)? ?\| (yes)? ?\| `(\w+)` \|", page, re.M)
    assert {row[0] for row in rows} == set(FORMATS) | set(WRITABLE)
    tests = "\n".join(file.read_text(encoding="utf-8") for file in (root / "tests" / "io").glob("test_*.py"))
    for name, endings, reads, writes, test in rows:
        assert bool(reads) == (READ_AS.get(name, name) in FORMATS), name
        assert bool(writes) == (name in WRITABLE), name
        assert f"def {test}(" in tests, test
        listed = [] if endings == "folder" else re.findall(r"`([^`]+)`", endings)
        assert sorted(listed) == sorted(ending for ending, kind in ENDINGS if kind == name), name

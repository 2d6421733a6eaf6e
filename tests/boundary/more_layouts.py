"""The datasets of `layouts` in formats with one record per line or trip, in packed files, and in GIS formats."""

import gzip
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import shapely
from layouts import ID_KINDS, Row, csv_line, table_of
from layouts import _lat as lat_of
from layouts import _user as user_of

PACKED = ("csv.gz", "csv.zip")
JSON = ("geojson points", "geojson lines", "json points", "json lines")
LINES = ("porto", "wkt", "trips", "arrow", "lazy", "duckdb")
GIS = (
    "gpkg points", "gpkg lines", "fgb lines", "shp points", "zip points", "geoparquet lines", "geopandas points",
    "geopandas lines",
)  # fmt: skip
MOVING = ("movingpandas",)
WITHOUT_ID = ("wkt", "trips", "porto", "geojson lines", "json lines", "geoparquet lines", "geopandas lines")
"""Kinds that are also written without ids: each record is then a trajectory of its own."""
RECORD_FAULTS = ("no id", "no user", "long user", "NUL user", "ragged")
"""Faults of a whole record; rows with such a fault are records of their own."""
NO_ID = "none"
"""The kind of id of a table that has none."""


def write_more(rows: list[Row], kind: str, id_kind: str, path: Path) -> Any:
    """A file or frame of one of the kinds above."""
    writers: dict[str, Callable[[list[Row], str, str, Path], Any]] = {
        **dict.fromkeys(PACKED, _packed), **dict.fromkeys(JSON, _json), **dict.fromkeys(GIS, _gis),
        "porto": _porto, "wkt": _wkt, "trips": _trips, "arrow": _arrow, "lazy": _lazy, "duckdb": _duckdb,
        "movingpandas": _movingpandas,
    }  # fmt: skip
    return writers[kind](rows, kind, id_kind, path)


def owned(rows: list[Row]) -> list[Row]:
    """The rows with one user per trajectory, and one trip each where a row is a trip: for tables without an id."""
    user = {row.trajectory: row.user for row in reversed(rows)}
    return [replace(row, user=user[row.trajectory]) for row in rows]


def write_without_id(rows: list[Row], kind: str, path: Path) -> Any:
    """A table without a column of ids, or records without that key; one record per trajectory."""
    if kind == "trips":  # a row is a trip
        rows = list({row.trajectory: row for row in reversed(rows)}.values())
    return write_more(rows, kind, NO_ID, path)


def _packed(rows: list[Row], kind: str, id_kind: str, path: Path) -> Path:
    text = b"\n".join([b"traj_id,user,lat,lon,t", *(csv_line(row, ID_KINDS[id_kind]) for row in rows)]) + b"\n"
    file = path / f"x.{kind}"
    if kind == "csv.gz":
        file.write_bytes(gzip.compress(text))
    else:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data/x.csv", text)
            archive.writestr("__MACOSX/._x.csv", b"mac")
    return file


def records(rows: list[Row], id_kind: str) -> list[list[Row]]:
    """Rows of one trajectory and user that lie in one record, in the order of their first rows."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if id_kind == NO_ID:
            found.setdefault((row.trajectory,), []).append(row)
            continue
        fault = row.fault if row.fault in RECORD_FAULTS else ""
        # Every trajectory is written as two records: an id must never split.
        found.setdefault((row.trajectory, row.user, fault, row.t % 2), []).append(row)
    return list(found.values())


def _id(row: Row, id_kind: str) -> Any:
    value = None if row.fault == "no id" else ID_KINDS[id_kind](row.trajectory)
    return int(value) if id_kind == "decimal" and value is not None else value


def _time(row: Row) -> Any:
    moment = str(np.datetime64(row.t, "s"))
    return {"no time": None, "naive time": moment}.get(row.fault, moment + "Z" if row.t % 2 else row.t)


def _position(row: Row) -> list[Any]:
    return [row.lon, lat_of(row)]


def _json(rows: list[Row], kind: str, id_kind: str, path: Path) -> Path:
    features = []
    for record in records(rows, id_kind) if kind.endswith("lines") else [[row] for row in rows]:
        first = record[0]
        times = [_time(row) for row in record] + ([0] if first.fault == "ragged" else [])
        # The keys of some records differ, and some hold the user under two of them.
        key = "traj_id" if first.trajectory % 2 else "TRIP_ID"
        names = {**({} if id_kind == NO_ID else {key: _id(first, id_kind)}), "user": user_of(first)}
        names |= {"uid": "other"} if first.user % 2 else {}
        if kind == "json points":
            lon, lat = _position(first)
            features.append({**names, "lon": str(lon) if first.t % 3 else lon, "lat": lat, "t": times[0]})
            continue
        coordinates = [_position(row) for row in record]
        line = kind.endswith("lines")
        names |= {"times" if first.t % 3 else "coordTimes": times} if line else {"time": times[0]}
        shape = {"type": "LineString" if line else "Point", "coordinates": coordinates if line else coordinates[0]}
        features.append({"type": "Feature", "properties": names, "geometry": shape})
    if kind.startswith("geojson"):
        odd = {"type": "Feature", "properties": None, "geometry": None}
        (path / "x.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [*features, odd]}))
        return path / "x.geojson"
    texts = [json.dumps(one) for one in features]
    broken = [text[:-3] if row.fault == "open quote" else text for text, row in zip(texts, rows)]
    (path / "x.jsonl").write_text("\n".join((broken if kind == "json points" else texts) + ["", "{]"]) + "\n")
    return path / "x.jsonl"


def _quoted(value: Any) -> str:
    return "" if value is None else '"' + str(value).replace('"', '""') + '"'


def _without_first(names: str, mark: str, id_kind: str) -> str:
    return names.partition(mark)[2] if id_kind == NO_ID else names


def _porto(rows: list[Row], kind: str, id_kind: str, path: Path) -> Path:
    lines = [_without_first('"TRIP_ID","TAXI_ID","TIMESTAMP","MISSING_DATA","POLYLINE"', ",", id_kind)]
    for record in records(rows, id_kind):
        first = record[0]
        positions = json.dumps([_position(row) for row in record])
        positions = positions[:-2] if first.fault == "ragged" else positions
        start = {"no time": "", "word": "soon"}.get(first.fault, str(first.t))
        values = (user_of(first), start, "False", positions)
        lines.append(",".join(map(_quoted, values if id_kind == NO_ID else (_id(first, id_kind), *values))))
    (path / "x.csv").write_text("\n".join(lines) + "\n")
    return path / "x.csv"


def _wkt(rows: list[Row], kind: str, id_kind: str, path: Path) -> Path:
    lines = [_without_first("traj_id;user;wkt;t", ";", id_kind)]
    for record in records(rows, id_kind):
        first = record[0]
        places = [f"{row.lon} {lat_of(row) or 'here'} {row.t}" for row in record]
        shape = f"LINESTRING M ({', '.join(places)})" if len(places) > 1 else f"POINT M ({places[0]})"
        shape = f"POINT ({first.lon} {lat_of(first)})" if first.fault == "ragged" else shape
        values = (user_of(first), shape, _time(first))
        lines.append(";".join(map(_quoted, values if id_kind == NO_ID else (_id(first, id_kind), *values))))
    (path / "x.csv").write_text("\n".join(lines) + "\n")
    return path / "x.csv"


def _trips(rows: list[Row], kind: str, id_kind: str, path: Path) -> Path:
    names = "ride_id,member_casual,user_id,started_at,ended_at,start_lat,start_lng,end_lat,end_lng"
    lines = [_without_first(names, ",", id_kind)]
    for row in rows:
        end = {"ragged": row.t - 5, "naive time": None}.get(row.fault, row.t + 60)
        lat = {"word": "abc"}.get(row.fault, lat_of(row))
        values = ("member", user_of(row), _time(row), end, lat, row.lon, row.lat + 0.001, row.lon)
        lines.append(",".join(map(_quoted, values if id_kind == NO_ID else (_id(row, id_kind), *values))))
    (path / "x.csv").write_text("\n".join(lines) + "\n")
    return path / "x.csv"


def _arrow(rows: list[Row], kind: str, id_kind: str, path: Path) -> Path:
    feather.write_feather(table_of(rows, id_kind), path / "x.feather", compression="zstd", chunksize=3)
    return path / "x.feather"


def _lazy(rows: list[Row], kind: str, id_kind: str, path: Path) -> Any:
    import polars

    return polars.from_arrow(table_of(rows, id_kind)).lazy()


def _duckdb(rows: list[Row], kind: str, id_kind: str, path: Path) -> Any:
    import duckdb

    return duckdb.connect().from_arrow(table_of(rows, id_kind))


def _gis(rows: list[Row], kind: str, id_kind: str, path: Path) -> Any:
    import geopandas

    library, shape = kind.split()
    if shape == "points":
        kept = [[row] for row in rows]
        shapes = [None if row.fault == "no place" else shapely.Point(*_position(row)) for row in rows]
        times = [None if row.fault == "no time" else str(np.datetime64(row.t, "s")) + "Z" for row in rows]
        columns = {"time": pa.array(times, pa.string()).to_pandas()}
    else:
        kept = records(rows, id_kind)
        shapes = [_line([row for row in record if row.fault != "no place"]) for record in kept]
        lists = [[_time(row) for row in record if row.fault != "no place"] for record in kept]
        lists = [[*times, 0] if record[0].fault == "ragged" else times for times, record in zip(lists, kept)]
        columns = {"times": [json.dumps(times) for times in lists] if library != "geopandas" else lists}
    labels: dict[str, Any] = {"user": pa.array([user_of(record[0]) for record in kept], pa.string()).to_pandas()}
    if id_kind != NO_ID:
        labels["traj_id"] = _id_column([_id(record[0], id_kind) for record in kept], id_kind, library)
    frame = geopandas.GeoDataFrame({**labels, **columns}, geometry=list(shapes), crs=4326)
    # Metres of UTM, so that every file is reprojected; a place beyond the projection has none.
    frame = frame.to_crs(32631) if library in ("gpkg", "geopandas", "geoparquet") else frame
    if library == "geopandas":
        return frame
    ending = {"zip": "shp", "geoparquet": "parquet"}.get(library, library)
    file = path / f"x.{ending}"
    file.unlink(missing_ok=True)
    if library == "geoparquet":
        frame.to_parquet(file, row_group_size=3)
        return file
    how = {"SPATIAL_INDEX": "NO"} if library == "fgb" else {}  # with an index it holds no missing geometry
    frame.to_file(file, engine="pyogrio", **how, geometry_type="Point" if shape == "points" else "Unknown")
    return _zipped(file) if library == "zip" else file


def _id_column(ids: list[Any], id_kind: str, library: str) -> Any:
    if library in ("shp", "zip") and id_kind != "negative":  # texts are padded with blanks, so none can end in one
        ids = [None if one is None else f"{one}." for one in ids]
    column = pa.array(ids, pa.int64() if id_kind == "negative" else pa.string())
    values = column.to_pandas(integer_object_nulls=True)
    return values.astype("Int64") if id_kind == "negative" else values


def _zipped(file: Path) -> Path:
    """The files of a Shapefile in a folder of an archive, after what macOS adds."""
    packed = file.with_suffix(".zip")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"__MACOSX/._{file.name}", b"mac")
        for part in sorted(file.parent.glob(f"{file.stem}.???")):
            if part.suffix != ".zip":
                archive.write(part, f"export/{part.name}")
    return packed


def _movingpandas(rows: list[Row], kind: str, id_kind: str, path: Path) -> Any:
    """A collection whose trajectories have other columns and reference systems each, and may name several users."""
    import geopandas
    import movingpandas

    trips = []
    for number in dict.fromkeys((row.trajectory, row.fault == "no id") for row in rows):
        own = [row for row in rows if (row.trajectory, row.fault == "no id") == number]
        first = own[0]
        times = [pd.NaT if row.fault == "no time" else pd.Timestamp(row.t, unit="s") for row in own]
        frame = geopandas.GeoDataFrame(
            {"user" if first.trajectory % 2 else "uid": np.array([user_of(row) for row in own], object)},
            geometry=[None if row.fault == "no place" else shapely.Point(*_position(row)) for row in own], crs=4326,
            index=pd.DatetimeIndex(times),
        )  # fmt: skip
        two = geopandas.GeoDataFrame(geometry=[shapely.Point(0, 0)] * 2, crs=4326, index=pd.DatetimeIndex([0, 1]))
        trip = movingpandas.Trajectory(two, _id(first, id_kind))
        # Put in afterwards: MovingPandas refuses a single row and leaves out rows of the same time.
        trip.df = frame.to_crs(32631) if first.trajectory % 3 else frame
        trips.append(trip)
    return movingpandas.TrajectoryCollection(trips)


def _line(rows: list[Row]) -> Any:
    places = [_position(row) for row in rows]
    if not places:
        return None
    return shapely.LineString(places) if len(places) > 1 else shapely.Point(places[0])

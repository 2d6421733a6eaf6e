"""Datasets with one unit more or less, written in every format, layout, type of id and order of rows."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from hypothesis import strategies as st

from wayveil.core.scope import Caps, Scope

CAPS = Caps(points=20, length_km=5, duration_h=2, speed_kmh=100)
SCOPE = Scope(name="boundary", south=48.0, north=48.01, west=2.0, east=2.015, caps=CAPS)
START_S = 1_700_000_000
LONGEST_LINE = 4_000
USER = "u"
"""How the names of users begin."""
FAR = 6_100_000_000_000_000_000


@dataclass(frozen=True)
class Row:
    """One row: numbers of the trajectory and the user, a place in the box, a time, and what is wrong with it."""

    trajectory: int
    user: int
    lat: float
    lon: float
    t: int
    fault: str = ""


ID_KINDS: dict[str, Callable[[int], Any]] = {
    "int64": lambda k: (0, FAR, -FAR, 2**63 - 1, -(2**63))[k % 5] ^ (k // 5),
    "negative": lambda k: -k - 1,
    "uint64": lambda k: 2**63 - 3 + k,
    "float": lambda k: float(k * 1_000_003),
    "decimal": lambda k: Decimal(2**53 + k),
    "text": lambda k: ("7", "007", "7 ", "u", "U", "été", "x,y")[k % 7] + "'" * (k // 7),
    "dictionary": lambda k: f"trip {k}",
    "marked": lambda k: f"sentinel-trip-{k}",
}
ID_TYPES = {
    "int64": pa.int64(), "negative": pa.int64(), "uint64": pa.uint64(), "float": pa.float64(),
    "decimal": pa.decimal128(38, 2), "text": pa.string(), "dictionary": pa.string(), "marked": pa.string(),
}  # fmt: skip
ORDERS = ("sorted", "round robin", "unsigned", "concatenated exports", "shuffled")
TABLES = ("csv", "parquet", "parquet parts", "geoparquet", "pandas", "pandas objects", "polars", "pyarrow")
TREES = ("gpx", "geolife", "tdrive", "cabspotting")
FAULTS = ("no place", "bad place", "no time", "no user", "no id", "long user", "NUL user")
TEXT_FAULTS = ("word", "naive time", "ragged", "open quote", "not UTF-8", "comma", "long line", "long id", "NUL id")


@st.composite
def datasets(draw: st.DrawFn, faults: Sequence[str]) -> list[Row]:
    """A few trajectories of a few users; some share an id between users, some have rows with a fault."""
    rows: list[Row] = []
    users = draw(st.integers(1, 4))
    for trajectory in range(draw(st.integers(1, 7))):
        owner = draw(st.integers(0, users - 1))
        shared = draw(st.integers(0, 5)) == 0
        for k in range(draw(st.integers(1, 5))):
            user = draw(st.integers(0, users - 1)) if shared else owner
            lat, lon = 48 + draw(st.integers(-2, 12)) / 1000, 2 + draw(st.integers(-2, 16)) / 1000
            t = START_S + 1000 * trajectory + 30 * k + draw(st.integers(0, 20))
            fault = draw(st.sampled_from(faults)) if draw(st.integers(0, 6)) == 0 else ""
            rows.append(Row(trajectory, user, lat, lon, t, fault))
    if draw(st.booleans()):
        rows += rows[: draw(st.integers(0, 3))]  # an export that repeats rows
    return rows


def ordered(rows: list[Row], order: str, id_of: Callable[[int], Any], seed: int) -> list[Row]:
    """The rows in an order in which files come."""
    if order == "sorted":
        return sorted(rows, key=lambda row: row.trajectory)
    if order == "unsigned":
        return sorted(rows, key=lambda row: int(id_of(row.trajectory)) % 2**64 if _whole(id_of(0)) else row.trajectory)
    if order == "concatenated exports":
        return [row for part in range(3) for row in sorted(rows[part::3], key=lambda row: row.trajectory)]
    if order == "shuffled":
        return [rows[k] for k in np.random.default_rng(seed).permutation(len(rows))]
    place = {id(row): sum(other.trajectory == row.trajectory for other in rows[:k]) for k, row in enumerate(rows)}
    return sorted(rows, key=lambda row: (place[id(row)], row.trajectory))


def _whole(value: Any) -> bool:
    return isinstance(value, int)


def table_of(rows: list[Row], id_kind: str) -> pa.Table:
    """Typed columns; a fault is a missing or impossible value."""
    ids = [None if row.fault == "no id" else ID_KINDS[id_kind](row.trajectory) for row in rows]
    users = [_user(row) for row in rows]
    label = pa.array(ids, ID_TYPES[id_kind])
    return pa.table({
        "traj_id": label.dictionary_encode() if id_kind == "dictionary" else label,
        "user": pa.array(users, pa.string()),
        "lat": pa.array([_lat(row) for row in rows], pa.float64()),
        "lon": pa.array([row.lon for row in rows], pa.float64()),
        "t": pa.array([None if row.fault == "no time" else row.t for row in rows], pa.int64()),
    })  # fmt: skip


def _user(row: Row) -> str | None:
    name = f"{USER}{row.user}"
    return {"no user": None, "long user": "u" * 300, "NUL user": f"{name}\0"}.get(row.fault, name)


def _lat(row: Row) -> float | None:
    return {"no place": None, "bad place": 99.0}.get(row.fault, row.lat)


def csv_line(row: Row, id_of: Callable[[int], Any]) -> bytes:
    """A line of a CSV file; a fault may be anything that a text can hold."""
    label = str(id_of(row.trajectory))
    label = {"no id": "", "long id": label * 300, "NUL id": label + "\0"}.get(row.fault, label)
    label = '"' + label + '"' if "," in label else label
    moment = str(np.datetime64(row.t, "s"))
    time = {"no time": "", "naive time": moment}.get(row.fault, moment + "Z" if row.t % 2 else str(row.t))
    lat: Any = {"word": "abc", "comma": "48;5"}.get(row.fault, _lat(row))
    lon = {"word": " n/a "}.get(row.fault, f" {row.lon}" if row.t % 3 else f"+{row.lon}")
    line = f"{label},{_user(row) or ''},{'' if lat is None else lat},{lon},{time}".encode()
    if row.fault == "long line":
        line += b"x" * (LONGEST_LINE + 1)
    return {"ragged": line + b",more", "open quote": line + b',"', "not UTF-8": b"\xff" + line}.get(row.fault, line)


def write_table(rows: list[Row], kind: str, id_kind: str, group_rows: int, path: Path) -> Any:
    """A file, a folder or a frame; what `measured_source` takes comes back."""
    if kind == "csv":
        lines = [csv_line(row, ID_KINDS[id_kind]) for row in rows]
        (path / "x.csv").write_bytes(b"\n".join([b"traj_id,user,lat,lon,t", *lines]) + b"\n")
        return path / "x.csv"
    table = table_of(rows, id_kind)
    if kind == "parquet":
        pq.write_table(table, path / "x.parquet", row_group_size=group_rows)
        return path / "x.parquet"
    if kind == "parquet parts":
        shutil.rmtree(path / "parts", ignore_errors=True)
        (path / "parts" / "deep").mkdir(parents=True)
        half = len(table) // 2
        pq.write_table(table[:half], path / "parts" / "deep" / "b.parquet", row_group_size=group_rows)
        pq.write_table(table[half:], path / "parts" / "a.parquet", row_group_size=group_rows)
        return path / "parts"
    if kind == "geoparquet":
        shapes = [None if row.fault == "no place" else shapely.Point(row.lon, _lat(row)).wkb for row in rows]
        shapes = [b"no geometry" if row.fault == "bad place" else shape for row, shape in zip(rows, shapes)]
        geo = b'{"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB"}}}'
        table = table.drop_columns(["lat", "lon"]).append_column("g", pa.array(shapes, pa.binary()))
        pq.write_table(table.replace_schema_metadata({"geo": geo}), path / "x.geo.parquet", row_group_size=group_rows)
        return path / "x.geo.parquet"
    if kind == "polars":
        return pl.from_arrow(table)
    if kind.startswith("pandas"):
        values = {name: table[name].to_pylist() for name in table.column_names}
        # Typed columns: numpy's integers become floats where one is missing, before wayveil sees the frame.
        typed = table.to_pandas(types_mapper=pd.ArrowDtype)
        return pd.DataFrame(values, dtype=object) if kind == "pandas objects" else typed
    return table


def write_tree(rows: list[Row], kind: str, folder: Path) -> Path:
    """A folder of the published layout; a fault of a row damages its file where a file is one trajectory."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for trajectory in sorted({row.trajectory for row in rows}):
        own = [row for row in rows if row.trajectory == trajectory]
        own = [replace(row, user=own[0].user) for row in own]
        {"gpx": _gpx, "geolife": _geolife, "tdrive": _tdrive, "cabspotting": _cab}[kind](folder, own)
    (folder / "readme.md").write_text("not data")
    # Other files of the format, which hold nothing: a folder without any has no known layout.
    empty = {"gpx": "0.gpx", "geolife": "0.plt", "tdrive": "0.txt", "cabspotting": "new_0.txt"}[kind]
    (folder / empty).write_bytes(b"")
    return folder


def _gpx(folder: Path, rows: list[Row]) -> None:
    first = rows[0]
    # Some people have a folder, at two depths; others lie at the top.
    place = (folder, folder / f"{USER}{first.user}", folder / f"{USER}{first.user}" / "more")[first.user % 3]
    place.mkdir(parents=True, exist_ok=True)
    points = "".join(
        f'<trkpt lat="{"" if row.fault == "no place" else _lat(row)}" lon="{row.lon}">'
        f"<time>{'' if row.fault == 'no time' else str(np.datetime64(row.t, 's')) + 'Z'}</time></trkpt>"
        for row in rows
    )
    damage = "</trk>" if any(row.fault == "ragged" for row in rows) else ""
    text = f'<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>{points}</trkseg>{damage}</trk></gpx>'
    (place / f"{first.trajectory}.gpx").write_text(text)


def _geolife(folder: Path, rows: list[Row]) -> None:
    first = rows[0]
    place = folder / ("Data" if first.user % 2 else "") / f"{USER}{first.user}" / "Trajectory"
    place.mkdir(parents=True, exist_ok=True)
    lines = [f"{_lat(row)},{row.lon},0,492,1.5,{str(np.datetime64(row.t, 's')).replace('T', ',')}" for row in rows]
    (place / f"{first.trajectory}.plt").write_bytes(b"h\n" * 6 + b"\n".join(_damaged(lines, rows)) + b"\n")


def _tdrive(folder: Path, rows: list[Row]) -> None:
    first = rows[0]
    place = folder / ("more" if first.trajectory % 2 else "")
    place.mkdir(exist_ok=True)
    lines = [f"1,{str(np.datetime64(row.t, 's')).replace('T', ' ')},{row.lon},{_lat(row)}" for row in rows]
    (place / f"{first.trajectory + 1}.txt").write_bytes(b"\n".join(_damaged(lines, rows)) + b"\n")


def _cab(folder: Path, rows: list[Row]) -> None:
    first = rows[0]
    place = folder / ("more" if first.user % 2 else "")
    place.mkdir(exist_ok=True)
    lines = [f"{_lat(row)} {row.lon} 1 {row.t}" for row in rows]
    text = b"\n".join([*_damaged(lines, rows), f"48 2 0 {max(row.t for row in rows) + 1}".encode()]) + b"\n"
    with open(place / f"new_{USER}{first.user}.txt", "ab") as stream:
        stream.write(text)


def _damaged(lines: list[str], rows: list[Row]) -> list[bytes]:
    damage = {"ragged": b" , oops", "not UTF-8": b"\xff\xfe", "open quote": b'"'}
    return [line.encode() + damage.get(row.fault, b"") for line, row in zip(lines, rows)]

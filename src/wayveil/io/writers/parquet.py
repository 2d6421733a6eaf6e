"""Parquet and GeoParquet files, written one row group after another."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wayveil.core.tables import table_of
from wayveil.core.trajectories import Trajectories, pieces
from wayveil.io.atomic import atomic_path
from wayveil.io.options import WriteOptions

ROW_GROUP_ROWS = 1 << 19
"""Rows per row group: about 20 MB, so that readers can stream."""
_WKB_POINT = 1
"""The type code of a point in well-known binary."""


def write_tables(
    tables: Iterator[pa.Table], path: Path, notes: Mapping[str, str], *, private: bool, compression: str = "zstd"
) -> None:
    """Write one or more tables with equal columns to a Parquet file that appears when it is complete.

    `notes` become key-value metadata of the file.
    """
    first = next(tables)
    added = {key.encode(): value.encode() for key, value in notes.items()}
    schema = first.schema.with_metadata({**added, **(first.schema.metadata or {})})
    # Dictionaries pay off for ids only. BYTE_STREAM_SPLIT makes coordinates a quarter smaller and faster to write.
    ids = [name for name in ("traj_id", "user_id") if name in schema.names]
    split = {name: "BYTE_STREAM_SPLIT" for name in ("lat", "lon") if name in schema.names}
    options: dict[str, Any] = {"compression": compression, "use_dictionary": ids, "column_encoding": split or None}
    with atomic_path(path, private=private) as part, pq.ParquetWriter(part, schema, **options) as writer:
        for table in chain([first], tables):
            writer.write_table(table.replace_schema_metadata(schema.metadata), row_group_size=ROW_GROUP_ROWS)


def tables_of(
    trajectories: Trajectories, *, first_id: int = 0, whole: bool | None = None, geo: bool = False
) -> Iterator[pa.Table]:
    """Trajectories as tables of about one row group each; see `table_of`."""
    for piece in pieces(trajectories, ROW_GROUP_ROWS):
        table = table_of(piece, first_id=first_id, whole=whole)
        yield geo_table(table) if geo else table
        first_id += len(piece)


def write_parts(parts: Iterable[Trajectories], path: Path, options: WriteOptions, *, whole: bool) -> None:
    """Write one Parquet file from parts, one after the other; `whole` says that every time is a whole second.

    Times are written as timestamps in UTC if `options.times` is "iso", otherwise as Unix seconds.
    """
    tables = _numbered_tables(parts, whole, options.format == "geoparquet")
    if options.times == "iso":
        tables = map(_stamped, tables)
    write_tables(tables, path, options.notes or {}, private=options.private)


def _stamped(table: pa.Table) -> pa.Table:
    """The table with timestamps, to the microsecond, in place of Unix seconds."""
    micro = np.round(table["t"].to_numpy() * 1e6).astype(np.int64)
    stamps = pa.array(micro).cast(pa.timestamp("us", "UTC"))
    return table.set_column(table.column_names.index("t"), "t", stamps)


def _numbered_tables(parts: Iterable[Trajectories], whole: bool, geo: bool) -> Iterator[pa.Table]:
    first_id = 0
    for part in parts:
        yield from tables_of(part, first_id=first_id, whole=whole, geo=geo)
        first_id += len(part)


def geo_table(plain: pa.Table) -> pa.Table:
    """The table with a geometry column in place of lat and lon, and the 'geo' metadata of GeoParquet 1.1."""
    # WKB of a point: byte order 1 (little endian), type 1, x, y; written at once for all points.
    wkb = np.zeros(len(plain), [("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
    wkb["order"], wkb["kind"] = 1, _WKB_POINT
    wkb["x"], wkb["y"] = plain["lon"].to_numpy(), plain["lat"].to_numpy()
    ends = np.arange(len(plain) + 1, dtype=np.int32) * wkb.dtype.itemsize
    geometry = pa.Array.from_buffers(pa.binary(), len(plain), [None, pa.py_buffer(ends), pa.py_buffer(wkb.tobytes())])
    table = plain.drop_columns(["lat", "lon"]).append_column("geometry", geometry)
    column = {"encoding": "WKB", "geometry_types": ["Point"]}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    return table.replace_schema_metadata({"geo": json.dumps(geo)})

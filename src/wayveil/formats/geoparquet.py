"""GeoParquet: a Parquet file whose points are WKB geometries."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.errors import InputError
from wayveil.formats.tables import table_of
from wayveil.trajectories import Trajectories

_POINT = 1
_KNOWN_CRS = {("OGC", "CRS84"), ("EPSG", "4326")}


def geometry_position(schema: pa.Schema, origin: str) -> int | None:
    """Position of the primary geometry column, or None where the file names none."""
    text = (schema.metadata or {}).get(b"geo")
    if text is None:
        return None
    try:
        geo = json.loads(text)
        name = geo["primary_column"]
        column = geo["columns"][name]
        crs = column.get("crs", {"id": {"authority": "OGC", "code": "CRS84"}})
        known = crs is not None and (crs["id"]["authority"], str(crs["id"]["code"])) in _KNOWN_CRS
        encoding = column["encoding"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"The 'geo' metadata of '{origin}' cannot be understood; write the file anew.") from None
    if encoding != "WKB":
        raise InputError(f"The geometries of '{origin}' are not WKB; write the file anew with WKB geometries.")
    if not known:
        raise InputError(f"The coordinates of '{origin}' are not WGS 84 degrees; convert them to EPSG:4326 first.")
    if schema.names.count(name) != 1:
        raise InputError(f"'{origin}' names a geometry column that it does not have.")
    return schema.names.index(name)


def coordinates(column: pa.ChunkedArray, origin: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Longitude and latitude of POINT geometries; NaN where a geometry is missing, invalid, empty or no point."""
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise InputError(f"The geometry column of '{origin}' is not binary WKB.")
    import shapely

    shapes = shapely.from_wkb(column.to_numpy(), on_invalid="ignore")
    return shapely.get_x(shapes), shapely.get_y(shapes)  # NaN for every other type of geometry


def geo_table(trajectories: Trajectories, **options: Any) -> pa.Table:
    """Columns traj_id, t, user_id (where there are users) and geometry, with the 'geo' metadata of GeoParquet 1.1."""
    plain = table_of(trajectories, **options)
    # WKB of a point: byte order 1 (little endian), type 1, x, y; written at once for all points.
    wkb = np.zeros(len(plain), [("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
    wkb["order"], wkb["kind"], wkb["x"], wkb["y"] = 1, _POINT, trajectories.lon, trajectories.lat
    if len(plain) > 100_000_000:
        raise InputError("More than 100 million points do not fit one GeoParquet batch; write .parquet instead.")
    ends = np.arange(len(plain) + 1, dtype=np.int32) * wkb.dtype.itemsize
    geometry = pa.Array.from_buffers(pa.binary(), len(plain), [None, pa.py_buffer(ends), pa.py_buffer(wkb.tobytes())])
    table = plain.drop_columns(["lat", "lon"]).append_column("geometry", geometry)
    column = {"encoding": "WKB", "geometry_types": ["Point"]}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    return table.replace_schema_metadata({"geo": json.dumps(geo)})

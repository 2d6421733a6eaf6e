"""GeoParquet: a Parquet file whose points are WKB geometries."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.errors import InputError

_KNOWN_CRS = {("OGC", "CRS84"), ("EPSG", "4326")}


def geometry_position(schema: pa.Schema, origin: str) -> int | None:
    """Position of the primary geometry column, or None if the file has none."""
    if b"geo" not in (schema.metadata or {}):
        return None
    try:
        geo = json.loads(schema.metadata[b"geo"])
        name = geo["primary_column"]
        encoding = geo["columns"][name]["encoding"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"The 'geo' metadata of '{origin}' cannot be read; write the file again.") from None
    if encoding != "WKB":
        raise InputError(f"The geometries of '{origin}' are not WKB; write the file again with WKB geometries.")
    if schema.names.count(name) != 1:
        raise InputError(f"'{origin}' names a geometry column that it does not have.")
    result: int | None = schema.names.index(name)
    return result


def _geometry_column(schema: pa.Schema) -> dict[str, Any]:
    """What the 'geo' metadata says about the primary geometry column; empty where there is none."""
    try:
        geo = json.loads((schema.metadata or {})[b"geo"])
        column = geo["columns"][geo["primary_column"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return column if isinstance(column, dict) else {}


def crs_of(schema: pa.Schema) -> Any:
    """The reference system of the geometries, None for degrees of WGS 84."""
    crs = _geometry_column(schema).get("crs")
    name = crs.get("id") if isinstance(crs, dict) else None
    if isinstance(name, dict) and (name.get("authority"), str(name.get("code"))) in _KNOWN_CRS:
        return None
    return json.dumps(crs) if isinstance(crs, dict) else crs


def holds_lines(schema: pa.Schema) -> bool:
    """Whether the 'geo' metadata declares lines."""
    kinds = _geometry_column(schema).get("geometry_types")
    return isinstance(kinds, list) and any("LineString" in str(kind) for kind in kinds)


def coordinates(column: pa.ChunkedArray, origin: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Longitude and latitude of POINT geometries; NaN where a geometry is missing, invalid, empty or not a point."""
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise InputError(f"The geometry column of '{origin}' is not binary WKB.")
    import shapely

    shapes = shapely.from_wkb(column.to_numpy(), on_invalid="ignore")
    return shapely.get_x(shapes), shapely.get_y(shapes)  # NaN for every other type of geometry

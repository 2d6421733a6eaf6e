"""GeoParquet: a Parquet file whose points are WKB geometries."""

import json

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.errors import InputError

_KNOWN_CRS = {("OGC", "CRS84"), ("EPSG", "4326")}


def geometry_position(schema: pa.Schema, origin: str) -> int | None:
    """Position of the primary geometry column, or None if the file has none."""
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
        raise InputError(f"The 'geo' metadata of '{origin}' cannot be read; write the file again.") from None
    if encoding != "WKB":
        raise InputError(f"The geometries of '{origin}' are not WKB; write the file again with WKB geometries.")
    if not known:
        raise InputError(f"The coordinates of '{origin}' are not WGS 84 degrees; convert them to EPSG:4326 first.")
    if schema.names.count(name) != 1:
        raise InputError(f"'{origin}' names a geometry column that it does not have.")
    result: int | None = schema.names.index(name)
    return result


def coordinates(column: pa.ChunkedArray, origin: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Longitude and latitude of POINT geometries; NaN where a geometry is missing, invalid, empty or no point."""
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise InputError(f"The geometry column of '{origin}' is not binary WKB.")
    import shapely

    shapes = shapely.from_wkb(column.to_numpy(), on_invalid="ignore")
    return shapely.get_x(shapes), shapely.get_y(shapes)  # NaN for every other type of geometry

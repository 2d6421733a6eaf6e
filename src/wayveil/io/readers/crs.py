"""Transform coordinates to degrees of WGS 84, where a file names another reference system."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError

_DEGREES = ("EPSG:4326", "OGC:CRS84")


def to_degrees(
    x: NDArray[np.float64], y: NDArray[np.float64], crs: Any, origin: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Longitude and latitude; NaN where a point cannot be transformed. Without a reference system, degrees are assumed.

    `crs` is anything that pyproj understands. Each point is transformed on its own.
    """
    if crs is None or str(crs).upper() in _DEGREES:
        return x, y
    import pyproj

    try:
        system = pyproj.CRS.from_user_input(crs)
        if system.to_authority(min_confidence=100) in (("EPSG", "4326"), ("OGC", "CRS84")):
            return x, y
        transformer = pyproj.Transformer.from_crs(system, "OGC:CRS84", always_xy=True)
    except pyproj.exceptions.ProjError:
        raise InputError(
            f"The coordinate reference system of '{origin}' is not known; convert the file to EPSG:4326 first."
        ) from None
    lon, lat = transformer.transform(x, y, errcheck=False)
    lon, lat = np.asarray(lon, float), np.asarray(lat, float)
    finite = np.isfinite(lon) & np.isfinite(lat)
    return np.where(finite, lon, np.nan), np.where(finite, lat, np.nan)

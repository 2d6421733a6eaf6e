"""The optional library for GIS formats; if it is missing, one sentence says how to install it."""

import importlib
from typing import Any

from wayveil.errors import InputError

NEEDS_GIS = "GeoPackage, FlatGeobuf and Shapefile need an extra: pip install 'wayveil[gis]'."


def gis() -> Any:
    """The library pyogrio, for GeoPackage, FlatGeobuf and Shapefile."""
    try:
        module = importlib.import_module("pyogrio")
        importlib.import_module("pyogrio.raw")
    except ImportError:
        raise InputError(NEEDS_GIS) from None
    module.set_gdal_config_options({"GDAL_PAM_ENABLED": "NO"})  # otherwise GDAL leaves files beside the data
    return module

"""Optional libraries; if one is missing, one sentence says how to install it."""

import importlib
from typing import Any

from wayveil.errors import InputError

LIBRARIES = {
    "pandas": ("pandas", "notebook"),
    "geopandas": ("geopandas", "notebook"),
    "pyogrio": ("pyogrio", "gis"),
    "sklearn": ("scikit-learn", "evaluate"),
    "dp_accounting": ("dp-accounting", "delta"),
    "ray": ("Ray", "ray"),
    "pyrosm": ("pyrosm", "osm"),
    "networkx": ("networkx", "osm"),
}
"""Package -> the name of its library and the extra that installs it."""


def missing_library_text(module: str, purpose: str) -> str:
    """Say that `purpose` needs the library of this module, and how to install it."""
    library, extra = LIBRARIES[module.split(".")[0]]
    return f"{purpose} needs {library}; install it with: pip install 'wayveil[{extra}]'."


def import_optional(module: str, purpose: str = "A data frame") -> Any:
    """The imported module; InputError if its library is missing."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError(missing_library_text(module, purpose)) from None


def gis() -> Any:
    """The library pyogrio, for GeoPackage, FlatGeobuf and Shapefile."""
    purpose = "A GeoPackage, FlatGeobuf or Shapefile"
    import_optional("pyogrio.raw", purpose)
    module = import_optional("pyogrio", purpose)
    module.set_gdal_config_options({"GDAL_PAM_ENABLED": "NO"})  # otherwise GDAL leaves files next to the data
    return module

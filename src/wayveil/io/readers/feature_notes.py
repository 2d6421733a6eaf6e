"""The notes that wayveil leaves in GeoJSON and GeoPackage files."""

import json
from pathlib import Path

from wayveil.errors import InputError
from wayveil.io.extras import gis
from wayveil.io.readers.packed import is_packed, open_text

_START_BYTES = 1 << 16
"""Notes are in the first line; no more than this is read of it."""


def read_notes(path: Path, kind: str) -> dict[str, str]:
    """The notes of a file, empty where it has none."""
    found = _of_geojson(path) if kind == "geojson" else _of_geopackage(path)
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _of_geojson(path: Path) -> object:
    """The member `wayveil`, which stands before the features."""
    with open_text(path) as stream:
        start = stream.readline(_START_BYTES)
    head, found, _ = start.partition(b', "features": [')
    try:
        return json.loads(head + b"}").get("wayveil") if found else None
    except (ValueError, RecursionError, AttributeError):
        return None


def _of_geopackage(path: Path) -> object:
    if is_packed(path):
        return None
    pyogrio = gis()
    try:
        return pyogrio.read_info(str(path.resolve())).get("dataset_metadata")
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
        raise InputError(f"'{path.name}' is damaged, or is not a file of its format.") from error

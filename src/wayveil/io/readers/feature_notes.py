"""The notes that wayveil leaves in GeoJSON, GeoPackage, FlatGeobuf and XML files."""

import json
import re
from pathlib import Path
from xml.sax.saxutils import unescape

from wayveil.core.optional import gis
from wayveil.errors import InputError
from wayveil.io.inputs import open_regular
from wayveil.io.readers.packed import is_packed, open_text

_START_BYTES = 1 << 16
"""Notes are at the beginning of a file; at most this much of it is read."""


def read_notes(path: Path, kind: str) -> dict[str, str]:
    """The notes of a file, empty where it has none."""
    found = _of_geojson(path) if kind == "geojson" else _of_vector(path, kind)
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


def _of_vector(path: Path, kind: str) -> object:
    if is_packed(path):
        return None
    pyogrio = gis()
    try:
        # GDAL keeps the metadata of a FlatGeobuf file with its only layer.
        return pyogrio.read_info(str(path.resolve())).get("layer_metadata" if kind == "fgb" else "dataset_metadata")
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
        raise InputError(f"'{path.name}' is damaged, or is not in the expected format.") from error


def xml_notes(path: Path) -> dict[str, str]:
    """The notes in the comments before the first element of a SUMO or MATSim file."""
    with open_regular(path) as stream:
        start = stream.read(_START_BYTES).decode("utf-8", "replace")
    start = re.split(r"<[a-z]", start, maxsplit=1)[0]
    return {key: unescape(value) for key, value in re.findall(r"<!-- (\w+): (.*?) -->", start)}

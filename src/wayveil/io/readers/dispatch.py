"""Choose the reader for a file, and read the notes that a file carries."""

import os
from pathlib import Path
from typing import Any

from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.csv_notes import csv_notes
from wayveil.io.inputs import open_regular
from wayveil.io.options import ENDINGS, FORMATS, READ_AS, SYNTHETIC, ReadOptions, format_of
from wayveil.io.parquet_files import is_uri
from wayveil.io.readers import arrow_file, csvfile, feature_notes, gpx, json_records, parquet, public_datasets, vector
from wayveil.io.readers.geoframes import points_of_geoframe
from wayveil.io.readers.grouping import assemble
from wayveil.io.readers.packed import check_packing, inner_name
from wayveil.io.readers.points import Points
from wayveil.io.readers.public_datasets import format_of_folder
from wayveil.io.readers.tables import is_geo, points_of_frame
from wayveil.progress import Progress, quiet


def origin_of(path_or_frame: Any) -> str:
    """The name of a source in messages."""
    if isinstance(path_or_frame, str | os.PathLike):
        return str(path_or_frame).rstrip("/").rpartition("/")[2] or "/"
    return path_or_frame.name if isinstance(path_or_frame, parquet.PartFiles) else "frame"


def reading_format(path: str | os.PathLike[str], wanted: str | None) -> str:
    """The format of a path: as given, or by the folder's layout, the extension, or the first bytes."""
    if is_uri(str(path)):
        if wanted not in (None, "parquet", "geoparquet"):
            raise InputError("Only Parquet can be read from a URL; copy other files to a local folder first.")
        return wanted or "parquet"
    local = Path(path)
    try:
        if not local.exists():
            raise InputError(f"There is no file or folder '{local.name}'.")
        if not (local.is_file() or local.is_dir()):
            raise InputError(f"'{local.name}' is neither a regular file nor a folder; copy its content into a file.")
        if local.is_dir():
            return wanted or format_of_folder(local)
        check_packing(local)
        if wanted is not None:
            _check_packed_format(local, inner_name(local), wanted)
            return wanted
        return _format_of_file(local)
    except (OSError, ValueError) as error:
        why = f": {error.strerror}" if isinstance(error, PermissionError) else ""
        raise InputError(f"Cannot read '{local.name}'{why}.") from None


def _format_of_file(path: Path) -> str:
    """The format by the extension (of the inner file, if it is packed), or by the first bytes."""
    name = inner_name(path)
    with open_regular(path) as stream:
        start = stream.read(64).lstrip(b"\xef\xbb\xbf \r\n\t")
    if name.lower().endswith(".json"):
        # A collection of features, or one object per line.
        return "jsonl" if path.name == name and _has_lines(path) else "geojson"
    try:
        kind = format_of(Path(name), advice="name the format with format=")
    except InputError:
        beginnings = {b"PAR1": "parquet", b"ARROW1": "arrow", b"fgb\x03": "fgb", b"<": "gpx"}
        kind = next((kind for beginning, kind in beginnings.items() if start.startswith(beginning)), "")
        if not kind:
            raise
    kind = READ_AS.get(kind, kind)
    if kind not in FORMATS:
        raise InputError(f"'{path.name}' is a file for a traffic simulator, which wayveil writes but does not read.")
    _check_packed_format(path, name, kind)
    return kind


def _check_packed_format(path: Path, inner: str, kind: str) -> None:
    if path.name != inner and kind not in PACKED and not (kind == "shp" and path.name.lower().endswith(".zip")):
        raise InputError(f"'{path.name}' is a compressed {kind} file, which wayveil cannot read; decompress it first.")


def _has_lines(path: Path) -> bool:
    """Whether the first line of a JSON file is a whole object, as in JSON lines."""
    with open_regular(path) as stream:
        first = stream.readline(1 << 16).strip()
        return first.startswith(b"{") and first.endswith(b"}") and b'"FeatureCollection"' not in first[:200]


PACKED = ("csv", "geojson", "jsonl")
"""Formats that are read from .gz and .zip files, as a stream."""


def read_points(path_or_frame: Any, options: ReadOptions, progress: Progress = quiet) -> Points:
    """The rows of a file, before cleaning."""
    if isinstance(path_or_frame, parquet.PartFiles):
        return parquet.read_points(path_or_frame, options)
    if not isinstance(path_or_frame, str | os.PathLike):
        if is_geo(path_or_frame):
            return points_of_geoframe(path_or_frame, options, "frame")
        return points_of_frame(path_or_frame, options)
    kind = reading_format(path_or_frame, options.format)
    if kind in ("parquet", "geoparquet"):
        files = tuple(parquet.part_files(os.fspath(path_or_frame)))
        return parquet.read_points(parquet.PartFiles(files, origin_of(path_or_frame)), options)
    path = Path(path_or_frame)
    if kind in ("gpkg", "fgb", "shp"):
        return vector.read_points(path, kind, options)
    if kind in ("geojson", "jsonl"):
        return json_records.read_geojson(path, options) if kind == "geojson" else json_records.read_lines(path, options)
    if kind == "arrow":
        return arrow_file.read_points(path, options)
    if kind in ("geolife", "tdrive", "cabspotting"):
        return public_datasets.read_points(path, kind, options, progress)
    if kind == "gpx" and path.is_dir():
        return gpx.read_folder(path, options, progress)
    result: Points = (gpx if kind == "gpx" else csvfile).read_points(path, options)
    return result


def read_trajectories(path_or_frame: Any, options: ReadOptions, progress: Progress = quiet) -> Trajectories:
    """Rows cleaned, sorted and grouped; InputError if none is usable, except in a measurement."""
    if isinstance(path_or_frame, Trajectories):
        return path_or_frame
    origin = origin_of(path_or_frame)
    trajectories = assemble(read_points(path_or_frame, options, progress), options, origin)
    if len(trajectories) == 0 and options.measured_unit is None:
        raise InputError(no_rows(origin))
    return trajectories


def no_rows(origin: str) -> str:
    """The error for a file without a usable row. A measurement never raises it, because a count of zero is private."""
    return f"'{origin}' has no usable rows; `wayveil check` shows why."


def metadata_of(path: str | os.PathLike[str]) -> dict[str, str]:
    """Notes kept with a file; the folder of a public dataset has none."""
    if str(path).lower().endswith(tuple(ending for ending, kind in ENDINGS if kind in ("sumo", "matsim"))):
        return _simulator_notes(Path(path))
    kind = reading_format(path, None)
    if kind in ("parquet", "geoparquet"):
        return parquet.metadata(os.fspath(path))
    if kind == "csv":
        return csv_notes(Path(path))
    if kind in ("geojson", "gpkg", "fgb"):
        return feature_notes.read_notes(Path(path), kind)
    return gpx.metadata(Path(path)) if kind == "gpx" and not Path(path).is_dir() else {}


def _simulator_notes(path: Path) -> dict[str, str]:
    try:
        return feature_notes.xml_notes(path)
    except OSError as error:
        raise InputError(f"Cannot read '{path.name}': {error.strerror}.") from None


def says_synthetic(path: Path) -> bool:
    """Whether the notes of a file say that it is synthetic."""
    try:
        return not path.is_dir() and metadata_of(path).get("origin", "").startswith(SYNTHETIC)
    except InputError:
        return False

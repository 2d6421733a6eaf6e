"""Choose the reader for a file, and read the notes that a file carries."""

import os
from pathlib import Path
from typing import Any

from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.csv_notes import csv_notes
from wayveil.io.inputs import open_regular
from wayveil.io.options import SYNTHETIC, ReadOptions, format_of
from wayveil.io.readers import parquet
from wayveil.io.readers.grouping import assemble
from wayveil.io.readers.points import Points
from wayveil.io.readers.tables import points_of_frame
from wayveil.progress import Progress, quiet


def origin_of(path_or_frame: Any) -> str:
    """The name of a source in messages."""
    if isinstance(path_or_frame, str | os.PathLike):
        return str(path_or_frame).rstrip("/").rpartition("/")[2] or "/"
    return path_or_frame.name if isinstance(path_or_frame, parquet.PartFiles) else "frame"


def reading_format(path: str | os.PathLike[str], wanted: str | None) -> str:
    """The format of a path: as given, or by the folder's layout, the extension, or the first bytes."""
    if parquet.is_uri(str(path)):
        if wanted not in (None, "parquet", "geoparquet"):
            raise InputError("Only Parquet is read from an address; copy other files here first.")
        return wanted or "parquet"
    local = Path(path)
    try:
        if not local.exists():
            raise InputError(f"There is no file or folder '{local.name}'.")
        if not (local.is_file() or local.is_dir()):
            raise InputError(f"'{local.name}' is neither a regular file nor a folder; copy its content into a file.")
        if wanted is not None:
            return wanted
        if local.is_dir():
            from wayveil.io.readers.public_datasets import format_of_folder

            return format_of_folder(local)
        try:
            return format_of(local, advice="name the format with format=")
        except InputError:
            with open_regular(local) as stream:
                start = stream.read(64).lstrip(b"\xef\xbb\xbf \r\n\t")
            if start.startswith(b"PAR1"):
                return "parquet"
            if start.startswith(b"<"):
                return "gpx"
            raise
    except (OSError, ValueError) as error:
        why = f": {error.strerror}" if isinstance(error, PermissionError) else ""
        raise InputError(f"Cannot read '{local.name}'{why}.") from None


def read_points(path_or_frame: Any, options: ReadOptions, progress: Progress = quiet) -> Points:
    """The rows of a file, before cleaning."""
    if isinstance(path_or_frame, parquet.PartFiles):
        return parquet.read_points(path_or_frame, options)
    if not isinstance(path_or_frame, str | os.PathLike):
        return points_of_frame(path_or_frame, options)
    kind = reading_format(path_or_frame, options.format)
    if kind in ("parquet", "geoparquet"):
        files = tuple(parquet.part_files(os.fspath(path_or_frame)))
        return parquet.read_points(parquet.PartFiles(files, origin_of(path_or_frame)), options)
    path = Path(path_or_frame)
    # A reader is imported when it is needed, because each imports something slow.
    from wayveil.io.readers import csvfile, gpx, public_datasets

    if kind in ("geolife", "tdrive", "cabspotting"):
        return public_datasets.read_points(path, kind, options, progress)
    if kind == "gpx" and path.is_dir():
        return gpx.read_folder(path, options, progress)
    result: Points = (gpx if kind == "gpx" else csvfile).read_points(path, options)
    return result


def read_trajectories(path_or_frame: Any, options: ReadOptions, progress: Progress = quiet) -> Trajectories:
    """Rows cleaned, sorted and grouped; at least one trajectory, except in a measurement."""
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
    """Notes kept with a file; a published folder has none."""
    kind = reading_format(path, None)
    if kind in ("parquet", "geoparquet"):
        return parquet.metadata(os.fspath(path))
    if kind == "csv":
        return csv_notes(Path(path))
    from wayveil.io.readers import gpx

    return gpx.metadata(Path(path)) if kind == "gpx" and not Path(path).is_dir() else {}


def says_synthetic(path: Path) -> bool:
    """Whether the notes of a file say that it is synthetic."""
    try:
        return not path.is_dir() and metadata_of(path).get("origin", "").startswith(SYNTHETIC)
    except InputError:
        return False

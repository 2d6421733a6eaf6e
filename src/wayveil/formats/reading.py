"""One door for all formats: which reader, which writer."""

import os
from pathlib import Path
from typing import Any

from wayveil.errors import InputError
from wayveil.formats import parquet
from wayveil.formats.grouping import assemble
from wayveil.formats.options import WRITABLE, ReadOptions, format_of
from wayveil.formats.points import Points
from wayveil.formats.tables import points_of_frame, whole_seconds
from wayveil.inputs import open_regular
from wayveil.progress import Progress, quiet
from wayveil.trajectories import Trajectories


def origin_of(path_or_frame: Any) -> str:
    """How messages name a source."""
    if isinstance(path_or_frame, str | os.PathLike):
        return str(path_or_frame).rstrip("/").rpartition("/")[2] or "/"
    return path_or_frame.name if isinstance(path_or_frame, parquet.PartFiles) else "frame"


def reading_format(path: str | os.PathLike[str], wanted: str | None) -> str:
    """The format to read a path with: as asked, by the folder's shape, by the name, or by the first bytes."""
    if parquet.is_uri(str(path)):
        if wanted not in (None, "parquet", "geoparquet"):
            raise InputError("Only Parquet is read from an address; copy other files here first.")
        return wanted or "parquet"
    local = Path(path)
    try:
        if not local.exists():
            raise InputError(f"There is no file or folder '{local.name}'.")
        if not (local.is_file() or local.is_dir()):
            raise InputError(f"'{local.name}' is neither a regular file nor a folder; copy what it holds into a file.")
        if wanted is not None:
            return wanted
        if local.is_dir():
            from wayveil.formats.folders import format_of_folder

            return format_of_folder(local)
        try:
            return format_of(local, cure="say which format it is with --format (format= in Python)")
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
    """Rows as they stand in the file, before cleaning."""
    if isinstance(path_or_frame, parquet.PartFiles):
        return parquet.read_points(path_or_frame, options)
    if not isinstance(path_or_frame, str | os.PathLike):
        return points_of_frame(path_or_frame, options)
    kind = reading_format(path_or_frame, options.format)
    if kind in ("parquet", "geoparquet"):
        files = tuple(parquet.part_files(os.fspath(path_or_frame)))
        return parquet.read_points(parquet.PartFiles(files, origin_of(path_or_frame)), options)
    path = Path(path_or_frame)
    # A reader is imported when it is needed: each brings something slow along.
    from wayveil.formats import csvfile, folders, gpx

    if kind in ("geolife", "tdrive", "cabspotting"):
        return folders.read_points(path, kind, options, progress)
    if kind == "gpx" and path.is_dir():
        return gpx.read_folder(path, options, progress)
    return (gpx if kind == "gpx" else csvfile).read_points(path, options)


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
    return f"'{origin}' holds no usable rows; `wayveil check` says why."


def write_trajectories(
    trajectories: Trajectories, path: Path, wanted: str | None, extra_metadata: dict[str, str] | None, *, private: bool
) -> None:
    """Write in the format that the name or `wanted` says; a `private` file is readable by its owner alone."""
    kind = format_of(path, wanted, "give it a name that ends so, or say which with format=")
    if kind not in WRITABLE:
        raise InputError(f"wayveil does not write '{kind}'; choose one of {', '.join(WRITABLE)}.")
    from wayveil.formats import csvfile, gpx

    if kind == "csv":
        csvfile.write(trajectories, path, extra_metadata, private=private)
    elif kind == "gpx":
        gpx.write(trajectories, path, extra_metadata, private=private)
    else:
        whole = whole_seconds(trajectories.t_utc)
        geo = kind == "geoparquet"
        parquet.write_parts(
            iter([trajectories]), path, geo=geo, extra_metadata=extra_metadata, whole=whole, private=private
        )


def metadata_of(path: str | os.PathLike[str]) -> dict[str, str]:
    """Notes kept with a file; a published folder has none."""
    kind = reading_format(path, None)
    if kind in ("parquet", "geoparquet"):
        return parquet.metadata(os.fspath(path))
    from wayveil.formats import csvfile, gpx

    if kind == "csv":
        return csvfile.metadata(Path(path))
    return gpx.metadata(Path(path)) if kind == "gpx" and not Path(path).is_dir() else {}


def says_synthetic(path: Path) -> bool:
    """Whether a file of trajectories says of itself that wayveil made them up."""
    from wayveil.release import SYNTHETIC

    try:
        return not path.is_dir() and metadata_of(path).get("origin", "").startswith(SYNTHETIC)
    except InputError:
        return False

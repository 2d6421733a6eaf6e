"""Files in and out: `read`, `write`, and (in `formats.check`) what is wrong with a file.

CSV, Parquet, GeoParquet and GPX both ways; Geolife, T-Drive and Cabspotting folders as they are published; pandas,
polars and pyarrow frames through Arrow.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wayveil.formats.options import FORMATS, WRITABLE, OnBadRows, ReadOptions
from wayveil.progress import Progress, quiet
from wayveil.trajectories import Trajectories

if TYPE_CHECKING:
    from wayveil.synthesis.synthesize import Synthesis

__all__ = ["FORMATS", "WRITABLE", "ReadOptions", "read", "read_metadata", "read_synthetic", "write"]


def read(
    path_or_frame: str | os.PathLike[str] | Any,
    *,
    format: str | None = None,
    traj_id: str | None = None,
    user: str | None = None,
    lon: str | None = None,
    lat: str | None = None,
    time: str | None = None,
    timezone: str | None = None,
    on_bad_rows: OnBadRows = "error",
    progress: Progress = quiet,
) -> Trajectories:
    """Trajectories from a file, a folder or a frame, sorted by (trajectory, time), times in UTC.

    Privacy: not private (trusted side only).

    Parameters
    ----------
    path_or_frame
        A path, or a pandas, polars or pyarrow frame with one row a point.
    format
        One of `FORMATS`; recognised by itself if None.
    traj_id, user, lon, lat, time
        Names of columns where they are not among the known ones.
    timezone
        The zone of times that name none; without it such times are refused.
    on_bad_rows
        "error", or "drop" to leave out rows with missing or impossible values.

    Raises
    ------
    InputError
        In one sentence with the cure, without any value of the data.
    """
    from wayveil.formats.reading import read_trajectories

    options = ReadOptions(format, traj_id, user, lon, lat, time, timezone, on_bad_rows)
    return read_trajectories(path_or_frame, options, progress)


def write(
    trajectories: "Trajectories | Synthesis | Any",
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    extra_metadata: dict[str, str] | None = None,
    **columns: Any,
) -> None:
    """Write trajectories so that `read` gives back the same; the format follows from the name, or from `format`.

    Given what `wayveil.synthesize` returned, the file also says that it is synthetic and of which release; `wayveil
    report` asks for that. A pandas, polars or pyarrow frame, such as `Synthesizer.sample` gives, has no such notes;
    `columns` are the options of `read` for one whose columns are not recognised by themselves.

    What `wayveil.synthesize` returned gets the mode that the umask gives; anything else may be private data and is
    readable by its owner alone (0600). The file is complete or not there. `extra_metadata` is kept in the file (beside
    it, for CSV) and given back by `read_metadata`.

    Privacy: not private (it writes what it is given).
    """
    from wayveil.errors import InputError
    from wayveil.formats.reading import write_trajectories

    given: Any = trajectories
    private = True
    if isinstance(getattr(given, "trajectories", None), Trajectories):
        extra_metadata = {**given.notes, **(extra_metadata or {})}
        private, given = False, given.trajectories
    elif not isinstance(given, Trajectories):
        given, columns = _of_frame(given, columns), {}
    if columns:
        raise InputError("Options of columns are for frames; trajectories have none to name.")
    write_trajectories(given, Path(path), format, extra_metadata, private=private)


def _of_frame(frame: Any, columns: dict[str, Any]) -> Trajectories:
    from wayveil.errors import InputError
    from wayveil.formats.tables import is_frame

    if not is_frame(frame):
        raise InputError("Give Trajectories, what wayveil.synthesize gave, or a pandas, polars or pyarrow frame.")
    return read(frame, **columns)


def read_synthetic(path: str | os.PathLike[str], options: Mapping[str, Any]) -> Trajectories:
    """A synthetic file that is compared with a private one: `options` are those of the private file.

    What wayveil writes is recognised by itself, however the columns of the private file are named; another method's
    file may have the private file's columns.

    Privacy: free (post-processing), where the file is what it is said to be.
    """
    from wayveil.errors import InputError

    try:
        return read(path)
    except InputError:
        return read(path, **options)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The `extra_metadata` that a file was written with."""
    from wayveil.formats.reading import metadata_of

    return metadata_of(path)

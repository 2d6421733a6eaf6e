"""Files in and out: `read` and `write`.

CSV, Parquet, GeoParquet, GPX, GeoJSON, GeoPackage, FlatGeobuf and trip tables can be read and written; other formats
can only be read or only be written. Data frames are read through Arrow. docs/reference/formats.md has the table.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.options import FORMATS, WRITABLE, OnBadRows, ReadOptions, WriteOptions
from wayveil.io.outputs import check_output
from wayveil.io.readers.dispatch import metadata_of, read_trajectories, says_synthetic
from wayveil.io.readers.tables import is_frame
from wayveil.io.replaceable import check_replaceable
from wayveil.io.writers.dispatch import write_trajectories
from wayveil.progress import Progress, quiet

if TYPE_CHECKING:
    from wayveil.synthesis.recipe import Synthesis

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
    line: str | None = None,
    interval_s: float | None = None,
    trip_columns: str | Mapping[str, str] | None = None,
    decimal: str = ".",
    dayfirst: bool | None = None,
    progress: Progress = quiet,
) -> Trajectories:
    """Read trajectories from a file, a folder or a data frame, sorted by (trajectory, time), times in UTC.

    Parameters
    ----------
    path_or_frame
        A path, or a frame: pandas, polars (also lazy), pyarrow, DuckDB, GeoPandas, MovingPandas. A table has one row
        per point, per trajectory (with a line), or per trip (with start and end); see docs/reference/formats.md.
    format
        One of `FORMATS`; detected automatically if None.
    traj_id, user, lon, lat, time
        Names of columns that are not recognized.
    timezone
        The time zone of times without one; if it is missing, such times are refused.
    on_bad_rows
        "error", or "drop" to leave out rows with missing or impossible values.
    line, interval_s
        The column of whole lines (WKT, WKB or JSON lists), and the seconds between their points where only the start
        time is known.
    trip_columns
        Columns of a trip table that are not recognized: {"start_lon": "A", "start_lat": "B", ...}, or the text
        "start_lon=A,start_lat=B,..."; the roles are start_lon, start_lat, start_time, end_lon, end_lat, end_time.
    decimal, dayfirst
        The decimal mark of numbers in text, and how dates such as 03/04/2024 are read.

    Raises
    ------
    InputError
        With one sentence that says what to do, without any value of the data.

    Examples
    --------
    >>> import wayveil
    >>> rides = wayveil.read("rides.csv", traj_id="ride", timezone="Europe/Paris")  # doctest: +SKIP
    >>> import pyarrow
    >>> columns = {"traj_id": [1, 1], "lat": [48.80, 48.81], "lon": [2.3, 2.3], "t": [0, 60]}
    >>> len(wayveil.read(pyarrow.table(columns)))
    1

    Privacy
    -------
    Not private (trusted side only).
    """
    options = ReadOptions(
        format=format, traj_id=traj_id, user=user, lon=lon, lat=lat, time=time, timezone=timezone,
        on_bad_rows=on_bad_rows, line=line, interval_s=interval_s, trip_columns=trip_columns, decimal=decimal,
        dayfirst=dayfirst,
    )  # fmt: skip
    return read_trajectories(path_or_frame, options, progress)


def write(
    trajectories: "Trajectories | Synthesis | Any",
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    times: str | None = None,
    mode: str | None = None,
    extra_metadata: dict[str, str] | None = None,
    force: bool = False,
    **columns: Any,
) -> None:
    """Write trajectories to a file; `read` returns them unchanged, except from trip tables, SUMO and MATSim files.

    If the input is the result of `wayveil.synthesize`, the file also records that it is synthetic and from which
    release; `wayveil report` needs that. A pandas, polars or pyarrow frame, such as `Synthesizer.sample` returns, has
    no such notes; `columns` are the options of `read` for a frame whose columns are not recognized.

    The result of `wayveil.synthesize` is written with the usual permissions of new files; anything else may be private
    data and is readable by its owner alone (0600). The file is complete or absent. `extra_metadata` is kept in the file
    (for CSV, next to it) and given back by `read_metadata`.

    Parameters
    ----------
    trajectories
        Trajectories, the result of `wayveil.synthesize`, or a frame.
    path
        The file; its extension selects the format (.csv, .parquet, .geo.parquet, .gpx, .geojson, .gpkg, .fgb,
        .kepler.json, .trips.csv, .rou.xml, .plans.xml).
    format
        The format, if the extension does not name it.
    times
        "iso" or "unix"; the default depends on the format.
    mode
        The mode of travel in MATSim plans, such as "bike"; by default "car".
    force
        An existing file is replaced only if it is synthetic, or with `force`. The result of `wayveil.synthesize` never
        replaces a file that may hold other trajectories, even with `force`.

    Examples
    --------
    >>> import wayveil
    >>> wayveil.write(wayveil.synthesize("rides.release.json"), "synthetic.parquet")  # doctest: +SKIP

    Privacy
    -------
    Not private (it writes what it is given).
    """
    given: Any = trajectories
    private = True
    if isinstance(getattr(given, "trajectories", None), Trajectories):
        extra_metadata = {**given.notes, **(extra_metadata or {})}
        private, given = False, given.trajectories
        check_replaceable(Path(path), force=force)
    elif not isinstance(given, Trajectories):
        given, columns = _of_frame(given, columns), {}
    if columns:
        raise InputError("Column options apply to data frames only; Trajectories have no columns to name.")
    if private:
        check_output(path, force=force or says_synthetic(Path(path)))
    write_trajectories(given, Path(path), WriteOptions(private, format, extra_metadata, times, mode=mode))


def _of_frame(frame: Any, columns: dict[str, Any]) -> Trajectories:
    if not is_frame(frame):
        raise InputError("Give Trajectories, the result of wayveil.synthesize, or a pandas, polars or pyarrow frame.")
    return read(frame, **columns)


def read_synthetic(path: str | os.PathLike[str], options: Mapping[str, Any]) -> Trajectories:
    """Read a synthetic file that is compared with a private one; `options` are those of the private file.

    The columns of files that wayveil wrote are recognized without options; files of other methods may have the private
    file's columns.

    Privacy: free (post-processing), if the file is indeed synthetic.
    """
    try:
        return read(path)
    except InputError:
        return read(path, **options)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The `extra_metadata` that a file was written with."""
    return metadata_of(path)

"""Conversion between formats, in batches if both formats allow it."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from wayveil.core.tables import whole_seconds
from wayveil.core.trajectories import Trajectories, concatenate
from wayveil.errors import InputError
from wayveil.io.options import SPLIT_NOTE, ReadOptions, WriteOptions, files_written, read_options, writing_format
from wayveil.io.outputs import check_output, check_outputs
from wayveil.io.readers.dispatch import metadata_of, origin_of, read_points
from wayveil.io.readers.grouping import assemble
from wayveil.io.readers.points import usable
from wayveil.io.readers.split_trips import split_points
from wayveil.io.source import ParquetSource, open_source
from wayveil.io.writers.dispatch import check_writable, write_trajectories
from wayveil.io.writers.parquet import write_parts
from wayveil.progress import Progress, quiet


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    to: str | None = None,
    times: str | None = None,
    mode: str | None = None,
    split_minutes: float | None = None,
    force: bool = False,
    progress: Progress = quiet,
    **options: Any,
) -> None:
    """Convert trajectories to another format; the notes of the source are kept.

    Parquet is converted to Parquet batch by batch, in two passes; the first one finds out whether every time is a whole
    second. With `split_minutes` each recording (named by `traj_id`) is split into trips at longer gaps, in memory. The
    output is readable by its owner alone (0600). An existing file is overwritten only with `force`; the source
    is never overwritten.

    Parameters
    ----------
    source, target
        The file or folder to read, and the file to write; its extension selects the format.
    to
        One of `wayveil.io.options.WRITABLE`, if the extension does not name it.
    times
        "iso" for ISO 8601 text or timestamps, "unix" for seconds; the default depends on the format.
    mode
        The mode of travel in MATSim plans, such as "bike"; by default "car".
    split_minutes
        Split recordings (`traj_id` names the vehicle, phone or user) into trips at gaps longer than this.
    force
        Whether an existing file may be overwritten.
    options
        Options of `wayveil.read`.

    Examples
    --------
    >>> import wayveil
    >>> wayveil.convert("vans.csv", "trips.parquet", traj_id="van", split_minutes=10)  # doctest: +SKIP

    Privacy
    -------
    Not private (the output holds the same data).
    """
    path = Path(target)
    kind = writing_format(path, to, "to")
    check_writable(kind, times, mode)
    check_outputs(files_written(path, kind), inputs=[source])
    check_output(path, force=force)
    reading = read_options(options, "convert")
    opened = open_source(source, reading)
    notes = metadata_of(source) if reading.format is None else {}
    writing = WriteOptions(
        private=True, format=kind, notes=notes, times=times, timezone=reading.timezone, mode=mode
    )
    if split_minutes is not None:
        trips = _split(source, split_minutes, reading, progress)
        write_trajectories(trips, path, replace(writing, notes={**notes, SPLIT_NOTE: f"{split_minutes:g}"}))
    elif isinstance(opened, ParquetSource) and kind in ("parquet", "geoparquet"):
        whole = all(whole_seconds(part.t_utc) for part in opened.batches(progress))
        write_parts(opened.batches(progress), path, writing, whole=whole)
    else:
        write_trajectories(concatenate(list(opened.batches(progress))), path, writing)


def _split(source: str | os.PathLike[str], minutes: float, options: ReadOptions, progress: Progress) -> Trajectories:
    origin = origin_of(source)
    points = usable(read_points(source, options, progress), options, origin)
    if not len(points):
        raise InputError(f"'{origin}' has no usable rows.")
    return assemble(split_points(points, minutes), options, origin)

"""From one format to another, in parts where both sides allow it."""

import os
from pathlib import Path
from typing import Any

from wayveil.errors import InputError
from wayveil.formats import parquet
from wayveil.formats.grouping import assemble
from wayveil.formats.options import WRITABLE, ReadOptions, files_written, format_of
from wayveil.formats.points import usable
from wayveil.formats.reading import metadata_of, origin_of, read_points, write_trajectories
from wayveil.formats.split import split_points
from wayveil.formats.tables import whole_seconds
from wayveil.outputs import check_output, check_outputs
from wayveil.progress import Progress, quiet
from wayveil.source import ParquetSource, open_source
from wayveil.trajectories import Trajectories, concatenate


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    to: str | None = None,
    split_minutes: float | None = None,
    force: bool = False,
    progress: Progress = quiet,
    **options: Any,
) -> None:
    """Write what `source` holds to `target`; notes kept with the source go along.

    Parquet to Parquet goes through memory a batch at a time (twice: the first time to see whether every time is a
    whole second). With `split_minutes` each recording (what `traj_id` names) is cut into trips wherever it is silent
    for longer, in memory. The output is readable by its owner alone (0600). A file that is there already is only
    overwritten with `force`, and the source never. `options` are those of `wayveil.source.open_source`.

    Privacy: not private (the output holds the same data).
    """
    path = Path(target)
    kind = format_of(path, to, "give it a name that ends so, or say which with --to")
    if kind not in WRITABLE:
        raise InputError(f"wayveil does not write '{kind}'; choose one of {', '.join(WRITABLE)}.")
    check_outputs(files_written(path, kind), inputs=[source])
    check_output(path, force=force)
    opened = open_source(source, **options)
    notes = metadata_of(source) if options.get("format") is None else {}
    if split_minutes is not None:
        trips = _split(source, split_minutes, ReadOptions(**options), progress)
        write_trajectories(trips, path, kind, notes, private=True)
    elif isinstance(opened, ParquetSource) and kind in ("parquet", "geoparquet"):
        whole = all(whole_seconds(part.t_utc) for part in opened.batches(progress))
        geo = kind == "geoparquet"
        parquet.write_parts(opened.batches(progress), path, geo=geo, extra_metadata=notes, whole=whole, private=True)
    else:
        write_trajectories(concatenate(list(opened.batches(progress))), path, kind, notes, private=True)


def _split(source: str | os.PathLike[str], minutes: float, options: ReadOptions, progress: Progress) -> Trajectories:
    origin = origin_of(source)
    points = usable(read_points(source, options, progress), options, origin)
    if not len(points):
        raise InputError(f"'{origin}' holds no usable rows.")
    return assemble(split_points(points, minutes), options, origin)

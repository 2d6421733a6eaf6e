"""From one format to another, in parts where both sides allow it."""

import os
from pathlib import Path
from typing import Any

from wayveil.errors import InputError
from wayveil.formats import parquet
from wayveil.formats.options import WRITABLE, format_of
from wayveil.formats.reading import metadata_of, write_trajectories
from wayveil.formats.tables import whole_seconds
from wayveil.progress import Progress, quiet
from wayveil.source import ParquetSource, open_source
from wayveil.trajectories import concatenate


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    to: str | None = None,
    progress: Progress = quiet,
    **options: Any,
) -> None:
    """Write what `source` holds to `target`; notes kept with the source go along.

    Parquet to Parquet goes through memory a batch at a time (twice: the first time to see whether every time is a
    whole second). `options` are those of `wayveil.source.open_source`.

    Privacy: not private (the output holds the same data).
    """
    path = Path(target)
    kind = format_of(path, to)
    if kind not in WRITABLE:
        raise InputError(f"wayveil does not write '{kind}'; choose one of {', '.join(WRITABLE)}.")
    opened = open_source(source, **options)
    notes = metadata_of(source) if options.get("format") is None else {}
    if isinstance(opened, ParquetSource) and kind in ("parquet", "geoparquet"):
        whole = all(whole_seconds(part.t_utc) for part in opened.batches(progress))
        geo = kind == "geoparquet"
        parquet.write_parts(opened.batches(progress), path, geo=geo, extra_metadata=notes, whole=whole)
    else:
        write_trajectories(concatenate(list(opened.batches(progress))), path, kind, notes)

"""Choose the writer for a format."""

from pathlib import Path

from wayveil.core.tables import whole_seconds
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.options import WRITABLE, format_of
from wayveil.io.writers import csvfile, gpx, parquet


def write_trajectories(
    trajectories: Trajectories, path: Path, wanted: str | None, extra_metadata: dict[str, str] | None, *, private: bool
) -> None:
    """Write in the format `wanted`, or by the file's extension; a `private` file is readable by its owner alone."""
    kind = format_of(path, wanted, "use one of these, or choose the format with format=")
    if kind not in WRITABLE:
        raise InputError(f"wayveil does not write '{kind}'; choose one of {', '.join(WRITABLE)}.")
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

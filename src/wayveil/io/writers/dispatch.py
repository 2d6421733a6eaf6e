"""Choose the writer for a format."""

import re
from dataclasses import replace
from pathlib import Path

from wayveil.core.optional import gis
from wayveil.core.tables import whole_seconds
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.options import WRITABLE, WriteOptions, writing_format
from wayveil.io.writers import csvfile, features, gpx, parquet, trips

TIMES = ("iso", "unix")
_MODE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_WITH_TIMES = ("csv", "parquet", "geoparquet", "geojson", "gpkg", "fgb", "trips")
"""Formats that may have either kind of times; the others prescribe one."""


def write_trajectories(trajectories: Trajectories, path: Path, options: WriteOptions) -> None:
    """Write in the format that the options or the file's extension name."""
    kind = writing_format(path, options.format, "format")
    notes, private, times = options.notes, options.private, options.times
    check_writable(kind, times, options.mode)
    if kind in ("csv", "trips"):
        csvfile.write(trajectories, path, notes, private=private, times=times, trips=kind == "trips")
    elif kind == "gpx":
        gpx.write(trajectories, path, notes, private=private)
    elif kind in ("geojson", "kepler"):
        stamps: features.Times = "unix" if times == "unix" else "iso"
        kepler = kind == "kepler"
        features.write_geojson(trajectories, path, notes, private=private, times=stamps, kepler=kepler)
    elif kind in ("gpkg", "fgb"):
        stamps = "unix" if times == "unix" else "iso"
        features.write_vector(trajectories, path, kind, notes, private=private, times=stamps)
    elif kind == "sumo":
        trips.write_sumo(trajectories, path, notes, private=private, timezone=options.timezone)
    elif kind == "matsim":
        trips.write_matsim(trajectories, path, options)
    else:
        whole = whole_seconds(trajectories.t_utc)
        parquet.write_parts(iter([trajectories]), path, replace(options, format=kind), whole=whole)


def check_writable(kind: str, times: str | None = None, mode: str | None = None) -> None:
    """InputError unless wayveil writes the format with these times and this mode of travel."""
    if kind not in WRITABLE:
        raise InputError(f"wayveil does not write '{kind}'; choose one of {', '.join(WRITABLE)}.")
    if times not in (None, *TIMES):
        raise InputError("times= must be 'iso' or 'unix'.")
    if times is not None and kind not in _WITH_TIMES:
        raise InputError(f"The format {kind} prescribes how times are written; leave times= out.")
    if mode is not None and kind != "matsim":
        raise InputError("Only MATSim plans (.plans.xml) have a mode of travel; leave mode= out.")
    if mode is not None and not _MODE.fullmatch(mode):
        raise InputError("mode= must be the name of a MATSim mode, such as car, bike, pt, walk or taxi.")
    if kind in ("gpkg", "fgb"):
        gis()

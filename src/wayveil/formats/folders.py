"""Public datasets in the shape in which they are published: Geolife, T-Drive, Cabspotting."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as pacsv

from wayveil.errors import InputError
from wayveil.formats.gpx import gpx_files
from wayveil.formats.options import ReadOptions
from wayveil.formats.points import Labels, Points, labels_of
from wayveil.formats.times import seconds_of_numbers, to_utc_seconds
from wayveil.inputs import TooLargeError, open_regular, read_bytes
from wayveil.progress import Progress, quiet

_GEOLIFE_HEADER_LINES = 6
_TDRIVE_LINE = re.compile(rb"\s*\d+,\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,-?\d+(\.\d+)?,-?\d+(\.\d+)?\s*")
_TDRIVE_ZONE = "Asia/Shanghai"
_MAX_FILE_BYTES = 1 << 30

Part = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def format_of_folder(folder: Path) -> str:
    """Which published shape a folder has; messages name no file inside, for file names are user labels."""
    if _geolife_files(folder):
        return "geolife"
    if any(folder.glob("new_*.txt")):
        return "cabspotting"
    if any(file.suffix.lower() in (".parquet", ".pq") for file in folder.rglob("*")):
        return "parquet"
    if any(_TDRIVE_LINE.fullmatch(_first_line(file)) for file in _tdrive_files(folder)[:100]):
        return "tdrive"
    if gpx_files(folder):
        return "gpx"
    raise InputError(
        f"The folder '{folder.name}' has no known shape: Parquet part files, GPX files, Geolife "
        "(Data/<user>/Trajectory/*.plt), T-Drive (<taxi>.txt) or Cabspotting (new_*.txt)."
    )


def read_points(folder: Path, kind: str, options: ReadOptions, progress: Progress = quiet) -> Points:
    """All points of a published folder.

    Geolife: one file, one trajectory, GMT. T-Drive: one taxi, one trajectory, Beijing time. Cabspotting: one ride
    with a passenger, one trajectory.
    """
    if not folder.is_dir():
        raise InputError(f"'{folder.name}' is not a folder, which the format '{kind}' needs.")
    if kind == "geolife":
        files = _geolife_files(folder)
        parts = (_geolife_file(file, folder.name) for file in files)
        users = [file.parent.parent.name for file in files]
    elif kind == "cabspotting":
        files = sorted(folder.glob("new_*.txt"))
        parts = (_cabspotting_file(file, folder.name) for file in files)
        users = [file.stem for file in files]
    else:
        files = _tdrive_files(folder)
        zone = options.timezone or _TDRIVE_ZONE
        parts = (_tdrive_file(file, folder.name, zone) for file in files)
        users = [file.stem for file in files]
    return _together(parts, users, folder.name, progress)


def _together(parts: Iterable[Part], users: list[str], origin: str, progress: Progress) -> Points:
    columns: list[Part] = []
    owners: list[NDArray[np.int64]] = []
    first = 0
    for i, part in enumerate(parts):
        if len(part[0]):
            columns.append((part[0] + first, *part[1:]))
            owners.append(np.full(len(part[0]), i))
            first += int(part[0].max()) + 1
        progress("reading", (i + 1) / len(users))
    if not columns:
        raise InputError(f"The folder '{origin}' holds no points.")
    label, lon, lat, t_utc = (np.concatenate([part[k] for part in columns]) for k in range(4))
    try:
        names = labels_of(pa.chunked_array([pa.array(users)]), "user", origin)
    except UnicodeEncodeError:
        raise InputError(f"Some file names of '{origin}' are not UTF-8.") from None
    return Points(Labels(label), lon, lat, t_utc, names.take(np.concatenate(owners)))


def _geolife_files(folder: Path) -> list[Path]:
    for pattern in ("Data/*/Trajectory/*.plt", "*/Trajectory/*.plt", "*/Data/*/Trajectory/*.plt"):
        if files := sorted(folder.glob(pattern)):
            return files
    return []


def _tdrive_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.txt")) or sorted(folder.glob("*/*.txt"))


def _first_line(file: Path) -> bytes:
    try:
        with open_regular(file) as stream:
            return stream.readline(256)
    except OSError:
        return b""


def _columns(file: Path, names: str, keep: dict[str, pa.DataType], delimiter: str, skip: int, origin: str) -> pa.Table:
    """The columns of a file without a header; an empty file has none of them."""
    problem = InputError(f"A file in '{origin}' is damaged or not of the expected shape; see `wayveil check`.")
    try:
        raw = read_bytes(file, _MAX_FILE_BYTES)
        body = raw.split(b"\n", skip)[-1] if skip and raw.count(b"\n") >= skip else (b"" if skip else raw)
        if not body.strip():
            return pa.table({name: pa.array([], kind) for name, kind in keep.items()})
        return pacsv.read_csv(
            pa.BufferReader(body),
            read_options=pacsv.ReadOptions(column_names=names.split(), use_threads=False),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, quote_char=False),
            convert_options=pacsv.ConvertOptions(column_types=keep, include_columns=list(keep)),
        )
    except TooLargeError:
        raise InputError(f"A file in '{origin}' is larger than 1 GB; that is not the published shape.") from None
    except (OSError, pa.ArrowException):
        raise problem from None


def _geolife_file(file: Path, origin: str) -> Part:
    keep = {"lat": pa.float64(), "lon": pa.float64(), "date": pa.string(), "clock": pa.string()}
    table = _columns(file, "lat lon zero altitude days date clock", keep, ",", _GEOLIFE_HEADER_LINES, origin)
    moment = pc.binary_join_element_wise(table["date"], table["clock"], " ")
    t_utc = to_utc_seconds(moment, "UTC", origin)
    return np.zeros(len(table), np.int64), table["lon"].to_numpy(), table["lat"].to_numpy(), t_utc


def _tdrive_file(file: Path, origin: str, timezone: str) -> Part:
    keep = {"moment": pa.string(), "lon": pa.float64(), "lat": pa.float64()}
    table = _columns(file, "taxi moment lon lat", keep, ",", 0, origin)
    t_utc = to_utc_seconds(table["moment"], timezone, origin)
    return np.zeros(len(table), np.int64), table["lon"].to_numpy(), table["lat"].to_numpy(), t_utc


def _cabspotting_file(file: Path, origin: str) -> Part:
    keep = {"lat": pa.float64(), "lon": pa.float64(), "occupied": pa.float64(), "t": pa.float64()}
    table = _columns(file, "lat lon occupied t", keep, " ", 0, origin)
    t_utc = seconds_of_numbers(table["t"].to_numpy())
    order = np.argsort(t_utc, kind="stable")
    occupied = table["occupied"].to_numpy()[order] == 1
    # A ride is a run of occupied fixes: its number is how many runs have begun so far.
    begins = occupied & ~np.r_[False, occupied[:-1]]
    ride = (np.cumsum(begins) - 1)[occupied]
    lon, lat, t_utc = (column[order][occupied] for column in (table["lon"].to_numpy(), table["lat"].to_numpy(), t_utc))
    return ride.astype(np.int64), lon, lat, t_utc

"""Public datasets in their published layout: Geolife, T-Drive, Cabspotting."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wayveil.errors import InputError
from wayveil.io.inputs import TooLargeError, read_bytes
from wayveil.io.options import ENDINGS, FORMATS, PACKED_ENDINGS, READ_AS, ReadOptions
from wayveil.io.readers.csv_lines import Shape, well_formed_lines
from wayveil.io.readers.csvfile import read_lines
from wayveil.io.readers.labels import Labels, labels_of_values
from wayveil.io.readers.list_files import every_file, files_under
from wayveil.io.readers.numbers import float_column
from wayveil.io.readers.parquet import parts_in_folder
from wayveil.io.readers.points import DAMAGED, MALFORMED, Points
from wayveil.io.readers.times import seconds_of_numbers, to_utc_seconds
from wayveil.progress import Progress, quiet

_GEOLIFE_HEADER_LINES = 6
"""Lines before the points in a .plt file."""
_TDRIVE_ZONE = "Asia/Shanghai"
_MAX_FILE_BYTES = 1 << 30
"""Larger files count as damaged; those of the datasets have a few MB."""

Part = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def format_of_folder(folder: Path) -> str:
    """Which published layout a folder has, by the names of its files alone.

    The contents of the files are not read, and files of several formats are refused: one file must not decide how, or
    whether, the others are read. Messages name no file in the folder, because file names are user labels.
    """
    texts = files_under(folder, ".txt")
    found = {
        "geolife": bool(files_under(folder, ".plt")),
        "cabspotting": any(_is_cab(file) for file in texts),
        "parquet": bool(parts_in_folder(folder)),
        "tdrive": any(file.stem.isdecimal() for file in texts),
        "gpx": bool(files_under(folder, ".gpx")),
    }
    kinds = [kind for kind, present in found.items() if present]
    everything = [*kinds, *_single_formats(folder)]
    if kinds and len(everything) > 1:
        raise InputError(
            f"The folder '{folder.name}' contains files of several formats ({', '.join(everything)}); keep one of "
            "them, or choose one with format=."
        )
    if kinds:
        return kinds[0]
    raise InputError(
        f"The folder '{folder.name}' has no known layout: Parquet part files, GPX files, Geolife "
        "(Data/<user>/Trajectory/*.plt), T-Drive (<number of the taxi>.txt) or Cabspotting (new_*.txt)."
    )


def _single_formats(folder: Path) -> list[str]:
    """The formats of files that, by their names, hold data but can be read only one at a time, such as CSV."""
    kinds = set()
    for file in every_file(folder):
        if any(part.startswith("_") for part in file.relative_to(folder).parts):
            continue  # metadata that programs write next to Parquet files
        packed = file.suffix.lower() in PACKED_ENDINGS
        name = (file.stem if packed else file.name).lower()
        kind = next((READ_AS.get(kind, kind) for ending, kind in ENDINGS if name.endswith(ending)), "")
        if kind in FORMATS and (packed or kind not in ("parquet", "geoparquet", "gpx")):
            kinds.add(f"packed {kind}" if packed else kind)
    return sorted(kinds)


def read_points(folder: Path, kind: str, options: ReadOptions, progress: Progress = quiet) -> Points:
    """All points of a public dataset, from all files of its format in the folder, at any depth.

    Geolife: one trajectory per file, GMT. T-Drive: one trajectory per taxi, Beijing time. Cabspotting: one trajectory
    per ride with a passenger. A file that cannot be parsed contributes nothing.
    """
    if not folder.is_dir():
        raise InputError(f"'{folder.name}' is not a folder; the format '{kind}' needs one.")
    if kind == "geolife":
        files = files_under(folder, ".plt")
        users = [file.parent.parent.name if file.parent.name == "Trajectory" else None for file in files]
        return _points_of_files(files, _geolife_file, users, progress)
    files = files_under(folder, ".txt")
    if kind == "cabspotting":
        files = [file for file in files if _is_cab(file)]
        return _points_of_files(files, _cabspotting_file, [file.stem for file in files], progress)
    zone = options.timezone or _TDRIVE_ZONE

    def tdrive(lines: bytes) -> tuple[Part, int]:
        return _tdrive_file(lines, zone)

    return _points_of_files(files, tdrive, [file.stem for file in files], progress)


def _is_cab(file: Path) -> bool:
    return file.name.startswith("new_") and file.suffix == ".txt"


def _points_of_files(
    files: list[Path], read: Callable[[bytes], tuple[Part, int]], users: Sequence[str | None], progress: Progress
) -> Points:
    columns: list[Part] = [(np.zeros(0, np.int64), np.empty(0), np.empty(0), np.empty(0))]
    owners = [np.zeros(0, np.int64)]
    first, lost = 0, {DAMAGED: 0, MALFORMED: 0}
    for i, file in enumerate(files):
        content = _content(file)
        if content is None:
            lost[DAMAGED] += 1
            continue
        part, malformed = read(content)
        lost[MALFORMED] += malformed
        lost[DAMAGED] += int(malformed > 0 and not len(part[0]))
        if len(part[0]):
            columns.append((part[0] + first, *part[1:]))
            owners.append(np.full(len(part[0]), i))
            first += int(part[0].max()) + 1
        progress("reading", (i + 1) / len(files))
    label, lon, lat, t_utc = (np.concatenate([part[k] for part in columns]) for k in range(4))
    owner = labels_of_values(users).take(np.concatenate(owners)) if users else Labels(np.zeros(0, np.int64))
    return Points(Labels(label), lon, lat, t_utc, owner, None, lost)


def _content(file: Path) -> bytes | None:
    """The bytes of a file, or None for a file that is too large to be of the published layout."""
    try:
        return read_bytes(file, _MAX_FILE_BYTES)
    except TooLargeError:
        return None
    except OSError as error:
        raise InputError(f"A file of the data cannot be opened: {error.strerror}.") from None


def _columns(content: bytes, names: str, keep: dict[str, pa.DataType], delimiter: str) -> tuple[pa.Table, int]:
    """The columns of a file without a header, and how many of its lines are malformed."""
    tables = [pa.table({name: pa.array([], kind) for name, kind in keep.items()})]
    columns, malformed = names.split(), 0
    for lines, bad in well_formed_lines(io.BytesIO(content), Shape(delimiter, len(columns), quotes=False)):
        tables.append(read_lines(lines, columns, keep, delimiter=delimiter, quotes=False))
        malformed += bad
    return pa.concat_tables(tables), malformed


def _geolife_file(content: bytes) -> tuple[Part, int]:
    keep = {"lat": pa.float64(), "lon": pa.float64(), "date": pa.string(), "clock": pa.string()}
    header = content.count(b"\n") >= _GEOLIFE_HEADER_LINES
    body = content.split(b"\n", _GEOLIFE_HEADER_LINES)[-1] if header else b""
    table, malformed = _columns(body, "lat lon zero altitude days date clock", keep, ",")
    moment = pc.binary_join_element_wise(table["date"], table["clock"], " ")
    t_utc = to_utc_seconds(moment, "UTC", "")
    malformed += int(not header)
    return (np.zeros(len(table), np.int64), float_column(table["lon"]), float_column(table["lat"]), t_utc), malformed


def _tdrive_file(content: bytes, timezone: str) -> tuple[Part, int]:
    keep = {"moment": pa.string(), "lon": pa.float64(), "lat": pa.float64()}
    table, malformed = _columns(content, "taxi moment lon lat", keep, ",")
    t_utc = to_utc_seconds(table["moment"], timezone, "")
    return (np.zeros(len(table), np.int64), float_column(table["lon"]), float_column(table["lat"]), t_utc), malformed


def _cabspotting_file(content: bytes) -> tuple[Part, int]:
    keep = {"lat": pa.float64(), "lon": pa.float64(), "occupied": pa.float64(), "t": pa.float64()}
    table, malformed = _columns(content, "lat lon occupied t", keep, " ")
    t_utc = seconds_of_numbers(float_column(table["t"]))
    order = np.argsort(t_utc, kind="stable")
    occupied = float_column(table["occupied"])[order] == 1
    # A ride is a run of occupied fixes; rides are numbered in order.
    begins = occupied & ~np.r_[False, occupied][:-1]
    ride = (np.cumsum(begins) - 1)[occupied]
    lon, lat, t_utc = (
        column[order][occupied] for column in (float_column(table["lon"]), float_column(table["lat"]), t_utc)
    )
    return (ride.astype(np.int64), lon, lat, t_utc), malformed

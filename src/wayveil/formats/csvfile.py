"""CSV: one line per point, one header line."""

import csv
import hashlib
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as pacsv

from wayveil.atomic import atomic_path, write_text
from wayveil.errors import InputError
from wayveil.formats.lines import Shape, sound_lines
from wayveil.formats.numbers import numbers_of_text
from wayveil.formats.options import MAX_COLUMNS, ReadOptions, Roles, notes_beside, resolve_roles
from wayveil.formats.points import MALFORMED, Points
from wayveil.formats.tables import points_of_table, table_of
from wayveil.inputs import open_regular, read_text
from wayveil.trajectories import Trajectories

_MAX_HEADER_BYTES = 1 << 20
_CONTENT = "sha256 of the file"


def read_points(path: Path, options: ReadOptions) -> Points:
    """The rows of a CSV file.

    A record is one line. Ids and users are text, exactly as written; coordinates and times are read value by value.
    Lines with the wrong number of columns are counted as malformed.
    """
    origin = path.name
    names, delimiter, skip_bytes = _header(path)
    roles = resolve_roles(names, options, origin)
    columns = [f"c{position}" for position in range(len(names))]
    numeric = [f"c{position}" for position in (roles.lon, roles.lat)]
    keep = {f"c{position}": pa.string() for position in roles.positions} | dict.fromkeys(numeric, pa.float64())
    tables, malformed = [], 0
    try:
        with open_regular(path) as stream:
            stream.seek(skip_bytes)
            for lines, bad in sound_lines(stream, Shape(delimiter, len(names))):
                tables.append(read_lines(lines, columns, keep, delimiter=delimiter))
                malformed += bad
    except OSError as error:
        raise InputError(f"Cannot read '{origin}': {error.strerror or 'input error'}.") from None
    except pa.ArrowException:
        raise InputError(f"'{origin}' is not a CSV file; see its header and delimiter, or name the format.") from None
    table = pa.concat_tables(tables) if tables else _empty(keep)
    place_of = {int(name[1:]): place for place, name in enumerate(keep)}
    points = points_of_table(table, _moved(roles, place_of), options, origin, shortest_first=True)
    return replace(points, lost={MALFORMED: malformed})


def read_lines(
    lines: bytes, columns: list[str], keep: dict[str, pa.DataType], *, delimiter: str, quotes: bool = True
) -> pa.Table:
    """The kept columns of well-formed lines.

    Columns to be kept are text or float64; each text of a numeric column is read by itself, NaN where it is no number.
    """

    def table_with(kinds: dict[str, pa.DataType]) -> pa.Table:
        return pacsv.read_csv(
            pa.BufferReader(lines),
            read_options=pacsv.ReadOptions(column_names=columns, block_size=len(lines) + 1),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, quote_char='"' if quotes else False),
            convert_options=pacsv.ConvertOptions(column_types=kinds, include_columns=list(keep), check_utf8=False),
        )

    if re.search(rb"[^\r\n]", lines) is None:
        return _empty(keep)
    try:
        return table_with(keep)
    except pa.ArrowInvalid:  # some text in a numeric column is no number, and Arrow refuses all of them
        table = table_with(dict.fromkeys(keep, pa.string()))
    for place, (name, kind) in enumerate(keep.items()):
        if kind == pa.float64():
            table = table.set_column(place, name, pa.chunked_array([numbers_of_text(table[name])], pa.float64()))
    return table


def _empty(keep: dict[str, pa.DataType]) -> pa.Table:
    return pa.table({name: pa.array([], kind) for name, kind in keep.items()})


def _moved(roles: Roles, place_of: dict[int, int]) -> Roles:
    def move(position: int | None) -> int | None:
        return None if position is None else place_of[position]

    return Roles(
        place_of[roles.traj_id], place_of[roles.time], move(roles.lon), move(roles.lat), move(roles.user),
        move(roles.geometry),
    )  # fmt: skip


def _header(path: Path) -> tuple[list[str], str, int]:
    """Column names, the delimiter, and the length of the header line in bytes."""
    origin = path.name
    try:
        with open_regular(path) as stream:
            line = stream.readline(_MAX_HEADER_BYTES + 1)
    except OSError as error:
        raise InputError(f"Cannot read '{origin}': {error.strerror}.") from None
    if b"\r" in line.rstrip(b"\r\n"):  # lines that end with CR alone
        line = line[: line.index(b"\r") + 1]
    if not line.strip():
        raise InputError(f"'{origin}' is empty or has no header line; the first line must name the columns.")
    if len(line) > _MAX_HEADER_BYTES:
        raise InputError(f"The first line of '{origin}' is longer than 1 MB; that is not a CSV header.")
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError(f"'{origin}' is not UTF-8 text; save it as a UTF-8 CSV or name its format.") from None
    if "\x00" in text:
        raise InputError(f"'{origin}' is not a text file; name its format.")
    delimiter = max(",;\t|", key=text.count)
    if text.count(delimiter) > MAX_COLUMNS:
        raise InputError(f"'{origin}' has more than {MAX_COLUMNS} columns; keep only the needed ones.")
    try:
        return next(csv.reader(io.StringIO(text), delimiter=delimiter)), delimiter, len(line)
    except (csv.Error, StopIteration):
        raise InputError(f"The header line of '{origin}' cannot be read.") from None


def write(trajectories: Trajectories, path: Path, extra_metadata: dict[str, str] | None, *, private: bool) -> None:
    """Write a CSV; what CSV has no place for (`extra_metadata`) goes to `<name>.meta.json` beside it.

    The notes name the content they are about: put another CSV in this one's place and they no longer hold.
    """
    table = table_of(trajectories)
    users = trajectories.user
    if users is not None and users.dtype.kind == "U" and any("\n" in user or "\r" in user for user in users.tolist()):
        raise InputError("Some users have labels with line breaks, which CSV cannot hold here; write Parquet instead.")
    beside = notes_beside(path)
    if extra_metadata:
        check_notes(path)
    with atomic_path(path, private=private) as part:
        with open(part, "wb") as stream:
            stream.write(",".join(table.column_names).encode() + b"\n")
            pacsv.write_csv(table, stream, pacsv.WriteOptions(include_header=False))
    if extra_metadata:
        notes = {**extra_metadata, _CONTENT: _digest(path)}
        write_text(beside, json.dumps(notes, indent=2, ensure_ascii=False) + "\n", private=private)
    elif _CONTENT in _notes_at(beside):
        beside.unlink()


def check_notes(path: Path) -> None:
    """InputError where the place of the notes about `path` is taken by a file that wayveil did not write."""
    beside = notes_beside(path)
    if os.path.lexists(beside) and _CONTENT not in _notes_at(beside):
        raise InputError(f"'{beside.name}' is there and does not hold wayveil's notes; move it or choose another name.")


def metadata(path: Path) -> dict[str, str]:
    """What stands in `<name>.meta.json`, if it is about the file as it is now."""
    found = _notes_at(notes_beside(path))
    try:
        return found if found and found.pop(_CONTENT, None) == _digest(path) else {}
    except OSError:
        return {}


def _notes_at(path: Path) -> dict[str, str]:
    try:
        found = json.loads(read_text(path, _MAX_HEADER_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _digest(path: Path) -> str:
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

"""CSV: one row a point, one header line."""

import csv
import hashlib
import io
import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pacsv

from wayveil.atomic import atomic_path, write_text
from wayveil.errors import InputError
from wayveil.formats.options import MAX_COLUMNS, ReadOptions, Roles, notes_beside, resolve_roles
from wayveil.formats.points import Points
from wayveil.formats.tables import numbers_of_text, points_of_table, table_of
from wayveil.inputs import open_regular, read_text
from wayveil.trajectories import Trajectories

_MAX_HEADER_BYTES = 1 << 20
_CONTENT = "sha256 of the file"
_BLOCK_BYTES = 8 << 20
_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"


def read_points(path: Path, options: ReadOptions) -> Points:
    """The rows of a CSV file.

    Labels that all look like whole numbers are read as such, unless the column's name stands in quotes in the
    header line: that is how `write` keeps the user "7" apart from the user 7.
    """
    origin = path.name
    names, quoted, delimiter, skip_bytes = _header(path)
    roles = resolve_roles(names, options, origin)
    kinds: dict[str, pa.DataType] = {}
    for role, position in (("lon", roles.lon), ("lat", roles.lat)):
        del role
        kinds[f"c{position}"] = pa.float64()
    for position in (roles.traj_id, roles.time, roles.user):
        if position is not None:
            kinds[f"c{position}"] = pa.string()
    keep = [f"c{position}" for position in roles.positions]
    coordinates = [f"c{position}" for position in (roles.lon, roles.lat)]

    def table_with(kinds: dict[str, pa.DataType]) -> pa.Table:
        with open_regular(path) as stream:
            stream.seek(skip_bytes)
            return pacsv.read_csv(
                stream,
                read_options=pacsv.ReadOptions(
                    column_names=[f"c{i}" for i in range(len(names))], block_size=_BLOCK_BYTES
                ),
                parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pacsv.ConvertOptions(column_types=kinds, include_columns=keep),
            )

    try:
        try:
            table = table_with(kinds)
        except pa.ArrowInvalid:
            table = _with_numbers(table_with(kinds | dict.fromkeys(coordinates, pa.string())), coordinates)
    except OSError as error:
        raise InputError(f"Cannot read '{origin}': {error.strerror or 'input error'}.") from None
    except pa.ArrowException as error:
        if "Empty CSV file" in str(error):
            raise InputError(f"'{origin}' holds no rows.") from None
        raise InputError(
            f"'{origin}' is not a well-formed CSV file with numbers (decimal points, no commas) for lon and lat; see "
            "its header and delimiter, or name the format."
        ) from None
    for position in (roles.traj_id, roles.user):
        if position is not None and not quoted[position]:
            place = keep.index(f"c{position}")
            table = table.set_column(place, f"c{position}", _integers_if_all(table.column(place)))
    place_of = {int(name[1:]): place for place, name in enumerate(keep)}
    return points_of_table(table, _moved(roles, place_of), options, origin)


def _with_numbers(table: pa.Table, columns: list[str]) -> pa.Table:
    """The table with text turned to numbers; what is none is missing, as long as most of it is one."""
    for name in columns:
        values = numbers_of_text(table[name])
        if values is None:
            raise pa.ArrowInvalid("a column without numbers")
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def _moved(roles: Roles, place_of: dict[int, int]) -> Roles:
    def move(position: int | None) -> int | None:
        return None if position is None else place_of[position]

    return Roles(
        place_of[roles.traj_id], place_of[roles.time], move(roles.lon), move(roles.lat), move(roles.user),
        move(roles.geometry),
    )  # fmt: skip


def _integers_if_all(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not len(column) or not pc.all(pc.or_(pc.match_substring_regex(column, _INTEGER), pc.equal(column, ""))).as_py():
        return column
    try:
        return pc.cast(pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column), pa.int64())
    except pa.ArrowInvalid:  # nineteen digits may be more than 64 bits hold; they stay text
        return column


def _header(path: Path) -> tuple[list[str], list[bool], str, int]:
    """Column names, whether each stands in quotes, the delimiter, and the length of the header line in bytes."""
    origin = path.name
    try:
        with open_regular(path) as stream:
            line = stream.readline(_MAX_HEADER_BYTES + 1)
    except OSError as error:
        raise InputError(f"Cannot read '{origin}': {error.strerror}.") from None
    if not line.strip():
        raise InputError(f"'{origin}' is empty or has no header line; the first line must name the columns.")
    if len(line) > _MAX_HEADER_BYTES:
        raise InputError(f"The first line of '{origin}' is longer than 1 MB; that is not a CSV header.")
    length = len(line)
    if b"\r" in line.rstrip(b"\r\n"):  # lines that end with CR alone
        length = line.index(b"\r") + 1
        line = line[:length]
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
        names = next(csv.reader(io.StringIO(text), delimiter=delimiter))
    except (csv.Error, StopIteration):
        raise InputError(f"The header line of '{origin}' cannot be read.") from None
    cells = re.split(re.escape(delimiter), text)
    plain = len(cells) == len(names)
    quoted = [plain and cell.strip().startswith('"') for cell in cells] if plain else [False] * len(names)
    return names, quoted, delimiter, length


def write(trajectories: Trajectories, path: Path, extra_metadata: dict[str, str] | None, *, private: bool) -> None:
    """Write a CSV; what CSV has no place for (`extra_metadata`) goes to `<name>.meta.json` beside it.

    The notes name the content they are about: put another CSV in this one's place and they no longer hold.
    """
    table = table_of(trajectories)
    header = ",".join(table.column_names)
    if "user_id" in table.column_names and pa.types.is_string(table.schema.field("user_id").type):
        header = header.replace("user_id", '"user_id"')
    beside = notes_beside(path)
    if extra_metadata:
        check_notes(path)
    with atomic_path(path, private=private) as part:
        with open(part, "wb") as stream:
            stream.write(header.encode() + b"\n")
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

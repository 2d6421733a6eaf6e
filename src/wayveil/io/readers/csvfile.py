"""CSV: one header line, then one line per point, trajectory or trip."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as pacsv

from wayveil.errors import InputError
from wayveil.io.layouts import resolve_layout
from wayveil.io.options import MAX_COLUMNS, ReadOptions, Roles
from wayveil.io.readers.csv_lines import Shape, well_formed_lines
from wayveil.io.readers.numbers import numbers_of_text
from wayveil.io.readers.packed import open_text
from wayveil.io.readers.points import MALFORMED, Points
from wayveil.io.readers.tables import points_of_table

_MAX_HEADER_BYTES = 1 << 20
"""Maximum length of the header line."""


def read_points(path: Path, options: ReadOptions) -> Points:
    """The rows of a CSV file.

    A record is one line. Ids and users are text, exactly as written; coordinates and times are parsed value by value.
    Lines with the wrong number of columns are counted as malformed.
    """
    origin = path.name
    names, delimiter, skip_bytes = _header(path)
    roles = resolve_layout(names, options, origin)
    columns = [f"c{position}" for position in range(len(names))]
    numeric = []
    if isinstance(roles, Roles) and options.decimal == ".":
        numeric = [f"c{position}" for position in (roles.lon, roles.lat)]
    keep = {f"c{position}": pa.string() for position in roles.positions} | dict.fromkeys(numeric, pa.float64())
    tables, malformed = [], 0
    try:
        with open_text(path) as stream:
            stream.read(skip_bytes)
            for lines, bad in well_formed_lines(stream, Shape(delimiter, len(names))):
                tables.append(read_lines(lines, columns, keep, delimiter=delimiter))
                malformed += bad
    except pa.ArrowException:
        raise InputError(
            f"'{origin}' is not a CSV file; check its header and delimiter, or name the format with format=."
        ) from None
    table = pa.concat_tables(tables) if tables else _empty_table(keep)
    place_of = {int(name[1:]): place for place, name in enumerate(keep)}
    points = points_of_table(table, roles.moved(place_of), options, origin, shortest_first=True)
    return replace(points, lost={**points.lost, MALFORMED: malformed})


def read_lines(
    lines: bytes, columns: list[str], keep: dict[str, pa.DataType], *, delimiter: str, quotes: bool = True
) -> pa.Table:
    """The kept columns of well-formed lines.

    The kept columns are text or float64; each value of a numeric column is parsed on its own, NaN if it is not a
    number.
    """

    def table_with(kinds: dict[str, pa.DataType]) -> pa.Table:
        return pacsv.read_csv(
            pa.BufferReader(lines),
            read_options=pacsv.ReadOptions(column_names=columns, block_size=len(lines) + 1),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, quote_char='"' if quotes else False),
            convert_options=pacsv.ConvertOptions(column_types=kinds, include_columns=list(keep), check_utf8=False),
        )

    if re.search(rb"[^\r\n]", lines) is None:
        return _empty_table(keep)
    try:
        return table_with(keep)
    except pa.ArrowInvalid:  # a value of a numeric column is not a number, and Arrow refuses the whole column
        table = table_with(dict.fromkeys(keep, pa.string()))
    for place, (name, kind) in enumerate(keep.items()):
        if kind == pa.float64():
            table = table.set_column(place, name, pa.chunked_array([numbers_of_text(table[name])], pa.float64()))
    return table


def _empty_table(keep: dict[str, pa.DataType]) -> pa.Table:
    return pa.table({name: pa.array([], kind) for name, kind in keep.items()})


def _header(path: Path) -> tuple[list[str], str, int]:
    """Column names, the delimiter, and the length of the header line in bytes."""
    origin = path.name
    with open_text(path) as stream:
        line = stream.readline(_MAX_HEADER_BYTES + 1)
    if b"\r" in line.rstrip(b"\r\n"):  # lines that end with CR alone
        line = line[: line.index(b"\r") + 1]
    if not line.strip():
        raise InputError(f"'{origin}' is empty or has no header line; the first line must name the columns.")
    if len(line) > _MAX_HEADER_BYTES:
        raise InputError(f"The first line of '{origin}' is longer than 1 MB; that is not a CSV header.")
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError(f"'{origin}' is not UTF-8 text; save it as a UTF-8 CSV.") from None
    if "\x00" in text:
        raise InputError(f"'{origin}' is not a text file.")
    delimiter = max(",;\t|", key=text.count)
    if text.count(delimiter) > MAX_COLUMNS:
        raise InputError(f"'{origin}' has more than {MAX_COLUMNS} columns; keep only the needed ones.")
    try:
        return next(csv.reader(io.StringIO(text), delimiter=delimiter)), delimiter, len(line)
    except (csv.Error, StopIteration):
        raise InputError(f"The header line of '{origin}' cannot be read.") from None

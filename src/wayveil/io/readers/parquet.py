"""Parquet and GeoParquet files: opened safely, read in slices."""

import errno
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from wayveil.errors import InputError
from wayveil.io.layouts import Layout, resolve_layout
from wayveil.io.options import KNOWN_NAMES, MAX_COLUMNS, Columns, ReadOptions, Roles
from wayveil.io.readers.geoparquet import crs_of, geometry_position, holds_lines
from wayveil.io.readers.list_files import files_under
from wayveil.io.readers.parquet_pages import BadParquetError, Chunk, RowGroup, page_sizes, page_values, row_groups
from wayveil.io.readers.points import Points
from wayveil.io.readers.tables import Known, drop_metadata, points_of_table

SLICE_ROWS = 1 << 18
MAX_ROWS_IN_MEMORY = 200_000_000
LARGEST_PAGE_BYTES = 256 << 20
_READ_AHEAD_BYTES = 1 << 20
"""Rows read at a time; rows (about 8 GB of columns) and the size of one page beyond which files are refused; bytes read
ahead from the disk."""
_Layout = TypeVar("_Layout", bound=Columns)


@dataclass(frozen=True)
class PartFiles:
    """Part files that are read together, and their name in messages."""

    files: tuple[str, ...]
    name: str


def is_uri(path: str | Path) -> bool:
    """Whether a path is a URI (s3://…, gs://…, file://…)."""
    return "://" in str(path)


def part_files(path: str | Path) -> list[str]:
    """The Parquet files behind a path: the file itself, or a folder's part files in the order of their names."""
    if is_uri(path):
        return _remote_files(str(path))
    local = Path(path)
    if not local.is_dir():
        return [str(local)]
    files = part_names(local)
    if not files:
        raise InputError(f"The folder '{local.name}' contains no Parquet files.")
    return [str(f) for f in files]


def part_names(folder: Path) -> list[Path]:
    """The part files of a folder at any depth, without those whose names begin with an underscore (metadata)."""
    files = files_under(folder, ".parquet", ".pq")
    return [file for file in files if not any(part.startswith("_") for part in file.relative_to(folder).parts)]


def _remote_files(uri: str) -> list[str]:
    from pyarrow import fs

    try:
        system, inner = fs.FileSystem.from_uri(uri)
        info = system.get_file_info(inner)
        if info.type == fs.FileType.File:
            return [uri]
        found = system.get_file_info(fs.FileSelector(inner, recursive=True))
    except (OSError, ValueError, pa.ArrowException):
        raise InputError("Cannot reach the address of the data; check it and your permissions.") from None
    base = uri[: len(uri) - len(inner)] if uri.endswith(inner) else uri.partition("://")[0] + "://"
    files = sorted(f.path for f in found if f.path.lower().endswith((".parquet", ".pq")))
    if not files:
        raise InputError("There are no Parquet files at the address of the data.")
    return [base + f for f in files]


def _stream(file: str) -> Any:
    if not is_uri(file):
        return pa.OSFile(file, "rb")
    from pyarrow import fs

    system, inner = fs.FileSystem.from_uri(file)
    return system.open_input_file(inner)


@contextmanager
def opened(file: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file whose column chunks are streamed instead of read ahead as a whole."""
    name = file.rstrip("/").rpartition("/")[2]
    try:
        with _stream(file) as stream:
            yield pq.ParquetFile(stream, buffer_size=_READ_AHEAD_BYTES, pre_buffer=False)
    except MemoryError:  # also pyarrow's own
        raise InputError(f"'{name}' does not fit into memory; `wayveil measure` reads large files in parts.") from None
    except (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: Exception) -> InputError:
    if isinstance(error, PermissionError):  # not Arrow's message, which contains the whole path
        return InputError(f"Cannot read '{name}': {os.strerror(errno.EACCES)}.")
    return InputError(f"'{name}' is missing, truncated, or not a Parquet file.")


def roles_of(parquet: pq.ParquetFile, options: ReadOptions, origin: str) -> Layout:
    """The layout of a Parquet file's columns; the geometry is used if there is no lon and lat."""
    schema = parquet.schema_arrow
    if len(schema.names) > MAX_COLUMNS:
        raise InputError(f"'{origin}' has more than {MAX_COLUMNS} columns; keep only the needed ones.")
    lowered = {name.strip().lower() for name in schema.names}
    plain = (options.lon and options.lat) or all(lowered & set(KNOWN_NAMES[role]) for role in ("lon", "lat"))
    asked = options.format == "geoparquet"
    geometry = None if plain and not asked else geometry_position(schema, origin)
    if asked and geometry is None:
        raise InputError(f"'{origin}' has no 'geo' metadata, so it is not GeoParquet.")
    return resolve_layout(schema.names, options, origin, geometry, lines=holds_lines(schema))


def groups_of(file: str, origin: str) -> list[RowGroup]:
    """The row groups of a file."""
    try:
        with _stream(file) as stream:
            return row_groups(stream)
    except (BadParquetError, OSError) as error:
        raise _unreadable(origin, error) from None


def chunks_of(file: str, names: Collection[str], origin: str) -> list[Chunk]:
    """The column chunks of the named columns that have pages."""
    groups = [group for group in groups_of(file, origin) if group.rows]  # an empty one has no pages
    return [chunk for group in groups for chunk in group.chunks if chunk.column in names]


def values_in(file: str, name: str, origin: str) -> int:
    """Number of values in a column, including those inside lists; nothing is decompressed."""
    try:
        with _stream(file) as stream:
            return sum(sum(page_values(stream, one.start, one.stop)) for one in chunks_of(file, {name}, origin))
    except BadParquetError:
        raise InputError(f"'{origin}' is a damaged Parquet file; write it again.") from None


def refuse_bombs(file: str, parquet: pq.ParquetFile, roles: Columns, origin: str) -> None:
    """Refuse pages of the needed columns that decompress to more than a safe amount of memory.

    Every page header of a local file is checked; at an address, where each check is a request, only those of column
    chunks that claim to be large.
    """
    refuse_large_pages(file, {parquet.schema_arrow.names[position] for position in roles.positions}, origin)


def refuse_large_pages(file: str, names: Collection[str], origin: str) -> None:
    """`refuse_bombs` for named columns."""
    chunks = chunks_of(file, names, origin)
    if is_uri(file):
        chunks = [chunk for chunk in chunks if chunk.unpacked_bytes > LARGEST_PAGE_BYTES]
    with _stream(file) as stream:
        for chunk in chunks:
            try:
                large = any(size > LARGEST_PAGE_BYTES for size in page_sizes(stream, chunk.start, chunk.stop))
            except BadParquetError:
                raise InputError(f"'{origin}' is a damaged Parquet file; write it again.") from None
            if large:
                raise InputError(
                    f"'{origin}' has pages that decompress to more than {LARGEST_PAGE_BYTES >> 20} MB; write it "
                    "again with row groups of at most a million rows."
                )


def slices(parquet: pq.ParquetFile, names: Sequence[str], groups: Sequence[int]) -> Iterator[pa.Table]:
    """Row groups in slices of at most SLICE_ROWS rows, only the named columns, in that order."""
    if not groups:
        return
    for batch in parquet.iter_batches(SLICE_ROWS, row_groups=list(groups), columns=list(names), use_threads=False):
        yield pa.Table.from_batches([batch]).select(list(names))


def read_points(parts: PartFiles, options: ReadOptions) -> Points:
    """All rows of Parquet files, in memory."""
    origin = parts.name
    tables: list[pa.Table] = []
    roles: Layout | None = None
    systems: set[Any] = set()
    rows = 0
    for file in parts.files:
        with opened(file) as parquet:
            roles = roles_of(parquet, options, origin)
            rows += parquet.metadata.num_rows
            if rows > MAX_ROWS_IN_MEMORY:
                raise InputError(f"'{origin}' has too many rows to read at once; `wayveil measure` reads it in parts.")
            refuse_bombs(file, parquet, roles, origin)
            names, roles = narrowed(parquet, roles)
            systems.add(crs_of(parquet.schema_arrow))
            tables.extend(slices(parquet, names, range(parquet.metadata.num_row_groups)))
            if not tables:
                tables.append(parquet.schema_arrow.empty_table().select(names))
    assert roles is not None
    try:
        table = pa.concat_tables(one.rename_columns([str(i) for i in range(one.num_columns)]) for one in tables)
    except (pa.ArrowException, ValueError):
        raise InputError(different_parts(origin)) from None
    if len(systems) > 1:
        raise InputError(f"The part files of '{origin}' have different coordinate systems; convert them to one.")
    return points_of_table(table, roles, options, origin, known=Known(crs=systems.pop()))


def narrowed(parquet: pq.ParquetFile, roles: _Layout) -> tuple[list[str], _Layout]:
    """Names of the needed columns, and the roles by position among them."""
    # In the order of the roles, so that part files may have their columns in different orders.
    names, order = parquet.schema_arrow.names, [at for at in vars(roles).values() if isinstance(at, int)]
    return [names[at] for at in order], roles.moved({old: new for new, old in enumerate(order)})


def point_roles_of(parquet: pq.ParquetFile, options: ReadOptions, origin: str) -> Roles:
    """The roles of a file that can be streamed: one row per point, in degrees of WGS 84."""
    roles = roles_of(parquet, options, origin)
    if not isinstance(roles, Roles) or not in_degrees(parquet, roles):
        raise InputError(different_parts(origin))
    return roles


def in_degrees(parquet: pq.ParquetFile, roles: Roles) -> bool:
    """Whether positions need no reprojection."""
    return roles.geometry is None or crs_of(parquet.schema_arrow) is None


def different_parts(origin: str) -> str:
    """The error for part files that cannot be read together."""
    return f"The part files of '{origin}' have different columns; give them the same columns."


def metadata(path: str | Path) -> dict[str, str]:
    """Key-value metadata of a file, without that of Arrow, pandas and GeoParquet.

    For a folder, the entries that all its files share.
    """
    first, *others = part_files(path)
    found = _notes(first)
    for other in others:
        more = _notes(other)
        found = {key: value for key, value in found.items() if more.get(key) == value}
    return {key.decode("utf-8", "replace"): found[key].decode("utf-8", "replace") for key in drop_metadata(list(found))}


def _notes(file: str) -> dict[bytes, bytes]:
    with opened(file) as parquet:
        return dict(parquet.schema_arrow.metadata or {})

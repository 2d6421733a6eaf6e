"""Parquet and GeoParquet files: opened safely, read in slices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from wayveil.errors import InputError
from wayveil.io.layouts import Layout, resolve_layout
from wayveil.io.options import KNOWN_NAMES, MAX_COLUMNS, Columns, ReadOptions, Roles
from wayveil.io.parquet_files import is_uri, opened, refuse_large_pages
from wayveil.io.readers.geoparquet import crs_of, geometry_position, holds_lines
from wayveil.io.readers.list_files import files_under
from wayveil.io.readers.points import Points
from wayveil.io.readers.tables import Known, drop_metadata, points_of_table

SLICE_ROWS = 1 << 18
"""Rows read at a time."""
MAX_ROWS_IN_MEMORY = 200_000_000
"""Maximum number of rows of files that are read as a whole: about 8 GB of columns."""
_Layout = TypeVar("_Layout", bound=Columns)


@dataclass(frozen=True)
class PartFiles:
    """Part files that are read together, and their name in messages."""

    files: tuple[str, ...]
    name: str


def part_files(path: str | Path) -> list[str]:
    """The Parquet files behind a path: the file itself, or a folder's part files in the order of their names."""
    if is_uri(path):
        return _remote_files(str(path))
    local = Path(path)
    if not local.is_dir():
        return [str(local)]
    files = parts_in_folder(local)
    if not files:
        raise InputError(f"The folder '{local.name}' contains no Parquet files.")
    return [str(f) for f in files]


def parts_in_folder(folder: Path) -> list[Path]:
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
        raise InputError("Cannot reach the URL of the data; check it and your permissions.") from None
    base = uri[: len(uri) - len(inner)] if uri.endswith(inner) else uri.partition("://")[0] + "://"
    files = sorted(f.path for f in found if f.path.lower().endswith((".parquet", ".pq")))
    if not files:
        raise InputError("There are no Parquet files at the URL of the data.")
    return [base + f for f in files]


def roles_of(parquet: pq.ParquetFile, options: ReadOptions, origin: str) -> Layout:
    """The layout of a Parquet file's columns; the geometry is used if lon and lat are missing."""
    schema = parquet.schema_arrow
    if len(schema.names) > MAX_COLUMNS:
        raise InputError(f"'{origin}' has more than {MAX_COLUMNS} columns; keep only the needed ones.")
    lowered = {name.strip().lower() for name in schema.names}
    plain = (options.lon and options.lat) or all(lowered & set(KNOWN_NAMES[role]) for role in ("lon", "lat"))
    required = options.format == "geoparquet"
    geometry = None if plain and not required else geometry_position(schema, origin)
    if required and geometry is None:
        raise InputError(f"'{origin}' has no 'geo' metadata, so it is not GeoParquet.")
    return resolve_layout(schema.names, options, origin, geometry, lines=holds_lines(schema))


def refuse_bombs(file: str, parquet: pq.ParquetFile, roles: Columns, origin: str) -> None:
    """`refuse_large_pages` for the needed columns."""
    refuse_large_pages(file, {parquet.schema_arrow.names[position] for position in roles.positions}, origin)


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

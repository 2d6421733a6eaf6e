"""Parquet files of any kind: opened without reading ahead, and refused if a page is too large for memory."""

import errno
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wayveil.errors import InputError
from wayveil.io.parquet_pages import BadParquetError, Chunk, RowGroup, page_sizes, page_values, row_groups

LARGEST_PAGE_BYTES = 256 << 20
"""Decompressed bytes of one page beyond which a file is refused."""
_READ_AHEAD_BYTES = 1 << 20
"""Bytes read ahead from the disk."""


def is_uri(path: str | Path) -> bool:
    """Whether a path is a URI (s3://…, gs://…, file://…)."""
    return "://" in str(path)


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


def refuse_large_pages(file: str, names: Collection[str], origin: str) -> None:
    """Refuse pages of the named columns that decompress to more than a safe amount of memory.

    Every page header of a local file is checked; of a remote file, where each check is a request, only those of column
    chunks that claim to be large.
    """
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

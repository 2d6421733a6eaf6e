"""Row groups and page sizes of a Parquet file, read without decompressing anything.

A page is the smallest piece that a reader must decompress at once, so its size bounds the memory. The sizes in the
footer are only claims, and say nothing about single pages. The footer is parsed here as well, because pyarrow's
accessors for row groups and column chunks crash the process on a damaged footer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from wayveil.io.thrift import BadThriftError, read_struct

_DATA_PAGES = (5, 8)  # the fields of a page header that describe a data page of either version
_FIRST_TRY_BYTES = 1 << 10
"""Most page headers fit into this many bytes."""
_LONGEST_HEADER_BYTES = 1 << 20
"""The longest page header that is read."""
_LONGEST_FOOTER_BYTES = 32 << 20
"""The longest footer that is read."""


class BadParquetError(Exception):
    """An invalid footer or page header."""


@dataclass(frozen=True)
class Chunk:
    """One column of one row group: its position, and its decompressed size as claimed by the footer."""

    column: str
    start: int
    stop: int
    unpacked_bytes: int


@dataclass(frozen=True)
class RowGroup:
    """Number of rows, decompressed bytes, and one chunk per column."""

    rows: int
    unpacked_bytes: int
    chunks: tuple[Chunk, ...]


def row_groups(stream: BinaryIO) -> list[RowGroup]:
    """What the footer says; field numbers are those of Parquet's format definition."""
    try:
        end = stream.seek(0, 2)
        stream.seek(max(end - 8, 0))
        tail = stream.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != b"PAR1" or length > min(end - 8, _LONGEST_FOOTER_BYTES):
            raise BadParquetError
        stream.seek(end - 8 - length)
        footer, _ = read_struct(stream.read(length))
        return [
            RowGroup(_whole(group[3]), _whole(group[2]), tuple(_chunk(column[3]) for column in group[1]))
            for group in footer[4]
        ]
    except (BadThriftError, IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError, ValueError):
        raise BadParquetError from None


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise BadParquetError
    return value


def _chunk(facts: dict[int, object]) -> Chunk:
    path = facts[3]
    if not isinstance(path, list):
        raise BadParquetError
    start = _whole(facts[9])
    dictionary = _whole(facts.get(11, 0))
    start = min(start, dictionary) if dictionary else start
    return Chunk(path[0].decode(), start, start + _whole(facts[7]), _whole(facts[6]))


def page_sizes(stream: BinaryIO, start: int, stop: int) -> Iterator[int]:
    """Decompressed size of each page of the column chunk at the bytes `start:stop`."""
    return (_whole(fields[2]) for fields in _headers(stream, start, stop))


def page_values(stream: BinaryIO, start: int, stop: int) -> Iterator[int]:
    """Number of values in each page, 0 for a dictionary.

    The size of a page does not bound it: a run of equal values takes a few bytes, however long it is.
    """
    for fields in _headers(stream, start, stop):
        try:
            yield max([_whole(fields[kind][1]) for kind in _DATA_PAGES if kind in fields], default=0)
        except (KeyError, TypeError):
            raise BadParquetError from None


def _headers(stream: BinaryIO, start: int, stop: int) -> Iterator[dict[int, Any]]:
    while start < stop:
        fields, length = _header(stream, start)
        packed = _whole(fields[3])
        if packed > stop - start:
            raise BadParquetError
        yield fields
        start += length + packed


def _header(stream: BinaryIO, offset: int) -> tuple[dict[int, Any], int]:
    """The page header at `offset`, and its length."""
    for size in (_FIRST_TRY_BYTES, _LONGEST_HEADER_BYTES):
        stream.seek(offset)
        data = stream.read(size)
        try:
            fields, length = read_struct(data)
            _whole(fields[2]), _whole(fields[3])
            return fields, length
        except IndexError:
            continue  # longer than what was read
        except (BadThriftError, KeyError):
            break
    raise BadParquetError

"""How large the pages of a Parquet file get when unpacked, read from their headers alone.

A page is the smallest piece that a reader must unpack at once, so it is what bounds memory. The sizes in the file's
footer are only claims, and say nothing about single pages; the header of a page is what the reader allocates by.
"""

from collections.abc import Iterator
from typing import BinaryIO

_FIRST_TRY_BYTES = 1 << 10
_LONGEST_HEADER_BYTES = 1 << 20
_UNCOMPRESSED, _COMPRESSED = 2, 3
_I32 = 5


class BadPage(Exception):
    """A page header that is not one."""


def page_sizes(stream: BinaryIO, start: int, stop: int) -> Iterator[int]:
    """Unpacked size of each page of a column chunk that lies at the bytes `start:stop`."""
    while start < stop:
        unpacked, packed, length = _header(stream, start)
        if unpacked < 0 or packed < 0 or packed > stop - start:
            raise BadPage
        yield unpacked
        start += length + packed


def _header(stream: BinaryIO, offset: int) -> tuple[int, int, int]:
    """Unpacked and packed size of the page at `offset`, and the length of its header."""
    for size in (_FIRST_TRY_BYTES, _LONGEST_HEADER_BYTES):
        stream.seek(offset)
        data = stream.read(size)
        try:
            sizes, length = _struct(data, 0, 0)
            return sizes[_UNCOMPRESSED], sizes[_COMPRESSED], length
        except IndexError:
            continue  # longer than what was read
        except KeyError:
            raise BadPage from None
    raise BadPage


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, int], int]:
    """The 32-bit fields of a struct in Thrift's compact protocol, and where the struct ends."""
    if depth > 16:
        raise BadPage
    fields: dict[int, int] = {}
    number = 0
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return fields, at
        kind, step = head & 15, head >> 4
        if step:
            number += step
        else:
            number, at = _zigzag(data, at)
        if kind == _I32:
            fields[number], at = _zigzag(data, at)
        else:
            at = _skip(data, at, kind, depth)


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value that is of no interest ends."""
    if kind in (1, 2):  # true and false are the type itself
        return at
    if kind == 3:
        return at + 1
    if kind in (4, 5, 6):
        return _varint(data, at)[1]
    if kind == 7:
        return at + 8
    if kind == 8:
        length, at = _varint(data, at)
        return at + length
    if kind in (9, 10):
        head = data[at]
        at += 1
        size, inner = head >> 4, head & 15
        if size == 15:
            size, at = _varint(data, at)
        for _ in range(size):
            # Inside a list a truth value takes a byte of its own.
            at = at + 1 if inner in (1, 2) else _skip(data, at, inner, depth + 1)
            if at > len(data):
                raise IndexError
        return at
    if kind == 12:
        return _struct(data, at, depth + 1)[1]
    raise BadPage


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise BadPage


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at

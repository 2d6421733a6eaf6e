"""The part of Thrift's compact protocol that Parquet's footers and page headers use."""

from typing import Any

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
"""Type codes of the compact Thrift protocol."""
_MAX_DEPTH = 16
"""Parquet nests its structures less deeply."""


class BadThriftError(Exception):
    """Bytes that are not valid Thrift."""


def read_struct(data: bytes, at: int = 0, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The fields of a struct by number, and where it ends; IndexError if the bytes end before the struct does."""
    if depth > _MAX_DEPTH:
        raise BadThriftError
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return fields, at
        if head >> 4:
            number += head >> 4
        else:
            number, at = _zigzag(data, at)
        kind = head & 15
        if kind in (_TRUE, _FALSE):  # the type is the value
            fields[number] = kind == _TRUE
        else:
            fields[number], at = _value(data, at, kind, depth)


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (_I16, _I32, _I64):
        return _zigzag(data, at)
    if kind == _BINARY:
        length, at = _varint(data, at)
        if at + length > len(data):
            raise IndexError
        return data[at : at + length], at + length
    if kind in (_LIST, _SET):
        return _list(data, at, depth)
    if kind == _STRUCT:
        return read_struct(data, at, depth + 1)
    if kind in (_TRUE, _FALSE, _BYTE):  # inside a list a boolean takes a byte
        return data[at], at + 1
    if kind == _DOUBLE:
        return data[at : at + 8], at + 8
    raise BadThriftError


def _list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    if depth > _MAX_DEPTH:
        raise BadThriftError
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    items = []
    for _ in range(size):  # every item takes at least one byte, so the length of the data bounds the loop
        item, at = _value(data, at, kind, depth + 1)
        items.append(item)
        if at > len(data):
            raise IndexError
    return items, at


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
            raise BadThriftError


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at

"""The well-formed lines of a CSV file, each parsed on its own.

A quotation mark that is never closed would swallow the lines after it, and a line with the wrong number of values, or
one of a gigabyte, would stop the parser. So a record is one line, and malformed lines are removed before parsing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

CHUNK_BYTES = 8 << 20
"""Bytes read at a time."""
MAX_LINE_BYTES = 1 << 20
"""The longest line that is read; a longer one is a damaged row."""
_QUOTE, _LINE_FEED, _CARRIAGE_RETURN = b'"\n\r'


@dataclass(frozen=True)
class Shape:
    """What a well-formed line looks like."""

    delimiter: str
    columns: int
    quotes: bool = True
    """Whether a value may be enclosed in quotation marks; if not, they are ordinary characters."""


def well_formed_lines(stream: BinaryIO, shape: Shape) -> Iterator[tuple[bytes, int]]:
    """Chunks of well-formed lines, and how many malformed lines were removed from each; empty lines are ignored."""
    rest, skipping = b"", False
    while True:
        read = stream.read(CHUNK_BYTES)
        data, too_long = rest + read, 0
        if skipping:  # the rest of a line that is too long
            end = min([at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0], default=-1)
            data, skipping = (data[end + 1 :], False) if end >= 0 else (b"", True)
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1 if read else len(data)
        whole, rest = data[:cut], data[cut:]
        if len(rest) > MAX_LINE_BYTES:
            rest, skipping, too_long = b"", True, 1
        if whole:
            sound, malformed = _without_malformed(whole, shape)
            yield sound, malformed + too_long
        elif too_long:
            yield b"", too_long
        if not read:
            return


def _without_malformed(data: bytes, shape: Shape) -> tuple[bytes, int]:
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero((text == _LINE_FEED) | (text == _CARRIAGE_RETURN))
    if not len(ends) or ends[-1] != len(text) - 1:
        ends = np.r_[ends, len(text)]
    starts = np.r_[0, ends[:-1] + 1]
    delimiters = np.flatnonzero(text == ord(shape.delimiter))
    quotes = np.flatnonzero(text == _QUOTE) if shape.quotes else delimiters[:0]
    if len(quotes):
        sound = _sound_with_quotes(_Lines(data, text, starts, ends), quotes, delimiters, shape)
    else:
        sound = np.diff(np.searchsorted(delimiters, np.r_[starts, len(text)])) == shape.columns - 1
    sound &= ends - starts <= MAX_LINE_BYTES
    malformed = ~sound & (ends > starts)
    if not malformed.any():
        return data, 0
    lengths = np.diff(np.r_[starts, len(text)])
    return text[np.repeat(~malformed, lengths)].tobytes(), int(malformed.sum())


@dataclass(frozen=True, eq=False)
class _Lines:
    """Text as bytes and as an array, with the start and the end of each line."""

    data: bytes
    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def _sound_with_quotes(
    lines: _Lines, quotes: NDArray[np.int64], delimiters: NDArray[np.int64], shape: Shape
) -> NDArray[np.bool_]:
    """Lines with the right number of values and balanced quotation marks.

    Quotation marks alternate between opening and closing: an opening mark is at the start of a value, a closing one at
    its end, and two adjacent marks are an escaped mark. A line for which this fails is parsed on its own: in a value
    that does not start with a mark, marks are ordinary characters.
    """
    text, starts, ends = lines.text, lines.starts, lines.ends
    bounds = np.r_[starts, len(text)]
    first, first_delimiter = (np.asarray(np.searchsorted(places, bounds)) for places in (quotes, delimiters))
    number = np.arange(len(ends))
    line, on_line = np.repeat(number, np.diff(first)), np.repeat(number, np.diff(first_delimiter))
    place = np.arange(len(quotes)) - first[line]
    padded = np.r_[text, np.uint8(_LINE_FEED)]
    before, after = padded[quotes - 1], padded[quotes + 1]
    delimiter = ord(shape.delimiter)
    opens = (quotes == starts[line]) | (before == delimiter) | ((before == _QUOTE) & (place > 0))
    closes = (quotes + 1 == ends[line]) | (after == delimiter) | (after == _QUOTE)
    unclear = np.diff(first) % 2 == 1
    unclear[line[np.where(place % 2 == 0, ~opens, ~closes)]] = True
    # A delimiter with an odd number of marks before it on its line is inside a value.
    odd_so_far = np.bitwise_xor.accumulate((text == _QUOTE).view(np.uint8))
    outside = odd_so_far[delimiters] == (first[on_line] % 2).astype(np.uint8)
    sound = np.bincount(on_line[outside], minlength=len(ends)) == shape.columns - 1
    escaped = re.escape(shape.delimiter.encode())
    value = rb'(?:"(?:[^"]|"")*"|[^"%(d)s][^%(d)s]*|)' % {b"d": escaped}
    record = re.compile(rb"%(v)s(?:%(d)s%(v)s){%(n)d}" % {b"v": value, b"d": escaped, b"n": shape.columns - 1})
    for at in np.flatnonzero(unclear):
        sound[at] = record.fullmatch(lines.data, int(starts[at]), int(ends[at])) is not None
    result: NDArray[np.bool_] = sound
    return result

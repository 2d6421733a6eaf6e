"""Opening input files: regular files only, with a limit on the size."""

import errno
import os
import re
import stat
from io import BufferedReader

_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Opening a FIFO without a writer would block forever; for regular files the flag has no effect."""


_NOT_WORDS = re.compile(rb"[0-9\x00-\x08\x0e-\x1f]")
"""Digits, and bytes that text does not have. A file without them holds no position in any format."""
_CHUNK_BYTES = 1 << 20
"""Bytes that are read at a time."""


class NotRegularError(OSError):
    """A device, FIFO, socket or folder where a file was expected."""


class TooLargeError(OSError):
    """A file with more bytes than the caller reads."""


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """A regular file (or a link to one) opened for reading; NotRegularError for anything else, without waiting."""
    handle = os.open(path, os.O_RDONLY | _WITHOUT_WAITING)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotRegularError(errno.EINVAL, "not a regular file")
    return open(handle, "rb")


def read_bytes(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """The content of a regular file; TooLargeError above `most_bytes`."""
    with open_regular(path) as stream:
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise TooLargeError(errno.EFBIG, "too large")
    return content


def holds_only_words(path: str | os.PathLike[str]) -> bool:
    """Whether a file is empty or text without a digit, so that it cannot be data."""
    try:
        with open_regular(path) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                if _NOT_WORDS.search(chunk):
                    return False
    except OSError:
        return False
    return True


def read_text(path: str | os.PathLike[str], most_bytes: int, encoding: str = "utf-8") -> str:
    """The text of a regular file with all line endings converted to LF; UnicodeDecodeError if it is not text."""
    return read_bytes(path, most_bytes).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")

"""Text files that may be packed: plain, `.gz`, or a `.zip` with one data file, read as a stream inside limits."""

import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from wayveil.errors import InputError
from wayveil.io.inputs import open_regular

MAX_UNPACKED_BYTES = 4 << 30
"""More than this must be unpacked by the owner first."""
_FREE_BYTES = 64 << 20
_MAX_RATIO = 200
"""Text of positions compresses 3 to 20 times. More than 64 MB and more than 200 times the file's size is refused:
such a file was probably made to fill memory."""
_MAX_MEMBERS = 10_000
_BUFFER_BYTES = 1 << 18
"""The most files in an archive that are looked at, and bytes unpacked at a time."""


class _Bounded(io.RawIOBase):
    """A stream that ends with an error beyond a number of bytes."""

    def __init__(self, stream: Any, most: int, origin: str) -> None:
        self.stream, self.left, self.origin = stream, most, origin

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self.stream.read(len(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError, NotImplementedError):
            raise InputError(f"'{self.origin}' is damaged, encrypted or cut off; unpack it first.") from None
        self.left -= len(data)
        if self.left < 0:
            raise InputError(f"'{self.origin}' unpacks to too much data; unpack it first, or convert it to Parquet.")
        buffer[: len(data)] = data
        return len(data)


def inner_name(path: Path) -> str:
    """The name of the data file: without `.gz`, or that of the only data file in a `.zip`."""
    name = path.name.lower()
    if name.endswith(".gz"):
        return path.name[: -len(".gz")]
    if not name.endswith(".zip"):
        return path.name
    with _archive(path) as archive:
        return PurePosixPath(_data_file(archive, path.name)).name


def is_packed(path: Path) -> bool:
    """Whether the extension says that a file is packed."""
    return path.name.lower().endswith((".gz", ".zip"))


@contextmanager
def open_text(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a text file, unpacked if its extension is `.gz` or `.zip`."""
    origin, packed = path.name, is_packed(path)
    try:
        if not packed:
            with open_regular(path) as stream:
                yield stream
            return
        most = min(MAX_UNPACKED_BYTES, max(_FREE_BYTES, _MAX_RATIO * os.path.getsize(path)))
        if origin.lower().endswith(".gz"):
            with open_regular(path) as outer, gzip.open(outer) as stream:
                yield io.BufferedReader(_Bounded(stream, most, origin), _BUFFER_BYTES)
            return
        with _archive(path) as archive, archive.open(_data_file(archive, origin)) as member:
            yield io.BufferedReader(_Bounded(member, most, origin), _BUFFER_BYTES)
    except OSError as error:
        raise InputError(f"Cannot read '{origin}': {error.strerror or 'input error'}.") from None
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile):
        raise InputError(f"'{origin}' is damaged or encrypted; unpack it first.") from None


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except zipfile.BadZipFile:
        raise InputError(f"'{path.name}' is not a zip file.") from None


def _data_file(archive: zipfile.ZipFile, origin: str) -> str:
    """The only file in an archive, apart from hidden files and those that macOS adds."""
    names = archive.namelist()
    if len(names) > _MAX_MEMBERS:
        raise InputError(f"'{origin}' holds more than {_MAX_MEMBERS:,} files; unpack it first.")
    parts = {name: PurePosixPath(name).parts for name in names if not name.endswith("/")}
    files = [name for name, way in parts.items() if not any(part.startswith((".", "__MACOSX")) for part in way)]
    shapefiles = [name for name in files if name.lower().endswith(".shp")]
    if len(shapefiles) == 1:
        return shapefiles[0]
    if len(files) != 1:
        raise InputError(f"'{origin}' must hold exactly one data file; unpack it first.")
    return files[0]

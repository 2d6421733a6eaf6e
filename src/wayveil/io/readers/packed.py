"""Text files that may be packed: plain, `.gz`, or a `.zip` with one data file, read as a stream within limits."""

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
"""A file that unpacks to more must be unpacked by its owner first."""
_FREE_BYTES = 64 << 20
"""Up to this unpacked size, any compression ratio is accepted."""
_MAX_RATIO = 200
"""Maximum ratio of unpacked to packed size of larger files. Text of positions compresses by a factor of 3 to 20; a file
that compresses more was probably made to fill memory."""
_MAX_MEMBERS = 10_000
"""Maximum number of files in an archive."""
_BUFFER_BYTES = 1 << 18
"""Bytes unpacked at a time."""
_PACKERS = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a": "rar",
}
"""The first bytes of packed files."""
_BZIP2_BLOCK = b"1AY&SY"
"""The first bytes of the first block of a bzip2 file, after its header of four bytes."""
_SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_TAR_ENDINGS = (".tar", ".tgz", ".tar.gz", ".tbz2", ".tar.bz2", ".txz", ".tar.xz", ".tar.zst")


class _Bounded(io.RawIOBase):
    """A stream that raises an error when more than `most` bytes are read."""

    def __init__(self, stream: Any, most: int, origin: str) -> None:
        self.stream, self.left, self.origin = stream, most, origin

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self.stream.read(len(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError, NotImplementedError):
            raise InputError(f"'{self.origin}' is damaged, encrypted or truncated; unpack it first.") from None
        self.left -= len(data)
        if self.left < 0:
            raise _too_much(self.origin)
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


def check_packing(path: Path) -> None:
    """InputError for a packed file that cannot be read; the message says what it is, and what to do with it."""
    name = path.name.lower()
    if name.endswith(_SPREADSHEETS):
        raise InputError(f"'{path.name}' is a spreadsheet; save it as CSV (UTF-8).")
    if name.endswith(_TAR_ENDINGS):
        raise InputError(f"'{path.name}' is an archive; unpack it, and give the data file.")
    with open_regular(path) as stream:
        start = stream.read(10)
    packer = next((packer for beginning, packer in _PACKERS.items() if start.startswith(beginning)), None)
    if packer == "bzip2" and start[4:10] != _BZIP2_BLOCK:
        packer = None  # text may begin with these three letters
    ending = {"gzip": ".gz", "zip": ".zip"}.get(packer or "")
    if packer is None or (ending is not None and name.endswith(ending)):
        return
    rename = "" if ending is None else f"rename it to '{path.name}{ending}', or "
    raise InputError(f"'{path.name}' is compressed with {packer}; {rename}decompress it first.")


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
        most = _most_bytes(path)
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


def shapefile_in(path: Path) -> str:
    """The path inside a `.zip` of its only Shapefile.

    GDAL unpacks the files by itself, so the sizes in the archive's directory are checked. It does no harm if the
    directory understates a size: GDAL reads no more than the stated size.
    """
    with _archive(path) as archive:
        member = _data_file(archive, path.name)
        stem = str(PurePosixPath(member).with_suffix("")).lower() + "."
        parts = [info for info in archive.infolist() if info.filename.lower().startswith(stem)]
        if sum(info.file_size for info in parts) > _most_bytes(path):
            raise _too_much(path.name)
        if len({info.filename for info in parts}) < len(parts):
            raise InputError(f"'{path.name}' holds the same file twice; unpack it first.")
        return member


def _most_bytes(path: Path) -> int:
    """How much a packed file may unpack to: a function of its size alone."""
    return min(MAX_UNPACKED_BYTES, max(_FREE_BYTES, _MAX_RATIO * os.path.getsize(path)))


def _too_much(origin: str) -> InputError:
    return InputError(f"'{origin}' unpacks to too much data; unpack it first, or convert it to Parquet.")


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except zipfile.BadZipFile:
        raise InputError(f"'{path.name}' is not a zip file.") from None


def _data_file(archive: zipfile.ZipFile, origin: str) -> str:
    """The only Shapefile in an archive, or else its only file, apart from hidden files and those that macOS adds."""
    names = archive.namelist()
    if len(names) > _MAX_MEMBERS:
        raise InputError(f"'{origin}' holds more than {_MAX_MEMBERS:,} files; unpack it first.")
    parts = {name: PurePosixPath(name).parts for name in names if not name.endswith("/")}
    files = [name for name, path in parts.items() if not any(part.startswith((".", "__MACOSX")) for part in path)]
    shapefiles = [name for name in files if name.lower().endswith(".shp")]
    if len(shapefiles) == 1:
        return shapefiles[0]
    if len(files) != 1:
        raise InputError(f"'{origin}' must hold exactly one data file; unpack it first.")
    return files[0]

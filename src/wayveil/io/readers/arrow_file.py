"""Arrow IPC files and streams (Feather); one that would decompress to too much memory is refused beforehand."""

import struct
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from wayveil.errors import InputError
from wayveil.io.inputs import open_regular
from wayveil.io.layouts import resolve_layout
from wayveil.io.options import ReadOptions
from wayveil.io.readers.points import Points
from wayveil.io.readers.tables import points_of_table

MAX_UNPACKED_BYTES = 4 << 30
"""Files that decompress to more are refused, because a small file could fill the memory."""
_FILE_MAGIC = b"ARROW1\0\0"
_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2
"""Numbers of message types in the schema of the Arrow IPC format."""
_MESSAGE_HEADER_TYPE, _MESSAGE_HEADER = 1, 2
"""Numbers of the fields of a message."""
_BATCH_BUFFERS, _BATCH_COMPRESSION, _DICTIONARY_DATA = 2, 3, 1
"""Numbers of the fields of a batch and of a dictionary."""


def read_points(path: Path, options: ReadOptions) -> Points:
    """The rows of an Arrow IPC file or stream; only the needed columns are decompressed."""
    origin = path.name
    try:
        open_regular(path).close()
        with pa.memory_map(str(path)) as source:
            is_file = source.read(len(_FILE_MAGIC)) == _FILE_MAGIC
            source.seek(len(_FILE_MAGIC) if is_file else 0)
            if _unpacked_bytes(source) > MAX_UNPACKED_BYTES:
                raise InputError(
                    f"'{origin}' unpacks to more than {MAX_UNPACKED_BYTES >> 30} GB; write it as Parquet, which "
                    "`wayveil measure` reads in parts."
                )
            source.seek(0)
            opened = ipc.open_file if is_file else ipc.open_stream
            names = opened(source).schema.names
            layout = resolve_layout(names, options, origin)
            source.seek(0)
            reader = opened(source, options=ipc.IpcReadOptions(included_fields=layout.positions, use_threads=False))
            table = reader.read_all()
    except (OSError, pa.ArrowException, ValueError, IndexError, struct.error) as error:
        why = f"Cannot read '{origin}': {error.strerror}." if isinstance(error, PermissionError) else None
        raise InputError(why or f"'{origin}' is damaged, or is not an Arrow or Feather (version 2) file.") from None
    layout = layout.moved({old: new for new, old in enumerate(layout.positions)})
    return points_of_table(table, layout, options, origin)


def _unpacked_bytes(source: pa.NativeFile) -> int:
    """How many bytes all buffers of a stream have after decompression."""
    total = 0
    for message in ipc.MessageReader.open_stream(source):
        head = memoryview(message.metadata)
        table = _Table.root(head)
        kind, batch = table.number(_MESSAGE_HEADER_TYPE, "B"), table.table(_MESSAGE_HEADER)
        if kind == _DICTIONARY_BATCH and batch is not None:
            batch = batch.table(_DICTIONARY_DATA)
        if kind not in (_RECORD_BATCH, _DICTIONARY_BATCH) or batch is None:
            continue
        body = memoryview(message.body) if message.body is not None else memoryview(b"")
        packed = batch.table(_BATCH_COMPRESSION) is not None
        for offset, length in batch.pairs(_BATCH_BUFFERS):
            # A compressed buffer begins with its size after decompression; -1 means that it is stored as it is.
            size = struct.unpack_from("<q", body, offset)[0] if packed and length >= 8 else length
            total += length if size < 0 else size
    return total


class _Table:
    """A table of a FlatBuffer: field k lies where the table's list of offsets says."""

    def __init__(self, data: memoryview, at: int) -> None:
        self.data, self.at = data, at

    @classmethod
    def root(cls, data: memoryview) -> "_Table":
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _field(self, k: int) -> int:
        """Position of a field, 0 where it is missing."""
        vtable = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        size = struct.unpack_from("<H", self.data, vtable)[0]
        place = 4 + 2 * k
        offset = struct.unpack_from("<H", self.data, vtable + place)[0] if place < size else 0
        return self.at + offset if offset else 0

    def number(self, k: int, code: str) -> int:
        at = self._field(k)
        return int(struct.unpack_from("<" + code, self.data, at)[0]) if at else 0

    def table(self, k: int) -> "_Table | None":
        at = self._field(k)
        return _Table(self.data, at + struct.unpack_from("<I", self.data, at)[0]) if at else None

    def pairs(self, k: int) -> list[tuple[int, int]]:
        """A vector of pairs of 64-bit integers."""
        at = self._field(k)
        if not at:
            return []
        at += struct.unpack_from("<I", self.data, at)[0]
        count = struct.unpack_from("<I", self.data, at)[0]
        flat = struct.unpack_from(f"<{2 * count}q", self.data, at + 4)
        return list(zip(flat[::2], flat[1::2]))

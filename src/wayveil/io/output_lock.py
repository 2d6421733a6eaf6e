"""One run at a time for one output."""

import datetime as dt
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wayveil.errors import InputError
from wayveil.io.outputs import unwritable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_MOST_BYTES = 4096
"""Bytes read from a lock file, which may be anything."""


@contextmanager
def output_lock(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lock the output for this run; InputError if another run holds it, naming its process.

    The lock is the kernel's (flock on `.<name>.lock` next to the output), so it is released when its process ends for
    any reason, and a lock file that a killed run left does not block. On a file system without such locks there is no
    protection.
    """
    target = Path(path)
    if fcntl is None:
        yield
        return
    lock = target.with_name(f".{target.name}.lock")
    handle = _locked(lock, target)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()  # while it is still locked, so that the next process creates a new file
        os.close(handle)


def _locked(lock: Path, target: Path) -> int:
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        except (OSError, ValueError) as error:
            raise unwritable(target, error) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(handle)
            os.close(handle)
            raise InputError(
                f"'{target.name}' is being written by another run{holder}; wait until it has finished, or choose "
                "another output."
            ) from None
        except OSError:  # a file system without locks
            return handle
        if _is_at(lock, handle):
            with suppress(OSError):  # on a full disk the lock still works, only its message is shorter
                _sign(handle)
            return handle
        os.close(handle)  # its holder removed it between our opening and locking it


def _is_at(lock: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(lock, follow_symlinks=False), os.fstat(handle))
    except OSError:
        return False


def _sign(handle: int) -> None:
    """Write the holder into the lock file, for the message of another run."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    text = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": now})
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)


def _holder(handle: int) -> str:
    try:
        holder = json.loads(os.pread(handle, _MOST_BYTES, 0))
        pid, host, since = int(holder["pid"]), str(holder["host"]), str(holder["since"])
        words = f" (process {pid} on {host}, since {since})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return words if words.isprintable() and len(words) < 400 else ""

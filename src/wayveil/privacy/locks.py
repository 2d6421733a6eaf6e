"""Two locks around every use of a ledger: one for the threads of this process, one for processes.

SQLite's own locks remain underneath. They are not enough, because POSIX drops all of a process's `fcntl` locks on a
file as soon as the process closes any descriptor of that file (https://www.sqlite.org/howtocorrupt.html, section 2.2).
"""

import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wayveil.errors import InputError

if sys.platform != "win32":
    import fcntl

_LONGEST_PAUSE_S = 0.02  # between two attempts; a transaction takes a few milliseconds

_process_lock = threading.RLock()
"""One lock for all ledgers: no two paths to one file (links, relative paths) can be mistaken for two ledgers."""


def _before_fork() -> None:
    _process_lock.acquire()


def _in_parent() -> None:
    _process_lock.release()


def _in_child() -> None:
    global _process_lock
    _process_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # A fork waits for a running transaction: SQLite's memory of its locks must not be copied into a child.
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


@contextmanager
def process_lock(name: str, deadline: float) -> Iterator[None]:
    """Keep out the other threads of this process; InputError at the deadline."""
    lock = _process_lock
    if not lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
        raise held(name)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def file_lock(path: Path, name: str, deadline: float) -> Iterator[None]:
    """Keep out other processes by an exclusive `flock` on the file at `path`; InputError at the deadline.

    The file is created if it is missing, and stays. On Windows SQLite's own locks are enough, because closing another
    handle does not drop them.
    """
    if sys.platform == "win32":
        yield
        return
    handle = _locked_handle(path, name, deadline)
    try:
        yield
    finally:
        # Unlock explicitly: a child process that was started meanwhile may hold a copy of the descriptor.
        with suppress(OSError):  # closing releases the lock too
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def held(name: str) -> InputError:
    """The error raised at the deadline."""
    return InputError(
        f"The ledger '{name}' is held by another process; nothing was spent. Try again when it has finished."
    )


def cannot_open(name: str, error: OSError) -> InputError:
    """The error raised if a folder cannot be used."""
    return InputError(f"Cannot open the ledger '{name}' for writing: {error.strerror}; choose another ledger=.")


def _locked_handle(path: Path, name: str, deadline: float) -> int:
    pause_s = 0.001
    while True:
        # O_NONBLOCK: a FIFO of that name must not hang. O_NOFOLLOW: the lock is this file, not what a link points to.
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        except OSError as error:
            raise cannot_open(name, error) from None
        locked = False
        try:
            opened = os.fstat(handle)
            if not stat.S_ISREG(opened.st_mode):
                raise InputError(f"The lock file '{path.name}' is not a regular file; remove it or move the ledger.")
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = _is_file(path, opened)  # Somebody may have removed or replaced the file meanwhile.
            except BlockingIOError:
                pass
            except OSError as error:  # a file system without locks
                raise cannot_open(name, error) from None
            if locked:
                return handle
        finally:
            if not locked:
                os.close(handle)
        if time.monotonic() >= deadline:
            raise held(name)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _is_file(path: Path, opened: os.stat_result) -> bool:
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (opened.st_dev, opened.st_ino)

"""Files that are either complete or absent."""

import errno
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wayveil.errors import InputError
from wayveil.io.outputs import check_target, reason, unwritable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_umask_lock = threading.Lock()


@contextmanager
def atomic_path(path: str | os.PathLike[str], *, private: bool) -> Iterator[Path]:
    """Yield a temporary path in the same folder; on success it becomes `path`, on any exception it is removed.

    A `private` file is readable by its owner alone (0600); a public one has the mode that the umask gives. While it is
    being written, it is private in either case. The folder is checked first, so that an unwritable output is detected
    before the work is done. Temporary files that a killed run left for the same target are removed; the file of a run
    that is still working is locked and stays. The rename is on disk before this returns.
    """
    target = Path(path)
    check_target(target)
    _remove_leftovers(target)
    handle, part = _new_part(target)
    try:
        yield part
        os.fsync(handle)
        os.chmod(part, 0o600 if private else 0o666 & ~_umask())
        if fcntl is None:  # Windows cannot rename an open file
            os.close(handle)
            handle = -1
        os.replace(part, target)
    except OSError as error:
        raise InputError(f"Cannot write '{target.name}': {reason(error)}; no file was written.") from None
    finally:
        with suppress(OSError):  # After the rename a failure here must not look like a failed write.
            part.unlink(missing_ok=True)
        if handle >= 0:
            os.close(handle)
    _sync_folder(target)


def write_text(path: str | os.PathLike[str], text: str, *, private: bool) -> None:
    """Write a whole text file, or nothing."""
    with atomic_path(path, private=private) as part:
        part.write_text(text, encoding="utf-8")


def _new_part(target: Path) -> tuple[int, Path]:
    """A new, locked file next to the target, readable by its owner alone."""
    while True:
        try:
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        except (OSError, ValueError) as error:
            raise unwritable(target, error) from None
        if fcntl is None:
            return handle, Path(name)
        with suppress(OSError):  # a file system without locks: leftovers are not removed there either
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # another run took it for a leftover before it was locked


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of the same target that no process has locked."""
    if fcntl is None:
        return
    ours = re.compile(re.escape(f".{target.name}.") + r"[a-z0-9_]{8}\.part")
    with suppress(OSError):
        for name in [name for name in os.listdir(target.parent) if ours.fullmatch(name)]:
            with suppress(OSError):
                _remove_if_unused(target.with_name(name))


def _remove_if_unused(part: Path) -> None:
    handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError if a run is still working on it
        if os.path.samestat(os.stat(part, follow_symlinks=False), os.fstat(handle)):
            part.unlink()
    finally:
        os.close(handle)


def _umask() -> int:
    # The umask can only be read by setting it. The strictest value keeps files that other threads create meanwhile
    # private.
    with _umask_lock:
        mask = os.umask(0o077)
        os.umask(mask)
    return mask


def _sync_folder(target: Path) -> None:
    """Flush the folder, so that the new file name survives a crash, if the file system supports it."""
    if fcntl is None:
        return
    try:
        handle = os.open(target.parent, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # a folder that may be written but not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno in (errno.EIO, errno.ENOSPC):
            raise InputError(
                f"'{target.name}' is complete, but the disk reports an error ({reason(error)}); copy it elsewhere."
            ) from None
    finally:
        os.close(handle)

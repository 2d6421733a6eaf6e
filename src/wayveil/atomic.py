"""Files that are either complete or not there."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wayveil.errors import InputError


@contextmanager
def atomic_path(path: str | os.PathLike[str], mode: int = 0o644) -> Iterator[Path]:
    """Yield a temporary path in the same folder; on success it becomes `path`, on any exception it is removed.

    The folder is tried first, so that an unwritable output is known before the work is done.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent or Path("."))
    except OSError as error:
        raise _unwritable(target, error) from None
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with open(part, "rb") as written:
            os.fsync(written.fileno())
        os.chmod(part, mode)
        os.replace(part, target)
    except OSError as error:
        raise InputError(f"Cannot write '{target.name}': {_reason(error)}; nothing was left behind.") from None
    finally:
        with suppress(OSError):  # After the rename a failure here must not look like a failed write.
            part.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str, mode: int = 0o644) -> None:
    """Write a whole text file, or nothing."""
    with atomic_path(path, mode) as part:
        part.write_text(text, encoding="utf-8")


def check_output(path: str | os.PathLike[str], *, force: bool = False, room_bytes: int = 0) -> None:
    """InputError unless a file can be written at `path`; tried before the work, so that nothing is spent in vain.

    A file that is there already is only overwritten with `force`. `room_bytes` must be free on the disk.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise InputError(f"'{target.name}' is a folder; choose the name of a file with -o.")
        if target.exists() and not force:
            raise InputError(f"'{target.name}' is already there; choose another name or add --force.")
        with tempfile.TemporaryFile(dir=target.parent or Path(".")) as file:
            if room_bytes and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, room_bytes)
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None


def _unwritable(target: Path, error: OSError | ValueError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"The folder for '{target.name}' is not there; make it first (mkdir), or choose another -o.")
    return InputError(f"Cannot write to the folder of '{target.name}': {_reason(error)}; choose another -o.")


def _reason(error: OSError | ValueError) -> str:
    """The system's own words: libraries wrap them in theirs."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else getattr(error, "strerror", None) or "not a possible name"

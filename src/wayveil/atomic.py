"""Files that are either complete or not there."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
        raise InputError(f"Cannot write '{target.name}': {error.strerror}; nothing was left behind.") from None
    finally:
        part.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str, mode: int = 0o644) -> None:
    """Write a whole text file, or nothing."""
    with atomic_path(path, mode) as part:
        part.write_text(text, encoding="utf-8")


def check_output(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """InputError unless a file can be written at `path`; tried before the work, so that nothing is spent in vain.

    A file that is there already is only overwritten with `force`.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise InputError(f"'{target.name}' is a folder; choose the name of a file with -o.")
        if target.exists() and not force:
            raise InputError(f"'{target.name}' is already there; choose another name or add --force.")
        with tempfile.TemporaryFile(dir=target.parent or Path(".")):
            pass
    except (OSError, ValueError) as error:
        raise _unwritable(target, error) from None


def _unwritable(target: Path, error: OSError | ValueError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"The folder for '{target.name}' is not there; make it first (mkdir), or choose another -o.")
    reason = getattr(error, "strerror", None) or "not a possible name"
    return InputError(f"Cannot write to the folder of '{target.name}': {reason}; choose another -o.")

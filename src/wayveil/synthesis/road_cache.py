"""Arrays that belong to a public map, kept in the user's cache folder so that the next run finds them.

Only plain numbers are stored and only plain numbers are read (no pickle: nothing in a file is ever run). A file that
cannot be read is as good as none.

Privacy: free (public maps only; nothing of a release or of the data comes here).
"""

import hashlib
import os
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wayveil.atomic import atomic_path
from wayveil.errors import InputError

_MOST_FILES = 24


def cache_folder() -> Path | None:
    """`$XDG_CACHE_HOME/wayveil`, or `~/.cache/wayveil`; None where there is no home."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        return Path(given) / "wayveil"
    try:
        return Path.home() / ".cache" / "wayveil"
    except RuntimeError:
        return None


def cache_name(*parts: object) -> str:
    """A file name that is equal only for equal parts."""
    text = "\n".join(repr(part) for part in parts)
    return f"roads-{hashlib.sha256(text.encode()).hexdigest()[:40]}.npz"


def load_arrays(folder: Path | None, name: str) -> dict[str, NDArray[np.generic]] | None:
    """What was stored under the name, or None if there is nothing or nothing that can be read."""
    if folder is None:
        return None
    try:
        with np.load(folder / name, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError, MemoryError):
        return None


def store_arrays(folder: Path | None, name: str, arrays: dict[str, NDArray[np.generic]]) -> bool:
    """Store the arrays, complete or not at all; False where the folder cannot be written, which is no error."""
    if folder is None:
        return False
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_path(folder / name, private=True) as part, open(part, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        _forget_oldest(folder)
    except (OSError, InputError):
        return False
    return True


def _forget_oldest(folder: Path) -> None:
    files = sorted(folder.glob("roads-*.npz"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[_MOST_FILES:]:
        file.unlink(missing_ok=True)

"""Cache of arrays computed from a public map, in the user's cache folder.

Only plain numbers are stored and read; pickle is disabled, so loading a file never executes code. A file that cannot be
read is ignored.

Privacy: free (public maps only; the cache contains nothing from a release or from the data).
"""

import hashlib
import os
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError
from wayveil.io.atomic import atomic_path
from wayveil.synthesis.routes.settings import ROADS


def cache_folder() -> Path | None:
    """`$XDG_CACHE_HOME/wayveil`, or `~/.cache/wayveil`; None if there is no home folder."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        return Path(given) / "wayveil"
    try:
        return Path.home() / ".cache" / "wayveil"
    except RuntimeError:
        return None


def cache_name(*parts: object) -> str:
    """A file name that identifies the parts; different parts have different names."""
    text = "\n".join(repr(part) for part in parts)
    return f"roads-{hashlib.sha256(text.encode()).hexdigest()[:40]}.npz"


def load_arrays(folder: Path | None, name: str) -> dict[str, NDArray[np.generic]] | None:
    """The arrays stored under the name, or None if there are none or they cannot be read."""
    if folder is None:
        return None
    try:
        with np.load(folder / name, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError, MemoryError):
        return None


def store_arrays(folder: Path | None, name: str, arrays: dict[str, NDArray[np.generic]]) -> bool:
    """Store the arrays atomically; returns False, without an error, if the folder is not writable."""
    if folder is None:
        return False
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_path(folder / name, private=True) as part, open(part, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        _remove_oldest(folder)
    except (OSError, InputError):
        return False
    return True


def _remove_oldest(folder: Path) -> None:
    files = sorted(folder.glob("roads-*.npz"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[ROADS.cached_maps :]:
        file.unlink(missing_ok=True)

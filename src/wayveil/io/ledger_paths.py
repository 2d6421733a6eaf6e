"""Where the ledger and the files that belong to it are stored.

The ledger at `path` has three companions in the same folder: a witness (`<path>.witness`), a lock file (`<path>.lock`)
and, during a transaction, SQLite's rollback journal (`<path>-journal`). A second witness is in the user's state folder.
"""

import os
import sys
from pathlib import Path

from wayveil.errors import InputError


def default_path() -> Path:
    """The ledger of the current user: `wayveil/ledger.sqlite` in the user's data folder."""
    folder = _folder("XDG_DATA_HOME", ".local/share", "LOCALAPPDATA", "Library/Application Support")
    if folder is None:
        raise InputError("This account has no home folder for a ledger; name the ledger file with ledger=.")
    return folder / "ledger.sqlite"


def state_folder() -> Path | None:
    """The user's state folder, or None for an account without a home folder.

    It is not the data folder, so that a backup rarely restores the ledger and its second witness together.
    """
    return _folder("XDG_STATE_HOME", ".local/state", "APPDATA", "Library/Preferences")


def resolved(path: str | os.PathLike[str] | None) -> Path:
    """The ledger file itself, with `~` expanded and symbolic links followed; without a path, the default ledger."""
    try:
        return Path(os.path.realpath(default_path() if path is None else Path(path).expanduser()))
    except (RuntimeError, ValueError):  # no home folder for `~`; a null byte
        raise InputError("The path of the ledger cannot be used; give the full path with ledger=.") from None


def companion(ledger_path: Path, suffix: str) -> Path:
    """A companion of the ledger in the same folder."""
    return ledger_path.with_name(ledger_path.name + suffix)


SUFFIXES = (".witness", ".lock", "-journal", "-wal", "-shm")
"""Suffixes of the ledger's companions in its own folder, and of the other names that SQLite reserves there."""


def near_witness(ledger_path: Path) -> Path:
    """The witness in the ledger's own folder."""
    return companion(ledger_path, ".witness")


def far_witness(ledger_id: str) -> Path | None:
    """The witness in the state folder; None for an account without a state folder."""
    folder = state_folder()
    return None if folder is None else folder / "ledgers" / f"{ledger_id}.witness"


def lock_file(ledger_path: Path) -> Path:
    """The empty lock file that keeps two processes from using the ledger at the same time."""
    return companion(ledger_path, ".lock")


def journal_files(ledger_path: Path) -> tuple[Path, ...]:
    """The names that SQLite reserves next to a database file."""
    return tuple(companion(ledger_path, suffix) for suffix in ("-journal", "-wal", "-shm"))


def new_file(ledger_path: Path) -> Path:
    """The name of a new ledger until it is complete."""
    return ledger_path.with_name(f".{ledger_path.name}.new")


def ledger_files(path: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """Every path that belongs to the ledger at `path` (default: the user's ledger), whether or not it exists.

    No other output may be written to any of them. The ledger is first.
    """
    ledger = resolved(path)
    state = state_folder()
    far = () if state is None else tuple(sorted((state / "ledgers").glob("*.witness")))
    return (ledger, near_witness(ledger), lock_file(ledger), *journal_files(ledger), new_file(ledger), *far)


def _folder(xdg: str, unix: str, windows: str, mac: str) -> Path | None:
    # Not platformdirs: on macOS and Windows its state folder is its data folder, and an account without a home folder
    # gets a path relative to the working directory.
    try:
        if sys.platform == "win32":
            return Path(os.environ.get(windows) or Path.home() / "AppData" / "Local") / "wayveil"
        named = os.environ.get(xdg, "")
        if os.path.isabs(named):
            return Path(named) / "wayveil"
        return Path.home() / (mac if sys.platform == "darwin" else unix) / "wayveil"
    except RuntimeError:  # a user id without a passwd entry, and no HOME
        return None

"""All files of a folder, at any depth."""

import os
from collections.abc import Iterator
from pathlib import Path

from wayveil.errors import InputError


def files_under(folder: Path, *endings: str) -> list[Path]:
    """The files with one of these extensions, sorted; names that begin with a dot are skipped.

    `endings` are in lower case; extensions in upper case match, too. Links to folders are followed, each folder once. A
    folder that cannot be opened is an error: otherwise its files would silently be missing.
    """
    return [file for file in every_file(folder) if file.suffix.lower() in endings]


def every_file(folder: Path) -> list[Path]:
    """All files, sorted; names that begin with a dot are skipped."""
    return sorted(_walk(folder, set()))


def _walk(folder: Path, seen: set[str]) -> Iterator[Path]:
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"A folder of the data cannot be opened: {error.strerror}.") from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _walk(folder / entry.name, seen)
        elif entry.is_file():
            yield folder / entry.name

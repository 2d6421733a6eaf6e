"""Notes about a CSV file, kept in `<name>.meta.json` next to it."""

import hashlib
import json
import os
from pathlib import Path

from wayveil.errors import InputError
from wayveil.io.inputs import open_regular, read_text
from wayveil.io.options import notes_path

CONTENT = "sha256 of the file"
"""The note with the digest of the file that the other notes describe."""
_MAX_BYTES = 1 << 20
"""Notes are small; a larger file is something else."""


def check_notes(path: Path) -> None:
    """InputError if a file that wayveil did not write is in the place of the notes about `path`."""
    notes_file = notes_path(path)
    if os.path.lexists(notes_file) and CONTENT not in notes_at(notes_file):
        raise InputError(
            f"'{notes_file.name}' already exists and was not written by wayveil; move it or choose another name."
        )


def csv_notes(path: Path) -> dict[str, str]:
    """The content of `<name>.meta.json`, if it describes the current content of the file."""
    found = notes_at(notes_path(path))
    try:
        return found if found and found.pop(CONTENT, None) == digest(path) else {}
    except OSError:
        return {}


def notes_at(path: Path) -> dict[str, str]:
    """The content of a file of notes; empty if it is missing or damaged."""
    try:
        found = json.loads(read_text(path, _MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

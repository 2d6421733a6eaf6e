"""Release: everything that left the private side, in one JSON file that anybody may have."""

from wayveil.release.document import (
    SYNTHETIC,
    made_notes,
    origin_notes,
    read_release,
    release_from_json,
    release_to_json,
    write_release,
)
from wayveil.release.release import Release

__all__ = [
    "SYNTHETIC",
    "Release",
    "made_notes",
    "origin_notes",
    "read_release",
    "release_from_json",
    "release_to_json",
    "write_release",
]

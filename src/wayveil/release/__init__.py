"""Release: everything that left the private side, in one JSON file that can be published."""

from wayveil.release.document import (
    origin_notes,
    read_release,
    release_from_json,
    release_to_json,
    synthesis_notes,
    write_release,
)
from wayveil.release.release import Release

__all__ = [
    "Release",
    "origin_notes",
    "read_release",
    "release_from_json",
    "release_to_json",
    "synthesis_notes",
    "write_release",
]

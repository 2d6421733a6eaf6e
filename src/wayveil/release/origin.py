"""Checks of the origin that a synthetic file states in its notes."""

from collections.abc import Mapping
from pathlib import Path

from wayveil.errors import InputError
from wayveil.io.options import SYNTHETIC
from wayveil.io.readers.dispatch import metadata_of
from wayveil.release import Release
from wayveil.release.document import origin_notes


def check_origin(synthetic: Path, release: Release) -> None:
    """InputError unless the notes of the file say that it is synthetic and was made from this release."""
    # `synthesize` writes no folders.
    check_notes({} if synthetic.is_dir() else metadata_of(synthetic), f"'{synthetic.name}'", release)


def check_notes(notes: Mapping[str, str], what: str, release: Release) -> None:
    """Raise InputError unless the notes of synthetic data, named `what`, belong to this release."""
    advice = "or synthesize again, which costs nothing."
    if not notes.get("origin", "").startswith(SYNTHETIC):
        raise InputError(
            f"{what} is not marked as synthetic, so it cannot be shown on a public page; give the "
            f"unchanged file that `wayveil synthesize` wrote, {advice}"
        )
    if any(notes.get(name) != value for name, value in origin_notes(release).items()):
        raise InputError(f"{what} was made from another release; give that release, {advice}")

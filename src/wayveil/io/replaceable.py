"""Which existing files synthetic data may replace: earlier synthetic ones, and others only if the user insists."""

from pathlib import Path

from wayveil.errors import InputError
from wayveil.io.outputs import check_output
from wayveil.io.readers.dispatch import says_synthetic
from wayveil.io.source import open_source


def check_replaceable(output: Path, *, force: bool = False) -> None:
    """InputError unless `output` can be written and is new or an earlier synthetic file.

    `force` allows any other file, except one with trajectories: those may be the private data.
    """
    check_output(output, force=True)
    if not output.exists() or says_synthetic(output):
        return
    if not force:
        raise InputError(
            f"'{output.name}' already exists and was not synthesized by wayveil; choose another name, or overwrite "
            "it with force=True."
        )
    if _has_trajectories(output):
        raise InputError(
            f"'{output.name}' contains trajectories that are not marked as synthetic and may be private, so it is not "
            "overwritten; choose another name, or delete the file first."
        )


def _has_trajectories(path: Path) -> bool:
    """Whether the file has rows that a measurement could read."""
    try:
        return any(len(points) > 0 for points in open_source(path, on_bad_rows="drop").points())
    except InputError:
        return False

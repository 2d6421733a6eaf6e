"""Which existing files an output may replace: never trajectories that are not marked as made by wayveil."""

from collections.abc import Callable
from pathlib import Path

from wayveil.errors import InputError
from wayveil.io.inputs import holds_only_words
from wayveil.io.options import ReadOptions
from wayveil.io.outputs import check_output
from wayveil.io.readers.dispatch import says_synthetic
from wayveil.io.source import open_source


def check_replaceable(output: Path, *, force: bool = False) -> None:
    """InputError unless `output` can be written and is new or an earlier synthetic file.

    `force` allows any other file, except one that may hold trajectories: those may be the private data.
    """
    check_output(output, force=True)
    if not output.exists() or says_synthetic(output):
        return
    check_keeps_trajectories(output, says_synthetic)
    if not force:
        raise InputError(
            f"'{output.name}' already exists and was not synthesized by wayveil; choose another name, or overwrite "
            "it with force=True."
        )


def check_keeps_trajectories(output: Path, expected: Callable[[Path], bool]) -> None:
    """InputError if `output` exists, is not an `expected` file, and may hold trajectories; `force` does not matter."""
    if output.exists() and not expected(output) and may_hold_trajectories(output):
        raise InputError(
            f"'{output.name}' may contain trajectories that are private (it is not marked as made by wayveil), so it "
            "is not overwritten; choose another name, or delete the file first."
        )


def may_hold_trajectories(path: Path) -> bool:
    """Whether a file has readable rows, or content that is unreadable and more than words.

    Files with columns that are not recognized, and damaged ones, cannot be read; they may still be the private data.
    """
    try:
        rows = open_source(path, ReadOptions(on_bad_rows="drop")).points()
        return any(len(points) > 0 or any(points.lost.values()) for points in rows)
    except InputError:
        return not holds_only_words(path)

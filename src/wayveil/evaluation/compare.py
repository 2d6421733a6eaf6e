"""Synthetic files against a real one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wayveil.evaluation.floor import FEWEST
from wayveil.evaluation.paths import as_measured, check_in_scope, project
from wayveil.evaluation.score import HEADLINE, Evaluation, evaluate
from wayveil.progress import Progress, quiet
from wayveil.scope import read_scope


@dataclass(frozen=True)
class Comparison:
    """Evaluations by file name, and what the reader should know.

    Privacy: not private (trusted side only); computed from the private data.
    """

    evaluations: dict[str, Evaluation]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "files": {name: evaluation.to_dict() for name, evaluation in self.evaluations.items()},
            "warnings": list(self.warnings),
        }


def compare_files(
    real: str,
    synthetic: Sequence[str],
    scope: str,
    *,
    headline: bool = False,
    with_time: bool = True,
    options: Mapping[str, Any] | None = None,
    progress: Progress = quiet,
) -> Comparison:
    """Evaluate each synthetic file against the real one; `options` say how the real one is read.

    Privacy: not private (trusted side only).
    """
    from wayveil.formats import read, read_synthetic

    frame = read_scope(scope)
    read_as = dict(options or {})
    progress("reading the real data", 0.0)
    true_paths = project(read(real, **read_as), frame)
    progress("reading the real data", 1.0)
    check_in_scope(true_paths, f"'{Path(real).name}'")
    true_paths = as_measured(true_paths, frame)
    evaluations: dict[str, Evaluation] = {}
    exchanged = exchanged_words(real)
    warnings = [] if exchanged is None else [exchanged]
    for path in synthetic:
        progress("evaluate", 0.0)
        made = project(read_synthetic(path, read_as), frame)
        check_in_scope(made, f"'{Path(path).name}'")
        name = _new_name(Path(path).name, evaluations)
        evaluations[name] = evaluate(
            true_paths, made, frame, metrics=HEADLINE if headline else None, with_time=with_time, progress=progress
        )
        if evaluations[name].too_few:
            whose = "The real data" if len(true_paths) < FEWEST else f"'{name}'"
            warnings.append(f"{whose} has fewer than {FEWEST} trajectories: too few for intervals and floors.")
        elif abs(len(made) / len(true_paths) - 1) > 0.05:
            warnings.append(
                f"'{name}' has another number of trajectories than the real data; divergences move with the number, "
                "so read each value beside its own floor."
            )
        if evaluations[name].below_floor and exchanged is None:
            warnings.append(
                f"'{name}' is below the floor in {', '.join(evaluations[name].below_floor)}: closer to the real data "
                "than a fresh sample of the same population would be, which is a sign of copied records."
            )
    return Comparison(evaluations, tuple(warnings))


def exchanged_words(real: str) -> str | None:
    """A sentence where the file that should be the real one says that it is synthetic; quick to find out.

    Privacy: free (a file's own note that it is synthetic).
    """
    from wayveil.formats.reading import says_synthetic

    name = Path(real).name
    return f"'{name}' is a synthetic file itself; name the real data first." if says_synthetic(Path(real)) else None


def _new_name(name: str, taken: Mapping[str, Any]) -> str:
    """The file's name, numbered where two files have the same."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free

"""Compare synthetic files with a real one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wayveil.evaluation.all_metrics import HEADLINE
from wayveil.evaluation.conclusion import purpose_of
from wayveil.evaluation.file_order import check_order
from wayveil.evaluation.floor import FEWEST
from wayveil.evaluation.paths import as_measured, check_in_scope, project
from wayveil.evaluation.people import evaluate_people
from wayveil.evaluation.score import Evaluation, check_trips, evaluate
from wayveil.io.files import read, read_synthetic
from wayveil.io.roads import roads_of
from wayveil.io.scope_files import read_scope
from wayveil.progress import Progress, quiet


@dataclass(frozen=True)
class Comparison:
    """Evaluations by file name, and notes for the reader.

    Privacy: not private (trusted side only); computed from the private data.
    """

    evaluations: dict[str, Evaluation]
    warnings: tuple[str, ...]

    @property
    def conclusion(self) -> str:
        """What to conclude, a line per file; the file's name is left out where there is only one."""
        lines = [(name, evaluation.conclusion) for name, evaluation in self.evaluations.items()]
        return "\n".join(line if len(lines) == 1 else f"{name}: {line}" for name, line in lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "conclusion": self.conclusion,
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
    trips: bool = False,
    people: bool = False,
    roads: Path | None = None,
    purpose: str | None = None,
    options: Mapping[str, Any] | None = None,
    progress: Progress = quiet,
) -> Comparison:
    """Evaluate each synthetic file against the real one; `options` say how the real one is read.

    With `trips`, single trips are judged too, on the map `roads` where one is given; with `people`, people are. The
    conclusion is about `purpose`, or about every use.

    Privacy: not private (trusted side only).
    """
    check_trips(trips, roads)
    purpose_of(purpose)
    both_synthetic = check_order(real, synthetic)
    frame, road_map = read_scope(scope), roads_of(roads)
    read_as = dict(options or {})
    progress("reading the real data", 0.0)
    true_trips = read(real, **read_as)
    true_paths = project(true_trips, frame)
    progress("reading the real data", 1.0)
    check_in_scope(true_paths, f"'{Path(real).name}'")
    true_paths = as_measured(true_paths, frame)
    evaluations: dict[str, Evaluation] = {}
    sizes: list[int] = []
    warnings = [] if both_synthetic is None else [both_synthetic]
    for path in synthetic:
        progress("evaluate", 0.0)
        synthetic_trips = read_synthetic(path, read_as)
        paths = project(synthetic_trips, frame)
        check_in_scope(paths, f"'{Path(path).name}'")
        name = _new_name(Path(path).name, evaluations)
        evaluations[name] = evaluate(
            true_paths, paths, frame, metrics=HEADLINE if headline else None, with_time=with_time, trips=trips,
            roads=road_map, purpose=purpose, progress=progress,
        )  # fmt: skip
        if people:
            evaluations[name] = replace(evaluations[name], people=evaluate_people(true_trips, synthetic_trips, frame))
        if evaluations[name].too_few:
            whose = "The real data" if len(true_paths) < FEWEST else f"'{name}'"
            warnings.append(f"{whose} has fewer than {FEWEST} trajectories: too few for intervals and floors.")
        warnings += [f"'{name}' {note}." for note in evaluations[name].floor_notes]
        sizes.append(len(paths))
        if evaluations[name].below_floor and both_synthetic is None:
            warnings.append(
                f"'{name}' is below the floor in {', '.join(evaluations[name].below_floor)}: closer to the real data "
                "than a fresh sample of the same population would be, which is a sign of copied records."
            )
    if max(sizes) > 1.05 * min(sizes):
        warnings.append(
            "The synthetic files have different numbers of trajectories, so their floors are not comparable: compare "
            "each file with its own floor, not the files with each other."
        )
    return Comparison(evaluations, tuple(warnings))


def _new_name(name: str, taken: Mapping[str, Any]) -> str:
    """The file's name, with a number if another file has the same name."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free

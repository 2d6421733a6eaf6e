"""Demo: every step once on the simulated city: simulate, check, measure, synthesize, evaluate, audit, report.

All files go into one folder: those in `public` could be published, those in `private` could not. The demo has its own
ledger there, so that the user's ledger is not touched.
"""

import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wayveil.audit import audit_synthetic
from wayveil.core.whole_number import as_whole_number
from wayveil.evaluation.compare_files import compare_files
from wayveil.io.check import check
from wayveil.io.files import read
from wayveil.io.result_file import write_result
from wayveil.io.roads import read_roads
from wayveil.io.scope_files import read_scope
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet
from wayveil.release import read_release
from wayveil.report.from_files import write_report
from wayveil.rules import motion_of, read_rules, violating_trajectories
from wayveil.simulate import simulate_city, write_city
from wayveil.workflow.demo_files import Files, make_room
from wayveil.workflow.measure_file import FileMeasurement, measure_file
from wayveil.workflow.synthesize_file import synthesize_file

EPSILON = "1"
DATASET = "demo"
_FEWEST, _MOST = 100, 1_000_000
"""Trips of the demo: with fewer, only noise is visible, and more take hours."""


@dataclass(frozen=True)
class Step:
    """One completed step: its name, the equivalent command, its result, and how long it took."""

    name: str
    command: str
    outcome: str
    seconds: float


@dataclass(frozen=True)
class Demo:
    """The result of a demo."""

    files: Files
    steps: tuple[Step, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = ("synthetic", "release", "sheet", "report", "evaluation", "audit", "real", "scope", "roads", "rules",
                 "ledger")  # fmt: skip
        return {
            "files": {name: str(getattr(self.files, name)) for name in names},
            "steps": [{"name": step.name, "command": step.command, "outcome": step.outcome,
                       "seconds": round(step.seconds, 1)} for step in self.steps],
        }  # fmt: skip


def run_demo(
    folder: str | os.PathLike[str] = "wayveil-demo",
    n: int = 10_000,
    *,
    seed: int = 0,
    force: bool = False,
    progress: Progress = quiet,
    say: Callable[[Step], None] = lambda step: None,
) -> Demo:
    """Run every step on a simulated city: simulate, check, measure, synthesize, evaluate, audit, report.

    Parameters
    ----------
    folder
        The folder of all outputs; only its subfolder `public` would be published.
    n
        The number of simulated trajectories.
    seed
        The seed of the city and of the synthesis; the noise has none.
    force
        Whether an earlier demo in the folder may be overwritten.
    say
        Called after each step.

    Examples
    --------
    >>> import wayveil
    >>> demo = wayveil.run_demo("wayveil-demo", n=2_000)  # doctest: +SKIP
    >>> demo.files.sheet  # doctest: +SKIP

    Privacy
    -------
    Free (simulated data); with real data, the files in `public` would have cost ε = 1.
    """
    n = as_whole_number(n, "n=", _FEWEST, _MOST)
    files = Files(Path(folder))
    make_room(files, force)
    done: list[Step] = []
    with _own_state(files):
        for name, command, work in _STEPS:
            begin = time.monotonic()
            outcome = work(files, n, seed, progress)
            done.append(Step(name, command(_Quoted(files), n, seed), outcome, time.monotonic() - begin))
            say(done[-1])
    return Demo(files, tuple(done))


@contextmanager
def _own_state(files: Files) -> Iterator[None]:
    """Put the second witness of the ledger into the demo's folder instead of the user's state folder."""
    name = "APPDATA" if os.name == "nt" else "XDG_STATE_HOME"
    before = os.environ.get(name)
    os.environ[name] = str((files.folder / "ledger" / "state").absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


class _Quoted:
    """The same paths, quoted for a shell."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def __getattr__(self, name: str) -> str:
        return shlex.quote(str(getattr(self._files, name)))


def _simulate(files: Files, n: int, seed: int, progress: Progress) -> str:
    city = simulate_city(seed)
    write_city(
        city, files.real, n, seed, roads=files.roads, rules=files.rules, scope=files.scope, force=True,
        progress=progress,
    )  # fmt: skip
    return f"{n:,} simulated trajectories on {len(city.roadmap):,} streets"


def _check(files: Files, n: int, seed: int, progress: Progress) -> str:
    report = check(files.real, read_scope(files.scope), progress=progress)
    problems = sum(report.problems.values())
    return f"{report.rows:,} points of {report.users or 0:,} users, {problems:,} problems"


def _measure(files: Files, n: int, seed: int, progress: Progress) -> str:
    wanted = FileMeasurement(
        files.real, str(files.scope), EPSILON, Unit.trajectory(), DATASET, files.ledger, roads=files.roads
    )
    release = measure_file(wanted, files.release, progress=progress)
    values = sum(len(answer.noisy) for answer in release.answers)
    return f"{values:,} noisy numbers for epsilon = {EPSILON}; synthesis will not read the private file"


def _synthesize(files: Files, n: int, seed: int, progress: Progress) -> str:
    summary = synthesize_file(
        files.release, files.synthetic, roads=files.roads, rules=files.rules, seed=seed, progress=progress
    )
    scope = read_scope(files.scope)
    rules = read_rules(files.rules, scope, read_roads(files.roads))
    # Counted in the file as it was written.
    broken = int(violating_trajectories(rules, motion_of(read(files.synthetic), scope)).sum())
    return f"{summary['trajectories']:,} synthetic trajectories; {broken:,} of them violate one of {len(rules)} rules"


def _evaluate(files: Files, n: int, seed: int, progress: Progress) -> str:
    comparison = compare_files(str(files.real), [str(files.synthetic)], str(files.scope), progress=progress)
    write_result(files.evaluation, comparison.to_dict())
    scores = next(iter(comparison.evaluations.values())).scores
    shown = ", ".join(f"{name} {scores[name].value:.3f} (floor {scores[name].floor:.3f})"
                      for name in ("density_500", "length"))  # fmt: skip
    return f"Jensen–Shannon divergence from the real data: {shown}"


def _audit(files: Files, n: int, seed: int, progress: Progress) -> str:
    release = read_release(files.release)
    verdict = audit_synthetic(files.real, files.synthetic, release.scope, epsilon=float(EPSILON), progress=progress)
    write_result(files.audit, verdict.to_dict())
    return verdict.verdict


def _sheet(files: Files, n: int, seed: int, progress: Progress) -> str:
    write_report(files.release, files.synthetic, files.sheet, roads=files.roads, rules=files.rules, progress=progress)
    return "the public data sheet, from the release and the synthetic data alone"


def _report(files: Files, n: int, seed: int, progress: Progress) -> str:
    write_report(
        files.release, files.synthetic, files.report, roads=files.roads, rules=files.rules, internal=True,
        real=files.real, evaluation=files.evaluation, audit=files.audit, progress=progress,
    )  # fmt: skip
    return "the internal report, which compares real and synthetic data; not for publication"


Work = Callable[[Files, int, int, Progress], str]
Command = Callable[[_Quoted, int, int], str]

_STEPS: tuple[tuple[str, Command, Work], ...] = (
    (
        "simulate",
        lambda f, n, seed: (
            f"wayveil simulate -o {f.real} -n {n} --seed {seed} --roads {f.roads} --rules {f.rules} "
            f"--scope-out {f.scope}"
        ),
        _simulate,
    ),
    ("check", lambda f, n, seed: f"wayveil check {f.real} --scope {f.scope}", _check),
    (
        "measure",
        lambda f, n, seed: (
            f"wayveil measure {f.real} --dataset {DATASET} --ledger {f.ledger} --scope {f.scope} "
            f"--epsilon {EPSILON} --unit trajectory --roads {f.roads} -o {f.release}"
        ),
        _measure,
    ),
    (
        "synthesize",
        lambda f, n, seed: (
            f"wayveil synthesize {f.release} --roads {f.roads} --rules {f.rules} --seed {seed} -o {f.synthetic}"
        ),
        _synthesize,
    ),
    (
        "evaluate",
        lambda f, n, seed: f"wayveil evaluate {f.real} {f.synthetic} --scope {f.scope} -o {f.evaluation}",
        _evaluate,
    ),
    (
        "audit",
        lambda f, n, seed: f"wayveil audit {f.real} {f.synthetic} --scope {f.scope} --epsilon {EPSILON} -o {f.audit}",
        _audit,
    ),
    (
        "report",
        lambda f, n, seed: f"wayveil report {f.release} {f.synthetic} --roads {f.roads} --rules {f.rules} -o {f.sheet}",
        _sheet,
    ),
    (
        "report --internal",
        lambda f, n, seed: (
            f"wayveil report {f.release} {f.synthetic} --roads {f.roads} --rules {f.rules} --internal "
            f"--real {f.real} --evaluation {f.evaluation} --audit {f.audit} -o {f.report}"
        ),
        _report,
    ),
)
"""Name, equivalent command, and function of each step."""

"""demo: the whole way once, on the embedded city: simulate, check, measure, synthesise, evaluate, audit, report.

Everything lands in one folder, in which `public` may be given away and `private` may not; the ledger is inside as well,
so that the user's own is not touched.
"""

import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wayveil.atomic import write_text
from wayveil.errors import InputError
from wayveil.progress import Progress, quiet
from wayveil.result_file import write_result

EPSILON = "1"
DATASET = "demo"
_MARK = "README.txt"
_FEWEST, _MOST = 100, 1_000_000

_README = """\
A folder of `wayveil demo`. Everything in it is made from an invented city.

public/   what a data owner would publish: the noisy release, the synthetic trajectories, and their data sheet
private/  what never leaves the owner: the trajectories, and every comparison with them
city/     public knowledge: scope, road map, traffic rules
ledger/   the account of spent privacy

The next `wayveil demo --force` overwrites it.
"""


@dataclass(frozen=True)
class Files:
    """Every file of a demo, by what it is."""

    folder: Path

    @property
    def real(self) -> Path:
        return self.folder / "private" / "rides.parquet"

    @property
    def evaluation(self) -> Path:
        return self.folder / "private" / "evaluation.json"

    @property
    def audit(self) -> Path:
        return self.folder / "private" / "audit.json"

    @property
    def report(self) -> Path:
        return self.folder / "private" / "internal-report.html"

    @property
    def release(self) -> Path:
        return self.folder / "public" / "rides.release.json"

    @property
    def synthetic(self) -> Path:
        return self.folder / "public" / "synthetic.parquet"

    @property
    def sheet(self) -> Path:
        return self.folder / "public" / "data-sheet.html"

    @property
    def scope(self) -> Path:
        return self.folder / "city" / "city.toml"

    @property
    def roads(self) -> Path:
        return self.folder / "city" / "roads.parquet"

    @property
    def rules(self) -> Path:
        return self.folder / "city" / "rules.geojson"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger" / "ledger.sqlite"

    @property
    def every(self) -> tuple[Path, ...]:
        """All of them but the ledger's own."""
        return (self.real, self.evaluation, self.audit, self.report, self.release, self.synthetic, self.sheet,
                self.scope, self.roads, self.rules)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One step that is done: its name, the command that does the same, what came out, and how long it took."""

    name: str
    command: str
    outcome: str
    seconds: float


@dataclass(frozen=True)
class Demo:
    """What a demo left behind."""

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
    """Run every step on an invented city of `n` trajectories; `say` hears of each step as it is done.

    Privacy: free (nobody lives there); with real data, what lies in `public` would have cost ε = 1.
    """
    if not _FEWEST <= n <= _MOST:
        raise InputError(f"-n must be from {_FEWEST} to {_MOST:,}.")
    files = Files(Path(folder))
    _make_room(files, force)
    done: list[Step] = []
    with _own_state(files):
        for name, command, work in _STEPS:
            begin = time.monotonic()
            outcome = work(files, n, seed, progress)
            done.append(Step(name, command(_Quoted(files), n, seed), outcome, time.monotonic() - begin))
            say(done[-1])
    return Demo(files, tuple(done))


def _make_room(files: Files, force: bool) -> None:
    folder = files.folder
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            if not (folder / _MARK).is_file() or not (folder / "ledger").is_dir():
                raise InputError(f"'{folder.name}' is there and is not an earlier demo; choose another -o.")
            if not force:
                raise InputError(f"'{folder.name}' holds an earlier demo; choose another -o or add --force.")
            for file in files.every:
                file.unlink(missing_ok=True)
            shutil.rmtree(folder / "ledger")
        for part in ("public", "private", "city", "ledger"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "private").chmod(0o700)
    except OSError as error:
        raise InputError(f"Cannot write to '{folder.name}': {error.strerror}; choose another -o.") from None
    write_text(folder / _MARK, _README, private=False)


@contextmanager
def _own_state(files: Files) -> Iterator[None]:
    """The ledger's second witness goes into the demo's folder, not into the user's."""
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
    """The same files as words for a shell."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def __getattr__(self, name: str) -> str:
        return shlex.quote(str(getattr(self._files, name)))


def _simulate(files: Files, n: int, seed: int, progress: Progress) -> str:
    from wayveil.formats.roads import write_roads
    from wayveil.simulate import rules_text, scope_toml, simulate_city, simulate_to_parquet

    city = simulate_city(seed)
    write_roads(city.roadmap, files.roads)
    write_text(files.rules, rules_text(city), private=False)
    write_text(files.scope, scope_toml(city), private=False)
    simulate_to_parquet(files.real, n, seed, city=city, progress=progress)
    return f"{n:,} invented trajectories on {len(city.roadmap):,} streets"


def _check(files: Files, n: int, seed: int, progress: Progress) -> str:
    from wayveil.formats.check import check
    from wayveil.scope import read_scope

    report = check(files.real, read_scope(files.scope), progress=progress)
    problems = sum(report.problems.values())
    return f"{report.rows:,} points of {report.users or 0:,} users, {problems:,} problems"


def _measure(files: Files, n: int, seed: int, progress: Progress) -> str:
    from wayveil.privacy.unit import Unit
    from wayveil.steps import measure_file

    release = measure_file(
        str(files.real), files.release, scope=str(files.scope), epsilon=EPSILON, unit=Unit.trajectory(),
        dataset=DATASET, ledger=files.ledger, roads=files.roads, progress=progress,
    )  # fmt: skip
    values = sum(len(answer.noisy) for answer in release.answers)
    return f"{values:,} noisy numbers for epsilon = {EPSILON}; the private file is not read again to make the data"


def _synthesize(files: Files, n: int, seed: int, progress: Progress) -> str:
    from wayveil.formats import read
    from wayveil.formats.roads import read_roads
    from wayveil.rules import motion_of, read_rules, violating_trajectories
    from wayveil.scope import read_scope
    from wayveil.steps import synthesize_file

    made = synthesize_file(
        files.release, files.synthetic, roads=files.roads, rules=files.rules, seed=seed, progress=progress
    )
    scope = read_scope(files.scope)
    rules = read_rules(files.rules, scope, read_roads(files.roads))
    # Counted on the file as it was written, not on what the descent believes.
    broken = int(violating_trajectories(rules, motion_of(read(files.synthetic), scope)).sum())
    return f"{made['trajectories']:,} synthetic trajectories; {broken:,} break one of {len(rules)} traffic rules"


def _evaluate(files: Files, n: int, seed: int, progress: Progress) -> str:
    from wayveil.evaluation.compare import compare_files

    comparison = compare_files(str(files.real), [str(files.synthetic)], str(files.scope), progress=progress)
    write_result(files.evaluation, comparison.to_dict())
    scores = next(iter(comparison.evaluations.values())).scores
    shown = ", ".join(f"{name} {scores[name].value:.3f} (floor {scores[name].floor:.3f})"
                      for name in ("density_500", "length"))  # fmt: skip
    return f"Jensen–Shannon divergence from the real data: {shown}"


def _audit(files: Files, n: int, seed: int, progress: Progress) -> str:
    from wayveil.audit import audit
    from wayveil.formats import read
    from wayveil.release import read_release

    release = read_release(files.release)
    verdict = audit(read(files.real), read(files.synthetic), release.scope, float(EPSILON), progress=progress)
    write_result(files.audit, verdict.to_dict())
    return verdict.verdict


def _sheet(files: Files, n: int, seed: int, progress: Progress) -> str:
    from wayveil.report.make import make_page

    make_page(files.release, files.synthetic, files.sheet, roads=files.roads, rules=files.rules, progress=progress)
    return "the public data sheet, from the release and the synthetic data alone"


def _report(files: Files, n: int, seed: int, progress: Progress) -> str:
    from wayveil.report.make import make_page

    make_page(
        files.release, files.synthetic, files.report, roads=files.roads, rules=files.rules, internal=True,
        real=files.real, evaluation=files.evaluation, audit=files.audit, progress=progress,
    )  # fmt: skip
    return "the internal report, real beside synthetic; not for publication"


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
"""Name, the command that does the same, and the work."""

"""A self-check of the audit: methods that are known to be sound or broken, on the simulated city."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from wayveil.audit.bounds import CONFIDENCE, Bound, epsilon_bound
from wayveil.audit.broken_methods import STATISTICS, Mistake, grid_sampler, statistics, subtracting_reader
from wayveil.audit.cases import Case, World, case, make_world
from wayveil.audit.dpe_audit import DPE_STATISTICS, published_leaks, published_scores, replace_last
from wayveil.audit.mechanism_audit import HalfNoise, Neighbours, Scores, question_scores, release_scores
from wayveil.audit.method_audit import method_cases
from wayveil.audit.reader_audit import Reading, read_bound
from wayveil.audit.user_audit import user_scores
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.errors import InputError
from wayveil.privacy.noise import NoiseSource, OpenDPNoise
from wayveil.progress import Progress, quiet

ONE = Fraction(1)
"""The ε of the methods that are audited."""


@dataclass(frozen=True)
class SelfCheck:
    """All cases, and whether the audit was right about each."""

    cases: tuple[Case, ...]
    confidence: float
    seconds: float
    of_methods: bool = False
    """Whether single methods were chosen; then a wrong verdict says something about them, not about the audit."""

    @property
    def passed(self) -> bool:
        return all(case.right for case in self.cases)

    @property
    def verdict(self) -> str:
        wrong = [f"'{case.method}'" for case in self.cases if not case.right]
        if self.of_methods:
            return f"Not as claimed: {', '.join(wrong)}." if wrong else "Every verdict is as claimed."
        if wrong:
            return f"The audit failed: it was wrong about {', '.join(wrong)}."
        return "The audit works: every broken method was convicted and every sound one acquitted."

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "verdict": self.verdict,
            "passed": self.passed,
            "confidence": self.confidence,
            "seconds": round(self.seconds, 1),
            "methods": [asdict(case) for case in self.cases],
        }


@dataclass(frozen=True)
class Effort:
    """How many runs each part gets."""

    questions: int
    releases: int
    samples: int
    published: int
    methods: int = 60
    """Runs of each method of `wayveil.baselines` in each mode; with fewer than 49, none could be convicted at ε = 1."""


QUICK = Effort(questions=2_500, releases=56, samples=80, published=140)
"""Numbers of runs that take about half a minute of processor time."""
FULL = Effort(questions=40_000, releases=200, samples=500, published=500, methods=200)
"""Numbers of runs by default."""


def self_check(
    effort: Effort = FULL,
    *,
    confidence: float = CONFIDENCE,
    noise: NoiseSource | None = None,
    every_method: bool = False,
    methods: tuple[str, ...] = (),
    progress: Progress = quiet,
) -> SelfCheck:
    """Audit the readers, the sound method, broken variants and the published method on the simulated city.

    With `every_method`, each method of `wayveil.baselines` is audited too, in both modes. With `methods`, only these
    are, given by name or as 'module:attribute'. `noise` is opendp's unless a test replaces it.

    Privacy: free (simulated data).
    """
    if not 0.5 <= confidence < 1:
        raise InputError("confidence= must be at least 0.5 and below 1.")
    begin = time.monotonic()
    world = make_world()
    noise = noise or OpenDPNoise()
    if methods:
        found = tuple(_collection(world, effort, confidence, noise, progress, methods))
        progress("self-check", 1.0)
        return SelfCheck(found, confidence, time.monotonic() - begin, of_methods=True)
    cases = (
        *_readers(world, progress),
        *_published(world, effort, confidence, progress),
        *_sound(world, effort, confidence, noise, progress),
        *_samplers(world, effort, confidence, noise, progress),
        *(_collection(world, effort, confidence, noise, progress) if every_method else ()),
    )
    progress("self-check", 1.0)
    return SelfCheck(cases, confidence, time.monotonic() - begin)


def _readers(world: World, progress: Progress) -> Iterator[Case]:
    """Files that differ by one unit, read as `measure` reads them; the difference is visible without noise."""

    def judged(method: str, found: Reading, expected: str) -> Case:
        verdict = "convicted" if found.bound > 1 else "acquitted"
        seen = f"largest difference between two files that differ by one unit ({found.seen})"
        return Case(method, 1.0, 1.0, found.bound, verdict, expected, found.pairs, seen)

    for unit in ("trajectory", "user"):
        found = read_bound(world.data, world.scope, unit, progress=progress)
        yield judged(f"readers, one {unit} more", found, "acquitted")
    found = read_bound(world.data, world.scope, "trajectory", reader=subtracting_reader, progress=progress)
    yield judged("readers, ids subtracted", found, "convicted")


def _sound(world: World, effort: Effort, confidence: float, noise: NoiseSource, progress: Progress) -> Iterator[Case]:
    bound = questions_bound(world, ONE, effort.questions, noise, confidence, progress)
    yield case("sound method, each question alone", 1.0, bound, "acquitted")
    neighbours = Neighbours(world.data, concatenate([world.data, world.standing]), world.scope)
    scores = release_scores(neighbours, epsilon=ONE, runs=effort.releases, noise=noise, progress=progress)
    bound = epsilon_bound(*scores, confidence=confidence, names=["likelihood ratio of the whole release"])
    largest = float(np.abs(np.concatenate(scores)).max())
    more = f"; no run's ratio is beyond ± {largest:.2f}"
    yield case("sound method, whole release", 1.0, bound, "acquitted", more=more)
    bound = people_bound(world, effort.questions, noise, confidence)
    yield case("sound method, one user with all trips", 1.0, bound, "acquitted")
    bound = questions_bound(world, ONE, effort.questions, HalfNoise(noise), confidence, progress)
    yield case("sound method with half the noise", 1.0, bound, "convicted")


def questions_bound(
    world: World, epsilon: Fraction, runs: int, noise: NoiseSource, confidence: float, progress: Progress = quiet
) -> Bound:
    """The largest bound over all questions and two canaries; the first half of the runs chooses which one."""
    named: dict[str, Scores] = {}
    for name, canary in (
        ("a canary that stands still", world.standing),
        ("a canary that crosses the city", world.crossing),
    ):
        neighbours = Neighbours(world.data, concatenate([world.data, canary]), world.scope)
        found = question_scores(neighbours, epsilon=epsilon, runs=runs, noise=noise, progress=progress)
        named |= {f"'{question}' for {name}": scores for question, scores in found.items()}
    return _largest_bound(named, confidence)


def people_bound(world: World, runs: int, noise: NoiseSource, confidence: float) -> Bound:
    """The largest bound over the questions about people; one user with all trips is added."""
    neighbours = Neighbours(world.other_residents, world.residents, world.scope)
    found = user_scores(neighbours, epsilon=ONE, runs=runs, noise=noise)
    return _largest_bound({f"'{name}'": scores for name, scores in found.items()}, confidence)


def _largest_bound(scores: dict[str, Scores], confidence: float) -> Bound:
    """The first half of the runs chooses which question counts."""
    zero, one = (np.stack([pair[side] for pair in scores.values()], axis=1) for side in (0, 1))
    names = [f"likelihood ratio of {name}" for name in scores]
    return epsilon_bound(zero, one, confidence=confidence, names=names)


def _samplers(
    world: World, effort: Effort, confidence: float, noise: NoiseSource, progress: Progress
) -> Iterator[Case]:
    samplers: tuple[tuple[str, Mistake | None, str], ...] = (
        ("noisy grid, box from the data", "box from data", "convicted"),
        ("noisy grid, count from the data", "count from data", "convicted"),
        ("noisy grid, public box, noisy count", None, "acquitted"),
    )
    for method, mistake, expected in samplers:
        bound = sampler_bound(world, effort.samples, noise, confidence, mistake, progress)
        yield case(method, 1.0, bound, expected)


def sampler_bound(
    world: World,
    runs: int,
    noise: NoiseSource,
    confidence: float,
    mistake: Mistake | None,
    progress: Progress = quiet,
) -> Bound:
    """The bound for the small grid method, with a canary far away from everybody else."""
    rng = np.random.default_rng(0)
    sides: list[list[list[float]]] = []
    for data in (world.data, concatenate([world.data, world.far])):
        rows = []
        for run in range(runs):
            progress("noisy grid", (run + 1 + len(sides) * runs) / (2 * runs))
            output = grid_sampler(data, world.wide, ONE, noise, rng, mistake)
            rows.append(statistics(output, world.far, world.wide, near_m=1_000.0))
        sides.append(rows)
    return epsilon_bound(*map(np.array, sides), confidence=confidence, names=STATISTICS)


def _published(world: World, effort: Effort, confidence: float, progress: Progress) -> Iterator[Case]:
    data = select(world.data, np.arange(40))
    neighbour = replace_last(data, world.standing)
    for epsilon in (0.1, 1.0):
        zero, one = published_scores(data, neighbour, world.scope, epsilon, effort.published, progress)
        bound = epsilon_bound(zero, one, confidence=confidence, names=DPE_STATISTICS)
        leaks = published_leaks(data, world.holdout, world.scope, epsilon, confidence)
        more = (
            f"; one run links {leaks.linked.value:.0%} of its outputs to their records, identifies members with an "
            f"advantage of {leaks.advantage.value:.2f} (at least {leaks.advantage.low:.2f}; {epsilon:g}-DP allows "
            f"{math.tanh(epsilon / 2):.2f}), and reconstructs the last record to within {leaks.reconstruction_m:.2g} m "
            f"(a guess: {leaks.guess_m:.0f} m)"
        )
        yield case(f"published DPE, epsilon {epsilon:g}", epsilon, bound, "convicted", 2 * epsilon, more)


def _collection(
    world: World,
    effort: Effort,
    confidence: float,
    noise: NoiseSource,
    progress: Progress,
    chosen: tuple[str, ...] = (),
) -> Iterator[Case]:
    yield from method_cases(world, effort.methods, confidence, noise, progress, chosen)


Runner = Callable[[Trajectories], list[float]]


def audit_method(
    run: Runner,
    without: Trajectories,
    with_canary: Trajectories,
    runs: int,
    *,
    confidence: float = CONFIDENCE,
    names: tuple[str, ...] = (),
    progress: Progress = quiet,
) -> Bound:
    """The lower bound on ε of any method; `run(data)` runs it once and returns the statistics of its output.

    Privacy: not private (trusted side only).
    """
    sides = []
    for side, data in enumerate((without, with_canary)):
        rows = []
        for index in range(runs):
            progress("runs", (index + 1 + side * runs) / (2 * runs))
            rows.append(run(data))
        sides.append(np.array(rows, float))
    return epsilon_bound(*sides, confidence=confidence, names=names)

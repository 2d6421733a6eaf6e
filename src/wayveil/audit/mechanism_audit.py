"""Audit of the sound method: each question through the mechanism on its own, and all of `measure`.

Privacy: not private (trusted side only); the auditor knows both datasets and spends nothing, because nothing leaves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.source import MemorySource
from wayveil.measurement import measure
from wayveil.measurement.exact import exact_answers
from wayveil.privacy.budget import Budget
from wayveil.privacy.mechanism import Cost, Mechanism
from wayveil.privacy.noise import NoiseSource, Noisy, OpenDPNoise
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.question import Query, Question

_CERTAIN = 1e6
"""Score of a release that only one side can produce; larger than any likelihood ratio here."""
Sums = NDArray[np.int64]
Scores = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Log likelihood ratios of the runs without the unit, and of those with it."""


class HalfNoise:
    """Noise of half the scale at the full price: a deliberate mistake that the audit must find."""

    private = False

    def __init__(self, inner: NoiseSource | None = None) -> None:
        self._inner = inner or OpenDPNoise()

    def laplace(self, sums: Sums, sensitivity: int, epsilon: Fraction) -> Noisy:
        """Laplace noise of scale sensitivity / (2 epsilon), recorded as if it cost epsilon."""
        noisy = self._inner.laplace(sums, sensitivity, 2 * epsilon)
        return replace(noisy, epsilon_spent=epsilon, private=False)

    def gaussian(self, sums: Sums, l2_sensitivity: float, rho: Fraction) -> Noisy:
        """Gaussian noise of half the sigma, recorded as if it cost rho."""
        noisy = self._inner.gaussian(sums, l2_sensitivity, 4 * rho)
        return replace(noisy, rho_spent=rho, private=False)


def audited_questions(scope: Scope) -> list[Question]:
    """Every question about single trips at a size that depends on the scope alone.

    Questions about people are audited with all trips of a user (`wayveil.audit.user_audit`).

    The sizes of a release differ from these by pooling, which adds up a trajectory's features and cannot make its L1
    norm larger than what is audited here.
    """
    return [question.example(scope) for question in QUESTIONS.values() if not question.about_people]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two datasets that differ by one unit, and the scope in which both are measured."""

    without: Trajectories
    with_unit: Trajectories
    scope: Scope


def question_scores(
    neighbours: Neighbours,
    *,
    epsilon: Fraction,
    runs: int,
    noise: NoiseSource,
    questions: Sequence[Query] | None = None,
    progress: Progress = quiet,
) -> dict[str, Scores]:
    """Question -> log likelihood ratios ln P(y | with) / P(y | without) of `runs` runs on each dataset, with ε each.

    The exact sums come from the engine, once per dataset: they do not vary between runs. The noise of each value is
    independent and its scale depends only on the sensitivity and ε, so `runs` copies of the sums sent through the
    mechanism together are `runs` runs of it. Values whose exact sums are equal on both datasets cannot tell them apart
    and are left out.
    """
    questions = audited_questions(neighbours.scope) if questions is None else questions
    both = (neighbours.without, neighbours.with_unit)
    exact = [exact_answers(data, neighbours.scope, questions) for data in both]
    scores = {}
    for position, (question, zero, one) in enumerate(zip(questions, *exact, strict=True)):
        progress("one question at a time", (position + 1) / len(questions))
        if (zero != one).any():
            budget = Budget(epsilon, {question.name: epsilon})
            mechanism = Mechanism(Cost(budget, Fraction(0), None), Unit.trajectory(), noise)
            scores[question.name] = answer_scores(mechanism, question, (zero, one), runs)
    return scores


def answer_scores(
    mechanism: Mechanism, question: Query, sums: tuple[Sums, Sums], runs: int, sensitivity: int | None = None
) -> Scores:
    """Log likelihood ratios of `runs` answers to one question on each dataset, given the exact sums of both."""
    without, with_unit = sums
    differs = np.flatnonzero(without != with_unit)
    zero, one = without[differs], with_unit[differs]
    sides = []
    for exact in (zero, one):
        answer = mechanism.answer(question.name, np.tile(exact, runs), question.resolution, sensitivity)
        sides.append(log_ratio(answer.values.reshape(runs, len(differs)), zero, one, answer.scale))
    return sides[0], sides[1]


def log_ratio(noisy: Sums, without: Sums, with_canary: Sums, scale: float) -> NDArray[np.float64]:
    """Σ (|y − s| − |y − s'|) / b: the log likelihood ratio of s' against s under Laplace noise."""
    moved = np.abs(noisy - without) - np.abs(noisy - with_canary)
    return np.asarray(moved.sum(axis=-1) / scale, np.float64)


@dataclass
class _Recorder:
    """Passes on the noise of `inner`, and records the exact sums and the noisy answers."""

    inner: NoiseSource
    sums: list[Sums] = field(default_factory=list)
    noisy: list[Noisy] = field(default_factory=list)

    @property
    def private(self) -> bool:
        return self.inner.private

    def laplace(self, sums: Sums, sensitivity: int, epsilon: Fraction) -> Noisy:
        self.sums.append(sums)
        self.noisy.append(self.inner.laplace(sums, sensitivity, epsilon))
        return self.noisy[-1]

    def gaussian(self, sums: Sums, l2_sensitivity: float, rho: Fraction) -> Noisy:
        raise InputError("The audit supports Laplace noise only; audit a release made without delta=.")


@dataclass
class _Replay:
    """Repeats the noisy answers of an earlier run, and records the exact sums of this one."""

    noisy: Sequence[Noisy]
    private: bool = False
    sums: list[Sums] = field(default_factory=list)

    def laplace(self, sums: Sums, sensitivity: int, epsilon: Fraction) -> Noisy:
        self.sums.append(sums)
        earlier = self.noisy[min(len(self.sums), len(self.noisy)) - 1]
        # A different size is itself evidence; a made-up answer lets the run finish.
        return earlier if len(earlier.values) == len(sums) else replace(earlier, values=sums)

    def gaussian(self, sums: Sums, l2_sensitivity: float, rho: Fraction) -> Noisy:
        raise InputError("The audit supports Laplace noise only; audit a release made without delta=.")


def release_scores(
    neighbours: Neighbours,
    *,
    epsilon: Fraction,
    runs: int,
    noise: NoiseSource,
    progress: Progress = quiet,
) -> Scores:
    """Log likelihood ratios of whole releases, ln P(release | with) / P(release | without), `runs` on each dataset.

    `measure` runs on one dataset, and then on the other with the same noisy answers, which shows what the exact
    sums would have been there. Later questions depend on earlier answers only through what was released, so the ratio
    is the sum over all answers, and ε-DP keeps it within ± ε.
    """
    scope, both = neighbours.scope, (neighbours.without, neighbours.with_unit)
    datasets = [MemorySource(data) for data in both]
    unit = Unit.trajectory()
    scores = np.zeros((2, runs))
    for run in range(runs):
        progress("whole releases", (run + 1) / runs)
        for side in (0, 1):
            recorder = _Recorder(noise)
            measure(datasets[side], scope, epsilon=epsilon, unit=unit, noise=recorder)
            replay = _Replay(recorder.noisy)
            measure(datasets[1 - side], scope, epsilon=epsilon, unit=unit, noise=replay)
            zero, one = (recorder.sums, replay.sums) if side == 0 else (replay.sums, recorder.sums)
            scores[side, run] = _release_ratio(recorder.noisy, zero, one, certain=_CERTAIN if side else -_CERTAIN)
    return scores[0], scores[1]


def _release_ratio(noisy: Sequence[Noisy], without: list[Sums], with_canary: list[Sums], certain: float) -> float:
    """Σ over the answers of their log ratios; `certain` if the other dataset cannot give answers of this shape."""
    if not [len(s) for s in without] == [len(s) for s in with_canary] == [len(one.values) for one in noisy]:
        return certain
    return sum(float(log_ratio(one.values, s, s1, one.scale)) for one, s, s1 in zip(noisy, without, with_canary))

"""draw_release: noise for all questions, in the order of the catalogue.

The noisy count is drawn first. It decides how the rest of ε is divided, and with later noisy answers it
decides the size of every other question. Nothing else about the data does.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import base_grid
from wayveil.core.scope import Scope
from wayveil.privacy.budget import Budget
from wayveil.privacy.mechanism import Mechanism
from wayveil.progress import Progress, quiet
from wayveil.questions.answer import Answer
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.count import Count
from wayveil.questions.question import Context, Question, noisy_number
from wayveil.questions.shares import divided, for_signal, with_people
from wayveil.release import Release


class Sums(Protocol):
    """Where exact sums come from: the data, or for `wayveil.plan` a made-up dataset."""

    @property
    def scope(self) -> Scope: ...

    def sums_of(self, question: Question, progress: Progress = quiet) -> NDArray[np.int64]: ...


def draw_release(mechanism: Mechanism, exact: Sums, progress: Progress = quiet) -> Release:
    """The noisy answers to all questions.

    Privacy: spends the mechanism's whole budget; every size is post-processing of noisy answers.
    """
    scope, unit, count = exact.scope, mechanism.unit, Count()
    answers = {count.name: _answer(mechanism, count, count, exact)}
    # Only the noisy count is known so far, and what it decides is post-processing; the other shares keep their sum.
    number = noisy_number(answers[count.name])
    mechanism = _with_budget(mechanism, for_signal(mechanism.cost.budget, number / answers[count.name].noise))
    units = number / unit.sensitivity  # the smallest number of people who can have so many
    count_signal = number / answers[count.name].noise
    mechanism = _with_budget(
        mechanism, with_people(mechanism.cost.budget, unit, units, lambda share: 1 / float(share), count_signal)
    )
    signals = group_signals(mechanism, number)
    mechanism = _with_budget(mechanism, divided(mechanism.cost.budget, signals, base_grid(scope)))
    cost = mechanism.cost
    questions = [question for name, question in QUESTIONS.items() if name in cost.budget.shares]
    context = Context(scope, {one.name: cost.noise(one.name, unit) for one in questions}, signals, answers)
    for position, question in enumerate(questions, 1):
        if question.name not in answers:
            summed = question.summed(context)
            sized = context.once(question.sized)
            answers[sized.name] = _answer(mechanism, sized, summed, exact, progress)
        progress("drawing noise", position / len(questions))
    return release_of(scope, tuple(answers.values()), mechanism)


def release_of(scope: Scope, answers: tuple[Answer, ...], mechanism: Mechanism) -> Release:
    """The release of these answers, with the promise that was paid for."""
    cost, unit = mechanism.cost, mechanism.unit
    return Release(
        scope=scope,
        answers=answers,
        epsilon=cost.budget.epsilon,
        delta=float(cost.delta),
        unit=unit.kind,
        max_per_user=unit.max_per_user,
        neighbours=unit.describe(averaged=cost.rho is not None),
        private=mechanism.noise.private,
        software=_software(),
    )


def group_signals(mechanism: Mechanism, count: float, norms: Mapping[str, float] | None = None) -> dict[str, float]:
    """Summed signal of the questions of each budget group, in noise units; with `norms`, the noise is Gaussian."""
    signals: dict[str, float] = {}
    for name in mechanism.cost.budget.shares:
        cost, group = mechanism.cost, QUESTIONS[name].budget_group
        noise = cost.noise(name, mechanism.unit) if norms is None else cost.gaussian_noise(name, norms[name])
        signals[group] = signals.get(group, 0.0) + count / noise
    return signals


def _with_budget(mechanism: Mechanism, budget: Budget) -> Mechanism:
    return replace(mechanism, cost=replace(mechanism.cost, budget=budget))


def _answer(
    mechanism: Mechanism, question: Question, summed: Question, exact: Sums, progress: Progress = quiet
) -> Answer:
    sums = question.pooled(summed, exact.sums_of(summed, progress))
    noisy = mechanism.answer(question.name, sums, question.resolution, question.sensitivity(mechanism.unit))
    return Answer(question, noisy.mechanism, noisy.scale, noisy.epsilon, noisy.values)


def _software() -> str:
    from importlib.metadata import version

    return f"wayveil {version('wayveil')}"

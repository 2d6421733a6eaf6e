"""draw_clipped_release: answers of the Gaussian mode, from contributions that are clipped unit by unit.

Each question goes through the same steps. Its size follows from earlier noisy answers. Its bound is public, or follows
from a noisy histogram of the units' norms at that size. Then the clipped contributions are added up and get Gaussian
noise. Where units have much in common, this is done twice: the second time for what they add beyond a centre, which
follows from the first noisy sums. The first time is around a centre, too, where other answers give one. One pass over
the units serves all questions that are ready for their next step.
"""

import math
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import base_grid
from wayveil.core.scope import Scope
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Kept
from wayveil.engine.units import TripUnits, Units, UserUnits
from wayveil.measurement.draw import group_signals, release_of
from wayveil.privacy.digest import ContentDigest
from wayveil.privacy.mechanism import Cost, Mechanism, NoisySums
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet
from wayveil.questions.answer import Answer, Centred, Clipping
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.centre import expected_shares, guessed_shares
from wayveil.questions.count import Count
from wayveil.questions.norm_estimates import Noisy, Norms, estimate_norms, one_trajectory_each, trajectories_per_unit
from wayveil.questions.norms import (
    SETTINGS,
    Centre,
    NormBins,
    UnitQuery,
    can_be_weighted,
    clipped_resolution,
    guessed_norm,
    is_centred,
    norms_part,
    public_bound,
    sums_part,
)
from wayveil.questions.question import Context, Question, size_of
from wayveil.questions.shares import PEOPLE_SHARES_OF_RHO, divided, with_people
from wayveil.questions.value_weights import value_weights
from wayveil.release import Release

READ_PER_COUNTED = 8
"""Trajectories of a user that are read, at most, for each one that counts. They are averaged, so that what a user adds
depends less on chance; more of them would take memory and change little."""
FINER = 1.5
"""Factor on the signal when the cell sizes of a field are chosen; 3 was no better on simulated cities."""
LEAST_CENTRED = 30.0
"""Least number of units times the square root of ρ for which questions are drawn around a centre. The noise of the
first draw goes into the centre and from there into every unit's difference: its square, relative to what units share,
is x = 4·K / (3·ρ_q·units²) for K values, which the posterior mean (`expected_shares`) reduces to at most x / (1 + x).
Spending three eighths of ρ on the first draw pays while 1/8 + x / (1 + x) < 5/8. This is the limit for 64 values with
9 % of ρ, a coarse field."""
_KEPT_SD = 0.15
"""Relative standard deviation of the share that clipping keeps, as estimated from the norms."""


def first_query(unit: Unit) -> UnitQuery:
    """What needs no earlier answer: the number of trajectories, or how many each user has."""
    count, bound = Count(), public_bound(Count, unit)
    return UnitQuery(
        count, NormBins.of(count, unit), None if bound is None else round(bound * clipped_resolution(count))
    )


def draw_count(mechanism: Mechanism, units: Units, first: NDArray[np.int64]) -> tuple[Answer, Norms]:
    """The noisy count, and the estimated number of trajectories of each unit; `first` is the sum of `first_query`.

    Privacy: spends the count's share of the budget.
    """
    opening = _OpenQuestions(mechanism, one_trajectory_each(1.0))
    opening.pending = {Count.name: Count()}
    opening.step({first_query(mechanism.unit): first})
    while opening.pending:
        opening.step(_summed(units, opening.ready()))
    answer = opening.answers[Count.name]
    if mechanism.unit.kind == "user":
        return answer, opening.per_unit
    return answer, one_trajectory_each(max(float(answer.counts[0]), 1.0))


def draw_clipped_release(
    mechanism: Mechanism, units: Units, scope: Scope, first: NDArray[np.int64], progress: Progress = quiet
) -> Release:
    """The noisy answers to all questions; `first` is the exact sum of `first_query`.

    Privacy: spends the mechanism's whole budget; every size and every bound is post-processing of noisy answers.
    """
    unit = mechanism.unit
    counted, per_unit = draw_count(mechanism, units, first)
    count = max(float(counted.counts[0]), 1.0)
    usual = per_unit.quantile(0.5)
    clear = centre_is_clear(mechanism.cost, float(per_unit.units.sum()), count / unit.sensitivity)
    centred = {name for name, question in QUESTIONS.items() if clear and is_centred(question, unit, usual)}
    guesses = {name: guessed_norm(question, usual, name in centred) for name, question in QUESTIONS.items()}
    mechanism = _with_people(mechanism, float(per_unit.units.sum()))
    signals = group_signals(mechanism, count, guesses)
    cost = replace(mechanism.cost, budget=divided(mechanism.cost.budget, signals, base_grid(scope), gaussian_unit=unit))
    questions = [question for name, question in QUESTIONS.items() if name in cost.budget.shares]
    noise = {
        one.name: cost.gaussian_noise(
            one.name, guesses[one.name], sums_part(one, unit, one.name in centred, second=one.name in centred)
        )
        for one in questions
    }
    run = _OpenQuestions(replace(mechanism, cost=cost), per_unit, count, math.sqrt(2) * counted.noise, centred)
    run.answers[Count.name] = counted
    # The norm of a unit shrinks with the cells, which can therefore be finer than with Laplace noise.
    finer = {group: FINER * signal for group, signal in signals.items()}
    context = Context(scope, noise, finer, run.answers, gaussian=True)
    waiting = [question for question in questions if question.name not in run.answers]
    while waiting or run.pending:
        for question in list(waiting):
            if all(name in run.answers for name in question.needs):
                run.pending[question.name] = context.once(question.sized)
                waiting.remove(question)
        run.step(_summed(units, run.ready()))
        progress("drawing noise", len(run.answers) / len(questions))
    answers = tuple(run.answers[question.name] for question in questions)
    return release_of(scope, answers, replace(mechanism, cost=cost))


def centre_is_clear(cost: Cost, units: float, fewest: float) -> bool:
    """Whether so many units give a first draw that is clear enough to be a centre.

    `units` comes from the histogram of the count, which may be mostly noise if there are few units; `fewest` is the
    noisy count divided by c, which is much less noisy. Their geometric mean decides.

    Privacy: free (post-processing of the noisy number of units and of the noisy count).
    """
    assert cost.rho is not None
    return math.sqrt(cost.rho * units * fewest) >= LEAST_CENTRED


def _with_people(mechanism: Mechanism, people: float) -> Mechanism:
    """The mechanism with a part of its budget for the questions about people, where there are enough."""
    cost = mechanism.cost
    assert cost.rho is not None
    rho, epsilon = cost.rho, cost.budget.epsilon

    def noise(share: Fraction) -> float:
        return 1 / (2 * math.sqrt(rho * share / epsilon))

    budget = with_people(cost.budget, mechanism.unit, people, noise, parts=PEOPLE_SHARES_OF_RHO)
    return replace(mechanism, cost=replace(cost, budget=budget))


def _summed(units: Units, queries: list[UnitQuery]) -> dict[UnitQuery, NDArray[np.int64]]:
    return dict(zip(queries, units.sums(queries)))


class _OpenQuestions:
    """Questions of known size on their way to an answer."""

    def __init__(
        self,
        mechanism: Mechanism,
        per_unit: Norms,
        count: float = 1.0,
        count_sd: float = 0.0,
        centred: Collection[str] = (),
    ) -> None:
        self._mechanism, self._unit, self._count, self._count_sd = mechanism, mechanism.unit, count, count_sd
        self._centred = centred
        self._clipping: dict[str, Clipping] = {}
        self._guesses: dict[str, Centre | None] = {}
        self._first: dict[str, tuple[Answer, Centre]] = {}
        self.per_unit = per_unit
        self.pending: dict[str, Question] = {}
        self.answers: dict[str, Answer] = {}

    def ready(self) -> list[UnitQuery]:
        """The next step of each pending question."""
        return [self._query(question) for question in self.pending.values()]

    def step(self, sums: dict[UnitQuery, NDArray[np.int64]]) -> None:
        """Noise for the exact sums of `ready`: norms become bounds, and clipped sums become answers."""
        for query, exact in sums.items():
            if query.bound is None:
                self._clipping[query.question.name] = self._bounded(query.question, exact, query.centre)
            elif query.question.name in self._first:
                self._second(query.question, query.bound, exact)
            else:
                self._answer(query.question, query.bound, exact)

    def _query(self, question: Question) -> UnitQuery:
        known, public = self._clipping.get(question.name), public_bound(question, self._unit)
        if known is None and public is not None:
            resolution = clipped_resolution(question)
            known = self._clipping[question.name] = Clipping(resolution, round(public * resolution), 1.0)
        centre = self._first[question.name][1] if question.name in self._first else self._guess(question)
        return UnitQuery(question, NormBins.of(question, self._unit), None if known is None else known.bound, centre)

    def _guess(self, question: Question) -> Centre | None:
        """The guessed centre around which the first draw is made; None if there is none."""
        if question.name not in self._centred:
            return None
        if question.name not in self._guesses:
            shares = guessed_shares(question, self._count, self.answers)
            self._guesses[question.name] = None if shares is None else Centre.of(shares, question)
        return self._guesses[question.name]

    def _bounded(self, question: Question, exact: NDArray[np.int64], centre: Centre | None) -> Clipping:
        part, bins = norms_part(question, self._unit), NormBins.of(question, self._unit)
        drawn = self._mechanism.clipped_answer(question.name, exact, 1, part)
        noisy = Noisy(drawn.values, drawn.scale)
        # The Laplace noise of the same variance has a standard deviation of sqrt(2) times its scale.
        noise = math.sqrt(2 * size_of(question)) * self._mechanism.cost.gaussian_noise(
            question.name, 1.0, self._sums_part(question, second=question.name in self._first)
        )
        if question.name == Count.name:
            norms = self.per_unit = trajectories_per_unit(bins, noisy)
            bound = norms.best_bound(noise / float(norms.mass.sum()), bias=1.0)
        else:
            norms = estimate_norms(question, bins, noisy, self.per_unit, centre is not None)
            bound = norms.best_bound(noise / self._count, SETTINGS.bias)
        resolution = clipped_resolution(question) if centre is None else centre.resolution(question)
        return Clipping(resolution, max(int(bound * resolution), 1), norms.kept(bound), drawn.values, drawn.scale)

    def _answer(self, question: Question, bound: int, exact: NDArray[np.int64]) -> None:
        self._query(question)  # stores a public bound in `_clipping`
        noisy = self._mechanism.clipped_answer(question.name, exact, bound, self._sums_part(question))
        clipping = self._clipping.pop(question.name)
        guess = self._guess(question)
        if guess is not None:
            noisy = replace(noisy, values=_added_back(noisy.values, guess.shares(question), self._count, clipping))
        elif clipping.norms is not None and question.adds_up and question.name != Count.name:
            clipping = replace(clipping, kept=_kept(clipping, noisy, self._count, self._count_sd))
        answer = Answer(question, noisy.mechanism, noisy.scale, noisy.epsilon, noisy.values, clipping)
        if question.name in self._centred:
            shares = expected_shares(answer, self._count, self.answers)
            weights = value_weights(shares) if can_be_weighted(question, self._unit) else None
            self._first[question.name] = answer, Centre.of(shares, question, weights)
        else:
            self._finish(answer)

    def _second(self, question: Question, bound: int, exact: NDArray[np.int64]) -> None:
        noisy = self._mechanism.clipped_answer(question.name, exact, bound, self._sums_part(question, second=True))
        first, centre = self._first.pop(question.name)
        clipping = self._clipping.pop(question.name)
        self._finish(replace(first, centred=Centred(centre, self._count, noisy.scale, noisy.values, clipping)))

    def _finish(self, answer: Answer) -> None:
        self.answers[answer.name] = answer
        del self.pending[answer.name]

    def _sums_part(self, question: Question, second: bool = False) -> Fraction:
        return sums_part(question, self._unit, question.name in self._centred, second)


def _added_back(
    differences: NDArray[np.int64], shares: NDArray[np.float64], count: float, clipping: Clipping
) -> NDArray[np.int64]:
    """What a draw without a centre would have given, with the count as total: the sum of the differences is noise."""
    unit = clipping.resolution * clipping.kept
    plain = count * unit * shares + differences
    result: NDArray[np.int64] = np.rint(plain - (plain.sum() - count * unit) / len(plain)).astype(np.int64)
    return result


def _kept(clipping: Clipping, noisy: NoisySums, count: float, count_sd: float) -> float:
    """The share that clipping leaves: the estimate from the norms combined with that from the noisy total."""
    whole = count * clipping.resolution
    total = float(noisy.values.sum()) / whole
    variance = len(noisy.values) * (noisy.scale / whole) ** 2 + (clipping.kept * count_sd / count) ** 2
    trust = variance / (variance + (_KEPT_SD * clipping.kept) ** 2)
    return float(np.clip(trust * clipping.kept + (1 - trust) * total, clipping.kept / 2, 1.0))


@contextmanager
def read_units(
    passes: Passes, scope: Scope, kept: Kept, unit: Unit, secret: bytes | None = None, progress: Progress = quiet
) -> Iterator[tuple[Units, NDArray[np.int64], str | None]]:
    """Read the data once: the units, the exact sum of `first_query`, and the content's digest for the ledger.

    Privacy: not private (trusted side only); nothing is spent yet.
    """
    content = None if secret is None or not passes.serial else ContentDigest(secret)
    watchers = () if content is None else (content,)
    with ExitStack() as stack:
        units: Units
        if unit.kind == "trajectory":
            units = TripUnits(passes, scope, watchers)
        else:
            units = stack.enter_context(UserUnits(passes, scope, kept, watchers, progress))
        (first,) = units.sums([first_query(unit)], progress)
        yield units, first, None if content is None else content.hexdigest()

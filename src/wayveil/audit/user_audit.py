"""Membership of one user with all trips: the questions about people, each with all of ε on it.

Privacy: not private (trusted side only); it runs on simulated data.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wayveil.audit.mechanism_audit import log_ratio
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Serial
from wayveil.engine.units import UserUnits
from wayveil.io.source import MemorySource
from wayveil.privacy.budget import Budget
from wayveil.privacy.mechanism import Cost, Mechanism
from wayveil.privacy.noise import NoiseSource
from wayveil.privacy.unit import Unit
from wayveil.questions.catalogue import PEOPLE_QUESTIONS
from wayveil.questions.norms import NormBins, UnitQuery, clipped_resolution

Scores = tuple[NDArray[np.float64], NDArray[np.float64]]


def user_scores(
    without: Trajectories,
    with_user: Trajectories,
    scope: Scope,
    *,
    epsilon: Fraction,
    runs: int,
    noise: NoiseSource,
) -> dict[str, Scores]:
    """Question -> log likelihood ratios ln P(y | with the user) / P(y | without) of `runs` runs on each dataset.

    The two datasets differ by one user with all trips, however many. ε-privacy keeps the ratios within ± ε.
    """
    questions = [question(scope) for question, _ in PEOPLE_QUESTIONS]
    queries = [UnitQuery(question, NormBins(1), clipped_resolution(question)) for question in questions]
    exact = []
    for data in (without, with_user):
        with UserUnits(Passes(MemorySource(data), Serial()), scope, None, ends_only=True) as units:
            exact.append(units.sums(queries))
    unit, scores = Unit.user(1000), {}
    for question, zero, one in zip(questions, *exact, strict=True):
        differs = np.flatnonzero(zero != one)
        if not len(differs):
            continue
        mechanism = Mechanism(Cost(Budget(epsilon, {question.name: epsilon}), Fraction(0), None), unit, noise)
        sides = []
        for sums in (zero[differs], one[differs]):
            answer = mechanism.answer(
                question.name, np.tile(sums, runs), question.resolution, question.sensitivity(unit)
            )
            noisy = answer.values.reshape(runs, len(differs))
            sides.append(log_ratio(noisy, zero[differs], one[differs], answer.scale))
        scores[question.name] = (sides[0], sides[1])
    return scores

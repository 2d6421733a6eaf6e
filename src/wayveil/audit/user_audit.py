"""Audit of the questions about people: one user is added with all trips, and each question gets all of ε.

Privacy: not private (trusted side only); it runs on simulated data.
"""

from fractions import Fraction

from wayveil.audit.mechanism_audit import Neighbours, Scores, answer_scores
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


def user_scores(
    neighbours: Neighbours, *, epsilon: Fraction, runs: int, noise: NoiseSource
) -> dict[str, Scores]:
    """Question -> log likelihood ratios ln P(y | with the user) / P(y | without) of `runs` runs on each dataset.

    The two datasets differ by one user with all trips, however many. ε-DP keeps the ratios within ± ε.
    """
    questions = [question(neighbours.scope) for question, _ in PEOPLE_QUESTIONS]
    queries = [UnitQuery(question, NormBins(1), clipped_resolution(question)) for question in questions]
    exact = []
    for data in (neighbours.without, neighbours.with_unit):
        with UserUnits(Passes(MemorySource(data), Serial()), neighbours.scope, None, ends_only=True) as units:
            exact.append(units.sums(queries))
    unit, scores = Unit.user(1000), {}
    for question, zero, one in zip(questions, *exact, strict=True):
        if (zero != one).any():
            mechanism = Mechanism(Cost(Budget(epsilon, {question.name: epsilon}), Fraction(0), None), unit, noise)
            scores[question.name] = answer_scores(mechanism, question, (zero, one), runs, question.sensitivity(unit))
    return scores

"""The estimator of fields: noisy grids → densities on the base grid.

Privacy: free (post-processing).
"""

from collections.abc import Callable
from typing import Any

from wayveil.core.density import estimate_field
from wayveil.core.pyramid import Field
from wayveil.questions import priors
from wayveil.questions.answer import Answer
from wayveil.questions.end_points import EndPoints
from wayveil.questions.field import Field as FieldQuestion
from wayveil.questions.levels import noisy_levels
from wayveil.questions.occupancy import Occupancy
from wayveil.synthesis.estimate.estimators.estimation import Estimation
from wayveil.synthesis.estimate.fields import Grids, cell_area, estimate_fields, split_ends
from wayveil.synthesis.estimate.ways import estimate_way

Densities = dict[str, Field] | dict[str, tuple[Field, Field]]


def estimate_places(known: Estimation, quantity: str) -> dict[str, Any]:
    """The density of a quantity; for a difference, the two densities that are subtracted."""
    answers = known.answers[quantity]
    question = answers[0].question
    assert isinstance(question, FieldQuestion)
    return dict(_BY_PRIOR[type(question.prior)](answers, question.prior, known))


def _plain(answers: list[Answer], prior: priors.Plain, known: Estimation) -> Densities:
    quantity = answers[0].question.quantity
    return {quantity: estimate_field(noisy_levels(answers), known.everyone.count, cell_area(known.grid))}


def _traffic(answers: list[Answer], prior: priors.Traffic, known: Estimation) -> Densities:
    """Points and end points together, because each is informative about the other."""
    quantities = (Occupancy.quantity, EndPoints.quantity)
    points, ends = (noisy_levels(known.answers[quantity]) for quantity in quantities)
    area = cell_area(known.grid)
    grids = Grids(points, ends, known.everyone.count, area, known.road_features)
    found = estimate_fields(grids, known.learned, known.progress)
    return dict(zip(quantities, found, strict=True))


def _way(answers: list[Answer], prior: priors.Way, known: Estimation) -> Densities:
    (level,) = noisy_levels(answers)
    return {answers[0].question.quantity: estimate_way(level, known[prior.time], known[prior.ends])}


def _difference(answers: list[Answer], prior: priors.Difference, known: Estimation) -> Densities:
    (answer,) = answers
    return {answer.question.quantity: split_ends(answer, known[prior.of])}


_BY_PRIOR: dict[type, Callable[[list[Answer], Any, Estimation], Densities]] = {
    priors.Plain: _plain,
    priors.Traffic: _traffic,
    priors.Way: _way,
    priors.Difference: _difference,
}

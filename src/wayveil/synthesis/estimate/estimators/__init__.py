"""One estimator for each kind of question: noisy answers → distributions that trips can be drawn from.

`ESTIMATORS` maps a kind to a function of the estimates so far and a quantity. The function estimates that quantity from
all answers about it, together with any others that depend on it. The `prior` of a question describes what is known
about its quantity in advance.

Privacy: free (post-processing of the release).
"""

from collections.abc import Callable
from typing import Any

from wayveil.questions.count import Count
from wayveil.questions.field import Field
from wayveil.questions.flow import Flow
from wayveil.questions.histogram import Histogram
from wayveil.questions.question import Question
from wayveil.questions.table import Table
from wayveil.synthesis.estimate.estimators.distributions import estimate_distribution
from wayveil.synthesis.estimate.estimators.estimation import Estimation
from wayveil.synthesis.estimate.estimators.flows import estimate_flows
from wayveil.synthesis.estimate.estimators.joint import estimate_joint
from wayveil.synthesis.estimate.estimators.places import estimate_places

Estimator = Callable[[Estimation, str], dict[str, Any]]


def estimate_count(known: Estimation, quantity: str) -> dict[str, Any]:
    """The number of trajectories of several points, at least one."""
    return {quantity: known.count}


ESTIMATORS: dict[type, Estimator] = {
    Count: estimate_count,
    Histogram: estimate_distribution,
    Table: estimate_joint,
    Field: estimate_places,
    Flow: estimate_flows,
}


def estimate_all(known: Estimation) -> dict[str, Any]:
    """The estimate of every quantity that the release answers."""
    return {quantity: known[quantity] for quantity in known.answers}


def estimator_of(question: Question) -> Estimator:
    """The estimator of the question's kind."""
    return next(estimator for kind, estimator in ESTIMATORS.items() if isinstance(question, kind))

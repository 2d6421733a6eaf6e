"""Estimation: the estimates so far, and the inputs of the remaining ones."""

from collections.abc import Callable, Sequence
from typing import Any

from wayveil.core.grid import base_grid
from wayveil.core.pyramid import Field
from wayveil.progress import Progress, quiet
from wayveil.questions.answer import Answer
from wayveil.release import Release
from wayveil.release.number import estimate_number
from wayveil.synthesis.estimate.curves import Total
from wayveil.synthesis.trips.one_point import one_point_share, without_one_point


class Estimation:
    """Estimates by quantity, each computed when it is first needed, because estimates may depend on others.

    `one_point` is the share of trajectories with a single point. Fields, departures and flows describe all
    trajectories and use the total `everyone`. The other answers and `total` describe trajectories of several points.

    Parameters
    ----------
    road_features
        Road features of a public map; empty without one.
    learned
        Whether the network corrects the fields.
    progress
        Reports the progress of estimating the fields, which takes most of the time.
    """

    def __init__(
        self,
        release: Release,
        estimator_of: Callable[[Any], Callable[["Estimation", str], dict[str, Any]]],
        road_features: Sequence[Field] = (),
        learned: bool = False,
        progress: Progress = quiet,
    ) -> None:
        self.scope = release.scope
        self.grid = base_grid(release.scope)
        self.road_features, self.learned, self.progress = road_features, learned, progress
        self.answers: dict[str, list[Answer]] = {}
        self.one_point = one_point_share(release)
        moving = without_one_point(release, self.one_point)
        for answer in moving.answers:
            self.answers.setdefault(answer.question.quantity, []).append(answer)
        number = estimate_number(release)
        self.everyone = Total(max(number.value, 1.0), number.noise)
        self.total = Total(max((1 - self.one_point) * number.value, 1.0), number.noise)
        self._estimator_of = estimator_of
        self._found: dict[str, Any] = {}

    @property
    def count(self) -> float:
        """The number of trajectories of several points."""
        return self.total.count

    def __getitem__(self, quantity: str) -> Any:
        if quantity not in self._found:
            question = self.answers[quantity][0].question
            self._found.update(self._estimator_of(question)(self, quantity))
        return self._found[quantity]

"""Estimation: what has been estimated so far, and what is needed for the rest."""

from collections.abc import Callable, Sequence
from typing import Any

from wayveil.grid import base_grid
from wayveil.progress import nobody
from wayveil.pyramid import Field
from wayveil.questions.answer import Answer
from wayveil.release import Release
from wayveil.synthesis.curves import Total


class Estimation:
    """Estimates by quantity, each made when it is first needed: an estimate may use others, in any order.

    Parameters
    ----------
    road_features
        Of a public map; empty without one.
    learned
        Whether the network corrects the fields.
    told
        Hears how much of the work on the fields is done.
    """

    def __init__(
        self,
        release: Release,
        estimator_of: Callable[[Any], Callable[["Estimation", str], dict[str, Any]]],
        road_features: Sequence[Field] = (),
        learned: bool = False,
        told: Callable[[float], None] = nobody,
    ) -> None:
        self.scope = release.scope
        self.grid = base_grid(release.scope)
        self.road_features, self.learned, self.told = road_features, learned, told
        self.answers: dict[str, list[Answer]] = {}
        for answer in release.answers:
            self.answers.setdefault(answer.question.quantity, []).append(answer)
        self.count = max(float(release["count"].counts[0]), 1.0)
        self.total = Total(self.count, release["count"].noise)
        self._estimator_of = estimator_of
        self._found: dict[str, Any] = {}

    def __getitem__(self, quantity: str) -> Any:
        if quantity not in self._found:
            question = self.answers[quantity][0].question
            self._found.update(self._estimator_of(question)(self, quantity))
        return self._found[quantity]

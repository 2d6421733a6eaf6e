"""The input of synthesis: the release, how many trajectories, with which map and rules, and from which seed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from wayveil.core.roads import RoadMap
from wayveil.errors import InputError
from wayveil.release import Release
from wayveil.rules.rule import Rule
from wayveil.synthesis.arguments import wanted_seed
from wayveil.synthesis.people import trips_of_people

ESTIMATORS = ("bayes", "learned")


@dataclass(frozen=True, eq=False)
class Request:
    """A release, and what is to be made from it.

    Privacy: free (post-processing).
    """

    release: Release
    roads: RoadMap | None = None
    """A public road map as a better prior; where it has no roads, the grid is used."""
    rules: Sequence[Rule] = ()
    """Traffic rules that the output obeys; the scope's bounds always hold."""
    n: int | None = None
    """Number of trajectories; None: the release's noisy count."""
    people: int | None = None
    """Number of people instead; needs a release of unit "user"."""
    seed: int | None = None
    """The same seed gives the same trajectories. It does not affect the noise of the release."""
    estimator: str = "learned"
    """'bayes' or 'learned': how the noisy fields are smoothed."""

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise InputError(f"Estimator '{self.estimator}' is unknown; use bayes or learned.")
        if self.roads is not None and not isinstance(self.roads, RoadMap):
            raise InputError("roads must be a road map; read one with wayveil.read_roads(FILE).")
        if isinstance(self.rules, str | os.PathLike):
            raise InputError("rules must be rules; read them with wayveil.rules.read_rules(FILE, scope, roads).")
        object.__setattr__(self, "seed", wanted_seed(self.seed))  # converts an integer of numpy

    @cached_property
    def count(self) -> int:
        """The number of trajectories."""
        return trips_of_people(self.release, self.n, self.people)

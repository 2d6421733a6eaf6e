"""The methods that the comparison runs, by name.

Each is a callable (trajectories, scope, epsilon, seed, roads) -> Trajectories. They generate as many trajectories as
the data has, because divergences depend on the number. This uses the exact number, so the results are not private.
"""

from collections.abc import Callable
from dataclasses import dataclass

from wayveil import synthesize
from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.dpe.coordinates import random_subset, synthesize_published
from wayveil.dpe.method import Options
from wayveil.measurement import measure
from wayveil.privacy.unit import Unit

Run = Callable[[Trajectories, Scope, float, int, RoadMap | None], Trajectories]

DPE_SUBSET = 500
"""The published DPE compares all pairs of trajectories, so it runs on a random subset of this size."""


@dataclass(frozen=True)
class Method:
    """A method of the comparison; `private` says if its output is differentially private."""

    name: str
    run: Run
    private: bool
    needs_roads: bool = False
    has_time: bool = True


def _ours(estimator: str, with_map: bool) -> Run:
    def run(data: Trajectories, scope: Scope, epsilon: float, seed: int, roads: RoadMap | None) -> Trajectories:
        release = measure(data, scope, epsilon=epsilon, unit=Unit.trajectory())
        used = roads if with_map else None
        return synthesize(release, roads=used, n=len(data), seed=seed, estimator=estimator).trajectories

    return run


def _dpe(data: Trajectories, scope: Scope, epsilon: float, seed: int, _: RoadMap | None) -> Trajectories:
    some = random_subset(data, DPE_SUBSET, seed)
    return synthesize_published(some, scope, Options(epsilon=epsilon, seed=seed)).trajectories


def _baseline(name: str, published: bool) -> Run:
    def run(data: Trajectories, scope: Scope, epsilon: float, seed: int, _: RoadMap | None) -> Trajectories:
        import wayveil.baselines as baselines

        method: Callable[..., baselines.BaselineResult] = getattr(baselines, name)
        return method(data, scope, epsilon, published=published, seed=seed, n=len(data)).trajectories

    return run


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("wayveil", _ours("learned", with_map=False), private=True),
        Method("wayveil-map", _ours("learned", with_map=True), private=True, needs_roads=True),
        Method("wayveil-bayes", _ours("bayes", with_map=False), private=True),
        Method("wayveil-bayes-map", _ours("bayes", with_map=True), private=True, needs_roads=True),
        Method("adatrace", _baseline("adatrace", False), private=True, has_time=False),
        Method("privtrace", _baseline("privtrace", False), private=True, has_time=False),
        Method("adatrace-published", _baseline("adatrace", True), private=False, has_time=False),
        Method("privtrace-published", _baseline("privtrace", True), private=False, has_time=False),
        Method("dpe-published", _dpe, private=False),
    )
}

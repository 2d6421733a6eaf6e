"""The methods that the comparison runs, by name.

Each is a function from a task to trajectories. It generates as many trajectories as the data has, because divergences
depend on the number. That number is exact, so the results are not private.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from wayveil.baselines import load, names
from wayveil.baselines.registry import MODULES
from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.dpe.coordinates import random_subset, synthesize_published
from wayveil.dpe.method import Options
from wayveil.measurement import measure
from wayveil.privacy.unit import Unit
from wayveil.synthesis.recipe import synthesize
from wayveil.synthesis.request import Request

DPE_SUBSET = 500
"""The published DPE compares all pairs of trajectories, so it runs on a random subset of this size."""
DEFAULT = ("wayveil", "wayveil-map", "wayveil-bayes", "wayveil-bayes-map", "adatrace", "privtrace",
           "adatrace-published", "privtrace-published", "dpe-published")  # fmt: skip
"""The methods that run when none is named."""
PUBLISHED = "-published"


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is given."""

    data: Trajectories
    scope: Scope
    epsilon: float
    seed: int
    roads: RoadMap | None = None


Run = Callable[[Task], Trajectories]


@dataclass(frozen=True)
class Method:
    """A method of the comparison; `private` says if its output is differentially private."""

    name: str
    run: Run
    private: bool
    needs_roads: bool = False
    has_time: bool = True


def _ours(task: Task, *, estimator: str, mapped: bool) -> Trajectories:
    release = measure(task.data, task.scope, epsilon=task.epsilon, unit=Unit.trajectory())
    roads = task.roads if mapped else None
    wanted = Request(release, roads, n=len(task.data), seed=task.seed, estimator=estimator)
    return synthesize(wanted).trajectories


def _dpe(task: Task) -> Trajectories:
    some = random_subset(task.data, DPE_SUBSET, task.seed)
    return synthesize_published(some, task.scope, Options(epsilon=task.epsilon, seed=task.seed)).trajectories


def _baseline(task: Task, *, name: str, published: bool) -> Trajectories:
    result = load(name)(task.data, task.scope, task.epsilon, published=published, seed=task.seed, n=len(task.data))
    return result.trajectories


def baseline_method(name: str, published: bool) -> Method:
    """A method of the collection, or one at 'module:attribute', in one of its modes."""
    run = partial(_baseline, name=name, published=published)
    return Method(name + PUBLISHED * published, run, private=not published, has_time=load(name).makes_times)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("wayveil", partial(_ours, estimator="learned", mapped=False), private=True),
        Method("wayveil-map", partial(_ours, estimator="learned", mapped=True), private=True, needs_roads=True),
        Method("wayveil-bayes", partial(_ours, estimator="bayes", mapped=False), private=True),
        Method("wayveil-bayes-map", partial(_ours, estimator="bayes", mapped=True), private=True, needs_roads=True),
        *(baseline_method(name, published) for published in (False, True) for name in MODULES),
        Method("dpe-published", _dpe, private=False),
    )
}


def find_method(name: str) -> Method | None:
    """The method of this name; 'module:attribute' (with or without "-published") is one of your own.

    Methods that were registered in this process are found, too.
    """
    if name in METHODS:
        return METHODS[name]
    plain = name.removesuffix(PUBLISHED)
    if ":" in plain or plain in names():
        return baseline_method(plain, plain != name)
    return None

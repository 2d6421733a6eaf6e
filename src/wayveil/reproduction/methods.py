"""The methods of the comparison, one line each: (trajectories, scope, epsilon, run settings) -> trajectories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wayveil.baselines import load
from wayveil.core.trajectories import Trajectories
from wayveil.dpe.coordinates import synthesize_published
from wayveil.dpe.descent import Settings
from wayveil.dpe.method import Options
from wayveil.errors import InputError
from wayveil.measurement import measure
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress
from wayveil.synthesis.recipe import synthesize
from wayveil.synthesis.request import Request

if TYPE_CHECKING:
    from wayveil.core.scope import Scope


@dataclass(frozen=True)
class RunSettings:
    """What the published method needs besides epsilon."""

    learning_rate: float
    iterations: int
    time_scale_mps: float | None
    seed: int


@dataclass(frozen=True)
class Method:
    """A method of the table, whether its output is private, and how it is run."""

    label: str
    private: bool
    run: Callable[[Trajectories, Scope, float, RunSettings, Progress], Trajectories]


def _published(loss: str) -> Callable[..., Trajectories]:
    def run(data: Trajectories, scope: Scope, epsilon: float, given: RunSettings, progress: Progress) -> Trajectories:
        options = Options(epsilon, synthesis=Settings(loss, given.learning_rate, given.iterations), seed=given.seed,
                          time_scale_mps=given.time_scale_mps)  # fmt: skip
        result = synthesize_published(data, scope, options, progress=progress)
        return result.trajectories

    return run


def _adatrace(data: Trajectories, scope: Scope, epsilon: float, given: RunSettings, progress: Progress) -> Trajectories:
    return load("adatrace")(data, scope, epsilon, seed=given.seed, n=len(data), progress=progress).trajectories


def _privtrace(
    data: Trajectories, scope: Scope, epsilon: float, given: RunSettings, progress: Progress
) -> Trajectories:
    return load("privtrace")(data, scope, epsilon, seed=given.seed, n=len(data), progress=progress).trajectories


def _wayveil(data: Trajectories, scope: Scope, epsilon: float, given: RunSettings, progress: Progress) -> Trajectories:
    # No ledger: an experiment publishes nothing, and its tables are stamped.
    release = measure(data, scope, epsilon=epsilon, unit=Unit.trajectory(), progress=progress)
    return synthesize(Request(release, n=len(data), seed=given.seed), progress=progress).trajectories


METHODS: dict[str, Method] = {
    "dpe": Method("DPE as published, mean-square loss", False, _published("mean-square")),
    "dpe-absolute": Method("DPE as published, absolute loss", False, _published("absolute")),
    "adatrace": Method("AdaTrace (our code, sound)", True, _adatrace),
    "privtrace": Method("PrivTrace (our code, sound)", True, _privtrace),
    "wayveil": Method("wayveil", True, _wayveil),
}


def chosen_methods(names: str | None) -> dict[str, Method]:
    """The methods of a comma-separated list; all methods if there is none."""
    if names is None:
        return METHODS
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in METHODS]
    if unknown or not wanted:
        raise InputError(f"methods= must be a comma-separated list of {', '.join(METHODS)}.")
    return {name: METHODS[name] for name in wanted}

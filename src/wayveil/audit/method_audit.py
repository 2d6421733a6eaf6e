"""Audit of the other published methods in both modes: many runs on two neighbouring datasets."""

from collections.abc import Iterator

import numpy as np

from wayveil.audit.bounds import epsilon_bound
from wayveil.audit.broken_methods import STATISTICS, statistics
from wayveil.audit.cases import Case, World, case
from wayveil.baselines import Method, load, names
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.privacy.noise import NoiseSource
from wayveil.progress import Progress, quiet

TRAJECTORIES = 60
"""Trajectories of the smaller dataset; few, so that each of them has a large weight and a run is short."""
NEAR_M = 1_000.0
"""Radius around the canary within which the points of an output are counted."""
EPSILON = 1
"""The ε that each method claims."""


def method_cases(
    world: World,
    runs: int,
    confidence: float,
    noise: NoiseSource,
    progress: Progress = quiet,
    chosen: tuple[str, ...] = (),
) -> Iterator[Case]:
    """The verdict on each method and mode: an attacker knows all trajectories but one, which is far from the others.

    The neighbouring dataset has one more trajectory; in the local model one is replaced, because the number of devices
    is public there.

    Privacy: free (simulated data).
    """
    attacked = [(name, load(name), published) for name in chosen or names() for published in (False, True)]
    for position, (name, method, published) in enumerate(attacked):
        label = f"{name}, {'published' if published else 'default'}"
        part = _part(progress, position, len(attacked))
        scores = _scores(method, world, runs, published, noise, part)
        bound = epsilon_bound(*scores, confidence=confidence, names=STATISTICS)
        yield case(label, float(EPSILON), bound, "convicted" if published else "acquitted")


def _part(progress: Progress, position: int, parts: int) -> Progress:
    """Progress of one of several equal parts of the stage."""
    return lambda stage, done: progress(stage, (position + done) / parts)


def _scores(
    method: Method, world: World, runs: int, published: bool, noise: NoiseSource, progress: Progress
) -> list[np.ndarray]:
    data = select(world.data, np.arange(TRAJECTORIES))
    base = select(data, np.arange(TRAJECTORIES - 1)) if method.local else data
    sides = []
    for side, each in enumerate((data, concatenate([base, world.far]))):
        rows = []
        for run in range(runs):
            progress("methods", (run + 1 + side * runs) / (2 * runs))
            output = _run(method, each, world, published, noise, seed=2 * run + side)
            rows.append(statistics(output, world.far, world.wide, near_m=NEAR_M))
        sides.append(np.array(rows, float))
    return sides


def _run(
    method: Method, data: Trajectories, world: World, published: bool, noise: NoiseSource, seed: int
) -> Trajectories:
    if published:
        return method(data, world.wide, EPSILON, published=True, seed=seed).trajectories
    return method(data, world.wide, EPSILON, seed=seed, noise=noise).trajectories

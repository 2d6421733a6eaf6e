"""How widely people travel: trips are exchanged between people until their radii of gyration are as wanted.

This comes before the assignment in order of time, which keeps most of these trips if the trips of people have nothing
else in common.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.questions.people.places import GYRATION_KM
from wayveil.synthesis.people.estimate import coupled
from wayveil.synthesis.people.settings import SETTINGS
from wayveil.synthesis.people.state import Chains, Floats, Integers, Task


def arrange_ranges(task: Task, chains: Chains, random: np.random.Generator) -> None:
    """Exchange trips between slots on days of the same kind until most radii are in the wanted bins."""
    each = task.plans.trips
    moments, owner = _moments(task), ragged.owners(each)
    sums = np.zeros((len(each), moments.shape[1]))
    np.add.at(sums, owner, moments[chains.trip_of])
    bins = GYRATION_KM.index(_radius_km(sums, each))
    wanted = coupled(task.habits.ranges, np.zeros(len(each), np.int64), bins, random)
    edges = np.asarray(GYRATION_KM.edges)
    goal = np.column_stack([edges[wanted], edges[wanted + 1]])
    if (wanted == bins).all() or len(each) < 2:
        return
    weekend = task.trips.weekend
    for _ in range(SETTINGS.range_rounds):
        pairs = random.permutation(len(each))[: len(each) // 2 * 2].reshape(2, -1)
        missing = _missing(sums, each, goal)
        pairs = pairs[:, missing[pairs].any(axis=0)]
        if not pairs.size:
            break
        tried = random.random((2, SETTINGS.range_tries, pairs.shape[1]))
        slots = task.plans.offsets[pairs][:, None] + (tried * each[pairs][:, None]).astype(np.int64)
        given = chains.trip_of[slots]
        change = moments[given[1]] - moments[given[0]]
        after = _missing(sums[pairs[0]] + change, each[pairs[0]], goal[pairs[0]])
        after += _missing(sums[pairs[1]] - change, each[pairs[1]], goal[pairs[1]])
        after = np.where(weekend[given[0]] == weekend[given[1]], after, np.inf)
        best = after.argmin(axis=0)
        at = np.arange(pairs.shape[1])
        better = after[best, at] < missing[pairs].sum(axis=0)
        chains.swap(*slots[:, best[better], at[better]])
        sums[pairs[0, better]] += change[best, at][better]
        sums[pairs[1, better]] -= change[best, at][better]


def _moments(task: Task) -> Floats:
    """For each trip: the sums over its start and end of x, y, and the squared distance from the origin, in km."""
    ends = np.stack([task.trips.start, task.trips.end]) / 1000
    return np.column_stack([ends.sum(axis=0), (ends**2).sum(axis=(0, 2))])


def _radius_km(sums: Floats, trips: Integers) -> Floats:
    """Radius of gyration of people with these sums of moments and numbers of trips."""
    mean = sums / (2 * trips)[..., None]
    return np.asarray(np.sqrt(np.maximum(mean[..., 2] - mean[..., 0] ** 2 - mean[..., 1] ** 2, 0.0)))


def _missing(sums: Floats, trips: Integers, goal: Floats) -> NDArray[np.float64]:
    """How far each radius is from its bin, in km."""
    radius = _radius_km(sums, trips)
    return np.asarray(np.maximum(goal[..., 0] - radius, 0.0) + np.maximum(radius - goal[..., 1], 0.0))

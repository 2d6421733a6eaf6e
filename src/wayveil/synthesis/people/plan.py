"""Plans of people, before trips are chosen: how many trips each makes, and on which days.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.bins import Bins
from wayveil.questions.people.question import TRIP_CLASSES
from wayveil.questions.people.rhythm import DAY_TRIPS, DAYS_SHARE
from wayveil.synthesis.people.estimate import Habits, PeopleModel, trip_numbers
from wayveil.synthesis.trips.draw import systematic

Integers = NDArray[np.int64]

_LARGEST_DAY = 14
"""Maximum number of trips drawn for a day in the last, open bin."""


@dataclass(frozen=True, eq=False)
class Plans:
    """Planned trips of all people; person i owns the trips `offsets[i]:offsets[i + 1]`, in order of time."""

    offsets: Integers
    date: Integers
    """Number of each trip's day among the days of the scope."""
    rank: Integers
    """Position of each trip in its day, from 0."""
    size: Integers
    """Number of trips on that day."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def trips(self) -> Integers:
        """Number of trips of each person."""
        return np.diff(self.offsets)


def draw_plans(
    trips: Integers,
    habits: Habits,
    date_weight: NDArray[np.float64],
    random: np.random.Generator,
) -> Plans:
    """Plans of people with these numbers of trips; days are drawn in proportion to their weights.

    Each trip gets a day by itself. People whose number of active days must change get other days.
    """
    chance = np.maximum(date_weight / date_weight.sum(), 1e-12)
    chance /= chance.sum()
    days = len(chance)
    by_itself = random.choice(days, int(trips.sum()), p=chance)
    when, sizes = np.unique(ragged.owners(trips) * days + by_itself, return_counts=True)
    active = np.bincount(when // days, minlength=len(trips))
    offsets = ragged.offsets_of(active)
    bins = DAYS_SHARE.index(active / trips)
    wanted = habits.days.bins(TRIP_CLASSES.index(trips.astype(np.float64)), bins, random)
    share = value_in(DAYS_SHARE, wanted, random)
    number = np.clip(np.rint(share * trips), 1, np.minimum(trips, days)).astype(np.int64)
    plans = []
    for k, changes in enumerate((wanted != bins).tolist()):
        if changes:
            dates = np.sort(random.choice(days, number[k], replace=False, p=chance))
            plans.append((dates, _day_sizes(habits, int(trips[k]), int(number[k]), random)))
        else:
            own = slice(offsets[k], offsets[k + 1])
            plans.append((when[own] % days, sizes[own]))
    date, size = (np.concatenate(column) for column in zip(*plans))
    return Plans(ragged.offsets_of(trips), np.repeat(date, size), ragged.ranks(size), np.repeat(size, size))


def numbers_of_trips(model: PeopleModel, count: int, people: int, random: np.random.Generator) -> Integers:
    """Numbers of trips from the estimated distribution, adjusted in steps of one until their sum is `count`."""
    numbers = trip_numbers(model.most_trips)
    bins = random.permutation(systematic(model.trips, people, random))
    drawn = np.array([numbers[one][random.integers(len(numbers[one]))] for one in bins.tolist()], np.int64)
    while (left := count - int(drawn.sum())) != 0:
        step = 1 if left > 0 else -1
        able = np.flatnonzero(drawn < max(model.most_trips, count)) if step > 0 else np.flatnonzero(drawn > 1)
        if step > 0 and (within := able[drawn[able] < model.most_trips]).size:
            able = within
        chance = drawn[able] / drawn[able].sum()
        some = random.choice(able, min(abs(left), len(able)), replace=False, p=chance)
        drawn[some] += step
    return drawn


def _day_sizes(habits: Habits, trips: int, days: int, random: np.random.Generator) -> Integers:
    """Numbers of trips on each day from the estimated distribution, adjusted in steps of one until the sum fits."""
    edges = np.asarray(DAY_TRIPS.edges, np.int64)
    bins = random.choice(len(DAY_TRIPS), days, p=habits.day_trips)
    low, high = edges[bins], np.minimum(edges[bins + 1], _LARGEST_DAY + 1)
    sizes = low + (random.random(days) * (high - low)).astype(np.int64)
    while (left := trips - int(sizes.sum())) != 0:
        able = np.arange(days) if left > 0 else np.flatnonzero(sizes > 1)
        some = random.permutation(able)[: abs(left)]
        sizes[some] += 1 if left > 0 else -1
    return sizes


def value_in(bins: Bins, bin_of: Integers, random: np.random.Generator) -> NDArray[np.float64]:
    """A uniform value in each bin of shares, at most one."""
    edges = np.minimum(np.asarray(bins.edges), 1.0)
    result: NDArray[np.float64] = edges[bin_of] + random.random(len(bin_of)) * (edges[bin_of + 1] - edges[bin_of])
    return result

"""Plans of people, before trips are chosen: how many trips each makes, on which days, and between how many places.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.bins import Bins
from wayveil.questions.people.places import PLACES_SHARE
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
    places: Integers
    """Number of places that each person is to visit."""
    new_places: NDArray[np.float64]
    """Share of each person's starts and ends at a new place if trips are assigned at random."""
    date: Integers
    """Number of each trip's day among the days of the scope."""
    rank: Integers
    """Position of each trip in its day, from 0."""
    size: Integers
    """Number of trips on that day."""

    def __len__(self) -> int:
        return len(self.offsets) - 1


def draw_plans(
    trips: Integers,
    habits: Habits,
    date_weight: NDArray[np.float64],
    random: np.random.Generator,
) -> Plans:
    """Plans of people with these numbers of trips; days are drawn in proportion to their weights."""
    of_class = TRIP_CLASSES.index(trips.astype(np.float64))
    share = _drawn(habits.days[of_class], DAYS_SHARE, random)
    days = np.clip(np.rint(share * trips), 1, np.minimum(trips, len(date_weight))).astype(np.int64)
    places = _drawn(habits.places[of_class], PLACES_SHARE, random) * 2 * trips
    date, rank, size = [], [], []
    chance = date_weight / date_weight.sum()
    least = np.maximum(chance, 1e-12) / np.maximum(chance, 1e-12).sum()
    for number, active in zip(trips.tolist(), days.tolist()):
        sizes = _day_sizes(habits, number, active, random)
        when = np.sort(random.choice(len(least), active, replace=False, p=least))
        date.append(np.repeat(when, sizes))
        rank.append(ragged.ranks(sizes))
        size.append(np.repeat(sizes, sizes))
    return Plans(
        ragged.offsets_of(trips),
        np.clip(np.rint(places), 1, 2 * trips).astype(np.int64),
        habits.new_places[of_class],
        *(np.concatenate(column) for column in (date, rank, size)),
    )


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


def _drawn(shares: NDArray[np.float64], bins: Bins, random: np.random.Generator) -> NDArray[np.float64]:
    """A value for each row of shares: a bin drawn by its share, then a uniform value in that bin."""
    edges = np.minimum(np.asarray(bins.edges), 1.0)
    running = np.cumsum(shares, axis=1)
    bin_of = (running < random.random(len(shares))[:, None] * running[:, -1:]).sum(axis=1)
    bin_of = np.minimum(bin_of, len(bins) - 1)
    result: NDArray[np.float64] = edges[bin_of] + random.random(len(shares)) * (edges[bin_of + 1] - edges[bin_of])
    return result

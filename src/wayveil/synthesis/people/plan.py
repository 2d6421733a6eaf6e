"""Plans of people, before trips are chosen: how many trips each makes, and on which days.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.bins import Bins
from wayveil.core.scope import Scope
from wayveil.questions.people.question import TRIP_CLASSES
from wayveil.questions.people.rhythm import DAY_TRIPS, DAYS_SHARE
from wayveil.synthesis.people.estimate import Habits, coupled
from wayveil.synthesis.trips.departures import midnights

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LARGEST_DAY = 14
"""Maximum number of trips on a day, unless a person has more trips than the days can hold."""


@dataclass(frozen=True, eq=False)
class Calendar:
    """The days of the scope."""

    midnight: Floats
    """Local midnight at which each day begins, in UTC."""
    weekend: NDArray[np.bool_]
    """Whether each day is a Saturday or Sunday."""

    @classmethod
    def of(cls, scope: Scope) -> "Calendar":
        """The days of a scope."""
        midnight = midnights(scope)
        noon = midnight + 43_200.0
        return cls(midnight, np.asarray(scope.local_seconds(noon) >= 5 * 86_400.0))

    def day_of(self, t_utc: Floats) -> Integers:
        """Index of the day of each time."""
        return np.clip(np.searchsorted(self.midnight, t_utc, side="right") - 1, 0, len(self.midnight) - 1)


@dataclass(frozen=True, eq=False)
class Plans:
    """Planned trips of all people; person i has the trips `offsets[i]:offsets[i + 1]`, in order of time."""

    offsets: Integers
    date: Integers
    """Index of each trip's day among the days of the scope."""
    rank: Integers
    """Position of each trip in its day, from 0."""
    size: Integers
    """Number of trips of the person on that day."""

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

    At first each trip gets a day independently. People whose number of active days must change then get other days. So
    do others, with a probability equal to the total variation distance between two distributions of the number of trips
    per active day: that on independent days and the wanted one.
    """
    chance = np.maximum(date_weight / date_weight.sum(), 1e-12)
    chance /= chance.sum()
    days = len(chance)
    independent = random.choice(days, int(trips.sum()), p=chance)
    when, sizes = np.unique(ragged.owners(trips) * days + independent, return_counts=True)
    active = np.bincount(when // days, minlength=len(trips))
    offsets = ragged.offsets_of(active)
    bins = DAYS_SHARE.index(active / trips)
    wanted = coupled(habits.days, TRIP_CLASSES.index(trips.astype(np.float64)), bins, random)
    on_a_day = np.bincount(DAY_TRIPS.index(sizes.astype(np.float64)), minlength=len(DAY_TRIPS)) / len(sizes)
    differs = np.abs(on_a_day - habits.day_trips).sum() / 2
    other = np.flatnonzero((wanted != bins) | (random.random(len(trips)) < differs))
    planned = dict(zip(other.tolist(), _day_sizes(trips[other], wanted[other], days, habits.day_trips, random)))
    dates = np.split(when % days, offsets[1:-1])
    each = np.split(sizes, offsets[1:-1])
    for who, of_day in planned.items():
        dates[who], each[who] = np.sort(random.choice(days, len(of_day), replace=False, p=chance)), of_day
    date, size = np.concatenate(dates), np.concatenate(each)
    return Plans(ragged.offsets_of(trips), np.repeat(date, size), ragged.ranks(size), np.repeat(size, size))


def _day_sizes(
    trips: Integers, share_bin: Integers, days: int, day_trips: Floats, random: np.random.Generator
) -> list[Integers]:
    """The number of trips on each active day, given each person's number of trips and bin of `DAYS_SHARE`.

    The numbers of trips on the days of a person are independent, conditional on their sum. The number of days is drawn
    in proportion to the probability of that sum.
    """
    if len(trips) == 0:
        return []
    of_day = _sizes_of_day(day_trips, max(_LARGEST_DAY, -(-int(trips.max()) // days)))
    most = min(int(trips.max()), days)
    sums = np.zeros((most + 1, int(trips.max()) + 1))  # sums[d, k]: probability that d days have k trips
    sums[0, 0] = 1.0
    for d in range(most):
        sums[d + 1] = np.convolve(sums[d], of_day)[: sums.shape[1]]
    number = np.arange(most + 1)
    weight = sums[:, trips].T
    inside = DAYS_SHARE.index(np.minimum(number / trips[:, None], 1.0)) == share_bin[:, None]
    fits = np.where(inside, weight, 0.0)
    left_days = _drawn(np.where(fits.sum(axis=1, keepdims=True) > 0, fits, weight), random)
    left = trips.copy()
    sizes: list[list[int]] = [[] for _ in trips]
    while len(some := np.flatnonzero(left_days)):
        rest = left[some, None] - np.arange(len(of_day))
        weight = of_day * np.where(rest >= 0, sums[left_days[some, None] - 1, np.maximum(rest, 0)], 0.0)
        size = _drawn(weight, random)
        for who, one in zip(some.tolist(), size.tolist()):
            sizes[who].append(one)
        left[some] -= size
        left_days[some] -= 1
    return [np.array(of_person, np.int64) for of_person in sizes]


def _sizes_of_day(day_trips: Floats, most: int) -> Floats:
    """Probability of each number of trips on an active day, from 0 to `most`; positive from 1 on."""
    edges = np.minimum(np.asarray(DAY_TRIPS.edges, np.int64), most + 1)
    wide = np.diff(edges)
    chance = np.r_[0.0, np.repeat(day_trips / np.maximum(wide, 1), wide)]
    chance[1:] += 1e-6
    return np.asarray(chance / chance.sum())


def _drawn(weight: Floats, random: np.random.Generator) -> Integers:
    """A column for each row, drawn in proportion to the weights in the row."""
    running = np.cumsum(weight, axis=1)
    return np.asarray((running <= random.random(len(weight))[:, None] * running[:, -1:]).sum(axis=1))


def value_in(bins: Bins, bin_of: Integers, random: np.random.Generator) -> NDArray[np.float64]:
    """A value drawn uniformly from each given bin of shares, at most one."""
    edges = np.minimum(np.asarray(bins.edges), 1.0)
    result: NDArray[np.float64] = edges[bin_of] + random.random(len(bin_of)) * (edges[bin_of + 1] - edges[bin_of])
    return result

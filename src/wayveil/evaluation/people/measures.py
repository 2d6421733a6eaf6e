"""Measures of people: values per person, stay, visit or day, by the usual formulas of mobility science.

The radius of gyration, waiting times, location frequencies and the uncorrelated entropy follow scikit-mobility; a place
is a square of 500 m, where that library uses a tessellation. Tests compare them with its formulas.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.questions.people.trips_of_people import CONTINUOUS_M, PeopleTrips

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measure:
    """A measure: its title, a function that gives (person, value) pairs, and the edges of the bins for comparison."""

    title: str
    values: Callable[[PeopleTrips], tuple[NDArray[np.int64], Floats]]
    edges: tuple[float, ...]

    def counts(self, trips: PeopleTrips, weight_of_person: Floats | None = None) -> Floats:
        """Number of values in each bin; with `weight_of_person`, the sum of the weights of their people."""
        person, values = self.values(trips)
        inner = np.asarray(self.edges)
        index = np.searchsorted(inner, values, side="right")
        weight = None if weight_of_person is None else weight_of_person[person]
        return np.bincount(index, weights=weight, minlength=len(inner) + 1).astype(np.float64)


def people_trips(trajectories: Trajectories, scope: Scope) -> PeopleTrips:
    """Starts and ends of each person's trips; trajectories without a user are left out."""
    assert trajectories.user is not None
    user = trajectories.user
    known = np.array([label is not None and label != "" for label in user.tolist()], bool)
    first, last = trajectories.offsets[:-1][known], trajectories.offsets[1:][known] - 1
    names, person = np.unique(user[known].astype(str), return_inverse=True)
    x0, y0 = scope.to_metres(trajectories.lon[first], trajectories.lat[first])
    x1, y1 = scope.to_metres(trajectories.lon[last], trajectories.lat[last])
    t0, t1 = trajectories.t_utc[first], trajectories.t_utc[last]
    return PeopleTrips.sorted(len(names), person, x0, y0, x1, y1, t0, t1, scope)


def _people(values: NDArray[Any]) -> tuple[NDArray[np.int64], Floats]:
    return np.arange(len(values)), np.asarray(values, np.float64)


def _trips(trips: PeopleTrips) -> tuple[NDArray[np.int64], Floats]:
    return _people(trips.trips.astype(np.float64))


def _days(trips: PeopleTrips) -> tuple[NDArray[np.int64], Floats]:
    return _people(trips.days.astype(np.float64))


def _trips_per_day(trips: PeopleTrips) -> tuple[NDArray[np.int64], Floats]:
    person, number = trips.active_days
    return person, number.astype(np.float64)


def _gyration_km(trips: PeopleTrips) -> tuple[NDArray[np.int64], Floats]:
    return _people(trips.gyration_m / 1000)


def _places(trips: PeopleTrips) -> tuple[NDArray[np.int64], Floats]:
    return _people(trips.ranked.count(trips.people).astype(np.float64))


def _waiting_h(trips: PeopleTrips) -> tuple[NDArray[np.int64], Floats]:
    """Time between the starts of consecutive trips (scikit-mobility's waiting times of a diary), in hours."""
    return trips.person[trips.later], (trips.t0[trips.later] - trips.t0[trips.later - 1]) / 3600


def _return_h(trips: PeopleTrips) -> tuple[NDArray[np.int64], Floats]:
    """Time between two consecutive arrivals at the same place, in hours."""
    order = np.lexsort((trips.t1, trips.end_place, trips.person))
    person, place, t1 = trips.person[order], trips.end_place[order], trips.t1[order]
    again = 1 + np.flatnonzero((person[1:] == person[:-1]) & (place[1:] == place[:-1]))
    return person[again], (t1[again] - t1[again - 1]) / 3600


def _visit_rank(trips: PeopleTrips) -> tuple[NDArray[np.int64], Floats]:
    """Rank of the place of every start and end; the slope of these frequencies is the Zipf exponent."""
    ranked = trips.ranked
    return np.tile(trips.person, 2), (np.r_[ranked.start_rank, ranked.end_rank] + 1).astype(np.float64)


def _continuous(trips: PeopleTrips) -> tuple[NDArray[np.int64], Floats]:
    """1 for a trip that starts within `CONTINUOUS_M` of the end of the one before, otherwise 0."""
    return trips.person[trips.later], (trips.apart_m <= CONTINUOUS_M).astype(np.float64)


def _entropy_bits(trips: PeopleTrips) -> tuple[NDArray[np.int64], Floats]:
    """Uncorrelated entropy: −Σ p·log2 p over the places of a person, where p is the share of visits."""
    ranked = trips.ranked
    share = ranked.visits / (2 * trips.trips[ranked.person])
    return _people(np.bincount(ranked.person, weights=-share * np.log2(share), minlength=trips.people))


def zipf_exponent(trips: PeopleTrips, ranks: int = 10) -> float:
    """The exponent s of f ∝ rank^−s, by least squares on the logarithms of the mean shares of the `ranks` top places.

    Only people with at least that many starts and ends count, because others cannot have so many places.
    """
    ranked = trips.ranked
    many = trips.trips[ranked.person] >= ranks / 2
    rank = ranked.rank[many]
    share = (ranked.visits / (2 * trips.trips[ranked.person]))[many]
    people = max(int((trips.trips >= ranks / 2).sum()), 1)
    mean = np.bincount(rank, weights=share, minlength=ranks)[:ranks] / people
    known = mean > 0
    if known.sum() < 2:
        return float("nan")
    return float(-np.polyfit(np.log(1 + np.flatnonzero(known)), np.log(mean[known]), 1)[0])


MEASURES: Mapping[str, Measure] = {
    "trips": Measure("trips per person", _trips, (2, 3, 4, 6, 9, 14, 20, 30, 45, 70, 150)),
    "days": Measure("active days per person", _days, (2, 3, 4, 6, 9, 14, 20, 30, 60)),
    "day_trips": Measure("trips per active day", _trips_per_day, (2, 3, 4, 5, 7, 10)),
    "gyration": Measure("radius of gyration", _gyration_km, (0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15)),
    "places": Measure("places per person", _places, (2, 3, 4, 5, 7, 10, 15, 20, 30, 45, 70, 120)),
    "waiting": Measure("waiting times", _waiting_h, (0.5, 1, 2, 4, 7, 10, 14, 20, 28, 48, 96, 240)),
    "returns": Measure("return times", _return_h, (1, 3, 6, 12, 18, 30, 54, 78, 150, 300)),
    "visits": Measure("visits by rank of the place", _visit_rank, (2, 3, 4, 5, 7, 10, 15, 25, 40)),
    "continuous": Measure("continuous trips", _continuous, (0.5,)),
    "entropy": Measure("entropy of places", _entropy_bits, (0.5, 1.01, 1.51, 1.81, 2.1, 2.5, 3, 3.5, 4, 4.5, 5, 5.5)),
}

"""An exchange of departures between trips, so that each place has its own distribution of hours.

The distribution of departures stays exactly the same. The probability of an exchange depends on a factor of
(start, hour) and a factor of (end, hour), fitted so that each place has its distribution of hours.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.core.week import hour_of_day_or_weekend
from wayveil.synthesis.estimate.place_hours import PlaceHours
from wayveil.synthesis.trips.settings import EXCHANGE

Table = NDArray[np.float64]


def departures_by_place(
    place_hours: PlaceHours,
    departure_utc: NDArray[np.float64],
    origin: NDArray[np.int64],
    destination: NDArray[np.int64],
    scope: Scope,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """The same departures, reassigned to trips by their start and end regions.

    In each step two trips exchange their departures or not, with the probability of either state (Gibbs sampling of
    permutations).
    """
    hour = hour_of_day_or_weekend(scope.local_seconds(departure_utc))
    start, end = place_hours.region_of_cell[origin], place_hours.region_of_cell[destination]
    tables = _factors(place_hours, start, end, hour)
    held = np.arange(len(departure_utc))  # index of the departure that each trip has
    for _ in range(EXCHANGE.sweeps):
        one, other = random.permutation(len(held))[: len(held) // 2 * 2].reshape(2, -1)
        own_hour, other_hour = hour[held[one]], hour[held[other]]
        gain = np.zeros(len(one))
        for table, region in zip(tables, (start, end), strict=True):
            gain += table[region[one], other_hour] - table[region[one], own_hour]
            gain += table[region[other], own_hour] - table[region[other], other_hour]
        swap = random.random(len(one)) * (1 + np.exp(-gain)) < 1
        held[one[swap]], held[other[swap]] = held[other[swap]], held[one[swap]]
    return departure_utc[held]


def _factors(
    place_hours: PlaceHours, start: NDArray[np.int64], end: NDArray[np.int64], hour: NDArray[np.int64]
) -> tuple[Table, Table]:
    """Logarithms of a(start, hour) and b(end, hour), such that trips weighted by a·b have the ratios of each region.

    The ratios themselves would count the same effect twice if both ends are correlated, as for short trips.
    """
    regions = len(place_hours.start)
    trips = np.bincount(start * regions + end, minlength=regions * regions).reshape(regions, regions).astype(float)
    hours = np.bincount(hour, minlength=place_hours.start.shape[1]) / max(len(hour), 1)
    hour_shares = [hours * np.exp(table) for table in (place_hours.start, place_hours.end)]
    hour_shares = [table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300) for table in hour_shares]
    # Not `rake`: the table of (start, end, hour) is never built, only its factors a and b are.
    a: Table = np.exp(place_hours.start)
    b: Table = np.exp(place_hours.end)
    for _ in range(EXCHANGE.factor_rounds):
        for own, other, flows, share in ((a, b, trips, hour_shares[0]), (b, a, trips.T, hour_shares[1])):
            expected = (own * hours) @ other.T  # (regions, regions): sums over the hours
            current = own * hours * ((flows / np.maximum(expected, 1e-300)) @ other)
            target = flows.sum(axis=1, keepdims=True) * share
            factor = np.divide(target, current, out=np.ones_like(current), where=current > 0)
            own *= np.clip(factor, 1 / EXCHANGE.most_factor, EXCHANGE.most_factor)
    return np.log(np.clip(a, 1e-6, 1e6)), np.log(np.clip(b, 1e-6, 1e6))

"""Departures by weekday and hour on the days of the scope, in its time zone.

Privacy: free (post-processing).
"""

import datetime as dt

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.trips.draw import shuffled

_NO_DAYS_MONDAY = dt.date(2001, 1, 1)
"""Monday of the week that trajectories are assigned to if the scope names no days."""


def departures(estimates: Estimates, count: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Return the Unix time of each departure: weekday and hour as estimated, on a random day with that weekday."""
    slot = shuffled(estimates.departure.ravel(), count, random)
    midnight = _midnights(estimates.scope)
    day = np.empty(count, np.int64)
    for weekday in range(7):
        on_weekday = np.flatnonzero(slot // 24 == weekday)
        days = np.flatnonzero(np.arange(len(midnight)) % 7 == (weekday - _first_weekday(estimates.scope)) % 7)
        # A scope of a few days may lack a weekday; then any of its days is used.
        choices = days if len(days) else np.arange(len(midnight))
        day[on_weekday] = choices[random.integers(len(choices), size=len(on_weekday))]
    return midnight[day] + (slot % 24 + random.random(count)) * 3600.0


def within_days(offsets: NDArray[np.int64], t_utc: NDArray[np.float64], scope: Scope) -> NDArray[np.float64]:
    """Return times with an earlier departure for trips that would end after the scope's last day, within its days."""
    window = scope.time_window()
    if window is None or len(t_utc) == 0:
        return t_utc
    first, last = t_utc[offsets[:-1]], t_utc[offsets[1:] - 1]
    late = np.clip(last - (window[1] - 1), 0.0, np.maximum(first - window[0], 0.0))
    if not late.any():
        return t_utc
    moved = t_utc.copy()
    for k in np.flatnonzero(late):  # few trips: a loop is cheaper than an array of all points
        moved[offsets[k] : offsets[k + 1]] -= np.ceil(late[k])
    return moved


def _days(scope: Scope) -> list[dt.date]:
    first = scope.first_day or _NO_DAYS_MONDAY
    last = scope.last_day or first + dt.timedelta(days=6)
    return [first + dt.timedelta(days=k) for k in range((last - first).days + 1)]


def _first_weekday(scope: Scope) -> int:
    return (scope.first_day or _NO_DAYS_MONDAY).weekday()


def _midnights(scope: Scope) -> NDArray[np.float64]:
    return np.array([dt.datetime.combine(day, dt.time(), scope.zone).timestamp() for day in _days(scope)])

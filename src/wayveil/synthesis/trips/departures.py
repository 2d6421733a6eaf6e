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
    opened = _open_minutes(estimates.scope)
    weight = estimates.departure.ravel()
    if opened is not None:
        share = np.tile(opened.mean(axis=1), 7)
        # The estimate may be zero at all open hours; then they are equally likely.
        weight = weight * share if (weight * share).sum() > 0 else share
    slot = shuffled(weight, count, random)
    midnight = midnights(estimates.scope)
    day = np.empty(count, np.int64)
    for weekday in range(7):
        on_weekday = np.flatnonzero(slot // 24 == weekday)
        days = np.flatnonzero(np.arange(len(midnight)) % 7 == (weekday - _first_weekday(estimates.scope)) % 7)
        # A scope of a few days may lack a weekday; then any of its days is used.
        choices = days if len(days) else np.arange(len(midnight))
        day[on_weekday] = choices[random.integers(len(choices), size=len(on_weekday))]
    if opened is None:
        return midnight[day] + (slot % 24 + random.random(count)) * 3600.0
    return midnight[day] + (slot % 24) * 3600.0 + _seconds_in_hour(opened, slot % 24, random)


def _open_minutes(scope: Scope) -> NDArray[np.bool_] | None:
    """(24, 60) whether each minute of a day belongs to the scope's hours; None if all do."""
    window = scope.hours_window_s
    if window is None:
        return None
    minute_s = 60.0 * np.arange(24 * 60)
    return np.asarray((minute_s - window[0]) % 86_400.0 < window[1]).reshape(24, 60)


def _seconds_in_hour(
    opened: NDArray[np.bool_], hour: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.float64]:
    """Seconds after the hour, evenly over its open minutes."""
    minutes = np.argsort(~opened, axis=1, kind="stable")  # the open minutes of each hour first
    rank = (random.random(len(hour)) * opened.sum(axis=1)[hour]).astype(np.int64)
    seconds: NDArray[np.float64] = 60.0 * (minutes[hour, rank] + random.random(len(hour)))
    return seconds


def within_days(offsets: NDArray[np.int64], t_utc: NDArray[np.float64], scope: Scope) -> NDArray[np.float64]:
    """Return times with an earlier departure for trips that would end after the scope's last day or its hours."""
    if len(t_utc) == 0:
        return t_utc
    window = scope.time_window()
    if window is not None:
        first, last = t_utc[offsets[:-1]], t_utc[offsets[1:] - 1]
        t_utc = _earlier(offsets, t_utc, np.clip(last - (window[1] - 1), 0.0, np.maximum(first - window[0], 0.0)))
    if scope.hours_window_s is not None:
        t_utc = _earlier(offsets, t_utc, late_s(t_utc[offsets[:-1]], t_utc[offsets[1:] - 1], scope))
    return t_utc


def late_s(first: NDArray[np.float64], last: NDArray[np.float64], scope: Scope) -> NDArray[np.float64]:
    """Return the seconds by which trips must depart earlier to end within the scope's hours; 0 without hours."""
    window = scope.hours_window_s
    if window is None:
        return np.zeros(len(first))
    begun = scope.seconds_into_hours(first)
    return np.clip(begun + (last - first) - (window[1] - 1), 0.0, begun)


def _earlier(offsets: NDArray[np.int64], t_utc: NDArray[np.float64], late: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return times with each trip moved to an earlier departure, by whole seconds."""
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


def midnights(scope: Scope) -> NDArray[np.float64]:
    """Return the local midnight at which each day of the scope begins; of one week if it names no days."""
    return np.array([dt.datetime.combine(day, dt.time(), scope.zone).timestamp() for day in _days(scope)])

"""When: departures by weekday and hour on the scope's days, and times that keep speeds physical.

Privacy: free (post-processing).
"""

import datetime as dt

import numpy as np
from numpy.typing import NDArray

from wayveil.scope import Scope
from wayveil.synthesis.draw import shuffled
from wayveil.synthesis.estimate import Estimates

_NO_DAYS_MONDAY = dt.date(2001, 1, 1)
"""The made-up week into which trajectories are dated where the scope names no days."""


def departures(estimates: Estimates, count: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Unix seconds of each departure: weekday and hour as estimated, a day of the scope with that weekday at random."""
    slot = shuffled(estimates.departure.ravel(), count, random)
    midnight = _midnights(estimates.scope)
    day = np.empty(count, np.int64)
    for weekday in range(7):
        wanted = np.flatnonzero(slot // 24 == weekday)
        days = np.flatnonzero(np.arange(len(midnight)) % 7 == (weekday - _first_weekday(estimates.scope)) % 7)
        # A scope of a few days may not contain every weekday: then any of its days serves.
        choices = days if len(days) else np.arange(len(midnight))
        day[wanted] = choices[random.integers(len(choices), size=len(wanted))]
    return midnight[day] + (slot % 24 + random.random(count)) * 3600.0


def _days(scope: Scope) -> list[dt.date]:
    first = scope.first_day or _NO_DAYS_MONDAY
    last = scope.last_day or first + dt.timedelta(days=6)
    return [first + dt.timedelta(days=k) for k in range((last - first).days + 1)]


def _first_weekday(scope: Scope) -> int:
    return (scope.first_day or _NO_DAYS_MONDAY).weekday()


def _midnights(scope: Scope) -> NDArray[np.float64]:
    return np.array([dt.datetime.combine(day, dt.time(), scope.zone).timestamp() for day in _days(scope)])


def physical_times(
    offsets: NDArray[np.int64],
    x_m: NDArray[np.float64],
    y_m: NDArray[np.float64],
    t_utc: NDArray[np.float64],
    fastest_mps: float,
) -> NDArray[np.float64]:
    """Whole seconds, at least one apart, no step faster than `fastest_mps`; starts are kept, durations where possible.

    A step's time is the larger of what was drawn and what the speed allows; what this adds is taken back, in
    proportion, from the time that the other steps can spare.
    """
    if len(x_m) == 0:
        return t_utc
    step_m = np.r_[0.0, np.hypot(np.diff(x_m), np.diff(y_m))]
    drawn = np.r_[0.0, np.diff(t_utc)]
    needed = np.maximum(np.ceil(step_m / (0.98 * fastest_mps)), 1.0)
    first = offsets[:-1]
    step_m[first] = drawn[first] = needed[first] = 0.0
    owner = np.repeat(np.arange(len(first)), np.diff(offsets))
    spare = np.maximum(drawn - needed, 0.0)
    lacking = np.add.reduceat(np.maximum(needed - drawn, 0.0), first)
    available = np.add.reduceat(spare, first)
    keep = np.clip(1 - np.divide(lacking, available, out=np.zeros_like(lacking), where=available > 0), 0.0, 1.0)
    gap = needed + spare * keep[owner]
    running = np.cumsum(gap)
    running -= running[first][owner]
    # Rounding the running sum could take a second from a step; rounding up each need above leaves room for it.
    whole = np.floor(running + 1e-6)
    return np.rint(t_utc[first])[owner] + np.maximum(whole, _running_needs(needed, first, owner))


def _running_needs(
    needed: NDArray[np.float64], first: NDArray[np.int64], owner: NDArray[np.int64]
) -> NDArray[np.float64]:
    running = np.cumsum(needed)
    return running - running[first][owner]

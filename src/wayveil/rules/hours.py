"""Weekly hours: when a rule holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from wayveil.core.week import DAY_S, WEEK_S
from wayveil.errors import RuleError
from wayveil.rules.days import DAYS, days_of
from wayveil.rules.motion import Array

_EARLY_S = 1.0
"""Seconds by which a window begins early, so that "from 07:00" also forbids a point at 07:00:00."""
_CLOCK = re.compile(r"([0-9]{1,2}):([0-5][0-9])(?::([0-5][0-9]))?")


@dataclass(frozen=True)
class Hours:
    """Windows (start, end) in seconds since Monday 00:00, merged; one may run past midnight on Sunday.

    Without windows the rule holds at all times.
    """

    windows: tuple[tuple[float, float], ...]
    text: str

    @property
    def always(self) -> bool:
        """Whether the rule holds at all times."""
        return not self.windows

    @property
    def share_of_week(self) -> float:
        """Share of the week in which the rule holds, from 0 to 1."""
        return 1.0 if self.always else sum(end - start for start, end in self.windows) / WEEK_S

    def depth_s(self, week_s: Array, xp: ModuleType) -> Array:
        """Return the seconds to the nearest end of the window around an instant; negative outside, continuous.

        A window begins a second early: a rule that holds "from 07:00" holds at 07:00:00.
        """
        depth = xp.full_like(week_s, -WEEK_S)
        for start, end in self.windows:
            for shift in (-WEEK_S, 0.0, WEEK_S):
                depth = xp.maximum(depth, xp.minimum(week_s - (start + shift) + _EARLY_S, end + shift - week_s))
        return depth


ALWAYS = Hours((), "at all times")


def clock_seconds(text: str) -> float:
    """Return the seconds after midnight of "07:00" or "07:00:30"; "24:00" is the end of the day."""
    match = _CLOCK.fullmatch(text.strip()) if isinstance(text, str) and len(text) < 20 else None
    seconds = -1.0 if match is None else sum(int(part or 0) * unit for part, unit in zip(match.groups(), (3600, 60, 1)))
    if not 0 <= seconds <= DAY_S:
        raise RuleError('A time of day must be written like "07:00", from "00:00" to "24:00".')
    return seconds


def hours(start: str | None = None, end: str | None = None, days: str | Sequence[str] | None = None) -> Hours:
    """Return the hours of a rule: from `start` to `end` on `days`, past midnight if `end` is not after `start`.

    A window that runs past midnight belongs to the day on which it starts.

    Parameters
    ----------
    start, end
        Clock times such as "22:00", in the time zone of the scope; midnight if left out.
    days
        Names of days such as "sat,sun" (see `wayveil.rules.days.days_of`); every day if left out.

    Examples
    --------
    >>> from wayveil.rules import hours
    >>> hours("22:00", "06:00").text
    'from 22:00 to 06:00 every day'

    Privacy
    -------
    Free (rules are public).
    """
    indices = list(range(7)) if days is None else days_of(days)
    first = clock_seconds(start) if start is not None else 0.0
    last = clock_seconds(end) if end is not None else DAY_S
    if first in (last, DAY_S):
        raise RuleError("'from' and 'to' are the same time; leave both out to mean the whole day.")
    if last == 0.0:
        last = DAY_S
    if last <= first:
        last += DAY_S
    windows = _merge([(index * DAY_S + first, index * DAY_S + last) for index in indices])
    if windows and windows[-1][1] - windows[0][0] >= WEEK_S and len(windows) == 1:
        return ALWAYS
    on = "every day" if len(indices) == 7 else "on " + ", ".join(DAYS[index].capitalize() for index in indices)
    if start is None and end is None:
        return Hours(windows, on)
    return Hours(windows, f"from {start or '00:00'} to {end or '24:00'} {on}")


def _merge(windows: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    merged: list[tuple[float, float]] = []
    for start, end in windows:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    # Sunday's window may overlap Monday's: then both are merged into one that runs past the end of the week.
    if len(merged) > 1 and merged[-1][1] >= merged[0][0] + WEEK_S:
        start, end = merged.pop()
        merged[0] = (start - WEEK_S, max(merged[0][1], end - WEEK_S))
    elif len(merged) == 1 and merged[0][1] - merged[0][0] > WEEK_S:
        merged[0] = (merged[0][0], merged[0][0] + WEEK_S)
    return tuple(merged)

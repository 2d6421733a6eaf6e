"""Parts of the day: a public division, given by the first hour of each part."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.core.week import DAY_S
from wayveil.errors import InputError

USUAL = (0, 6, 10, 16, 20)
"""Night, morning peak, midday, afternoon peak, evening: most releases measure place and hour jointly by these parts."""
ALL_DAY = "all day"


@dataclass(frozen=True)
class Parts:
    """Parts of the day by their first hours, from 0; each lasts until the next begins."""

    first_hours: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.first_hours)

    @property
    def names(self) -> tuple[str, ...]:
        """Such as 06:00-10:00."""
        ends = (*self.first_hours[1:], 24)
        return tuple(f"{first:02d}:00-{end:02d}:00" for first, end in zip(self.first_hours, ends))

    def index(self, hour: NDArray[np.int64]) -> NDArray[np.int64]:
        """The part of each hour of the day."""
        return np.asarray(np.searchsorted(self.first_hours, hour, side="right") - 1)

    def covered(self, scope: Scope) -> list[int]:
        """The parts that overlap the hours of the scope."""
        window = scope.hours_window_s
        if window is None:
            return list(range(len(self)))
        minutes = np.arange(0, 24 * 60)
        inside = (minutes * 60 - window[0]) % DAY_S < window[1]
        return sorted(set(self.index(minutes[inside] // 60).tolist()))


def parts_of(hours: Sequence[int] | None) -> Parts:
    """Parts that begin at the given hours."""
    if hours is None:
        return Parts(USUAL)
    try:
        first = tuple(int(hour) for hour in hours)
    except (TypeError, ValueError):
        first = ()
    if not first or sorted(set(first)) != list(first) or first[0] != 0 or first[-1] > 23:
        raise InputError("parts= must be the first hours of the parts of the day, from 0, such as 0,6,10,16,20.")
    return Parts(first)


def local_hour(scope: Scope, t_utc: NDArray[np.float64]) -> NDArray[np.int64]:
    """Hour of the day, 0 to 23, in the scope's time zone."""
    return (scope.local_seconds(t_utc) // 3600).astype(np.int64) % 24

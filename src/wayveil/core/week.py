"""Hours and parts of the day or week: public divisions, the same for all queries and for synthesis."""

import numpy as np
from numpy.typing import NDArray

DAY_S = 86_400.0
"""Seconds of a day without a change of daylight saving time."""
WEEK_S = 7 * DAY_S
"""Seconds of such a week."""
SATURDAY = 5
"""Weekday, counted from Monday = 0."""

_DAY_PARTS = {2: (0, 12), 5: (0, 6, 10, 16, 20), 8: tuple(range(0, 24, 3))}
"""First hours of the parts: half days; night, morning peak, midday, afternoon peak and evening; three hours each."""
NUMBERS_OF_PARTS = (2, 5, 16)
"""2 or 5 parts that are the same on every day, or 16 parts of three hours: 8 of a working day, 8 of a weekend day."""


def part_of_hour(parts: int) -> NDArray[np.int64]:
    """(48,) part of the day or week of each hour, for one of `NUMBERS_OF_PARTS`."""
    if parts not in NUMBERS_OF_PARTS:
        raise ValueError(f"parts must be one of {NUMBERS_OF_PARTS}")
    weekend_apart = parts == 16
    first = _DAY_PARTS[8 if weekend_apart else parts]
    of_day = np.searchsorted(first, np.arange(24), side="right") - 1
    return np.concatenate([of_day, of_day + (len(first) if weekend_apart else 0)]).astype(np.int64)


def hour_of_day_or_weekend(week_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 to 47: the hours of a working day, then those of a weekend day."""
    hour = hour_of_week(week_s)
    return np.where(hour >= SATURDAY * 24, 24, 0) + hour % 24


def hour_of_week(week_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 to 167. A remainder just below a week may round up to a whole week, so 168 is mapped to hour 0."""
    return (week_s // 3600).astype(np.int64) % 168

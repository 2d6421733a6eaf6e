"""Hours and parts of the week: a public division, the same for all queries and for synthesis."""

import numpy as np
from numpy.typing import NDArray

SATURDAY = 5
PARTS_OF_DAY = 8
PARTS_OF_WEEK = 2 * PARTS_OF_DAY
"""Parts of three hours: those of a day from Monday to Friday, then those of a weekend day."""


def part_of_week(week_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 to PARTS_OF_WEEK − 1, from seconds since Monday's midnight."""
    return hour_of_day_or_weekend(week_s) * PARTS_OF_DAY // 24


def hour_of_day_or_weekend(week_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 to 47: the hours of a working day, then those of a weekend day."""
    hour = hour_of_week(week_s)
    return np.where(hour >= SATURDAY * 24, 24, 0) + hour % 24


def hour_of_week(week_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 to 167. A remainder just below a week may round up to a whole week, so 168 is mapped to hour 0."""
    return (week_s // 3600).astype(np.int64) % 168

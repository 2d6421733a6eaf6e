"""Hours and parts of the week, as they are asked about and synthesised: a public division, the same everywhere."""

import numpy as np
from numpy.typing import NDArray

SATURDAY = 5
PARTS_OF_DAY = 8
PARTS_OF_WEEK = 2 * PARTS_OF_DAY
"""Three hours each, those of the days from Monday to Friday and then those of the weekend."""


def part_of_week(week_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 to PARTS_OF_WEEK − 1, from seconds since Monday's midnight."""
    return hour_of_day_or_weekend(week_s) * PARTS_OF_DAY // 24


def hour_of_day_or_weekend(week_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 to 47: the hours of a working day, then those of a day of the weekend."""
    hour = hour_of_week(week_s)
    return np.where(hour >= SATURDAY * 24, 24, 0) + hour % 24


def hour_of_week(week_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 to 167. A remainder just below a whole week may round up to it, and 168 is Monday's first hour again."""
    return (week_s // 3600).astype(np.int64) % 168

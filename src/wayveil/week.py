"""Parts of the week, as hours of places are asked about and synthesised: a public division, the same everywhere."""

import numpy as np
from numpy.typing import NDArray

SATURDAY = 5
PARTS_OF_DAY = 8
PARTS_OF_WEEK = 2 * PARTS_OF_DAY
"""Three hours each, those of the days from Monday to Friday and then those of the weekend."""


def part_of_week(week_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 to PARTS_OF_WEEK − 1, from seconds since Monday's midnight."""
    return hour_of_week(week_s) * PARTS_OF_DAY // 24


def hour_of_week(week_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 to 47, the hours of a working day and then those of the weekend, from seconds since Monday's midnight.

    A remainder just below a whole week may round up to it, and that is Monday's midnight again.
    """
    hour = (week_s // 3600).astype(np.int64) % 168
    return np.where(hour >= SATURDAY * 24, 24, 0) + hour % 24

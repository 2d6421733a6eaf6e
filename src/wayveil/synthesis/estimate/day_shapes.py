"""Typical distributions of departures over the hours of a day, used as a prior for answers with much noise.

They are uniform; concentrated around one hour to various degrees; or daytime traffic with a morning and an evening
peak. They are not derived from data.

Privacy: free (public by definition).
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.estimate.settings import DAY_SHAPES

_HOURS = np.arange(24) + 0.5
"""Middles of the hours of a day."""


@cache
def day_shapes() -> NDArray[np.float64]:
    """(shapes, 24) shares of the hours."""
    shapes = [np.full(24, 1 / 24)]
    for concentration in DAY_SHAPES.concentrations:
        for around in range(0, 24, 2):
            shapes.append(np.exp(concentration * np.cos(2 * np.pi * (_HOURS - around) / 24)))
    begun = 1 / (1 + np.exp(-DAY_SHAPES.begin_steepness * (_HOURS - DAY_SHAPES.day_begins_h)))
    by_day = begun / (1 + np.exp(_HOURS - DAY_SHAPES.day_ends_h))
    for morning in DAY_SHAPES.mornings_h:
        for evening in DAY_SHAPES.evenings_h:
            rush = np.exp(-0.5 * ((_HOURS - morning) / DAY_SHAPES.morning_spread_h) ** 2)
            rush += np.exp(-0.5 * ((_HOURS - evening) / DAY_SHAPES.evening_spread_h) ** 2)
            for share in DAY_SHAPES.rush_shares:
                both = (1 - share) * by_day / by_day.sum() + share * rush / rush.sum()
                shapes.append((1 - DAY_SHAPES.any_hour_share) * both + DAY_SHAPES.any_hour_share / 24)
    return np.array([shape / shape.sum() for shape in shapes])

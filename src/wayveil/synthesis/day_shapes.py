"""day_shapes: how departures are usually spread over the hours of a day, for data too small to tell.

Alike at all hours; gathered around any hour, loosely or closely; or by day with a morning and an evening peak. Nothing
of anybody's data is in them.

Privacy: free (public by definition).
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

_HOURS = np.arange(24) + 0.5
_GATHERED = (0.5, 1.0, 2.0, 4.0)
"""κ of von Mises distributions: from hardly more by day than by night to nearly all within eight hours."""
_MORNINGS, _EVENINGS = (7.5, 8.5), (17.0, 18.0)
_RUSH_SHARES = (0.2, 0.4, 0.6)
_AT_ANY_HOUR = 0.03


@cache
def day_shapes() -> NDArray[np.float64]:
    """(shapes, 24) shares of the hours."""
    shapes = [np.full(24, 1 / 24)]
    for gathered in _GATHERED:
        for around in range(0, 24, 2):
            shapes.append(np.exp(gathered * np.cos(2 * np.pi * (_HOURS - around) / 24)))
    by_day = 1 / (1 + np.exp(-1.5 * (_HOURS - 6))) / (1 + np.exp(_HOURS - 21))
    for morning in _MORNINGS:
        for evening in _EVENINGS:
            rush = np.exp(-0.5 * ((_HOURS - morning) / 1.2) ** 2) + np.exp(-0.5 * ((_HOURS - evening) / 1.6) ** 2)
            for share in _RUSH_SHARES:
                both = (1 - share) * by_day / by_day.sum() + share * rush / rush.sum()
                shapes.append((1 - _AT_ANY_HOUR) * both + _AT_ANY_HOUR / 24)
    return np.array([shape / shape.sum() for shape in shapes])

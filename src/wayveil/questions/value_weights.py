"""Weights of the values of an answer in its second draw, in which contributions are clipped around a centre.

The noise of an answer is the same for all values, and its size follows from the largest norm that units have. Busy
values make up nearly all of a norm. So a value where little is expected may be multiplied by a weight before
contributions are clipped, and divided by it afterwards: its noise is divided by the weight, and norms hardly grow.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

POWER = 0.25
"""A weight is proportional to share^(−1/4). With −1/2 every value would add the same to a norm, and units whose values
are all rare would be clipped to almost nothing."""
LARGEST = 16.0
"""Largest weight before the last normalisation."""


def value_weights(shares: Floats) -> Floats:
    """Weights by expected share, with Σ w²·share = 1, so that usual norms stay as they are."""
    share = np.maximum(shares, 1e-12)
    share = share / share.sum()
    weights = (share + 1e-4 / len(share)) ** -POWER
    weights = np.minimum(weights / np.sqrt(share @ weights**2), LARGEST)
    return np.asarray(weights / np.sqrt(share @ weights**2))

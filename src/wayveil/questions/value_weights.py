"""Weights of the values of an answer that is measured twice, for the second draw.

The first draw gives a centre, from which the contributions of units are measured in the second one. All values get the
same noise, whose size follows from the norm to which contributions are clipped. Values with large expected shares make
up nearly all of that norm. So a value with a small share may be multiplied by a weight before clipping, and divided by
that weight after the noise is added: its noise is divided by the weight, and norms hardly grow.
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
    """Weights by expected share, with Σ w²·share = 1, so that typical norms do not change."""
    share = np.maximum(shares, 1e-12)
    share = share / share.sum()
    weights = (share + 1e-4 / len(share)) ** -POWER
    weights = np.minimum(weights / np.sqrt(share @ weights**2), LARGEST)
    return np.asarray(weights / np.sqrt(share @ weights**2))

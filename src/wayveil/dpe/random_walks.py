"""The paper's simulated data: trajectories of 100 points in [-10, 10]^2, which are random walks here.

The paper does not say how the points move.
"""

import numpy as np

from wayveil.dpe.align import Aligned

HALF_SIDE = 10.0
"""Half the side of the paper's square map, in its unit."""


def random_walks(m: int, n: int, seed: int) -> Aligned:
    """m walks of n points (x, y): uniform start, standard normal steps, reflected at the sides of the box."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(-HALF_SIDE, HALF_SIDE, size=(m, 1, 2))
    steps = rng.normal(size=(m, n - 1, 2))
    free = np.concatenate([start, start + np.cumsum(steps, axis=1)], axis=1)
    # Reflection at both sides: a triangle wave of period 4 sides.
    folded = np.abs((free + HALF_SIDE) % (4 * HALF_SIDE) - 2 * HALF_SIDE)
    return Aligned(HALF_SIDE - folded, np.zeros(m, np.int64), np.full(m, n))


def diameter() -> float:
    """Diagonal of the box, which the paper calls 2r."""
    return float(np.hypot(2 * HALF_SIDE, 2 * HALF_SIDE))

"""Trajectory perturbation: d~_s = d_s + Lap(lambda / epsilon), Eq. (perturbation equation)."""

import math

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError


def sensitivity(n: int, diameter: float, tau: float) -> float:
    """lambda = sqrt(n (4 r^2 + tau^2)), with 2r the map's diameter and tau the time span in the same unit.

    It bounds what one trajectory adds to one sum. But the mechanism publishes m sums, and one trajectory changes all of
    them: see docs/explanation/reproduction.md.
    """
    return math.sqrt(n * (diameter**2 + tau**2))


def perturb(
    sums: NDArray[np.floating], largest: float, epsilon: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Each metric sum plus its own Laplace noise of scale lambda / epsilon.

    Privacy: not private. Floating-point noise from a seeded generator, as published; for privacy use `wayveil.measure`.
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError("epsilon= must be a number above 0.")
    if not (math.isfinite(largest) and largest >= 0):
        raise InputError("The sensitivity must be a finite number; check the scope and time_scale_mps=.")
    return np.asarray(sums, np.float64) + rng.laplace(scale=largest / epsilon, size=len(sums))

"""The posterior mean of a positive number that was observed with noise."""

import math

_FAR = -30.0
"""Standard deviations below zero at which the first term of the asymptotic series is exact enough."""


def positive_mean(value: float, sd: float) -> float:
    """x + σ·φ(x/σ)/Φ(x/σ): the posterior mean of a positive number that was observed as x with Gaussian noise.

    The prior is uniform above zero. Far above the noise the mean is x itself; below zero it is a fraction of σ.

    Examples
    --------
    >>> positive_mean(1000.0, 10.0), round(positive_mean(0.0, 10.0), 1), round(positive_mean(-20.0, 10.0), 1)
    (1000.0, 8.0, 3.7)
    """
    if sd <= 0:
        return max(value, 0.0)
    z = value / sd
    if z < _FAR:
        return -sd / z
    return value + sd * math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / (math.erfc(-z / math.sqrt(2)) / 2)

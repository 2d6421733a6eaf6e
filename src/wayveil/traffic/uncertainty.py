"""How uncertain a figure is: errors of the release, and errors that remain without noise.

The errors of the release come from `wayveil.synthesis.uncertainty`. Three more are added: model error, which no ε
removes; sampling error of the synthetic trips; and random variation of the data itself, because the number of trips on
a street varies even if its rate is known.

Privacy: free (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.release import Release
from wayveil.release.number import estimate_number

Floats = NDArray[np.float64]

_INTERVAL_SD = 1.645
"""A normal variable lies within this many standard deviations with a probability of 90 %."""


@dataclass(frozen=True)
class ModelErrors:
    """Relative errors that remain without noise, and errors of quantities that the release does not measure.

    They were chosen on the embedded city, so that about nine tenths of the true figures lie within the stated intervals
    (research/benchmarks/table_coverage.py).
    """

    zone: float = 0.06
    """Starts and ends in a zone."""
    pair: float = 0.15
    """Trips between two zones."""
    street: float = 0.6
    """Traffic of a link: a cell of the density contains several links."""
    bin: float = 0.12
    """A range of lengths or durations, or an hour."""
    speed: float = 0.35
    """Mean speed on a link: the release measures speeds of trips and places, not of streets."""
    trip_speed: float = 0.4
    """Spread of the speeds of single trips on one link."""


MODEL = ModelErrors()


@dataclass(frozen=True)
class Scale:
    """Scaling from synthetic trips to trips of the private data."""

    number: float
    """Estimated number of trips."""
    number_sd: float
    synthetic: int

    @classmethod
    def of(cls, release: Release, synthetic: int) -> "Scale":
        """The scale of a synthetic file with that many trips."""
        found = estimate_number(release)
        return cls(found.value, found.sd, synthetic)

    @property
    def weight(self) -> float:
        """Trips of the private data for each synthetic trip."""
        return self.number / max(self.synthetic, 1)

    @property
    def relative_sd(self) -> float:
        """Relative standard deviation of the number of trips."""
        return self.number_sd / max(self.number, 1e-9)


@dataclass(frozen=True, eq=False)
class Figures:
    """Estimates with their standard deviations and 90 % intervals."""

    value: Floats
    sd: Floats
    low: Floats
    high: Floats

    @classmethod
    def counts(cls, synthetic: NDArray[np.generic], relative: Floats, scale: Scale) -> "Figures":
        """Scaled figures from numbers of synthetic trips, and the relative errors of their rates.

        A figure of zero has the uncertainty of one synthetic trip.
        """
        value = scale.weight * np.asarray(synthetic, float)
        least = np.maximum(value, scale.weight)
        return cls.around(value, least, np.hypot(relative, scale.relative_sd), (1 + scale.weight) * least)

    @classmethod
    def around(cls, value: Floats, mean: Floats, relative: Floats, variance: Floats) -> "Figures":
        """Figures with a relative error, which is lognormal, and an absolute one, which is normal.

        With weak noise an estimate is the median of its lognormal posterior, with strong noise the mean, which is
        e^(relative²/2) times the median. The interval is the union of both. Both errors are added in quadrature,
        upwards and downwards. The interval contains the value and nothing below zero.
        """
        absolute = _INTERVAL_SD * np.sqrt(variance)
        down = mean * -np.expm1(-_INTERVAL_SD * relative - relative**2 / 2)
        up = mean * np.expm1(_INTERVAL_SD * relative)
        low, high = mean - np.hypot(down, absolute), mean + np.hypot(up, absolute)
        sd = np.hypot(relative * mean, np.sqrt(variance))
        return cls(value, sd, np.clip(low, 0.0, value), np.maximum(high, value))

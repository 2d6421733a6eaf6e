"""`min_speed`: the mean speed of each trajectory has a lower limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import final

import numpy as np

from wayveil.rules.accuracy import ELLIPSOID_RATIO, ROUND_OFF_M
from wayveil.rules.motion import (
    Array,
    Motion,
    at_last_point,
    at_later_point,
    ground_lengths,
    module_of,
    sum_by_trajectory,
)
from wayveil.rules.rule import Rule

TOLERANCE_M = 1e-3
"""A trajectory may be a millimetre too short for its duration: that is round-off, not speed."""


@final
@dataclass(frozen=True, eq=False)
class MinSpeed(Rule):
    """penalty = ReLU(limit · duration − length), the metres by which a trajectory is too short for its duration."""

    limit_mps: float
    name: str = "min_speed"
    margin: float = 0.01
    """Share of the limit by which the penalty stays above it."""

    def describe(self) -> str:
        """Return the rule in plain words."""
        return f"Each trajectory's mean speed, its length over its duration, is at least {self.limit_mps * 3.6:g} km/h."

    def penalty(self, motion: Motion) -> Array:
        """Return the missing metres, at the last point."""
        xp = module_of(motion)
        return at_last_point(xp.maximum(self._missing_m(motion, self.margin, xp), 0.0), motion, xp)

    def violations(self, motion: Motion) -> np.ndarray:
        """Return the last points of trajectories that are too slow."""
        return at_last_point(self._missing_m(motion, 0.0, np) > 0, motion, np)

    def _missing_m(self, motion: Motion, margin: float, xp: ModuleType) -> Array:
        length, dt = ground_lengths(motion, xp)
        missing = self.limit_mps * (1.0 + margin) * dt - length
        return sum_by_trajectory(at_later_point(missing, motion, xp), motion, xp) - TOLERANCE_M

    def cured_by_times(self) -> bool:
        """Return True: a shorter duration cures it."""
        return True

    def longest_duration_s(self, length_m: np.ndarray) -> np.ndarray:
        """Return length / limit."""
        return (length_m + ROUND_OFF_M) / self.limit_mps

    def stricter(self) -> MinSpeed:
        """Return a limit that is 0.6 % higher."""
        return replace(self, limit_mps=self.limit_mps * ELLIPSOID_RATIO)

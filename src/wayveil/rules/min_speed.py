"""`min_speed`: a lower limit for the mean speed of each trajectory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import final

import numpy as np

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
from wayveil.rules.tolerances import ELLIPSOID_RATIO, ROUND_OFF_M, TOLERANCE_M


@final
@dataclass(frozen=True, eq=False)
class MinSpeed(Rule):
    """penalty = ReLU(limit · duration − length), the metres by which a trajectory is too short for its duration."""

    limit_mps: float
    name: str = "min_speed"
    margin: float = 0.01
    """Share of the limit above it at which the penalty begins."""

    def describe(self) -> str:
        """Return the rule in plain words."""
        limit = f"{self.limit_mps * 3.6:g} km/h"
        return f"The mean speed of each trajectory (length divided by duration) must be at least {limit}."

    def penalty(self, motion: Motion) -> Array:
        """Return the missing metres, at the last point."""
        xp = module_of(motion)
        return at_last_point(xp.maximum(self._missing_m(motion, self.margin, xp), 0.0), motion, xp)

    def violations(self, motion: Motion) -> np.ndarray:
        """Return the last points of trajectories that are too slow."""
        result: np.ndarray = at_last_point(self._missing_m(motion, 0.0, np) > 0, motion, np)
        return result

    def _missing_m(self, motion: Motion, margin: float, xp: ModuleType) -> Array:
        length, dt = ground_lengths(motion, xp)
        missing = self.limit_mps * (1.0 + margin) * dt - length
        return sum_by_trajectory(at_later_point(missing, motion, xp), motion, xp) - TOLERANCE_M

    def new_times_suffice(self) -> bool:
        """Return True: a shorter duration is enough."""
        return True

    def longest_duration_s(self, length_m: np.ndarray) -> np.ndarray:
        """Return length / limit."""
        return (length_m + ROUND_OFF_M) / self.limit_mps

    def stricter(self) -> MinSpeed:
        """Return a limit that is 0.6 % higher."""
        return replace(self, limit_mps=self.limit_mps * ELLIPSOID_RATIO)

"""`min_speed` and `max_duration`: what holds for a trajectory as a whole, and stands at its last point."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from wayveil.rules.motion import (
    Array,
    Motion,
    at_later_point,
    ground_lengths,
    module_of,
    step_lengths,
    sum_by_trajectory,
)

TOLERANCE_M = 1e-3
TOLERANCE_S = 1e-3


@dataclass(frozen=True, eq=False)
class MinSpeed:
    """penalty = ReLU(limit · duration − length), the metres by which a trajectory is too short for its duration."""

    limit_mps: float
    name: str = "min_speed"
    margin: float = 0.01
    """Share of the limit that the penalty stays above it."""

    def describe(self) -> str:
        """The rule in plain words."""
        return f"Each trajectory's mean speed, its length over its duration, is at least {self.limit_mps * 3.6:g} km/h."

    def penalty(self, motion: Motion) -> Array:
        """Metres that are missing, at the last point."""
        xp = module_of(motion)
        return _at_last_point(xp.maximum(self._missing_m(motion, self.margin, xp), 0.0), motion, xp)

    def violations(self, motion: Motion) -> np.ndarray:
        """Last points of trajectories that are too slow."""
        return _at_last_point(self._missing_m(motion, 0.0, np) > 0, motion, np)

    def _missing_m(self, motion: Motion, margin: float, xp: ModuleType) -> Array:
        length, dt = ground_lengths(motion, xp)
        missing = self.limit_mps * (1.0 + margin) * dt - length
        return sum_by_trajectory(at_later_point(missing, motion, xp), motion, xp) - TOLERANCE_M


@dataclass(frozen=True, eq=False)
class MaxDuration:
    """penalty = ReLU(duration − limit), in seconds; only a descent that moves the times can lower it."""

    limit_s: float
    name: str = "max_duration"
    margin: float = 1.0
    """Seconds that the penalty stays below the limit."""

    def describe(self) -> str:
        """The rule in plain words."""
        return f"No trajectory lasts longer than {_duration_text(self.limit_s)}."

    def penalty(self, motion: Motion) -> Array:
        """Seconds above the limit, at the last point."""
        xp = module_of(motion)
        return _at_last_point(xp.maximum(self._excess_s(motion, self.margin, xp), 0.0), motion, xp)

    def violations(self, motion: Motion) -> np.ndarray:
        """Last points of trajectories that are too long."""
        return _at_last_point(self._excess_s(motion, 0.0, np) > 0, motion, np)

    def _excess_s(self, motion: Motion, margin: float, xp: ModuleType) -> Array:
        _, _, _, dt = step_lengths(motion, xp)
        duration = sum_by_trajectory(at_later_point(dt, motion, xp), motion, xp)
        return duration - self.limit_s + margin - TOLERANCE_S


def _at_last_point(values: Array, motion: Motion, xp: ModuleType) -> Array:
    if motion.x_m.shape[0] == 0:
        return xp.zeros(0, dtype=values.dtype)
    last = xp.concatenate([~xp.asarray(motion.joins), xp.ones(1, dtype=bool)])
    return xp.where(last, values[motion.owner], xp.zeros_like(values[:1]))


def _duration_text(seconds: float) -> str:
    return f"{seconds / 3600:g} hours" if seconds >= 7200 else f"{seconds / 60:g} minutes"

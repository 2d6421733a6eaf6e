"""`max_duration`: an upper limit for the duration of each trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import final

import numpy as np

from wayveil.rules.motion import (
    Array,
    Motion,
    at_last_point,
    at_later_point,
    module_of,
    step_lengths,
    sum_by_trajectory,
)
from wayveil.rules.rule import Rule

TOLERANCE_S = 1e-3
"""Tolerance in seconds for round-off; written times are whole seconds."""


@final
@dataclass(frozen=True, eq=False)
class MaxDuration(Rule):
    """penalty = ReLU(duration − limit), in seconds; only a change of times can lower it."""

    limit_s: float
    name: str = "max_duration"
    margin: float = 1.0
    """Seconds below the limit at which the penalty begins."""

    def describe(self) -> str:
        """Return the rule in plain words."""
        return f"No trajectory may take longer than {_duration_text(self.limit_s)}."

    def penalty(self, motion: Motion) -> Array:
        """Return the seconds above the limit, at the last point."""
        xp = module_of(motion)
        return at_last_point(xp.maximum(self._excess_s(motion, self.margin, xp), 0.0), motion, xp)

    def violations(self, motion: Motion) -> np.ndarray:
        """Return whether each point is the last point of a trajectory that takes too long."""
        result: np.ndarray = at_last_point(self._excess_s(motion, 0.0, np) > 0, motion, np)
        return result

    def _excess_s(self, motion: Motion, margin: float, xp: ModuleType) -> Array:
        _, _, _, dt = step_lengths(motion, xp)
        duration = sum_by_trajectory(at_later_point(dt, motion, xp), motion, xp)
        return duration - self.limit_s + margin - TOLERANCE_S

    def new_times_suffice(self) -> bool:
        """Return True: a shorter duration is enough."""
        return True

    def longest_duration_s(self, length_m: np.ndarray) -> float:
        """Return the limit, whatever the length."""
        return self.limit_s


def _duration_text(seconds: float) -> str:
    return f"{seconds / 3600:g} hours" if seconds >= 7200 else f"{seconds / 60:g} minutes"

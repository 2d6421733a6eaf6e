"""`closed`: nobody is in the area while it is closed."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from wayveil.rules.area import Area
from wayveil.rules.hours import ALWAYS, Hours
from wayveil.rules.motion import Array, Motion, module_of

_RAMP_S = 60.0


@dataclass(frozen=True, eq=False)
class Closed:
    """penalty = ReLU(depth inside the area + margin) · min(1, seconds inside the closed hours / 60).

    The second factor makes the penalty continuous in time as well; it is 1 for an area without hours.
    """

    area: Area
    hours: Hours = ALWAYS
    name: str = "closed"
    margin: float = 2.0
    """Metres that the penalty keeps away from the border."""
    margin_s: float = 30.0
    """Seconds that it keeps away from the closed hours."""

    def describe(self) -> str:
        """The rule in plain words."""
        return f"The area is closed {self.hours.text}: no point may lie inside it then."

    def penalty(self, motion: Motion) -> Array:
        """Metres of depth inside the closed area."""
        xp = module_of(motion)
        if xp is not np:
            return self._penalty(motion.x_m, motion.y_m, motion.week_s, xp)
        near = self.area.reaches(motion.x_m, motion.y_m, self.margin)
        if not self.hours.always:
            near[near] = self.hours.depth_s(motion.week_s[near], np) > -self.margin_s
        result = np.zeros(len(motion.x_m))
        result[near] = self._penalty(motion.x_m[near], motion.y_m[near], motion.week_s[near], np)
        return result

    def _penalty(self, x_m: Array, y_m: Array, week_s: Array, xp: ModuleType) -> Array:
        depth = xp.maximum(self.area.depth_m(x_m, y_m) + self.margin, 0.0)
        if self.hours.always:
            return depth
        seconds = self.hours.depth_s(week_s, xp) + self.margin_s
        return depth * xp.minimum(xp.maximum(seconds / _RAMP_S, 0.0), 1.0)

    def violations(self, motion: Motion) -> np.ndarray:
        """Points strictly inside the area, strictly within the closed hours."""
        result = self.area.inside(motion.x_m, motion.y_m)
        if not self.hours.always:
            result[result] = self.hours.depth_s(motion.week_s[result], np) > 0
        return result

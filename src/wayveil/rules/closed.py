"""`closed`: no point may lie in the area while it is closed."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import final

import numpy as np

from wayveil.rules.area import Area
from wayveil.rules.hours import ALWAYS, Hours
from wayveil.rules.motion import Array, Motion, module_of
from wayveil.rules.rule import Rule

RAMP_S = 60.0
"""Seconds over which the penalty grows from zero after the closed hours begin, so that it is continuous in time."""
NEARLY_ALWAYS = 0.8
"""If an area is closed for at least this share of the week, routes avoid it at all times: too few open departures are
left."""


@final
@dataclass(frozen=True, eq=False)
class Closed(Rule):
    """penalty = ReLU(depth inside the area + margin) · min(1, seconds inside the closed hours / 60).

    The second factor makes the penalty continuous in time as well; it is 1 for an area without hours.
    """

    area: Area
    hours: Hours = ALWAYS
    name: str = "closed"
    margin: float = 2.0
    """Margin of the penalty around the border, in metres."""
    margin_s: float = 30.0
    """Margin of the penalty around the closed hours, in seconds."""

    def describe(self) -> str:
        """Return the rule in plain words."""
        return f"The area is closed {self.hours.text}: no point may lie inside it then."

    def penalty(self, motion: Motion) -> Array:
        """Return the metres of depth inside the closed area."""
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
        return depth if self.hours.always else depth * self._ramp(week_s, xp)

    def _ramp(self, week_s: Array, xp: ModuleType) -> Array:
        seconds = self.hours.depth_s(week_s, xp) + self.margin_s
        return xp.minimum(xp.maximum(seconds / RAMP_S, 0.0), 1.0)

    def violations(self, motion: Motion) -> np.ndarray:
        """Return the points strictly inside the area, strictly within the closed hours."""
        result = self.area.inside(motion.x_m, motion.y_m)
        if not self.hours.always:
            result[result] = self.hours.depth_s(motion.week_s[result], np) > 0
        return result

    def binds_routes(self) -> bool:
        """Return whether the area is closed nearly always; otherwise trips depart at other hours."""
        return self.hours.share_of_week >= NEARLY_ALWAYS

    def closed_area(self) -> Area:
        """Return the area."""
        return self.area

    def closed_hours(self) -> Hours | None:
        """Return the hours; None if the area is closed at all times."""
        return None if self.hours.always else self.hours

    def time_factor(self, week_s: np.ndarray) -> np.ndarray | None:
        """Return the part of the penalty that the hours decide."""
        return None if self.hours.always else self._ramp(week_s, np)

    def place_penalty(self, motion: Motion, prepared: tuple[Array, ...]) -> Array:
        """Return the metres of depth inside the area, at whatever hour."""
        xp = module_of(motion)
        return xp.maximum(self.area.depth_m(motion.x_m, motion.y_m) + self.margin, 0.0)

    def reads_positions_only(self) -> bool:
        """Return whether no clock is needed: the area is closed at all times."""
        return self.hours.always

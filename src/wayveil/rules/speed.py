"""`speed_limit`: an upper limit for the speed of each step, everywhere, in an area, or on some road classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import final

import numpy as np

from wayveil.rules.area import Area
from wayveil.rules.classes import Classes
from wayveil.rules.motion import Array, Motion, at_later_point, ground_lengths, module_of
from wayveil.rules.rule import Rule
from wayveil.rules.tolerances import ELLIPSOID_RATIO, POSITION_RESERVE_M, ROUND_OFF_M, TOLERANCE_M

_RAMP_M = 10.0
"""Metres inside the area over which the penalty grows from zero, so that it is continuous."""


@final
@dataclass(frozen=True, eq=False)
class SpeedLimit(Rule):
    """penalty = ReLU(length − limit · duration), the metres by which a step is too long, at its later point.

    On roads, the limit holds for a step whose middle lies there; in an area, for a step whose middle or both ends lie
    there. The penalty then grows from zero over the first 10 m inside, so that it is continuous. Two points at the same
    time in different places exceed every limit.
    """

    limit_mps: float
    where: Area | Classes | None = None
    name: str = "speed_limit"
    margin: float = 0.01
    """Share of the limit below it at which the penalty begins."""
    margin_m: float = 2.0
    """Metres by which the penalty reaches beyond the area or road."""
    slack: float = 0.0
    """Metres beyond the road at which the limit already holds; see `stricter`."""

    def describe(self) -> str:
        """Return the rule in plain words."""
        place = "anywhere"
        if isinstance(self.where, Area):
            place = "in the area (with its middle or both of its ends inside)"
        elif isinstance(self.where, Classes):
            place = f"with its middle within {self.where.width_m:g} m of a road of class {self.where.text}"
        return f"No step may be faster than {self.limit_mps * 3.6:g} km/h {place}."

    def penalty(self, motion: Motion) -> Array:
        """Return the metres by which each step is too long."""
        xp = module_of(motion)
        length, dt = ground_lengths(motion, xp)
        excess = xp.maximum(length - self.limit_mps * (1.0 - self.margin) * dt - TOLERANCE_M, 0.0)
        if self.where is not None and xp is not np:
            excess = excess * _ramp(_depth(self.where, motion, slice(None), xp) + self.margin_m, xp)
        elif self.where is not None:
            fast = np.flatnonzero(excess > 0)
            excess[fast] *= _ramp(_depth(self.where, motion, fast, np) + self.margin_m, np)
        return at_later_point(excess, motion, xp)

    def violations(self, motion: Motion) -> np.ndarray:
        """Return the later points of steps that are too fast."""
        length, dt = ground_lengths(motion, np)
        result: np.ndarray = at_later_point(
            self._concerned(motion, length - self.limit_mps * dt - TOLERANCE_M > 0), motion, np
        )
        return result

    def _concerned(self, motion: Motion, chosen: np.ndarray) -> np.ndarray:
        """Return which of the chosen steps lie where the limit holds; changes `chosen`."""
        if isinstance(self.where, Area):
            start, middle, end = (self.where.inside(*at) for at in _positions(motion, np.flatnonzero(chosen)))
            chosen[chosen] = middle | (start & end)
        elif self.where is not None:
            chosen[chosen] = _depth(self.where, motion, np.flatnonzero(chosen), np) > -self.slack
        return chosen

    def new_times_suffice(self) -> bool:
        """Return True: more time for the step is enough."""
        return True

    def least_step_s(self, motion: Motion) -> np.ndarray:
        """Return length / limit where the limit holds; where that is depends on positions alone."""
        length, _ = ground_lengths(motion, np)
        concerned = self._concerned(motion, length - TOLERANCE_M > 0)
        result: np.ndarray = at_later_point(
            np.where(concerned, (length - ROUND_OFF_M) / self.limit_mps, 0.0), motion, np
        )
        return result

    def stricter(self) -> SpeedLimit:
        """Return a limit that is 0.6 % lower and reaches a few centimetres further."""
        return replace(self, limit_mps=self.limit_mps / ELLIPSOID_RATIO, slack=POSITION_RESERVE_M)


def _positions(motion: Motion, steps: Array | slice) -> tuple[tuple[Array, Array], ...]:
    """Return (x, y) of the start, the middle and the end of each of the steps."""
    (x, next_x), (y, next_y) = ((at[:-1][steps], at[1:][steps]) for at in (motion.x_m, motion.y_m))
    return (x, y), ((x + next_x) / 2, (y + next_y) / 2), (next_x, next_y)


def _ramp(depth_m: Array, xp: ModuleType) -> Array:
    return xp.minimum(xp.maximum(depth_m / _RAMP_M, 0.0), 1.0)


def _depth(where: Area | Classes, motion: Motion, steps: Array | slice, xp: ModuleType) -> Array:
    """Return the metres by which the steps lie inside the place where the limit holds."""
    start, (x, y), end = _positions(motion, steps)
    if isinstance(where, Area):
        return xp.maximum(where.depth_m(x, y), xp.minimum(where.depth_m(*start), where.depth_m(*end)))
    if xp is not np:
        return where.depth_m(x, y, where.segments.most(), xp)
    depth = np.empty(len(x))
    for group, most in where.segments.blocks(x, y):
        depth[group] = where.depth_m(x[group], y[group], most, np)
    return depth

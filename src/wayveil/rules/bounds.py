"""`stay_within`: nobody leaves the area; the scope's own box is always one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from wayveil.rules.area import Area, area_in_metres
from wayveil.rules.motion import Array, Motion, module_of
from wayveil.rules.rule import Rule
from wayveil.scope import Scope

TOLERANCE_M = 1e-3
"""The scope's box is this much larger as a rule, so that a point on its border is inside after any rounding."""


@dataclass(frozen=True, eq=False)
class StayWithin:
    """penalty = ReLU(margin + distance outside the area)."""

    area: Area
    name: str = "stay_within"
    margin: float = 2.0
    """Metres that the penalty stays inside the border."""
    of_scope: bool = False

    def describe(self) -> str:
        """The rule in plain words."""
        return f"No point may lie outside {'the box of the scope' if self.of_scope else 'the area'}."

    def penalty(self, motion: Motion) -> Array:
        """Metres outside the area."""
        xp = module_of(motion)
        if xp is not np:
            return xp.maximum(self.margin - self.area.depth_m(motion.x_m, motion.y_m), 0.0)
        import shapely

        # Deep inside there is nothing to measure; a shrunk outline says where that is.
        core = self.area.outline.buffer(-1.01 * self.margin - TOLERANCE_M, join_style="mitre")
        shapely.prepare(core)
        outer = ~shapely.contains_xy(core, motion.x_m, motion.y_m)
        result = np.zeros(len(motion.x_m))
        depth = self.area.depth_m(motion.x_m[outer], motion.y_m[outer])
        result[outer] = np.maximum(self.margin - depth, 0.0)
        return result

    def violations(self, motion: Motion) -> np.ndarray:
        """Points neither inside nor on the border."""
        return ~self.area.touches(motion.x_m, motion.y_m)


def scope_bounds(scope: Scope) -> StayWithin:
    """The rule that every scope brings: stay in its box."""
    import shapely

    box = shapely.box(-TOLERANCE_M, -TOLERANCE_M, scope.width_m + TOLERANCE_M, scope.height_m + TOLERANCE_M)
    return StayWithin(area_in_metres(box, grow=-1), name="scope bounds", of_scope=True)


def with_scope_bounds(rules: Iterable[Rule], scope: Scope) -> tuple[Rule, ...]:
    """The rules, and the scope's bounds unless they are among them already."""
    rules = tuple(rules)
    if any(isinstance(rule, StayWithin) and rule.of_scope for rule in rules):
        return rules
    return (*rules, scope_bounds(scope))

"""`stay_within`: no point may lie outside the area; the box of the scope is always such an area."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np

from wayveil.core.scope import Scope
from wayveil.rules.area import Area
from wayveil.rules.motion import Array, Motion, module_of
from wayveil.rules.polygons import area_in_metres
from wayveil.rules.rule import Rule
from wayveil.rules.tolerances import TOLERANCE_M


@final
@dataclass(frozen=True, eq=False)
class StayWithin(Rule):
    """penalty = ReLU(margin + distance outside the area)."""

    area: Area
    name: str = "stay_within"
    margin: float = 2.0
    """Metres inside the border at which the penalty begins."""
    of_scope: bool = False
    """Whether the area is the box of the scope."""

    def describe(self) -> str:
        """Return the rule in plain words."""
        return f"No point may lie outside {'the box of the scope' if self.of_scope else 'the area'}."

    def penalty(self, motion: Motion) -> Array:
        """Return the metres outside the area."""
        xp = module_of(motion)
        if xp is not np:
            return xp.maximum(self.margin - self.area.depth_m(motion.x_m, motion.y_m), 0.0)
        import shapely

        # Points inside a shrunk outline have no penalty, so that their distance need not be computed.
        core = self.area.outline.buffer(-1.01 * self.margin - TOLERANCE_M, join_style="mitre")
        shapely.prepare(core)
        outer = ~shapely.contains_xy(core, motion.x_m, motion.y_m)
        result = np.zeros(len(motion.x_m))
        depth = self.area.depth_m(motion.x_m[outer], motion.y_m[outer])
        result[outer] = np.maximum(self.margin - depth, 0.0)
        return result

    def violations(self, motion: Motion) -> np.ndarray:
        """Return the points that are neither inside nor on the border."""
        return ~self.area.touches(motion.x_m, motion.y_m)

    def binds_routes(self) -> bool:
        """Return whether the area is one that a user drew; no route leaves the box of the scope anyway."""
        return not self.of_scope

    def stay_area(self) -> Area:
        """Return the area."""
        return self.area

    def reads_positions_only(self) -> bool:
        """Return True: no clock is needed."""
        return True


@functools.lru_cache(maxsize=4)
def scope_bounds(scope: Scope) -> StayWithin:
    """Return the rule that holds in every scope: stay in its box.

    The same scope gets the same object, so that the compiled gradient descent is reused.
    """
    import shapely

    # A point on the border must be inside after rounding.
    box = shapely.box(-TOLERANCE_M, -TOLERANCE_M, scope.width_m + TOLERANCE_M, scope.height_m + TOLERANCE_M)
    return StayWithin(area_in_metres(box, grow=-1), name="scope bounds", of_scope=True)


def with_scope_bounds(rules: Iterable[Rule], scope: Scope) -> tuple[Rule, ...]:
    """Return the rules with the bounds of the scope, unless these are among them already."""
    rules = tuple(rules)
    if any(isinstance(rule, StayWithin) and rule.of_scope for rule in rules):
        return rules
    return (*rules, scope_bounds(scope))

"""`speed_limit`: nobody is faster, anywhere, in an area, or on roads of some classes."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from wayveil.errors import RuleError
from wayveil.roads import ROAD_CLASSES, RoadMap
from wayveil.rules.area import Area
from wayveil.rules.motion import Array, Motion, at_later_point, ground_lengths, module_of
from wayveil.rules.one_way import check_width
from wayveil.rules.segments import FAR_M, Segments, first_in_lists, segments_of_roads
from wayveil.scope import Scope

TOLERANCE_M = 1e-3
"""A step may be a millimetre too long: that is round-off, not speed."""
_RAMP_M = 10.0


@dataclass(frozen=True, eq=False)
class Classes:
    """Where the nearest road within a width has one of some classes."""

    segments: Segments
    chosen: np.ndarray
    """(pieces,) whether each piece has such a class."""
    width_m: float
    text: str

    def depth_m(self, x: Array, y: Array, most: int, xp: ModuleType) -> Array:
        """min(width − d, d' − d), d to the nearest chosen road and d' to the nearest other; positive where it holds."""
        piece, distance = self.segments.near(x, y, most, xp)
        chosen = xp.asarray(self.chosen)[piece]
        own = xp.min(xp.where(chosen, distance, FAR_M), axis=1)
        other = xp.min(xp.where(chosen, FAR_M, distance), axis=1)
        return xp.minimum(self.width_m, other) - own


@dataclass(frozen=True, eq=False)
class SpeedLimit:
    """penalty = ReLU(length − limit · duration), the metres by which a step is too long, at its later point.

    On roads the limit holds where the step's middle lies there, in an area where its middle or both of its ends do; the
    penalty then grows from zero over the first 10 m inside, so that it is continuous. Two points at the same time and
    different places are too fast.
    """

    limit_mps: float
    where: Area | Classes | None = None
    name: str = "speed_limit"
    margin: float = 0.01
    """Share of the limit that the penalty stays below it."""
    margin_m: float = 2.0
    """Metres that the penalty reaches beyond the area or road."""
    slack: float = 0.0
    """Metres beyond the road at which the limit counts already; for whoever has to hold in other projections too."""

    def describe(self) -> str:
        """The rule in plain words."""
        place = "anywhere"
        if isinstance(self.where, Area):
            place = "in the area (with its middle or both of its ends inside)"
        elif isinstance(self.where, Classes):
            place = f"with its middle within {self.where.width_m:g} m of a road of class {self.where.text}"
        return f"No step may be faster than {self.limit_mps * 3.6:g} km/h {place}."

    def penalty(self, motion: Motion) -> Array:
        """Metres above the limit."""
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
        """Later points of steps that are too fast."""
        length, dt = ground_lengths(motion, np)
        fast = length - self.limit_mps * dt - TOLERANCE_M > 0
        if isinstance(self.where, Area):
            start, middle, end = (self.where.inside(*at) for at in _positions(motion, np.flatnonzero(fast)))
            fast[fast] = middle | (start & end)
        elif self.where is not None:
            fast[fast] = _depth(self.where, motion, np.flatnonzero(fast), np) > -self.slack
        return at_later_point(fast, motion, np)


def _positions(motion: Motion, steps: Array | slice) -> tuple[tuple[Array, Array], ...]:
    """(x, y) of the start, the middle and the end of each of the steps."""
    (x, next_x), (y, next_y) = ((at[:-1][steps], at[1:][steps]) for at in (motion.x_m, motion.y_m))
    return (x, y), ((x + next_x) / 2, (y + next_y) / 2), (next_x, next_y)


def _ramp(depth_m: Array, xp: ModuleType) -> Array:
    return xp.minimum(xp.maximum(depth_m / _RAMP_M, 0.0), 1.0)


def _depth(where: Area | Classes, motion: Motion, steps: Array | slice, xp: ModuleType) -> Array:
    """Metres by which the steps lie where the limit holds."""
    start, (x, y), end = _positions(motion, steps)
    if isinstance(where, Area):
        return xp.maximum(where.depth_m(x, y), xp.minimum(where.depth_m(*start), where.depth_m(*end)))
    if xp is not np:
        return where.depth_m(x, y, where.segments.most(), xp)
    depth = np.empty(len(x))
    for group, most in where.segments.blocks(x, y):
        depth[group] = where.depth_m(x[group], y[group], most, np)
    return depth


def road_classes(
    roadmap: RoadMap, scope: Scope, classes: list[str] | tuple[str, ...], width_m: float = 25.0
) -> Classes:
    """Roads of some classes (names of wayveil.roads.ROAD_CLASSES) as a place for a speed limit."""
    check_width(width_m)
    unknown = [name for name in classes if name not in ROAD_CLASSES]
    if unknown or not classes:
        raise RuleError(f"classes must be a list of some of {', '.join(ROAD_CLASSES)}.")
    segments = segments_of_roads(roadmap, scope, width_m + 5.0)
    numbers = [ROAD_CLASSES.index(name) for name in classes]
    chosen = np.isin(np.asarray(roadmap.road_class)[segments.road], numbers)
    if not chosen.any():
        raise RuleError("The road map has no road of these classes in the scope; leave the rule out.")
    return Classes(first_in_lists(segments, np.ones(len(chosen), bool)), chosen, width_m, ", ".join(classes))

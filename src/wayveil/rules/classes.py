"""Road classes: their names in rules, and the places near roads of some classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from wayveil.core.roads import ROAD_CLASSES, RoadMap, road_class_of
from wayveil.core.scope import Scope
from wayveil.errors import RuleError
from wayveil.rules.motion import Array
from wayveil.rules.segments import FAR_M, Segments, check_width, first_in_lists, segments_of_roads

DEFAULT_WIDTH_M = 25.0
"""Metres from the centre line within which a step counts as on the road: a wide road and GPS noise."""


@dataclass(frozen=True, eq=False)
class Classes:
    """The places whose nearest road, within a width, has one of some classes."""

    segments: Segments
    chosen: np.ndarray
    """(pieces,) whether each piece has such a class."""
    width_m: float
    text: str
    """The classes as a description names them."""

    def depth_m(self, x: Array, y: Array, most: int, xp: ModuleType) -> Array:
        """Return min(width − d, d' − d), with distances d to the nearest chosen road and d' to the nearest other."""
        piece, distance = self.segments.near(x, y, most, xp)
        chosen = xp.asarray(self.chosen)[piece]
        own = xp.min(xp.where(chosen, distance, FAR_M), axis=1)
        other = xp.min(xp.where(chosen, FAR_M, distance), axis=1)
        return xp.minimum(self.width_m, other) - own


def class_names(words: Sequence[str]) -> tuple[list[str], str]:
    """Return the names of ROAD_CLASSES that the words mean, and the text for a description.

    Maps are stored with these classes only: a limit for OpenStreetMap's living_street applies to all roads of the class
    residential, and the description says so.
    """
    found = {word: road_class_of(word) if isinstance(word, str) else None for word in words}
    if not found or None in found.values():
        raise RuleError(f"classes must be a list of some of {', '.join(ROAD_CLASSES)}.")
    names = list(dict.fromkeys(name for name in found.values() if name is not None))
    finer = {name: [word for word, own in found.items() if own == name != word] for name in names}
    return names, ", ".join(name + _included(finer[name]) for name in names)


def _included(words: list[str]) -> str:
    return f" (which includes {' and '.join(words)})" if words else ""


def road_classes(
    roadmap: RoadMap, scope: Scope, classes: list[str] | tuple[str, ...], width_m: float = DEFAULT_WIDTH_M
) -> Classes:
    """Return the roads of some classes (names of wayveil.core.roads.ROAD_CLASSES) as a place for a speed limit."""
    check_width(width_m)
    unknown = [name for name in classes if name not in ROAD_CLASSES]
    if unknown or not classes:
        raise RuleError(f"classes must be a list of some of {', '.join(ROAD_CLASSES)}.")
    segments = segments_of_roads(roadmap, scope, width_m + 5.0)
    numbers = [ROAD_CLASSES.index(name) for name in classes]
    chosen = np.isin(np.asarray(roadmap.road_class)[segments.road], numbers)
    if not chosen.any():
        raise RuleError("The road map has no road of these classes in the scope; remove the rule.")
    return Classes(first_in_lists(segments, np.ones(len(chosen), bool)), chosen, width_m, ", ".join(classes))

"""Rules that refer to the streets of a road map that was not given: they have a description but no place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wayveil.rules.classes import Classes, class_names
from wayveil.rules.one_way import OneWay
from wayveil.rules.rule import Rule
from wayveil.rules.segments import Segments
from wayveil.rules.speed import SpeedLimit


def unmapped_one_way(width_m: float, name: str) -> OneWay:
    """Return a rule for the one-way streets of a map that was not given."""
    return OneWay(_nowhere(width_m), np.zeros(0, bool), width_m, of_map=True, name=name)


def unmapped_speed_limit(kmh: float, classes: Sequence[str], width_m: float, name: str) -> SpeedLimit:
    """Return a speed limit on some road classes of a map that was not given."""
    where = Classes(_nowhere(width_m), np.zeros(0, bool), width_m, class_names(classes)[1])
    return SpeedLimit(kmh / 3.6, where, name)


def is_unmapped(rule: Rule) -> bool:
    """Return whether a rule refers to the streets of a map that was not given."""
    place = rule.where if isinstance(rule, SpeedLimit) else rule
    return isinstance(place, OneWay | Classes) and len(place.segments.ends) == 0


def _nowhere(reach_m: float) -> Segments:
    none = np.zeros(0, np.int32)
    return Segments(np.zeros((0, 4)), none, reach_m, 1.0, 0, 0, 0.0, 0.0, none, np.zeros(1, np.int32), none)

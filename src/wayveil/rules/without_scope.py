"""Read a rules file without a scope, in a box around its shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from wayveil.core.roads import RoadMap
from wayveil.core.scope import EARTH_RADIUS_M, Scope
from wayveil.errors import RuleError
from wayveil.progress import Progress, quiet
from wayveil.rules.contradictions import refuse_contradictions
from wayveil.rules.draw import has_place
from wayveil.rules.geojson import features_of, rules_of
from wayveil.rules.geometry import outlines_of
from wayveil.rules.rule import Rule

_MARGIN_SHARE = 0.1
"""Margin of the box, as a share of the extent of all shapes."""
_LEAST_MARGIN_M = 300.0
"""Smallest margin of the box in metres, so that a small shape is shown with its surroundings."""
_ANYWHERE = Scope(name="anywhere", south=-0.05, west=-0.05, north=0.05, east=0.05)  # type: ignore[call-arg]
"""A box for rules that apply everywhere; their description does not depend on it."""

Extent = tuple[float, float, float, float]
"""west, south, east, north in degrees; east may lie beyond 180, so that it is never below west."""


@dataclass(frozen=True)
class RulesWithoutScope:
    """Rules that were read without a scope."""

    rules: tuple[Rule, ...]
    frame: Scope | None
    """A box around the rules' own shapes, for the picture only; None if there is no such box."""
    why_no_frame: str = ""


def read_without_scope(path: Path, roadmap: RoadMap | None = None, progress: Progress = quiet) -> RulesWithoutScope:
    """Return the rules of a file in a box around their shapes, with the map's streets if rules refer to them.

    Contradictions among the rules are refused. Whether the rules suit a scope's box and time zone is not checked.

    Privacy: free (a rules file is public).
    """
    origin, features = features_of(path)
    shapes = [_outlines(feature) for feature in features]
    extents = [_extent(outline) for outlines in shapes for outline in outlines]
    map_extent = [_extent_of_map(roadmap)] if roadmap is not None and not all(shapes) else []
    frame = _frame([*extents, *map_extent], origin)
    if frame is not None or not extents:
        within = frame or _ANYWHERE
        streets = roadmap if frame else None
        rules = rules_of(features, origin, [within] * len(features), streets, progress, map_may_miss=True)
        refuse_contradictions(rules, within, f"The rules of '{origin}'")
        return RulesWithoutScope(rules, frame, "" if frame else "No rule has a shape, so there is nothing to draw.")
    # Each rule gets its own box: the descriptions are the same, and places cannot be compared.
    rules = rules_of(features, origin, [_own_frame(outlines) for outlines in shapes], None, progress, map_may_miss=True)
    refuse_contradictions([rule for rule in rules if not has_place(rule)], _ANYWHERE, f"The rules of '{origin}'")
    return RulesWithoutScope(
        rules, None, "The shapes are too far apart for one picture; note that GeoJSON puts the longitude first."
    )


def _outlines(feature: Any) -> list[np.ndarray]:
    """Return the outlines of a feature's shape; the reader of rules reports what is wrong with a broken one."""
    geometry = feature.get("geometry") if isinstance(feature, dict) else None
    try:
        return [] if geometry is None else outlines_of(geometry)
    except RuleError:
        return []


def _extent(outline: np.ndarray) -> Extent:
    (west, south), (east, north) = outline.min(axis=0).tolist(), outline.max(axis=0).tolist()
    return west, south, east, north


def _extent_of_map(roadmap: RoadMap) -> Extent:
    south, north = float(np.min(roadmap.lat)), float(np.max(roadmap.lat))
    return _around([(lon, south, lon, north) for lon in np.unique(np.round(roadmap.lon, 3)).tolist()])


def _frame(extents: Sequence[Extent], name: str) -> Scope | None:
    """Return a scope around the extents with a margin; None if there are none, or too far apart, or at a pole."""
    if not extents:
        return None
    west, south, east, north = _around(extents)
    lat_per_m = 1 / (math.radians(1.0) * EARTH_RADIUS_M)
    lon_per_m = lat_per_m / max(math.cos(math.radians((south + north) / 2)), 0.01)
    margin_m = max(_LEAST_MARGIN_M, _MARGIN_SHARE * max((east - west) / lon_per_m, (north - south) / lat_per_m))
    try:
        return Scope.model_validate({
            "name": name,
            "south": max(south - margin_m * lat_per_m, -85.0), "north": min(north + margin_m * lat_per_m, 85.0),
            "west": _wrapped(west - margin_m * lon_per_m), "east": _wrapped(east + margin_m * lon_per_m),
        })  # fmt: skip
    except ValidationError:
        return None


def _own_frame(outlines: list[np.ndarray]) -> Scope:
    """Return a box for one shape; for a shape wider than any scope, a box around its first corner."""
    if not outlines:
        return _ANYWHERE
    whole = _frame([_extent(outline) for outline in outlines], "shape")
    return whole or _frame([_extent(outlines[0][:1])], "corner") or _ANYWHERE


def _around(extents: Sequence[Extent]) -> Extent:
    """Return the smallest extent around several: the widest range of unused longitudes stays outside."""
    ordered = sorted((west % 360.0, west % 360.0 + east - west) for west, _, east, _ in extents)
    gaps, reached = [], ordered[0][1]
    for west, east in [*ordered[1:], (ordered[0][0] + 360.0, 0.0)]:
        gaps.append((west - reached, reached, west))
        reached = max(reached, east)
    gap, last_east, first_west = max(gaps)
    first_west = first_west % 360.0
    east = first_west + ((last_east - first_west) % 360.0 if gap > 0 else 360.0)
    return first_west, min(extent[1] for extent in extents), east, max(extent[3] for extent in extents)


def _wrapped(lon: float) -> float:
    return (lon + 180.0) % 360.0 - 180.0

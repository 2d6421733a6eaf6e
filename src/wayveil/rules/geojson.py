"""Rules from a GeoJSON file, as drawn in QGIS or geojson.io; no code runs from it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.errors import RuleError
from wayveil.io.inputs import TooLargeError, read_text
from wayveil.io.roads import Roads, roads_of
from wayveil.io.scope_files import read_scope
from wayveil.progress import Progress, quiet
from wayveil.rules import constructors
from wayveil.rules.contradictions import refuse_contradictions
from wayveil.rules.hours import hours
from wayveil.rules.options import (
    ClosedOptions,
    MaxDurationOptions,
    MinSpeedOptions,
    OneWayOptions,
    SpeedLimitOptions,
    StayWithinOptions,
    options_of,
)
from wayveil.rules.rule import Rule
from wayveil.rules.unmapped import unmapped_one_way, unmapped_speed_limit

MAX_BYTES = 128 << 20
"""Largest rules file; files drawn by hand are smaller."""
MAX_FEATURES = 2_000
"""Largest number of rules in a file; bounds the time of a synthesis."""
_WGS84 = ("crs84", "4326")


def read_rules(
    path_or_dict: str | Path | dict[str, Any],
    scope: Scope | str | os.PathLike[str],
    roads: Roads = None,
    progress: Progress = quiet,
    *,
    map_may_miss: bool = False,
) -> tuple[Rule, ...]:
    """Read traffic rules from a GeoJSON file or mapping, in its order; contradictions are refused.

    Parameters
    ----------
    path_or_dict
        The file, or the GeoJSON as a dictionary; the properties of each feature name its rule.
    scope
        A scope, its file or its name. Its bounds are not among the rules: `with_scope_bounds` adds them.
    roads
        A road map or its file, for rules that refer to its streets.
    map_may_miss
        Whether rules that refer to the streets of a road map are accepted without one. They then have a description but
        no place (`unmapped`), and no trajectory violates them.

    Examples
    --------
    >>> from wayveil.rules import read_rules
    >>> limit = {"type": "Feature", "geometry": None, "properties": {"rule": "speed_limit", "kmh": 50}}
    >>> (rule,) = read_rules(limit, "demo-city")
    >>> rule.describe()
    'No step may be faster than 50 km/h anywhere.'

    Privacy
    -------
    Free (a rules file is public).
    """
    scope = scope if isinstance(scope, Scope) else read_scope(os.fspath(scope))
    origin, features = features_of(path_or_dict)
    rules = rules_of(features, origin, [scope] * len(features), roads_of(roads), progress, map_may_miss)
    refuse_contradictions(rules, scope, f"The rules of '{origin}'")
    return rules


def rules_of(
    features: Sequence[Any],
    origin: str,
    scopes: Sequence[Scope],
    roadmap: RoadMap | None = None,
    progress: Progress = quiet,
    map_may_miss: bool = False,
) -> tuple[Rule, ...]:
    """Return one rule for each feature, read in the scope at the same position; an error names the feature's number."""
    rules: list[Rule] = []
    for number, (feature, scope) in enumerate(zip(features, scopes), start=1):
        progress("reading the rules", (number - 1) / len(features))
        try:
            rules.append(_rule(feature, number, scope, roadmap, map_may_miss))
        except RuleError as error:
            message = str(error).rstrip(".")
            stop = "" if message.endswith("?") else "."
            raise RuleError(f"Rules file '{origin}', feature {number}: {message}{stop}") from None
    return tuple(rules)


def features_of(source: str | Path | dict[str, Any]) -> tuple[str, list[Any]]:
    """Return the name of a file or mapping for messages, and its features unchanged."""
    origin, document = _document(source)
    return origin, _features(document, origin)


def _document(source: str | Path | dict[str, Any]) -> tuple[str, Any]:
    if isinstance(source, dict):
        return "in memory", source
    path = Path(source)
    try:
        if not path.is_file():
            raise RuleError(
                f"There is no rules file '{path.name}'; draw one in QGIS or geojson.io and save it as GeoJSON."
            )
        text = read_text(path, MAX_BYTES, "utf-8-sig")
    except TooLargeError:
        raise RuleError(f"Rules file '{path.name}' is larger than {MAX_BYTES >> 20} MB; simplify its shapes.") from None
    except (OSError, UnicodeDecodeError, ValueError):
        raise RuleError(f"Rules file '{path.name}' cannot be read as text; save it as GeoJSON in UTF-8.") from None
    try:
        return path.name, json.loads(text)
    except (ValueError, RecursionError):
        raise RuleError(
            f"Rules file '{path.name}' is not valid JSON; save it as GeoJSON from QGIS or geojson.io."
        ) from None


def _features(document: Any, origin: str) -> list[Any]:
    if not isinstance(document, dict) or document.get("type") not in ("FeatureCollection", "Feature"):
        raise RuleError(f"Rules file '{origin}' is not a GeoJSON FeatureCollection; save it from QGIS or geojson.io.")
    crs = document.get("crs")
    if crs is not None:
        properties = crs.get("properties") if isinstance(crs, dict) else None
        name = properties.get("name") if isinstance(properties, dict) else None
        if not isinstance(name, str) or not name.lower().replace("::", ":").endswith(_WGS84):
            raise RuleError(f"Rules file '{origin}' is in another projection; export it in WGS 84 (EPSG:4326).")
    features = [document] if document["type"] == "Feature" else document.get("features")
    if not isinstance(features, list) or not features:
        raise RuleError(f"Rules file '{origin}' has no features; draw at least one rule.")
    if len(features) > MAX_FEATURES:
        raise RuleError(f"Rules file '{origin}' has more than {MAX_FEATURES} features; merge the shapes of each rule.")
    return features


def _rule(feature: Any, number: int, scope: Scope, roadmap: RoadMap | None, map_may_miss: bool) -> Rule:
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        raise RuleError("this is not a GeoJSON Feature")
    options = options_of(feature.get("properties"))
    geometry = feature.get("geometry")
    name = options.name or f"{options.rule} {number}"
    match options:
        case ClosedOptions():
            return constructors.closed(geometry, scope, hours(options.from_, options.to, options.days), name)
        case StayWithinOptions():
            return constructors.stay_within(geometry, scope, name)
        case SpeedLimitOptions():
            classes = options.classes or ()
            if classes and geometry is None and roadmap is None and map_may_miss:
                return unmapped_speed_limit(options.kmh, classes, options.width_m, name)
            return constructors.speed_limit(options.kmh, scope, geometry, roadmap, classes, options.width_m, name)
        case OneWayOptions():
            if geometry is None and roadmap is None and map_may_miss:
                return unmapped_one_way(options.width_m, name)
            return constructors.one_way(geometry, scope, roadmap, options.width_m, name)
        case MinSpeedOptions():
            _refuse_shape(geometry, "min_speed")
            return constructors.min_speed(options.kmh, name)
        case MaxDurationOptions():
            _refuse_shape(geometry, "max_duration")
            return constructors.max_duration(options.hours or (options.minutes or 0.0) / 60, name)
    raise RuleError("the rule is unknown")


def _refuse_shape(geometry: Any, rule: str) -> None:
    if geometry is not None:
        raise RuleError(f'{rule} applies to whole trajectories; set "geometry": null')

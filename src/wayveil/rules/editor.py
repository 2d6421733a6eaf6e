"""The page of `wayveil rules draw`: one offline HTML file in which rules are drawn, checked and saved as GeoJSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from wayveil.core.roads import ROAD_CLASSES, RoadMap, check_inside, clip_roads, road_class_of
from wayveil.core.scope import Scope
from wayveil.core.web import asset, road_lines, script_json
from wayveil.io.atomic import write_text
from wayveil.io.outputs import check_page
from wayveil.io.roads import Roads, roads_of
from wayveil.io.scope_files import read_scope
from wayveil.progress import Progress, quiet
from wayveil.rules import contradictions, options
from wayveil.rules.classes import DEFAULT_WIDTH_M as ROAD_WIDTH_M
from wayveil.rules.constructors import LIMITS_H, LIMITS_KMH
from wayveil.rules.days import DAYS
from wayveil.rules.geojson import MAX_FEATURES, features_of
from wayveil.rules.one_way import DEFAULT_WIDTH_M, PARALLEL
from wayveil.rules.segments import SMOOTH_M

_OSM_CLASSES = ("unclassified", "living_street", "track", "footway", "cycleway", "pedestrian", "steps", "busway")
"""OpenStreetMap classes that rules may name in addition to ROAD_CLASSES and their links."""
_SCRIPTS = ("rules_geometry.js", "rules_check.js", "editor_shapes.js", "editor.js")


def write_editor(
    path: str | os.PathLike[str],
    scope: Scope | str | os.PathLike[str],
    *,
    roads: Roads = None,
    rules: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    progress: Progress = quiet,
) -> None:
    """Write a page in which traffic rules are drawn on a map, checked, and saved as GeoJSON.

    The page works offline in any browser. It finds the same contradictions as `wayveil.rules.check`.

    Parameters
    ----------
    path
        HTML file to write. An earlier page is replaced; any other file is refused.
    scope
        A scope, its file or its name: its box is the area of the map.
    roads
        A road map or its file: the streets to draw on.
    rules
        A rules file or GeoJSON mapping to start from. It may contain faults, which the page shows.

    Examples
    --------
    >>> import wayveil
    >>> wayveil.rules.write_editor("draw-rules.html", "demo-city", roads="roads.parquet")  # doctest: +SKIP

    Privacy
    -------
    Free (the scope, the map and rules are public).
    """
    output = Path(path)
    check_page(output, [given for given in (scope, roads, rules) if isinstance(given, str | os.PathLike)])
    frame = scope if isinstance(scope, Scope) else read_scope(os.fspath(scope))
    progress("page", 0.0)
    streets = roads_of(roads)
    if streets is not None:
        check_inside(streets, frame)
    name = "rules.geojson"
    features: list[Any] = []
    if rules is not None:
        origin, features = features_of(dict(rules) if isinstance(rules, Mapping) else os.fspath(rules))
        name = name if isinstance(rules, Mapping) else origin
    progress("page", 0.5)
    write_text(output, editor_page(frame, streets, features, name), private=False)


def editor_page(scope: Scope, roads: RoadMap | None = None, features: list[Any] | None = None, name: str = "") -> str:
    """The page as HTML text; `features` are the rules to start from, and `name` is the name of their file."""
    import jinja2
    from markupsafe import Markup

    data = {
        "scope": _frame(scope),
        "roads": None if roads is None else road_lines(roads, scope),
        "map": None if roads is None else _map_facts(roads, scope),
        "definition": definition(),
        "features": features or [],
        "file": name or "rules.geojson",
    }
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(_web_file("editor.html.j2")).render(
        scope=scope,
        with_roads=roads is not None,
        classes=[name for name in ROAD_CLASSES if name != "unknown"],
        days=DAYS,
        css=Markup(asset("base.css") + asset("map.css") + _web_file("editor.css")),
        js=Markup(asset("map.js") + "".join(_web_file(script) for script in _SCRIPTS)),
        data_json=Markup(script_json(data)),
    )


def definition() -> dict[str, Any]:
    """The constants that decide whether rules are valid, for the checks of the page."""
    known = {word for name in ROAD_CLASSES for word in (name, f"{name}_link")} | set(_OSM_CLASSES)
    return {
        "rules": list(options.RULE_NAMES),
        "options_of": {rule: list(names) for rule, names in options.OPTIONS_OF.items()},
        "most_letters": options.MOST_LETTERS,
        "most_words": options.MOST_WORDS,
        "widths_m": list(options.WIDTHS_M),
        "limits_kmh": list(LIMITS_KMH),
        "limits_h": list(LIMITS_H),
        "days": list(DAYS),
        "classes": list(ROAD_CLASSES),
        "class_of": {word: road_class_of(word) for word in sorted(known)},
        "most_features": MAX_FEATURES,
        "one_way_width_m": DEFAULT_WIDTH_M,
        "class_width_m": ROAD_WIDTH_M,
        "parallel": PARALLEL,
        "smooth_m": SMOOTH_M,
        "small_share": contradictions.SMALL_SHARE,
        "shortest_trip_m": contradictions.SHORTEST_TRIP_M,
        "shortest_trip_s": contradictions.SHORTEST_TRIP_S,
        "opposed_depth": contradictions.OPPOSED_DEPTH,
        "opposed_share": contradictions.OPPOSED_SHARE,
    }


def _frame(scope: Scope) -> dict[str, Any]:
    span_deg = (scope.east - scope.west) % 360.0
    return {
        "name": scope.name,
        "timezone": scope.timezone,
        "west": scope.west,
        "south": scope.south,
        "span_deg": span_deg,
        "width_m": scope.width_m,
        "height_m": scope.height_m,
        "x_m_per_deg": scope.width_m / span_deg,
        "y_m_per_deg": scope.height_m / (scope.north - scope.south),
        "speed_kmh": scope.caps.speed_kmh,
        "weekdays": contradictions.weekdays(scope),
    }


def _map_facts(roads: RoadMap, scope: Scope) -> dict[str, Any]:
    inside = clip_roads(roads, scope)
    return {
        "classes": [ROAD_CLASSES[index] for index in np.unique(inside.road_class)],
        "has_one_way": bool((inside.oneway == 1).any()),
    }


def _web_file(name: str) -> str:
    return (resources.files("wayveil.rules") / "web" / name).read_text(encoding="utf-8")

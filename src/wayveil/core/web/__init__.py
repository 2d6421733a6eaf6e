"""Parts that all HTML pages share: style, the map script, and compact encodings of positions and roads.

A page is one file. Its scripts and styles are embedded, and nothing is loaded from elsewhere.
"""

import base64
import json
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import ROAD_CLASSES, RoadMap, clip_roads
from wayveil.core.scope import Scope

UNITS = 65_535
"""Coordinates on a page are 16-bit integers across the box, from the south-west corner."""
_MOST_ROAD_VERTICES = 70_000
"""Largest number of road vertices on a page; keeps them below half a megabyte."""


def asset(name: str) -> str:
    """The text of a style sheet or script in this folder."""
    return (resources.files("wayveil.core.web") / name).read_text(encoding="utf-8")


def script_json(value: Any) -> str:
    """JSON for use inside a script element: it cannot end the element or start another."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def encoded(values: NDArray[Any]) -> str:
    """The bytes of an array as base64 text."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def positions(lon: NDArray[np.float64], lat: NDArray[np.float64], scope: Scope) -> str:
    """Positions as pairs of 16-bit integers across the box; positions outside it are moved to its border."""
    x, y = scope.to_metres(lon, lat)
    share = np.column_stack([x / scope.width_m, y / scope.height_m])
    return encoded(np.round(np.clip(share, 0, 1) * UNITS).astype("<u2"))


def road_lines(roads: RoadMap, scope: Scope) -> dict[str, Any]:
    """The roads inside the box, the most important classes first, as many as fit on a page.

    `rank` is the index into ROAD_CLASSES, with unknown classes as residential. `name` is 0 for a street without a name,
    and otherwise 1 + the index of its name in `names`.

    Privacy: free (the map is public).
    """
    inside = clip_roads(roads, scope)
    rank = np.asarray(inside.road_class, np.int64).copy()
    rank[rank == ROAD_CLASSES.index("unknown")] = ROAD_CLASSES.index("residential")
    order = np.argsort(rank, kind="stable")
    order = order[np.cumsum(np.diff(inside.offsets)[order]) <= _MOST_ROAD_VERTICES]
    offsets, points = ragged.take(inside.offsets, order)
    lines: dict[str, Any] = {
        "counts": encoded(np.diff(offsets).astype("<u4")),
        "rank": encoded(rank[order].astype(np.uint8)),
        "oneway": encoded((inside.oneway[order] == 1).astype(np.uint8)),
        "xy": positions(inside.lon[points], inside.lat[points], scope),
        "names": [],
        "name": None,
    }
    if inside.name is not None:
        names = {name: k for k, name in enumerate(dict.fromkeys(name for name in inside.name[order] if name), start=1)}
        lines["names"] = list(names)
        lines["name"] = encoded(np.array([names.get(name, 0) for name in inside.name[order]], "<u4"))
    return lines

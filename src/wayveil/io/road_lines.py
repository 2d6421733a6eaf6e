"""Roads from lines with tags, as OpenStreetMap and similar sources describe them."""

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import ROAD_CLASSES, RoadMap, road_class_of
from wayveil.errors import InputError

MOST_VERTICES = 50_000_000
"""Vertices of a road map: about 1 GB in memory."""
MOST_TEXT_BYTES = 512 << 20
"""GeoJSON is parsed in memory, so larger files are refused."""
_LONGEST_NAME = 100
"""Maximum length of a street name in characters; the rest is cut."""
_MPH = 1.609344
"""Kilometres per mile."""


def refuse_large_file(path: Path) -> None:
    """Refuse a large text file: parsed text takes many times its size in memory; Parquet does not."""
    if path.stat().st_size > MOST_TEXT_BYTES:
        raise InputError(
            f"Road map '{path.name}' is larger than {MOST_TEXT_BYTES >> 20} MB; clip it to the scope "
            "or save it as Parquet."
        )


def road_class_index(name: Any) -> int:
    """Index into ROAD_CLASSES of an OpenStreetMap or similar class name; a link road has the class of its parent."""
    if isinstance(name, list | tuple):
        name = name[0] if name else None
    return ROAD_CLASSES.index((None if name is None else road_class_of(str(name))) or "unknown")


def speed_kmh(value: Any) -> float:
    """Speed limit in km/h from a number or a tag such as "50", "30 mph", "50;30"; NaN if there is none."""
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if value is None or isinstance(value, bool):
        return math.nan
    found = re.match(r"\s*(\d+(?:\.\d+)?)\s*(mph|knots|km/?h|kph)?\s*(?:$|[;,|])", str(value).lower())
    if not found:
        return math.nan
    number = float(found[1]) * {"mph": _MPH, "knots": 1.852}.get(found[2] or "", 1.0)
    return number if 0 < number <= 400 else math.nan


def direction(value: Any) -> tuple[int, bool]:
    """(one-way flag of RoadMap, whether the polyline has to be reversed) from a tag: yes, no, -1, true, reversible."""
    if isinstance(value, list | tuple):
        value = value[0] if len({str(v) for v in value}) == 1 else None
    text = str(value).strip().lower() if value is not None else ""
    if text in ("yes", "true", "1", "1.0", "f", "ft"):
        return 1, False
    if text in ("-1", "-1.0", "reverse", "t", "tf"):
        return 1, True
    if text in ("no", "false", "0", "0.0", "b"):
        return 0, False
    return -1, False


def street_name(value: Any) -> str:
    """The name of a street as one short line; the first one if a road has several; empty if it has none."""
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if not isinstance(value, str):
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in value[:_LONGEST_NAME]).split())


def names_or_none(names: list[str]) -> NDArray[np.object_] | None:
    """The column of names for a RoadMap; None where no street has one."""
    return np.array(names, object) if any(names) else None


def roads_from_lines(lines: Iterable[tuple[Any, Any, Any, Any, Any]], origin: str) -> RoadMap:
    """A road map from (coordinates (k, 2) in degrees, class, oneway tag, speed tag, name).

    `origin` names the map in messages.
    """
    parts, classes, oneways, speeds, names = [], [], [], [], []
    for coordinates, highway, oneway, maxspeed, name in lines:
        try:
            line = np.asarray([tuple(place)[:2] for place in coordinates], dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"Road map '{origin}' has a line whose coordinates are not numbers.") from None
        if line.size == 0 or len(line) < 2:
            continue
        if line.ndim != 2 or line.shape[1] != 2:
            raise InputError(f"Road map '{origin}' has a line whose coordinates are not pairs.")
        flag, reverse = direction(oneway)
        parts.append(line[::-1] if reverse else line)
        classes.append(road_class_index(highway))
        oneways.append(flag)
        speeds.append(speed_kmh(maxspeed))
        names.append(street_name(name))
    if not parts:
        raise InputError(f"Road map '{origin}' has no lines; it needs at least one road of two points.")
    vertices = np.concatenate(parts)
    offsets = ragged.offsets_of([len(part) for part in parts])
    check_degrees(vertices[:, 0], vertices[:, 1], origin)
    return RoadMap(
        offsets, vertices[:, 0].copy(), vertices[:, 1].copy(),
        np.array(classes, np.int8), np.array(oneways, np.int8), np.array(speeds, float),
        names_or_none(names),
    )  # fmt: skip


def check_degrees(lon: NDArray[np.float64], lat: NDArray[np.float64], origin: str) -> None:
    """Refuse coordinates that are not degrees."""
    good = np.isfinite(lon).all() and np.isfinite(lat).all()
    if not good or (np.abs(lon) > 180).any() or (np.abs(lat) > 90).any():
        raise InputError(f"Road map '{origin}' is not in degrees (WGS 84, longitude first); reproject it to EPSG:4326.")

"""JSON records: GeoJSON files and JSON lines, each record read by its own keys and values.

A record is a point or a line: a GeoJSON feature, or an object with `lat` and `lon` or with a line. Keys are looked up
record by record and in a fixed order, because the keys of one record must not change how another one is read.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wayveil.errors import InputError
from wayveil.io.layouts import LINE_NAMES, TIMES_NAMES
from wayveil.io.options import KNOWN_NAMES, SECOND_NAMES, ReadOptions
from wayveil.io.readers.crs import to_degrees
from wayveil.io.readers.labels import Labels, labels_of_values
from wayveil.io.readers.lines import row_times_of_values, shapes_of_lists, timed_points
from wayveil.io.readers.packed import open_text
from wayveil.io.readers.points import MALFORMED, Points

MAX_LINE_BYTES = 1 << 26
"""Largest JSON line, against files made to fill memory."""
MAX_FILE_BYTES = 1 << 30
"""Largest GeoJSON file: it is parsed in memory."""
_LONGEST_NUMBER = 40
"""Maximum number of digits of an integer."""
_SPACE = re.compile(r"[ \t\n\r]*")
_TIMES = ("times", "coordTimes", "coordinateProperties", *TIMES_NAMES)


class _BrokenError(ValueError):
    """The text is not JSON of the expected form."""


def _whole(text: str) -> int | float:
    """A JSON integer; Python refuses to read thousands of digits, and one record must not stop the others."""
    return int(text) if len(text) <= _LONGEST_NUMBER else float("nan")


_DECODER = json.JSONDecoder(parse_int=_whole)


@dataclass(frozen=True)
class _Record:
    """What one record says; `id` is None and `own_id` True where it is a line without an id."""

    positions: list[Any]
    is_point: bool
    id: Any
    own_id: bool
    user: Any
    times: Any


def role_value(properties: Mapping[str, Any], role: str, wanted: str | None) -> Any:
    """The value of a role in one record: of the wanted key, or of the first known one; None where there is none."""
    key = _key_of(properties, role, wanted)
    return None if key is None else properties[key]


def _key_of(properties: Mapping[str, Any], role: str, wanted: str | None) -> str | None:
    names = (wanted,) if wanted is not None else (*KNOWN_NAMES[role], *SECOND_NAMES[role])
    for name in names:
        if name in properties:
            return name
    lowered = {key.strip().lower(): key for key in reversed(list(properties))}
    for name in names:
        if name.strip().lower() in lowered:
            return lowered[name.strip().lower()]
    return None


def _record_of(value: Any, options: ReadOptions) -> _Record | None:
    """A record, or None where the object is neither a point nor a line."""
    if not isinstance(value, dict):
        return None
    properties: Any = value
    geometry: Any = None
    if value.get("type") == "Feature":
        properties, geometry = value.get("properties"), value.get("geometry")
        properties = properties if isinstance(properties, dict) else {}
    found = _positions(properties, geometry, options)
    if found is None:
        return None
    positions, is_point = found
    key = _key_of(properties, "traj_id", options.traj_id)
    times = _times(properties, options)
    return _Record(
        positions, is_point, None if key is None else properties[key],
        key is None and options.traj_id is None and not is_point,
        role_value(properties, "user", options.user), times,
    )  # fmt: skip


def _positions(properties: dict[str, Any], geometry: Any, options: ReadOptions) -> tuple[list[Any], bool] | None:
    if isinstance(geometry, dict):
        return _of_geometry(geometry)
    lon, lat = (_key_of(properties, role, getattr(options, role)) for role in ("lon", "lat"))
    if lon is not None and lat is not None:
        return [[_degree(properties[lon]), _degree(properties[lat])]], True
    names = (options.line,) if options.line is not None else LINE_NAMES
    lowered = {key.strip().lower(): key for key in reversed(list(properties))}
    for name in names:
        line = properties.get(lowered.get(name.strip().lower(), ""))
        if isinstance(line, dict):
            return _of_geometry(line)
        if isinstance(line, str):
            return _of_text(line)
        if isinstance(line, list):
            return line, False
    return None


def _of_geometry(geometry: dict[str, Any]) -> tuple[list[Any], bool] | None:
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    if not isinstance(coordinates, list):
        return None
    if kind == "Point":
        return [coordinates], True
    if kind == "LineString":
        return coordinates, False
    if kind == "MultiLineString" and all(isinstance(part, list) for part in coordinates):
        return [position for part in coordinates for position in part], False
    return None


def _of_text(text: str) -> tuple[list[Any], bool] | None:
    """A line as JSON or WKT text."""
    import shapely

    if text.strip().startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return (found, False) if isinstance(found, list) else None
    if "\0" in text:
        return None
    shape = shapely.from_wkt(text, on_invalid="ignore")
    if shape is None or shape.geom_type not in ("Point", "LineString", "MultiLineString"):
        return None
    xyzm = shapely.get_coordinates(shape, include_z=True, include_m=True)
    return xyzm.tolist(), shape.geom_type == "Point"


def _degree(value: Any) -> Any:
    """A number, or text that represents one, as a number; None for anything else."""
    if isinstance(value, str):
        try:
            return float(value) if re.fullmatch(r"\s*[-+]?[0-9.]+([eE][-+]?[0-9]+)?\s*", value) else None
        except ValueError:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _times(properties: dict[str, Any], options: ReadOptions) -> Any:
    """One time or a list of times; the parts of a list of lists are joined."""
    value: Any = None
    if options.time is None:
        for name in _TIMES:
            found = properties.get(name)
            if name == "coordinateProperties" and isinstance(found, dict):
                found = found.get("times")
            if isinstance(found, list):
                value = found
                break
    value = role_value(properties, "time", options.time) if value is None else value
    if isinstance(value, list) and value and all(isinstance(part, list) for part in value):
        return [one for part in value for one in part]
    return value


def points_of_records(values: Iterator[Any], options: ReadOptions, origin: str) -> Points:
    """The points of decoded JSON values; what is neither a point nor a line is counted as malformed."""
    records, malformed = [], 0
    for value in values:
        record = _record_of(value, options)
        malformed += record is None
        records += [] if record is None else [record]
    is_point = np.array([record.is_point for record in records], bool)
    shapes = shapes_of_lists([record.positions for record in records], is_point)
    times = row_times_of_values([record.times for record in records], options, origin)
    users = [record.user for record in records]
    # Whether there are users depends on the records, so a measurement of users always gets a user column.
    named = options.measured_unit == "user" or any(user is not None for user in users)
    points = timed_points(
        shapes, times, _labels(records), labels_of_values(users) if named else None, options.interval_s
    )
    return replace(points, lost={**points.lost, MALFORMED: malformed})


def _labels(records: list[_Record]) -> Labels:
    """One label per record; each line without an id is a trajectory of its own, different from all others."""
    given = labels_of_values([record.id for record in records])
    own = np.array([record.own_id for record in records], bool)
    first_own = 0 if given.names is None else len(given.names)
    code = np.where(own, first_own + np.arange(len(own)), given.code)
    fault = None if given.fault is None else np.where(own, 0, given.fault).astype(np.uint8)
    return Labels(code, None, fault)


def read_lines(path: Path, options: ReadOptions) -> Points:
    """The points of a file of JSON lines; a line that is not JSON is counted as malformed."""
    origin = path.name
    with open_text(path) as stream:
        return points_of_records(_decoded_lines(stream), options, origin)


def _decoded_lines(stream: Any) -> Iterator[Any]:
    while line := stream.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_LINE_BYTES)
            yield None
        elif line.strip(b" \t\r\n\x1e"):
            yield _decoded_line(line)


def _decoded_line(line: bytes) -> Any:
    try:
        return _DECODER.decode(line.decode("utf-8-sig").strip(" \t\r\n\x1e"))
    except (ValueError, RecursionError):
        return None


def read_geojson(path: Path, options: ReadOptions) -> Points:
    """The points of a GeoJSON file; one that is too large, or not a collection of features, is refused."""
    origin = path.name
    with open_text(path) as stream:
        content = stream.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise InputError(
            f"'{origin}' is larger than {MAX_FILE_BYTES >> 30} GB; convert it to GeoPackage or JSON lines first."
        )
    if content[:64].lstrip(b"\xef\xbb\xbf \t\n\r").startswith(b"["):
        raise InputError(f"'{origin}' is a JSON list; write it as JSON lines (.jsonl), one object per line.")
    others: dict[str, Any] = {}
    try:
        text = content.decode("utf-8-sig")
        del content
        points = points_of_records(_members(text, others), options, origin)
    except (ValueError, RecursionError, IndexError):
        raise InputError(f"'{origin}' is not a well-formed GeoJSON file of features.") from None
    return _reprojected(points, _crs_of(others), origin)


def _reprojected(points: Points, crs: Any, origin: str) -> Points:
    lon, lat = to_degrees(points.lon, points.lat, crs, origin)
    return replace(points, lon=lon, lat=lat)


def _crs_of(others: dict[str, Any]) -> Any:
    """The name in the `crs` member, which older GeoJSON has; None means degrees."""
    crs = others.get("crs")
    name = crs.get("properties", {}).get("name") if isinstance(crs, dict) else None
    return name if isinstance(name, str) and "CRS84" not in name else None


def _members(text: str, others: dict[str, Any]) -> Iterator[Any]:
    """The features one by one; the other members of the collection are put into `others`."""

    def skip(at: int) -> int:
        found = _SPACE.match(text, at)
        return found.end() if found else at

    def after_comma(at: int, closing: str) -> int:
        if text[at] == ",":
            return skip(at + 1)
        if text[at] != closing:
            raise _BrokenError
        return at

    at, features = skip(0), False
    if text[at] != "{":
        raise _BrokenError
    at = skip(at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = skip(at)
        if not isinstance(key, str) or text[at] != ":":
            raise _BrokenError
        at = skip(at + 1)
        if key == "features" and text[at] == "[":
            features, at = True, skip(at + 1)
            while text[at] != "]":
                value, at = _DECODER.raw_decode(text, at)
                yield value
                at = after_comma(skip(at), "]")
            at += 1
        else:
            others[key], at = _DECODER.raw_decode(text, at)
        at = after_comma(skip(at), "}")
    if not features and others.get("type") == "Feature":
        yield others
    elif not features:
        raise _BrokenError
    if text[skip(at + 1) :]:
        raise _BrokenError

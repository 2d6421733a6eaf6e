"""Public road maps: Parquet, GeoJSON lines and, with an extra, OpenStreetMap files.

Privacy: free (a road map is public data).
"""

import json
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.roads import ROAD_CLASSES, RoadMap, clip_roads, roads_digest
from wayveil.errors import InputError
from wayveil.io.atomic import atomic_path
from wayveil.io.inputs import read_text
from wayveil.io.parquet_files import opened, refuse_large_pages, values_in
from wayveil.io.road_lines import (
    MOST_TEXT_BYTES,
    MOST_VERTICES,
    check_degrees,
    direction,
    names_or_none,
    refuse_large_file,
    road_class_index,
    roads_from_lines,
    speed_kmh,
    street_name,
)
from wayveil.io.roads_osm import read_graphml, read_pbf

__all__ = ["clip_roads", "read_roads", "road_class_index", "roads_digest", "roads_from_lines", "write_roads"]

READABLE = ".parquet, .geojson, .json, .pbf or .graphml"

Roads = RoadMap | str | os.PathLike[str] | None
"""A road map, its file, or None."""


def read_roads(path: str | Path) -> RoadMap:
    """Read a road map; the extension selects the format (Parquet, GeoJSON lines, OSM .pbf, GraphML).

    Parameters
    ----------
    path
        A .parquet, .geojson (lines), .pbf (OpenStreetMap) or .graphml file.

    Examples
    --------
    >>> import wayveil
    >>> roads = wayveil.read_roads("roads.parquet")  # doctest: +SKIP

    Privacy
    -------
    Free (the map is public).
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no road map '{path.name}'; give a {READABLE} file.")
    ending = path.suffix.lower()
    if ending == ".parquet":
        return _read_parquet(path)
    if ending in (".geojson", ".json"):
        return _read_geojson(path)
    if ending == ".pbf":
        return read_pbf(path)
    if ending == ".graphml":
        return read_graphml(path)
    raise InputError(f"A road map cannot be read from '{path.name}'; give a {READABLE} file.")


def roads_of(roads: Roads) -> RoadMap | None:
    """The road map, read from its file if a path is given.

    Privacy: free (the map is public).
    """
    if roads is None or isinstance(roads, RoadMap):
        return roads
    if not isinstance(roads, str | os.PathLike):
        raise InputError("roads= must be a road map (wayveil.read_roads) or the path of one.")
    return read_roads(os.fspath(roads))


def write_roads(roads: RoadMap, path: str | Path) -> None:
    """Write a road map to .parquet or .geojson; the file is complete or absent.

    Privacy: free (the map is public).
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending == ".parquet":
        import pyarrow.parquet as pq

        table = _to_table(roads)
        with atomic_path(path, private=False) as part:
            pq.write_table(table, part, compression="zstd")
    elif ending in (".geojson", ".json"):
        text = json.dumps(_to_geojson(roads), allow_nan=False)
        with atomic_path(path, private=False) as part:
            part.write_text(text, encoding="utf-8")
    else:
        raise InputError(f"A road map cannot be written to '{path.name}'; use the extension .parquet or .geojson.")


def _read_parquet(path: Path) -> RoadMap:
    import pyarrow as pa
    import pyarrow.compute as pc

    with opened(str(path)) as parquet:
        names = set(parquet.schema_arrow.names)
        if missing := {"lon", "lat"} - names:
            raise InputError(
                f"Road map '{path.name}' has no column {' and '.join(sorted(missing))}; the columns are edge_id, "
                "oneway, highway, maxspeed_kmh, and the lists lon and lat."
            )
        wanted = [name for name in ("oneway", "highway", "maxspeed_kmh", "lon", "lat", "name") if name in names]
        refuse_large_pages(str(path), wanted, path.name)
        if max(values_in(str(path), name, path.name) for name in wanted) > MOST_VERTICES:
            raise InputError(f"Road map '{path.name}' has more than {MOST_VERTICES:,} vertices; clip it to the scope.")
        table = parquet.read(columns=wanted, use_threads=False).combine_chunks()
    if len(table.column_names) != len(set(table.column_names)):
        raise InputError(f"Road map '{path.name}' has two columns with the same name; keep one of them.")
    kinds = (table.schema.field("lon").type, table.schema.field("lat").type)
    if not all(pa.types.is_list(kind) or pa.types.is_large_list(kind) for kind in kinds):
        raise InputError(f"Road map '{path.name}': lon and lat must be lists, one list of degrees for each road.")
    counts, lat_counts = (pc.fill_null(pc.list_value_length(table[name]), 0).to_numpy() for name in ("lon", "lat"))
    if not np.array_equal(counts, lat_counts):
        raise InputError(f"Road map '{path.name}' has a road with different numbers of longitudes and latitudes.")
    keep = counts >= 2
    if not keep.any():
        raise InputError(f"Road map '{path.name}' has no lines; it needs at least one road of two points.")
    table = table.filter(pa.array(keep))
    try:
        lon, lat = (pc.list_flatten(table[name]).cast(pa.float64()).to_numpy() for name in ("lon", "lat"))
    except pa.ArrowException:
        raise InputError(f"Road map '{path.name}': lon and lat must be lists of degrees, as numbers.") from None
    check_degrees(lon, lat, path.name)
    offsets = ragged.offsets_of(counts[keep])
    road_class = _by_distinct(table, "highway", road_class_index, len(ROAD_CLASSES) - 1).astype(np.int8)
    flags = _by_distinct(table, "oneway", lambda value: 2 if direction(value)[1] else direction(value)[0], -1)
    speeds = _by_distinct(table, "maxspeed_kmh", speed_kmh, math.nan)
    if (reverse := flags == 2).any():
        lon, lat = (_reversed_lines(column, offsets, reverse) for column in (lon, lat))
        flags = np.where(reverse, 1, flags)
    named = names_or_none(_names_of(table)) if "name" in table.column_names else None
    return RoadMap(offsets, lon, lat, road_class, flags.astype(np.int8), speeds, named)


def _names_of(table: Any) -> list[str]:
    return [street_name(value) for value in _python_values(table["name"], "name")]


def _by_distinct(table: Any, name: str, convert: Any, absent: float) -> NDArray[np.float64]:
    """A column converted by `convert`, which is called once for each distinct value."""
    if name not in table.column_names:
        return np.full(table.num_rows, absent, float)
    import pyarrow as pa

    column = table[name].combine_chunks()
    try:
        coded = column.dictionary_encode()
    except pa.ArrowException:  # lists, such as merged tags, and other nested values
        nested = _python_values(column, name)
        return np.array([absent if value is None else float(convert(value)) for value in nested], float)
    values = np.array([float(convert(value)) for value in _python_values(coded.dictionary, name)] + [absent], float)
    result: NDArray[np.float64] = values[
        coded.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False).astype(np.int64)
    ]
    return result


def _python_values(column: Any, name: str) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # for example dates outside Python's calendar
        raise InputError(f"The type of the road map's column '{name}' cannot be read; remove the column.") from None


def _reversed_lines(
    column: NDArray[np.float64], offsets: NDArray[np.int64], which: NDArray[np.bool_]
) -> NDArray[np.float64]:
    road = ragged.owners(np.diff(offsets))
    place = np.arange(len(column))
    mirrored = offsets[road] + offsets[road + 1] - 1 - place
    return column[np.where(which[road], mirrored, place)]


def _read_geojson(path: Path) -> RoadMap:
    refuse_large_file(path)
    try:
        content = json.loads(read_text(path, MOST_TEXT_BYTES, "utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        raise InputError(f"Road map '{path.name}' is not readable GeoJSON.") from None
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list):
        raise InputError(f"Road map '{path.name}' is not a GeoJSON FeatureCollection.")
    if "crs" in content and not re.search(r"CRS84|4326", json.dumps(content["crs"])):
        raise InputError(f"Road map '{path.name}' is in another projection; reproject it to EPSG:4326 (WGS 84).")
    return roads_from_lines(_lines_of(features, path.name), path.name)


def _lines_of(features: list[Any], origin: str) -> Iterable[tuple[Any, Any, Any, Any, Any]]:
    for feature in features:
        tags, geometry = _tags(feature), feature.get("geometry") if isinstance(feature, dict) else None
        road_class = _first(tags, "highway", "class", "fclass", "road_class")
        if tags.get("rule") is not None and road_class is None:
            raise InputError(f"'{origin}' contains traffic rules, not roads; pass it with rules=.")
        if not isinstance(geometry, dict):
            continue
        about = (
            road_class,
            _first(tags, "oneway", "one_way"),
            _first(tags, "maxspeed_kmh", "maxspeed", "speed_limit"),
            _first(tags, "name"),
        )
        coordinates = geometry.get("coordinates") or []
        if not isinstance(coordinates, list):
            raise InputError(f"Road map '{origin}' has a line whose coordinates are not a list.")
        if geometry.get("type") == "LineString":
            yield coordinates, *about
        elif geometry.get("type") == "MultiLineString":
            for line in coordinates:
                yield line, *about


def _tags(feature: Any) -> dict[str, Any]:
    """The properties of a feature with lower-case names, because shapefiles and databases write HIGHWAY."""
    given = feature.get("properties") if isinstance(feature, dict) else None
    if not isinstance(given, dict):
        return {}
    known = {key: value for key, value in given.items() if value is not None}
    return {key.strip().lower(): value for key, value in known.items()} | known


def _first(tags: dict[str, Any], *names: str) -> Any:
    return next((tags[name] for name in names if tags.get(name) is not None), None)


def _to_table(roads: RoadMap) -> Any:
    import pyarrow as pa

    offsets = pa.array(np.asarray(roads.offsets, np.int32))
    unknown_way, unknown_speed = np.asarray(roads.oneway) < 0, np.isnan(roads.maxspeed_kmh)
    unknown_class = np.asarray(roads.road_class) == len(ROAD_CLASSES) - 1
    names = {} if roads.name is None else {"name": pa.array([name or None for name in roads.name], pa.string())}
    return pa.table(
        {
            "edge_id": pa.array(np.arange(len(roads), dtype=np.int32)),
            "oneway": pa.array(np.asarray(roads.oneway) == 1, mask=unknown_way),
            "highway": pa.array(np.array(ROAD_CLASSES, object)[roads.road_class], pa.string(), mask=unknown_class),
            "maxspeed_kmh": pa.array(np.asarray(roads.maxspeed_kmh, float), mask=unknown_speed),
            "lon": pa.ListArray.from_arrays(offsets, pa.array(np.asarray(roads.lon, float))),
            "lat": pa.ListArray.from_arrays(offsets, pa.array(np.asarray(roads.lat, float))),
            **names,
        }
    )


def _to_geojson(roads: RoadMap) -> dict[str, Any]:
    features = []
    oneway_tag = {1: "yes", 0: "no"}
    for i in range(len(roads)):
        at = slice(roads.offsets[i], roads.offsets[i + 1])
        tags: dict[str, Any] = {"highway": ROAD_CLASSES[roads.road_class[i]]}
        if int(roads.oneway[i]) in oneway_tag:
            tags["oneway"] = oneway_tag[int(roads.oneway[i])]
        if not math.isnan(roads.maxspeed_kmh[i]):
            tags["maxspeed"] = float(roads.maxspeed_kmh[i])
        if roads.name is not None and roads.name[i]:
            tags["name"] = roads.name[i]
        line = np.column_stack([roads.lon[at], roads.lat[at]]).tolist()
        features.append(
            {"type": "Feature", "properties": tags, "geometry": {"type": "LineString", "coordinates": line}}
        )
    return {"type": "FeatureCollection", "features": features}

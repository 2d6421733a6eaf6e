"""OpenStreetMap files (.osm.pbf, and GraphML as written by OSMnx), with the extra `wayveil[osm]`.

Privacy: free (a road map is public data).
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from wayveil.core.optional import import_optional
from wayveil.core.roads import RoadMap
from wayveil.errors import InputError
from wayveil.io.road_lines import refuse_large_file, roads_from_lines


def read_pbf(path: Path) -> RoadMap:
    """Every road of an .osm.pbf extract that can be driven or walked, with its class, direction and speed."""
    pyrosm = import_optional("pyrosm", f"Reading '{path.name}'")
    try:
        frame = pyrosm.OSM(str(path)).get_network(network_type="all")
    except Exception:  # the reader raises many kinds of errors; in any case the file is the reason
        raise InputError(f"Road map '{path.name}' is not a readable .pbf extract.") from None
    if frame is None or len(frame) == 0:
        raise InputError(f"Road map '{path.name}' has no roads.")
    empty = [None] * len(frame)
    tags = [frame[name].tolist() if name in frame else empty for name in ("highway", "oneway", "maxspeed", "name")]
    return roads_from_lines(_parts(zip(frame.geometry, *tags)), path.name)


def _parts(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, Any, Any, Any, Any]]:
    for geometry, *tags in rows:
        for line in getattr(geometry, "geoms", [geometry]):
            yield list(line.coords), *tags


def read_graphml(path: Path) -> RoadMap:
    """The edges of a GraphML graph whose nodes carry `x` and `y` in degrees, as OSMnx saves it.

    A directed graph holds a two-way street as two edges; only one of them becomes a road.
    """
    networkx = import_optional("networkx", f"Reading '{path.name}'")
    refuse_large_file(path)
    try:
        graph = networkx.read_graphml(path)
        places = {node: (float(data["x"]), float(data["y"])) for node, data in graph.nodes(data=True)}
    except KeyError:
        raise InputError(f"The nodes of road map '{path.name}' need x and y in degrees, as saved by OSMnx.") from None
    except Exception:
        raise InputError(f"Road map '{path.name}' is not readable GraphML.") from None
    return roads_from_lines(_edges(graph, places), path.name)


def _edges(graph: Any, places: dict[Any, tuple[float, float]]) -> Iterator[tuple[Any, Any, Any, Any, Any]]:
    seen = set()
    for start, end, data in graph.edges(data=True):
        line = _line(data.get("geometry")) or [places[start], places[end]]
        oneway = data.get("oneway", "no" if not graph.is_directed() else None)
        if str(oneway).lower() not in ("true", "yes", "1"):
            directions = frozenset([tuple(line), tuple(reversed(line))])
            if directions in seen:
                continue
            seen.add(directions)
        yield line, _listed(data.get("highway")), oneway, _listed(data.get("maxspeed")), _listed(data.get("name"))


def _line(wkt: Any) -> list[tuple[float, float]] | None:
    if not wkt:
        return None
    import shapely

    geometry = wkt if isinstance(wkt, shapely.Geometry) else shapely.from_wkt(str(wkt), on_invalid="ignore")
    return None if geometry is None or geometry.geom_type != "LineString" else [place[:2] for place in geometry.coords]


def _listed(value: Any) -> Any:
    """OSMnx saves merged tags as the text of a Python list."""
    if isinstance(value, str) and value.startswith("["):
        try:
            return ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    return value

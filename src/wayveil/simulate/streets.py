"""From a plan to streets: lines split at crossings, nodes, classes, directions, speeds."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import Polylines, lengths
from wayveil.core.roads import ROAD_CLASSES, RoadMap
from wayveil.core.scope import Scope
from wayveil.simulate.plan import District, Plan, Style
from wayveil.simulate.street_names import street_names

LIMIT_KMH = {"motorway": 80.0, "primary": 60.0, "secondary": 50.0, "tertiary": 50.0, "residential": 30.0}
"""The speed limit of each class of street, as the map states it."""

_RIVER_M, _QUAY_M, _CARRIAGEWAYS_M = 110.0, 95.0, 44.0
"""Widths of the river, of the strip to its quays and of the motorway."""
_JOIN_M = 22.0
"""Distance within which ends of streets are joined."""


@dataclass(frozen=True, eq=False)
class Streets:
    """A planar graph: edge e goes from node `start[e]` to node `end[e]` along its own polyline, in metres."""

    node_xy: NDArray[np.float64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    offsets: NDArray[np.int64]
    xy: NDArray[np.float64]
    road_class: NDArray[np.int8]
    oneway: NDArray[np.bool_]
    length_m: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.start)


def draw_streets(plan: Plan, style: Style, rng: np.random.Generator) -> Streets:
    """All streets of a plan, split at their crossings; every junction can be reached from every other."""
    import shapely

    lines: list[tuple[Any, str, bool]] = []
    for district in plan.districts:
        lines += _district_lines(district, style, rng)
    box = shapely.box(0, 0, plan.width_m, plan.height_m)
    ring = None
    if plan.motorway is not None:
        lines = _outside(plan.motorway.buffer(70), lines)
        ring = plan.motorway.buffer(_CARRIAGEWAYS_M / 2, join_style="mitre").boundary.intersection(box)
    if plan.river is not None:
        lines = _outside(plan.river.buffer(_RIVER_M / 2 + 2), lines)
        for side in (-_QUAY_M, _QUAY_M):
            lines.append((plan.river.offset_curve(side).intersection(box.buffer(-20)), "tertiary", False))
    lines += [(plan.primary, "primary", False), (_with_bridges(plan), "secondary", False)]
    if ring is not None:
        lines.append((ring, "motorway", True))
    return _finish(*_cut(lines), plan, rng)


def _outside(area: Any, lines: list[tuple[Any, str, bool]]) -> list[tuple[Any, str, bool]]:
    """The parts of the lines outside an area."""
    cut = ((line.difference(area), name, one_way) for line, name, one_way in lines)
    return [part for part in cut if not part[0].is_empty]


def _with_bridges(plan: Plan) -> Any:
    """Secondary roads, without river crossings that are too close to another bridge."""
    import shapely

    if plan.river is None:
        return plan.secondary
    bridges = [plan.river.project(point) for point in _points(plan.primary.intersection(plan.river))]
    blocked = []
    for point in _points(plan.secondary.intersection(plan.river)):
        at = plan.river.project(point)
        if any(abs(at - other) < 900 for other in bridges):
            blocked.append(point.buffer(_RIVER_M))
        else:
            bridges.append(at)
    return plan.secondary.difference(shapely.union_all(blocked)) if blocked else plan.secondary


def _points(geometry: Any) -> list[Any]:
    parts = getattr(geometry, "geoms", [geometry])
    return sorted((part for part in parts if part.geom_type == "Point"), key=lambda point: (point.x, point.y))


def _district_lines(district: District, style: Style, rng: np.random.Generator) -> list[tuple[Any, str, bool]]:
    """Two families of parallel lines inside a district; every fourth is a collector, some small ones are one-way."""
    import shapely

    if district.use == "green":
        return []
    middle = np.array([district.polygon.centroid.x, district.polygon.centroid.y])
    reach = math.sqrt(district.polygon.area) * 1.6
    regular = district.irregularity < 0.5 and district.use in ("centre", "homes")
    one_way = regular and rng.random() < 0.4 + style.oneway_share
    found = []
    for family, spacing in enumerate((district.along_m, district.across_m)):
        spacing = spacing * 3.2 if district.use == "park" else spacing
        angle = district.angle + family * math.pi / 2
        ahead, aside = np.array([math.cos(angle), math.sin(angle)]), np.array([-math.sin(angle), math.cos(angle)])
        phase, flip = rng.uniform(-0.5, 0.5), int(rng.random() < 0.5)
        for k in range(-int(reach / spacing), int(reach / spacing) + 1):
            jitter = rng.normal(0, 0.12 * district.irregularity)
            at = middle + aside * (k + phase + jitter) * spacing
            sign = 1 if (k + flip) % 2 else -1  # neighbouring one-way streets have opposite directions
            line = shapely.linestrings([at - sign * reach * ahead, at + sign * reach * ahead])
            inside = line.intersection(district.polygon)
            collector = k % 4 == 0 and district.use != "park"
            if inside.is_empty or inside.length < 0.6 * spacing:
                continue
            small_one_way = one_way and not collector and rng.random() < 0.9 * style.oneway_share / 0.45
            found.append((inside, "tertiary" if collector else "residential", small_one_way))
    return found


def _cut(lines: list[tuple[Any, str, bool]]) -> tuple[list[NDArray[np.float64]], list[str], list[bool]]:
    """Cut all lines at their crossings; a piece takes the class and direction of the line it lies on."""
    import shapely

    parts, names, one_ways = [], [], []
    for geometry, name, one_way in lines:
        for part in getattr(geometry, "geoms", [geometry]):
            if part.geom_type == "LineString" and part.length > 1:
                parts.append(part)
                names.append(name)
                one_ways.append(one_way)
    noded = shapely.union_all(parts)
    pieces = np.array([piece for piece in noded.geoms if piece.length > 0.5], dtype=object)
    middles = shapely.line_interpolate_point(pieces, 0.5, normalized=True)
    piece_of, source = shapely.STRtree(parts).query_nearest(middles, all_matches=False)
    owner = np.zeros(len(pieces), np.int64)
    owner[piece_of] = source
    found = []
    for piece, which in zip(pieces, owner):
        line = np.asarray(piece.coords)
        source_line = parts[which]
        # the union may reverse a piece; a one-way street keeps the direction in which it was drawn
        begin, end = (source_line.project(shapely.Point(line[at])) for at in (0, -1))
        if one_ways[which] and begin > end:
            line = line[::-1]
        found.append(line)
    return found, [names[which] for which in owner], [one_ways[which] for which in owner]


def _finish(
    lines: list[NDArray[np.float64]], names: list[str], one_ways: list[bool], plan: Plan, rng: np.random.Generator
) -> Streets:
    """Join close ends to nodes, drop lanes of irregular districts at random, warp, and keep the connected part."""
    ends = np.array([[line[0], line[-1]] for line in lines])
    node_xy, code = _join(ends.reshape(-1, 2))
    start, end = code.reshape(-1, 2).T
    road_class = np.array([ROAD_CLASSES.index(name) for name in names], np.int8)
    oneway = np.array(one_ways)
    keep = (start != end) & (rng.random(len(lines)) > _gaps(lines, road_class, plan))
    # Keep the widest of several streets between the same two junctions.
    order = np.argsort(road_class, kind="stable")
    pair = np.column_stack([np.minimum(start, end), np.maximum(start, end)])[order]
    single = np.zeros(len(lines), bool)
    single[order[np.unique(pair, axis=0, return_index=True)[1]]] = True
    keep &= single
    keep, oneway = _connected(len(node_xy), start, end, oneway, keep)
    parts = [_denser(np.vstack([node_xy[start[e]], lines[e][1:-1], node_xy[end[e]]])) for e in np.flatnonzero(keep)]
    used, renamed = np.unique(np.r_[start[keep], end[keep]], return_inverse=True)
    start, end = renamed[: keep.sum()], renamed[keep.sum() :]
    xy = plan.warp(np.concatenate(parts))
    offsets = ragged.offsets_of([len(part) for part in parts])
    length = lengths(Polylines(offsets, xy[:, 0], xy[:, 1]))
    nodes = plan.warp(node_xy[used])
    return Streets(nodes, start, end, offsets, xy, road_class[keep], oneway[keep], length)


def _join(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Ends within `_JOIN_M` of each other become one junction, at their mean."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    places, code = np.unique(np.round(points, 1), axis=0, return_inverse=True)
    pairs = cKDTree(places).query_pairs(_JOIN_M, output_type="ndarray")
    n = len(places)
    graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (n, n))
    count, label = connected_components(graph, directed=False)
    size = np.bincount(label, minlength=count)
    means = np.column_stack([np.bincount(label, places[:, axis], count) / size for axis in (0, 1)])
    return means, label[code.reshape(-1)].astype(np.int64)


def _gaps(lines: list[NDArray[np.float64]], road_class: NDArray[np.int8], plan: Plan) -> NDArray[np.float64]:
    """Probability that a piece is dropped: lanes of irregular districts only, never a main road."""
    import shapely

    middles = shapely.points(np.array([line.mean(axis=0) for line in lines]))
    line_of, district_of = shapely.STRtree([district.polygon for district in plan.districts]).query(
        middles, predicate="intersects"
    )
    irregularity = np.zeros(len(lines))
    irregularity[line_of] = np.array([0.03 + 0.27 * district.irregularity for district in plan.districts])[district_of]
    return np.where(road_class >= ROAD_CLASSES.index("residential"), irregularity, 0.0)


def _connected(
    nodes: int, start: NDArray[np.int64], end: NDArray[np.int64], oneway: NDArray[np.bool_], keep: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Make one-way streets that lead nowhere two-way, then keep the largest strongly connected part."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    drawn_oneway = oneway.copy()
    for attempt in range(2):
        both = keep & ~oneway
        a, b = np.r_[start[keep], end[both]], np.r_[end[keep], start[both]]
        graph = coo_matrix((np.ones(len(a)), (a, b)), (nodes, nodes))
        _, label = connected_components(graph, directed=True, connection="strong")
        largest = label == np.bincount(label).argmax()
        inside = largest[start] & largest[end]
        if attempt == 0:
            oneway = drawn_oneway & inside
    return keep & inside, oneway


def _denser(line: NDArray[np.float64], step_m: float = 90.0) -> NDArray[np.float64]:
    """Add vertices to long lines, so that the warp bends them and does not only move their ends."""
    parts = []
    for a, b in itertools.pairwise(line):
        k = max(1, math.ceil(math.hypot(*(b - a)) / step_m))
        parts.append(a + (b - a) * (np.arange(k) / k)[:, None])
    return np.vstack([*parts, line[-1:]])


def to_roadmap(streets: Streets, scope: Scope) -> RoadMap:
    """The streets as a public road map, in degrees, with names."""
    first, last = streets.offsets[:-1], streets.offsets[1:] - 1
    steps = (streets.xy[first + 1] - streets.xy[first], streets.xy[last] - streets.xy[last - 1])
    lon, lat = scope.to_degrees(streets.xy[:, 0], streets.xy[:, 1])
    limits = np.array([LIMIT_KMH.get(name, np.nan) for name in ROAD_CLASSES])
    return RoadMap(
        streets.offsets.astype(np.int64), np.round(lon, 7), np.round(lat, 7), streets.road_class,
        streets.oneway.astype(np.int8), limits[streets.road_class],
        street_names(streets.start, streets.end, *steps, streets.road_class),
    )  # fmt: skip

"""A road map as a network for routes: roads are split at junctions, joined to chains, and cut where they are long.

Nodes are junctions, changes of road class or direction, and points every few cells on long roads, so that every trip
has a node near its ends. The network depends only on the map and the grid, and is cached (`road_cache`).

Privacy: free (the map is public).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import Grid
from wayveil.core.roads import ROAD_CLASSES, RoadMap, clip_roads
from wayveil.core.scope import Scope
from wayveil.synthesis.routes.road_features import cover_side, uncovered_blocks
from wayveil.synthesis.routes.road_shapes import along, densified, simplified
from wayveil.synthesis.routes.settings import ROADS

_MINOR = np.array([name in ("service", "path") for name in ROAD_CLASSES])


@dataclass(frozen=True, eq=False)
class RoadNetwork:
    """Roads between nodes; road e has the vertices `offsets[e]:offsets[e + 1]`, including the nodes at its ends."""

    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    oneway: NDArray[np.bool_]
    road_class: NDArray[np.int8]
    offsets: NDArray[np.int64]
    vertex_x_m: NDArray[np.float64]
    vertex_y_m: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.tail)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Polylines between places (merged vertices); piece p has the vertices `offsets[p]:offsets[p + 1]`."""

    offsets: NDArray[np.int64]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    oneway: NDArray[np.bool_]
    road_class: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.begin)


def road_network(roadmap: RoadMap, grid: Grid, scope: Scope) -> RoadNetwork:
    """The roads inside the scope that routes may use; service roads and paths only where there are no other roads.

    Privacy: free (the map is public).
    """
    roads = clip_roads(roadmap, scope)
    x, y = scope.to_metres(roads.lon, roads.lat)
    roads, x, y = _without_minor(roads, x, y, grid)
    pieces = _join_chains(_split(roads, x, y))
    pieces = _join_chains(_without_stubs(_merge_junctions(pieces)))
    return _cut(pieces, grid)


def _without_minor(
    roads: RoadMap, x: NDArray[np.float64], y: NDArray[np.float64], grid: Grid
) -> tuple[RoadMap, NDArray[np.float64], NDArray[np.float64]]:
    """Drop service roads and paths, except in blocks that no other road covers."""
    minor = _MINOR[roads.road_class]
    if not minor.any():
        return roads, x, y
    count = np.diff(roads.offsets)
    of_main = np.repeat(~minor, count)
    bare = uncovered_blocks(x[of_main], y[of_main], grid)
    side_m = cover_side(grid) * grid.cell_m
    column = np.clip((x // side_m).astype(np.int64), 0, bare.shape[1] - 1)
    row = np.clip((y // side_m).astype(np.int64), 0, bare.shape[0] - 1)
    keep = ~minor | np.logical_or.reduceat(bare[row, column], roads.offsets[:-1])
    vertex = np.repeat(keep, count)
    kept = RoadMap(
        ragged.offsets_of(count[keep]),
        roads.lon[vertex],
        roads.lat[vertex],
        roads.road_class[keep],
        roads.oneway[keep],
        roads.maxspeed_kmh[keep],
    )
    return kept, x[vertex], y[vertex]


def _places(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Merge vertices within a metre of each other; returns the place of each vertex, and the positions of places."""
    from scipy.spatial import cKDTree

    # One integer for each rounded position.
    key = np.rint(x / ROADS.key_m).astype(np.int64) * (1 << 31) + np.rint(y / ROADS.key_m).astype(np.int64)
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    pairs = cKDTree(np.c_[x[first], y[first]]).query_pairs(ROADS.snap_m, output_type="ndarray")
    merged = _connected(pairs[:, 0], pairs[:, 1], len(first))
    representative = np.zeros(merged.max() + 1, np.int64)
    representative[merged[::-1]] = first[::-1]
    return merged[place], x[representative], y[representative]


def _connected(a: NDArray[np.int64], b: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Connected component of each of `size` nodes, with edges between a[i] and b[i]."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    links = coo_matrix((np.ones(len(a), np.int8), (a, b)), shape=(size, size))
    result: NDArray[np.int64] = connected_components(links, directed=False)[1].astype(np.int64)
    return result


def _split(roads: RoadMap, x: NDArray[np.float64], y: NDArray[np.float64]) -> _Pieces:
    """Cut roads at every place where a road ends, and where roads pass more than once."""
    if len(roads) == 0:
        none = np.zeros(0, np.int64)
        return _Pieces(np.zeros(1, np.int64), x, y, none, none, none.astype(bool), none.astype(np.int8))
    place, place_x, place_y = _places(x, y)
    owner = ragged.owners(np.diff(roads.offsets))
    repeated = np.r_[False, (place[1:] == place[:-1]) & (owner[1:] == owner[:-1])]
    owner, at = owner[~repeated], place[~repeated]
    is_end = np.r_[True, owner[1:] != owner[:-1]] | np.r_[owner[1:] != owner[:-1], True]
    node = np.bincount(at, minlength=len(place_x)) > 1
    node[at[is_end]] = True
    cut = np.flatnonzero(node[at])
    same = owner[cut[1:]] == owner[cut[:-1]]
    begin, end = cut[:-1][same], cut[1:][same]
    offsets, position = _ranges(begin, end - begin + 1)
    road = owner[begin]
    at_vertex = at[position]
    return _Pieces(
        offsets, place_x[at_vertex], place_y[at_vertex], at[begin], at[end],
        roads.oneway[road] == 1, roads.road_class[road],
    )  # fmt: skip


def _ranges(begin: NDArray[np.int64], length: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets, and the concatenation of begin[i], begin[i] + 1, … (length[i] of them)."""
    offsets = ragged.offsets_of(length)
    return offsets, np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], length)


def _take(pieces: _Pieces, keep: NDArray[np.bool_]) -> _Pieces:
    offsets, vertex = ragged.take(pieces.offsets, np.flatnonzero(keep))
    return _Pieces(
        offsets, pieces.x_m[vertex], pieces.y_m[vertex], pieces.begin[keep], pieces.end[keep],
        pieces.oneway[keep], pieces.road_class[keep],
    )  # fmt: skip


def _merge_junctions(pieces: _Pieces) -> _Pieces:
    """Merge places that belong to one junction: both sides of a divided road, turning lanes."""
    if len(pieces) == 0:
        return pieces
    size = int(max(pieces.begin.max(), pieces.end.max())) + 1
    x, y = np.zeros(size), np.zeros(size)
    x[pieces.begin], y[pieces.begin] = pieces.x_m[pieces.offsets[:-1]], pieces.y_m[pieces.offsets[:-1]]
    x[pieces.end], y[pieces.end] = pieces.x_m[pieces.offsets[1:] - 1], pieces.y_m[pieces.offsets[1:] - 1]
    short = _lengths(pieces) < ROADS.junction_m
    part = _connected(pieces.begin[short], pieces.end[short], size)
    # A long chain of short pieces is a street, not a junction. So places are merged only within squares.
    row, column = (np.floor(v / (2 * ROADS.junction_m)).astype(np.int64) for v in (y, x))
    _, merged = np.unique(np.stack([part, row, column], axis=1), axis=0, return_inverse=True)
    merged = merged.ravel()
    degree = np.bincount(np.r_[pieces.begin, pieces.end], minlength=size)
    order = np.lexsort((-degree, merged))
    centre = order[np.r_[True, merged[order][1:] != merged[order][:-1]]]  # the place where most roads meet
    begin, end = merged[pieces.begin], merged[pieces.end]
    moved_x, moved_y = pieces.x_m.copy(), pieces.y_m.copy()
    moved_x[pieces.offsets[:-1]], moved_y[pieces.offsets[:-1]] = x[centre[begin]], y[centre[begin]]
    moved_x[pieces.offsets[1:] - 1], moved_y[pieces.offsets[1:] - 1] = x[centre[end]], y[centre[end]]
    moved = _Pieces(pieces.offsets, moved_x, moved_y, begin, end, pieces.oneway, pieces.road_class)
    # Loops at one junction are dropped, unless they are long enough to be streets.
    return _take(moved, (begin != end) | (_lengths(moved) > 4 * ROADS.junction_m))


def _without_stubs(pieces: _Pieces) -> _Pieces:
    """Remove short dead ends; a trip that starts there uses the nearest street."""
    if len(pieces) == 0:
        return pieces
    degree = np.bincount(np.r_[pieces.begin, pieces.end])
    dead = (degree[pieces.begin] == 1) != (degree[pieces.end] == 1)
    return _take(pieces, ~(dead & (_lengths(pieces) < ROADS.stub_m)))


def _lengths(pieces: _Pieces) -> NDArray[np.float64]:
    return along(pieces.offsets, pieces.x_m, pieces.y_m)[pieces.offsets[1:] - 1]


def _join_chains(pieces: _Pieces) -> _Pieces:
    """Join consecutive pieces that meet without a junction.

    Piece p has two halves: 2p at its beginning and 2p + 1 at its end. Where exactly two halves meet, of the same class
    and with compatible directions, the chain continues from one to the other.
    """
    if len(pieces) == 0:
        return pieces
    half_place = np.stack([pieces.begin, pieces.end], axis=1).ravel()
    order = np.argsort(half_place, kind="stable")
    pair = np.flatnonzero(np.bincount(half_place)[half_place[order]] == 2)
    a, b = order[pair[0::2]], order[pair[1::2]]
    fits = (a // 2 != b // 2) & (pieces.road_class[a // 2] == pieces.road_class[b // 2])
    fits &= pieces.oneway[a // 2] == pieces.oneway[b // 2]
    fits &= ~pieces.oneway[a // 2] | (a % 2 != b % 2)
    onward = np.full(2 * len(pieces), -1, np.int64)
    onward[a[fits]], onward[b[fits]] = b[fits], a[fits]
    _break_rings(onward)
    half, first = _walk_chains(onward, pieces.oneway)

    piece = half // 2
    size = np.diff(pieces.offsets)[piece]
    skip = (~first).astype(np.int64)  # the first vertex of a later piece repeats the last one of the piece before it
    total, rank = _ranges(skip, size - skip)
    length = np.diff(total)
    forward = np.repeat(half % 2 == 0, length)
    source = np.repeat(pieces.offsets[:-1][piece], length) + np.where(forward, rank, np.repeat(size, length) - 1 - rank)
    begins = np.flatnonzero(first)
    last = np.r_[begins[1:], len(half)] - 1
    return _Pieces(
        np.r_[total[begins], total[-1]], pieces.x_m[source], pieces.y_m[source], half_place[half[begins]],
        half_place[half[last] ^ 1], pieces.oneway[piece[begins]], pieces.road_class[piece[begins]],
    )  # fmt: skip


def _walk_chains(onward: NDArray[np.int64], oneway: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For the pieces of all chains in order: the half at which each is entered, and whether it is the first."""
    start = np.flatnonzero(onward < 0)
    start = start[~(oneway[start // 2] & (start % 2 == 1))]  # a one-way chain is followed in its direction
    active, current, last = np.arange(len(start)), start, start.copy()
    visits = []
    while len(active):
        visits.append((active, current))
        last[active] = current ^ 1
        ahead = onward[current ^ 1]
        active, current = active[ahead >= 0], ahead[ahead >= 0]
    keep = (start <= last) | oneway[start // 2]  # a two-way chain was followed from both ends
    step = np.concatenate([np.full(len(walker), k) for k, (walker, _) in enumerate(visits)])
    chain, half = (np.concatenate([visit[k] for visit in visits]) for k in (0, 1))
    wanted = np.flatnonzero(keep[chain])
    order = wanted[np.lexsort((step[wanted], chain[wanted]))]
    return half[order], step[order] == 0


def _break_rings(onward: NDArray[np.int64]) -> None:
    """Remove one link of each ring without a junction, so that it has a beginning; in place."""
    linked = np.flatnonzero(onward >= 0)
    label = _connected(linked // 2, onward[linked] // 2, len(onward) // 2)
    closed = np.ones(label.max() + 1, bool)
    closed[label[np.flatnonzero(onward < 0) // 2]] = False
    piece = np.flatnonzero(closed[label])
    _, first = np.unique(label[piece], return_index=True)
    half = 2 * piece[first]
    onward[onward[half]] = -1
    onward[half] = -1


def _cut(pieces: _Pieces, grid: Grid) -> RoadNetwork:
    """Simplify the chains, add a vertex at least every 1.2 cells, and cut them to about four cells or less."""
    offsets, x, y = simplified(pieces.offsets, pieces.x_m, pieces.y_m)
    offsets, x, y = densified(offsets, x, y, ROADS.vertex_cells * grid.cell_m)
    owner = ragged.owners(np.diff(offsets))
    distance = along(offsets, x, y)
    total = distance[offsets[1:] - 1]
    closed = pieces.begin == pieces.end
    parts = np.maximum(np.ceil(total / (ROADS.node_cells * grid.cell_m)), np.where(closed, 3, 1))
    section = np.floor(distance * (parts / np.maximum(total, 1e-9))[owner] + 1e-9)
    cut = np.r_[True, (section[1:] != section[:-1]) | (owner[1:] != owner[:-1])]
    cut[offsets[1:] - 1] = True
    begin = np.flatnonzero(cut)
    ok = owner[begin[1:]] == owner[begin[:-1]]
    begin, end = begin[:-1][ok], begin[1:][ok]
    edge_offsets, position = _ranges(begin, end - begin + 1)
    ends = np.r_[x[begin], x[end]] + 1j * np.r_[y[begin], y[end]]  # exact copies of places, so equal ends are equal
    nodes, index = np.unique(ends, return_inverse=True)
    tail, head = index[: len(begin)], index[len(begin) :]
    chain = owner[begin]
    return RoadNetwork(
        nodes.real.copy(), nodes.imag.copy(), tail, head, pieces.oneway[chain], pieces.road_class[chain],
        edge_offsets, x[position], y[position],
    )  # fmt: skip

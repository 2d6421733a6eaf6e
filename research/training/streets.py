"""Simulated street networks: a pattern of junctions, joined by its relative-neighbour graph.

One construction serves every pattern. Junctions are laid out (rotated grids, rings and radials, jittered organic
points, districts of all three); of the Delaunay triangulation those edges stay that no third junction contradicts.
Lines of a pattern and the paths between centres become main roads, motorways are drawn across, water takes away
what it covers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import Delaunay, cKDTree

Array = NDArray[np.float64]
KINDS = ("grid", "rings", "organic", "mixed", "river", "coast", "rural", "highway", "island", "campus")
MOTORWAY, MAIN, LOCAL = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Streets:
    """Junctions in metres around (0, 0) and undirected edges with a class: 0 motorway, 1 main, 2 local."""

    kind: str
    radius_m: float
    xy: Array
    edges: NDArray[np.int64]
    road_class: NDArray[np.int64]
    centres: Array

    @property
    def length_m(self) -> Array:
        return np.maximum(np.hypot(*(self.xy[self.edges[:, 0]] - self.xy[self.edges[:, 1]]).T), 1.0)


def build_streets(kind: str, random: np.random.Generator) -> Streets:
    """A street network of the given kind; the same seed gives the same streets."""
    radius = {"campus": 1400.0, "rural": 16_000.0, "highway": 14_000.0}.get(kind, float(random.uniform(5_000, 14_000)))
    centres = random.normal(0, 0.35 * radius, (int(random.integers(1, 7)), 2))
    centres[0] *= 0.2
    if kind == "highway":
        return _finish(kind, radius, *_highway(radius, random), centres, random)
    if kind == "rural":
        xy, line, centres = _villages(radius, random)
    else:
        xy, line = _pattern(kind, radius, centres, random)
    dry = _dry_land(kind, radius, random)
    keep = dry(xy)
    xy, line = xy[keep], line[keep]
    edges = _relative_neighbours(xy)
    wet = ~dry((xy[edges[:, 0]] + xy[edges[:, 1]]) / 2)
    length = np.hypot(*(xy[edges[:, 0]] - xy[edges[:, 1]]).T)
    limit = 6 * np.median(length) if kind != "rural" else np.inf
    main = ((line[edges[:, 0]] == line[edges[:, 1]]) & (line[edges[:, 0]] >= 0)).any(axis=1)
    # Few bridges, and they carry main roads; local streets lose some edges everywhere: dead ends, parks, yards.
    bridge = main & (random.random(len(edges)) < 0.35)
    gone = (random.random(len(edges)) < random.uniform(0.0, 0.22)) & ~main
    keep = (~wet | bridge) & (length < limit) & ~gone
    edges, road_class = edges[keep], np.where(main[keep], MAIN, LOCAL)
    road_class = _join_centres(xy, edges, road_class, centres, random)
    if random.random() < {"campus": 0.0, "island": 0.3, "rural": 0.5}.get(kind, 0.8):
        xy, edges, road_class = _motorways(xy, edges, road_class, radius, random)
    return _finish(kind, radius, xy, edges, road_class, centres, random)


def _finish(
    kind: str,
    radius: float,
    xy: Array,
    edges: NDArray,
    road_class: NDArray,
    centres: Array,
    random: np.random.Generator,
) -> Streets:
    """Bend the plane a little, and keep the largest connected part."""
    waves = random.normal(0, 1, (2, 3, 2)) / radius * 2.0
    phase = random.uniform(0, 6.28, (2, 3))
    size = random.uniform(0, 0.02) * radius
    bent = xy + size * np.stack([np.sin(xy @ waves[i].T + phase[i]).sum(axis=1) for i in range(2)], axis=1)
    links = coo_matrix((np.ones(len(edges)), edges.T), shape=(len(xy), len(xy)))
    part = connected_components(links, directed=False)[1]
    keep = part == np.bincount(part).argmax()
    renumber = np.cumsum(keep) - 1
    inside = keep[edges[:, 0]] & keep[edges[:, 1]]
    return Streets(kind, radius, bent[keep], renumber[edges[inside]], road_class[inside], centres)


def _pattern(kind: str, radius: float, centres: Array, random: np.random.Generator) -> tuple[Array, NDArray]:
    """Junctions, and for each up to two numbers of main lines it lies on (−1: none)."""
    simple = {"grid": "grid", "rings": "rings", "organic": "organic"}
    if kind in simple:
        districts = [simple[kind]]
    elif kind == "campus":
        districts = [str(random.choice(["grid", "organic"]))] * int(random.integers(1, 4))
    else:
        districts = list(random.choice(["grid", "grid", "organic", "rings"], int(random.integers(2, 9))))
    seeds = random.uniform(-radius, radius, (len(districts), 2))
    parts, lines = [], []
    for number, district in enumerate(districts):
        xy, line = _district(district, kind, radius, seeds[number], random)
        owner = cKDTree(seeds).query(xy)[1] == number
        if kind != "campus":  # the town thins out: local junctions go first
            nearest = cKDTree(centres).query(xy)[0]
            thin = np.exp(-((nearest / (radius * random.uniform(0.5, 1.2))) ** 2))
            owner &= (random.random(len(xy)) < np.maximum(thin, 0.08)) | ((line >= 0).any(axis=1) & (thin > 0.02))
        parts.append(xy[owner])
        lines.append(np.where(line[owner] >= 0, line[owner] + 100_000 * number, -1))
    return np.concatenate(parts), np.concatenate(lines)


def _district(shape: str, kind: str, radius: float, seed: Array, random: np.random.Generator) -> tuple[Array, NDArray]:
    block = random.uniform(25, 90) if kind == "campus" else random.uniform(90, 240)
    if shape == "rings":
        return _rings(radius, seed * 0.3, max(block, 110), random)
    if shape == "organic":
        half = int(radius / block)
        grid = np.stack(np.meshgrid(*[np.arange(-half, half + 1)] * 2), axis=-1).reshape(-1, 2)
        xy = (grid + random.uniform(-0.48, 0.48, grid.shape)) * block
        return xy, np.full((len(xy), 2), -1)
    other = block * random.uniform(1.0, 2.2)
    reach = 1.45 * radius
    i, j = np.meshgrid(np.arange(-int(reach / block), int(reach / block) + 1),
                       np.arange(-int(reach / other), int(reach / other) + 1))  # fmt: skip
    i, j = i.ravel(), j.ravel()
    every, every_other = random.integers(3, 10, 2)
    jitter = random.uniform(0, 0.06)
    xy = np.stack([i * block, j * other], axis=1) + random.normal(0, jitter * block, (len(i), 2))
    angle = random.uniform(0, np.pi)
    xy = xy @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    inside = np.abs(xy).max(axis=1) < radius
    line = np.stack([np.where(i % every == 0, i + 20_000, -1), np.where(j % every_other == 0, j + 60_000, -1)], axis=1)
    return xy[inside], line[inside]


def _rings(radius: float, centre: Array, block: float, random: np.random.Generator) -> tuple[Array, NDArray]:
    rings = np.arange(1, int(1.3 * radius / block))
    spokes = int(random.choice([6, 8, 12]))
    every = int(random.integers(4, 12))
    xy, line = [], []
    for ring in rings:
        count = spokes * max(1, 2 ** int(np.round(np.log2(max(2 * np.pi * ring * block / (spokes * block * 1.3), 1)))))
        angle = 2 * np.pi * np.arange(count) / count
        xy.append(ring * block * np.stack([np.cos(angle), np.sin(angle)], axis=1))
        spoke = np.arange(count) * spokes / count
        on_spoke = np.where(spoke == np.round(spoke), np.round(spoke) + 40_000, -1)
        line.append(np.stack([np.full(count, ring + 20_000 if ring % every == 0 else -1), on_spoke], axis=1))
    points, lines = np.concatenate(xy) + centre, np.concatenate(line).astype(np.int64)
    points = points + random.normal(0, 0.04 * block, points.shape)
    inside = np.abs(points).max(axis=1) < radius
    return points[inside], lines[inside]


def _villages(radius: float, random: np.random.Generator) -> tuple[Array, NDArray, Array]:
    """Sparse country: villages of a few streets, joined by long roads with a junction now and then."""
    centres = random.uniform(-radius, radius, (int(random.integers(6, 40)), 2))
    parts = [random.uniform(-radius, radius, (int(random.integers(60, 500)), 2))]
    for centre in centres:
        parts.append(centre + random.normal(0, random.uniform(150, 900), (int(random.pareto(1.2) * 15 + 8) % 900, 2)))
    xy = np.concatenate(parts)
    return xy, np.full((len(xy), 2), -1), centres


def _highway(radius: float, random: np.random.Generator) -> tuple[Array, NDArray, NDArray]:
    """One road across the region, with short side roads."""
    count = int(2 * radius / 150)
    along = np.linspace(-radius, radius, count)
    sway = random.uniform(0, 0.25) * radius * np.sin(along / radius * random.uniform(0.5, 4) + random.uniform(0, 6))
    angle = random.uniform(0, np.pi)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    xy, edges = [np.stack([along, sway], axis=1)], [np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)]
    road_class = [np.full(count - 1, MOTORWAY)]
    for _ in range(int(random.integers(0, 12))):
        exit_at, steps = int(random.integers(count)), int(random.integers(3, 25))
        heading = random.uniform(0, 2 * np.pi) + np.cumsum(random.normal(0, 0.2, steps))
        side = xy[0][exit_at] + np.cumsum(150 * np.stack([np.cos(heading), np.sin(heading)], axis=1), axis=0)
        first = sum(len(part) for part in xy)
        chain = np.r_[exit_at, np.arange(first, first + steps)]
        xy.append(side)
        edges.append(np.stack([chain[:-1], chain[1:]], axis=1))
        road_class.append(np.full(steps, LOCAL))
    return np.concatenate(xy) @ turn, np.concatenate(edges), np.concatenate(road_class)


def _dry_land(kind: str, radius: float, random: np.random.Generator):
    """A test of points: False where there is water."""
    amplitude, waves, phase = random.uniform(0.02, 0.12, 3), random.uniform(0.5, 6, 3), random.uniform(0, 6.28, 3)
    angle = random.uniform(0, 2 * np.pi)
    along_axis, across_axis = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    offset, half_width = random.uniform(-0.3, 0.3), random.uniform(40, 500)
    water = kind if kind in ("river", "coast", "island") else str(random.choice(["none", "none", "river", "lake"]))
    lakes = random.uniform(-radius, radius, (int(random.integers(1, 5)), 2))
    lake_radius = random.uniform(0.02, 0.15, len(lakes)) * radius

    def wavy(t: Array) -> Array:
        return (amplitude * np.sin(t[:, None] / radius * waves + phase)).sum(axis=1) * radius

    def dry(xy: Array) -> NDArray[np.bool_]:
        if len(xy) == 0:
            return np.zeros(0, bool)
        along, across = xy @ along_axis, xy @ across_axis
        if water == "river":
            return np.abs(across - wavy(along) - offset * radius) > half_width
        if water == "coast":
            return across > wavy(along) + (offset - 0.2) * radius
        if water == "island":
            bearing = np.arctan2(across, along)
            edge = 0.5 + (amplitude * np.sin(bearing[:, None] * np.round(waves) + phase)).sum(axis=1)
            return np.hypot(along, across) < edge * radius
        if water == "lake":
            return (np.hypot(*(xy[:, None] - lakes).transpose(2, 0, 1)) > lake_radius).all(axis=1)
        return np.ones(len(xy), bool)

    return dry


def _relative_neighbours(xy: Array) -> NDArray[np.int64]:
    """Edges of the Delaunay triangulation that no opposite corner contradicts by being nearer to both ends."""
    triangles = Delaunay(xy).simplices
    a, b, c = triangles[:, [0, 1, 2]].ravel(), triangles[:, [1, 2, 0]].ravel(), triangles[:, [2, 0, 1]].ravel()
    length = np.hypot(*(xy[a] - xy[b]).T)
    third = np.maximum(np.hypot(*(xy[a] - xy[c]).T), np.hypot(*(xy[b] - xy[c]).T))
    key = np.minimum(a, b).astype(np.int64) * len(xy) + np.maximum(a, b)
    unique, inverse = np.unique(key, return_inverse=True)
    refused = np.bincount(inverse, third < length * 0.999, minlength=len(unique)) > 0
    kept = unique[~refused]
    return np.stack([kept // len(xy), kept % len(xy)], axis=1)


def _join_centres(
    xy: Array, edges: NDArray, road_class: NDArray, centres: Array, random: np.random.Generator
) -> NDArray[np.int64]:
    """Paths between centres and towards the border become main roads: the arterials of organic towns."""
    if len(edges) == 0:
        return road_class
    length = np.hypot(*(xy[edges[:, 0]] - xy[edges[:, 1]]).T)
    cost = length * random.uniform(0.8, 1.2, len(edges)) * np.where(road_class < LOCAL, 0.7, 1.0)
    graph = csr_matrix((np.r_[cost, cost], (np.r_[edges[:, 0], edges[:, 1]], np.r_[edges[:, 1], edges[:, 0]])),
                       shape=(len(xy), len(xy)))  # fmt: skip
    roots = np.unique(cKDTree(xy).query(centres)[1])[:6]
    targets = random.integers(0, len(xy), int(random.integers(4, 25)))
    _, before = dijkstra(graph, directed=False, indices=roots, return_predecessors=True)
    number = {}
    for index, (u, v) in enumerate(edges.tolist()):
        number[u, v] = number[v, u] = index
    result = road_class.copy()
    for tree in before:
        for node in targets.tolist():
            while tree[node] >= 0:
                parent = int(tree[node])
                index = number[node, parent]
                result[index] = min(result[index], MAIN)
                node = parent
    return result


def _motorways(
    xy: Array, edges: NDArray, road_class: NDArray, radius: float, random: np.random.Generator
) -> tuple[Array, NDArray, NDArray]:
    """Fast roads across and around, tied to the streets at interchanges."""
    tree = cKDTree(xy)
    xy_parts, edge_parts, class_parts = [xy], [edges], [road_class]
    first = len(xy)
    for number in range(int(random.integers(1, 5))):
        if number == 0 and random.random() < 0.5:
            angle = np.linspace(0, 2 * np.pi, int(2 * np.pi * 0.5 * radius / 300))
            line = random.uniform(0.3, 0.8) * radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        else:
            along = np.linspace(-1.1, 1.1, int(2.2 * radius / 300)) * radius
            angle = random.uniform(0, np.pi)
            across = random.uniform(-0.5, 0.5) * radius + random.uniform(0, 0.15) * radius * np.sin(
                along / radius * random.uniform(1, 4) + random.uniform(0, 6)
            )
            line = np.outer(along, [np.cos(angle), np.sin(angle)]) + np.outer(across, [-np.sin(angle), np.cos(angle)])
        chain = np.arange(first, first + len(line))
        ties = chain[:: int(random.integers(3, 9))]
        distance, nearest = tree.query(line[ties - first])
        near = distance < 700
        xy_parts.append(line)
        edge_parts += [np.stack([chain[:-1], chain[1:]], axis=1), np.stack([ties[near], nearest[near]], axis=1)]
        class_parts += [np.full(len(line) - 1, MOTORWAY), np.full(near.sum(), MAIN)]
        first += len(line)
    return np.concatenate(xy_parts), np.concatenate(edge_parts), np.concatenate(class_parts)

"""The plan of a simulated city: districts, main roads, a river and a motorway."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError

Pattern = Literal["mixed", "grid", "organic"]
Use = Literal["centre", "park", "homes", "works", "green"]
PATTERNS: tuple[Pattern, ...] = ("mixed", "grid", "organic")


@dataclass(frozen=True)
class Style:
    """The style of a city; everything else follows from the seed and the box."""

    pattern: Pattern = "mixed"
    """Layout of the districts: straight grids, irregular lanes, or both."""
    block_m: float = 125.0
    """Length of a block in the centre; blocks grow towards the outskirts."""
    hot_spots: int = 9
    """Number of destinations besides homes."""
    river: bool = True
    motorway: bool = True
    oneway_share: float = 0.45
    """Share of the small streets of straight districts that are one-way."""

    def __post_init__(self) -> None:
        if self.pattern not in PATTERNS:
            raise InputError(f"Unknown pattern '{self.pattern}': choose one of {', '.join(PATTERNS)}.")
        if not 40 <= self.block_m <= 1000:
            raise InputError(f"block_m is {self.block_m}: give a length between 40 and 1000 metres.")
        if not 1 <= self.hot_spots <= 100:
            raise InputError(f"hot_spots is {self.hot_spots}: give a number between 1 and 100.")
        if not 0 <= self.oneway_share <= 1:
            raise InputError(f"oneway_share is {self.oneway_share}: give a share between 0 and 1.")


@dataclass(frozen=True)
class District:
    """One district of the plan, in metres before the warp."""

    polygon: Any
    use: Use
    angle: float
    along_m: float
    across_m: float
    irregularity: float
    """0 = straight grid, 1 = crooked lanes with many gaps."""


@dataclass(frozen=True)
class Plan:
    """Lines and areas in metres before the warp; `warp` deforms all of them in the same way, so they stay connected."""

    width_m: float
    height_m: float
    centre: tuple[float, float]
    districts: tuple[District, ...]
    primary: Any
    secondary: Any
    river: Any | None
    motorway: Any | None
    bends: NDArray[np.float64]

    def warp(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Displace positions by a few long waves; the border of the box stays in place."""
        x, y = xy[:, 0], xy[:, 1]
        edge = np.minimum.reduce([x, self.width_m - x, y, self.height_m - y]) / (0.08 * self.height_m)
        damping = np.clip(edge, 0.0, 1.0) ** 2 * (3 - 2 * np.clip(edge, 0.0, 1.0))
        moved = xy.copy()
        for axis, amplitude, wave_x, wave_y, phase in self.bends:
            moved[:, int(axis)] += damping * amplitude * np.sin(wave_x * x + wave_y * y + phase)
        return moved


def draw_plan(width_m: float, height_m: float, style: Style, rng: np.random.Generator) -> Plan:
    """Districts around a centre, the main roads between them, the river and the motorway."""
    import shapely

    box = shapely.box(0, 0, width_m, height_m)
    centre = (width_m * rng.uniform(0.42, 0.54), height_m * rng.uniform(0.48, 0.58))
    seeds = _district_seeds(width_m, height_m, centre, style.block_m, rng)
    for _ in range(2):  # two steps of Lloyd's relaxation, against slivers
        cells = _cells(seeds, box)
        seeds = np.array([[cell.centroid.x, cell.centroid.y] for cell in cells])
    cells = _cells(seeds, box)
    river = _river(width_m, height_m, centre, rng) if style.river else None
    ring = _ring(width_m, height_m, centre) if style.motorway and min(width_m, height_m) > 4000 else None
    primary, secondary = _main_roads(cells, centre, box, rng)
    bends = _bends(width_m, height_m, style, rng)
    districts = _districts(cells, centre, width_m, height_m, style, rng)
    return Plan(width_m, height_m, centre, districts, primary, secondary, river, ring, bends)


def _district_seeds(
    width_m: float, height_m: float, centre: tuple[float, float], block_m: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    # Dart throwing with a spacing that grows with the distance from the centre.
    half = math.hypot(width_m, height_m) / 2
    kept: list[tuple[float, float, float]] = [(*centre, 5.5 * block_m)]
    for _ in range(6000):
        x, y = rng.uniform(0, width_m), rng.uniform(0, height_m)
        far = math.hypot(x - centre[0], y - centre[1]) / half
        spacing = min(block_m * (5.5 + 7.5 * far), 0.4 * min(width_m, height_m))
        if all(math.hypot(x - a, y - b) > (spacing + s) / 2 for a, b, s in kept):
            kept.append((x, y, spacing))
    return np.array([(a, b) for a, b, _ in kept])


def _cells(seeds: NDArray[np.float64], box: Any) -> list[Any]:
    import shapely

    found = shapely.voronoi_polygons(shapely.multipoints(seeds), extend_to=box)
    cells = [cell.intersection(box) for cell in found.geoms]
    # Sorted by position, because the library's order is arbitrary and the same seed must give the same city.
    return sorted((cell for cell in cells if cell.area > 1), key=lambda cell: (cell.centroid.x, cell.centroid.y))


def _bends(width_m: float, height_m: float, style: Style, rng: np.random.Generator) -> NDArray[np.float64]:
    strength = {"grid": 0.15, "mixed": 1.0, "organic": 1.5}[style.pattern]
    rows = []
    for axis in (0, 1):
        for length_m, slope in ((0.8 * width_m, 0.10), (0.35 * width_m, 0.13), (1500.0, 0.10), (650.0, 0.07)):
            angle = rng.uniform(0, math.pi)
            wave = 2 * math.pi / length_m
            # amplitude · wave number is the largest slope; it is far below 1, so that the warp does not fold
            amplitude = strength * slope / wave
            rows.append([axis, amplitude, wave * math.cos(angle), wave * math.sin(angle), rng.uniform(0, 2 * math.pi)])
    return np.array(rows)


def _river(width_m: float, height_m: float, centre: tuple[float, float], rng: np.random.Generator) -> Any:
    """A winding line from west to east that passes south of the centre."""
    import shapely

    x = np.linspace(-50, width_m + 50, 200)
    low = centre[1] - rng.uniform(0.10, 0.14) * height_m
    tilt = rng.uniform(-0.12, 0.12) * height_m
    phase = rng.uniform(0, 2 * math.pi)
    y = low + tilt * (x - centre[0]) / width_m * 2
    y += 0.055 * height_m * np.sin(2 * math.pi * x / (0.62 * width_m) + phase)
    y += 0.02 * height_m * np.sin(2 * math.pi * x / (0.23 * width_m) + 2 * phase)
    return shapely.linestrings(np.column_stack([x, y]))


def _ring(width_m: float, height_m: float, centre: tuple[float, float]) -> Any:
    """A ring around the inner city, with two branches on which the motorway leaves the box."""
    import shapely

    turn = np.linspace(0, 2 * math.pi, 121)
    rx, ry = 0.29 * width_m, 0.31 * height_m
    ring = np.column_stack([centre[0] + rx * np.cos(turn), centre[1] + ry * np.sin(turn)])
    out_west = np.array([[centre[0] - rx, centre[1]], [-50.0, centre[1] + 0.12 * height_m]])
    out_east = np.array([[centre[0] + rx, centre[1]], [width_m + 50.0, centre[1] - 0.05 * height_m]])
    return shapely.multilinestrings([shapely.linestrings(line) for line in (ring, out_west, out_east)])


def _main_roads(cells: list[Any], centre: tuple[float, float], box: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Borders of districts: those on the shortest routes out of the centre are primary, the others secondary."""
    import shapely
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    borders = shapely.union_all([cell.exterior for cell in cells]).difference(box.exterior.buffer(1.0))
    pieces = [piece for piece in getattr(borders, "geoms", [borders]) if piece.length > 1]
    ends = np.round(np.array([[piece.coords[0], piece.coords[-1]] for piece in pieces]).reshape(-1, 2), 0)
    places, code = np.unique(ends, axis=0, return_inverse=True)
    code = code.reshape(-1, 2)
    length = np.array([piece.length for piece in pieces]) * rng.uniform(0.9, 1.1, len(pieces))
    n = len(places)
    graph = csr_matrix((np.r_[length, length], (np.r_[code[:, 0], code[:, 1]], np.r_[code[:, 1], code[:, 0]])), (n, n))
    start = int(np.argmin(np.hypot(*(places - centre).T)))
    _, (before,) = dijkstra(graph, indices=[start], return_predecessors=True)
    used = set()
    for angle in np.linspace(0, 2 * math.pi, 8, endpoint=False) + rng.uniform(0, 0.4):
        ahead = (places - centre) @ np.array([math.cos(angle), math.sin(angle)])
        node = int(np.argmax(ahead - 1.5 * np.abs((places - centre) @ np.array([-math.sin(angle), math.cos(angle)]))))
        while before[node] >= 0:
            used.add(frozenset((node, int(before[node]))))
            node = int(before[node])
    chosen = [frozenset(pair) in used for pair in code.tolist()]
    primary = shapely.multilinestrings([piece for piece, is_used in zip(pieces, chosen) if is_used])
    secondary = shapely.multilinestrings([piece for piece, is_used in zip(pieces, chosen) if not is_used])
    return primary, secondary


def _districts(
    cells: list[Any], centre: tuple[float, float], width_m: float, height_m: float, style: Style,
    rng: np.random.Generator,
) -> tuple[District, ...]:  # fmt: skip
    half = math.hypot(width_m, height_m) / 2
    far = np.array([math.hypot(cell.centroid.x - centre[0], cell.centroid.y - centre[1]) for cell in cells]) / half
    order = np.argsort(far)
    park = order[min(3, len(order) - 1)]
    main_angle = rng.uniform(-0.3, 0.3)
    found = []
    for i, cell in enumerate(cells):
        draw = rng.random(4)
        use: Use
        if i == order[0] or far[i] < 0.14:
            use = "centre"
        elif far[i] > 0.55 and draw[0] < 0.30:
            use = "green"
        else:
            use = "works" if draw[0] > 0.86 else "homes"
        if i == park:
            use = "park"
        irregularity = {"grid": 0.0, "organic": 0.6 + 0.4 * draw[1], "mixed": float(draw[1]) if far[i] > 0.2 else 0.1}
        angle = main_angle if far[i] < 0.2 or draw[2] < 0.35 else main_angle + rng.uniform(-0.7, 0.7)
        size = style.block_m * (0.8 + 0.95 * far[i]) * (1.6 if use == "works" else 1.0)
        along = size * rng.uniform(1.0, 1.5)
        found.append(District(cell, use, angle, along, size * rng.uniform(0.7, 1.0), irregularity[style.pattern]))
    return tuple(found)

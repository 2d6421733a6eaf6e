"""Straight pieces of lines and roads, indexed by cell: exact distances within a reach, for numpy and jax."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

import numpy as np

from wayveil.core import ragged
from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.errors import RuleError
from wayveil.rules.area import square_distance
from wayveil.rules.motion import Array, safe_sqrt

FAR_M = 1e7
"""Metres: the distance of a piece that does not exist. No scope is that wide."""
MOST_IN_DESCENT = 32
"""Number of pieces per cell that gradient descent uses; a crowded junction of a city map has about as many."""
SMOOTH_M = 0.02
"""Metres by which a line may be simplified: two centimetres are far below the noise of GPS."""
_BLOCK = 1 << 18
"""Number of distances computed at a time; bounds the memory."""
_MOST_ACROSS = 40_000
"""Cells along one side of the index; keeps cell numbers within 32 bits."""
_MOST_ENTRIES = 64_000_000
"""Largest number of index entries; bounds the memory to about half a gigabyte."""


class RoadPieces(Protocol):
    """What gradient descent needs to know about pieces of road: which are near a position, and their directions."""

    @property
    def directions(self) -> Array:
        """(pieces, 2) unit vectors along the pieces."""
        ...

    def most(self) -> int:
        """Return how many pieces near a position are considered."""
        ...

    def near(self, x: Array, y: Array, most: int, xp: ModuleType) -> tuple[Array, Array]:
        """Return (n, most) pieces near each position (-1 = none) and their distances in metres."""
        ...


@dataclass(frozen=True, eq=False)
class Segments:
    """Directed pieces a → b with a road number each, and for each occupied cell those within `reach_m` of it."""

    ends: np.ndarray
    """(pieces, 4) ax, ay, bx, by in metres."""
    road: np.ndarray
    """(pieces,) int32, the road that each belongs to."""
    reach_m: float
    cell_m: float
    columns: int
    rows: int
    west_m: float
    south_m: float
    cells: np.ndarray
    """(occupied,) sorted cell numbers."""
    starts: np.ndarray
    """(occupied + 1,) where each cell's list starts in `pieces`."""
    pieces: np.ndarray
    """The lists, one after the other, the most important pieces of each cell first."""

    def cell_of(self, x: Array, y: Array, xp: ModuleType) -> Array:
        """Index in `cells` of the cell of each position; `len(cells)` where the cell has no piece."""
        column = xp.floor((x - self.west_m) / self.cell_m)
        row = xp.floor((y - self.south_m) / self.cell_m)
        on_grid = (column >= 0) & (column < self.columns) & (row >= 0) & (row < self.rows)
        cell = xp.where(on_grid, row, 0).astype(np.int32) * self.columns + xp.where(on_grid, column, 0).astype(np.int32)
        cells = xp.asarray(self.cells)
        place = xp.minimum(xp.searchsorted(cells, cell), len(self.cells) - 1)
        return xp.where(on_grid & (cells[place] == cell), place, len(self.cells))

    def counts(self) -> np.ndarray:
        """(occupied + 1,) length of each cell's list; the last is for all other cells."""
        return np.append(np.diff(self.starts), 0)

    def near(self, x: Array, y: Array, most: int, xp: ModuleType) -> tuple[Array, Array]:
        """(n, most) pieces near each position (-1 = none) and their distances, exact up to the reach."""
        cell = self.cell_of(x, y, xp)
        rank = np.arange(most)
        first = xp.asarray(np.append(self.starts, self.starts[-1]))[cell]
        listed = rank < xp.asarray(self.counts())[cell][:, None]
        piece = xp.asarray(self.pieces)[xp.where(listed, first[:, None] + rank, 0)]
        ends = xp.asarray(self.ends, dtype=x.dtype)[piece]
        ux, uy = ends[..., 2] - ends[..., 0], ends[..., 3] - ends[..., 1]
        px, py = x[:, None] - ends[..., 0], y[:, None] - ends[..., 1]
        share = xp.minimum(xp.maximum((px * ux + py * uy) / (ux * ux + uy * uy), 0.0), 1.0)
        dx, dy = px - share * ux, py - share * uy
        return xp.where(listed, piece, -1), xp.where(listed, safe_sqrt(dx * dx + dy * dy, xp), FAR_M)

    def most(self) -> int:
        """How many pieces per cell gradient descent uses; in a crowded cell the least important ones are left out."""
        return int(min(self.counts().max(), MOST_IN_DESCENT))

    def blocks(self, x: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
        """Groups of positions whose cells have lists of about the same length, and that length: for numpy."""
        count = self.counts()[self.cell_of(x, y, np)]
        low, most = 0, 4
        while low < max(int(count.max(initial=0)), 1):
            group = np.flatnonzero((count > low) & (count <= most)) if low else np.flatnonzero(count <= most)
            size = max(1, _BLOCK // most)
            for start in range(0, len(group), size):
                yield group[start : start + size], most
            low, most = most, 2 * most

    @property
    def directions(self) -> np.ndarray:
        """(pieces, 2) unit vectors along the pieces."""
        u = self.ends[:, 2:] - self.ends[:, :2]
        result: np.ndarray = u / np.hypot(u[:, 0], u[:, 1])[:, None]
        return result


def segments_of_lines(lines: list[np.ndarray], road: list[int], reach_m: float) -> Segments:
    """Pieces of polylines ((vertices, 2) metres each), straightened by at most two centimetres."""
    import shapely

    kept = [np.asarray(line, np.float64) for line in lines]
    counts = np.array([len(line) for line in kept], np.int64)
    if len(kept) == 0 or counts.min() < 2:
        raise RuleError("There is no line; draw a line with at least two corners.")
    geometry = shapely.linestrings(np.concatenate(kept), indices=ragged.owners(counts))
    geometry = shapely.simplify(geometry, SMOOTH_M, preserve_topology=False)
    xy, owner = shapely.get_coordinates(geometry, return_index=True)
    same = owner[1:] == owner[:-1]
    ends = np.hstack([xy[:-1], xy[1:]])[same]
    number = np.asarray(road, np.int32)[owner[:-1][same]]
    long = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1]) > 1e-6
    if not long.any():
        raise RuleError("The line has no length; draw at least two different corners.")
    return _index(ends[long], number[long], reach_m)


def segments_of_roads(roadmap: RoadMap, scope: Scope, reach_m: float) -> Segments:
    """Pieces of the roads of a map that come near the scope; `road` is the road's number in the map."""
    x, y = scope.to_metres(roadmap.lon, roadmap.lat)
    starts = roadmap.offsets[:-1]
    inside = (
        (
            (np.maximum.reduceat(x, starts) > -reach_m)
            & (np.minimum.reduceat(x, starts) < scope.width_m + reach_m)
            & (np.maximum.reduceat(y, starts) > -reach_m)
            & (np.minimum.reduceat(y, starts) < scope.height_m + reach_m)
        )
        if len(roadmap)
        else np.zeros(0, bool)
    )
    numbers = np.flatnonzero(inside)
    if len(numbers) == 0:
        raise RuleError("The road map has no road in the scope; give a map of this city with roads=.")
    xy = np.column_stack([x, y])
    lines = [xy[roadmap.offsets[number] : roadmap.offsets[number + 1]] for number in numbers]
    return segments_of_lines(lines, [int(number) for number in numbers], reach_m)


def first_in_lists(segments: Segments, important: np.ndarray) -> Segments:
    """The same pieces; in lists that are too long, the important ones (a mask) come first, by distance."""
    counts = np.diff(segments.starts)
    cell = ragged.owners(counts)
    crowded = np.flatnonzero(counts[cell] > MOST_IN_DESCENT)
    cell, pieces = cell[crowded], segments.pieces[crowded]
    row, column = np.divmod(segments.cells[cell], segments.columns)
    x = segments.west_m + (column + 0.5) * segments.cell_m
    y = segments.south_m + (row + 0.5) * segments.cell_m
    square = square_distance(x, y, segments.ends[pieces].T, np)
    # Both orders keep a cell's entries together, so the sorted lists fall into the places that they had.
    ordered = segments.pieces.copy()
    ordered[crowded] = pieces[np.lexsort((square, ~important[pieces], cell))]
    return dataclasses.replace(segments, pieces=ordered)


def check_width(width_m: float) -> None:
    """Raise a RuleError for a width that no street has."""
    if not 1.0 <= width_m <= 1_000.0:
        raise RuleError("width_m must be between 1 and 1000.")


def _index(ends: np.ndarray, road: np.ndarray, reach_m: float) -> Segments:
    low = np.minimum(ends[:, :2], ends[:, 2:]).min(axis=0) - reach_m - 1
    high = np.maximum(ends[:, :2], ends[:, 2:]).max(axis=0) + reach_m + 1
    cell_m = max(reach_m * 4 / 3 + 1e-6, float((high - low).max()) / _MOST_ACROSS)
    columns, rows = (np.floor((high - low) / cell_m).astype(int) + 1).tolist()
    piece, cell = _cells_along(ends, low, cell_m, columns, reach_m)
    first = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
    starts = np.append(first, len(cell)).astype(np.int32)
    return Segments(ends, road, reach_m, cell_m, columns, rows, float(low[0]), float(low[1]),
                    cell[first].astype(np.int32), starts, piece.astype(np.int32))  # fmt: skip


def _cells_along(
    ends: np.ndarray, low: np.ndarray, cell_m: float, columns: int, reach_m: float
) -> tuple[np.ndarray, np.ndarray]:
    """(piece, cell) pairs, sorted by cell, such that each cell within the reach of a piece is among them."""
    # Sample points on the piece, at most half a cell apart; a cell is listed if it is within `around` of one of them.
    length = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1])
    steps = np.ceil(length / (cell_m / 2)).astype(np.int64) + 1
    if steps.sum() > _MOST_ENTRIES // 9:
        raise RuleError("The lines are too long for this width; raise width_m or cut the map to the scope.")
    piece, rank = ragged.owners(steps), ragged.ranks(steps)
    share = rank / np.maximum(np.repeat(steps, steps) - 1, 1)
    x = ends[piece, 0] + share * (ends[piece, 2] - ends[piece, 0])
    y = ends[piece, 1] + share * (ends[piece, 3] - ends[piece, 1])
    around = reach_m + cell_m / 4
    spread = int(np.ceil(around / cell_m))
    pairs = []
    column, row = (x - low[0]) / cell_m, (y - low[1]) / cell_m
    for right in range(-spread, spread + 1):
        for up in range(-spread, spread + 1):
            c, r = np.floor(column) + right, np.floor(row) + up
            # Distance from the sample to the cell, a square: a bound that keeps the lists short.
            gap_x = np.maximum(np.maximum(c - column, column - c - 1), 0) * cell_m
            gap_y = np.maximum(np.maximum(r - row, row - r - 1), 0) * cell_m
            keep = (np.hypot(gap_x, gap_y) <= around) & (c >= 0) & (c < columns) & (r >= 0)
            pairs.append(((r[keep] * columns + c[keep]).astype(np.int64) << 32) + piece[keep])
    code = np.sort(np.concatenate(pairs))
    code = code[np.append(True, code[1:] != code[:-1])]
    return code & ((1 << 32) - 1), code >> 32

"""The road pieces near each step, found once per round of gradient descent instead of in every iteration."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from wayveil.rules.motion import Array, Motion, safe_sqrt
from wayveil.rules.segments import FAR_M, Segments


@dataclass(frozen=True, eq=False)
class NearbyRoads:
    """`RoadPieces` with fixed lists; replaces a rule's `Segments` while positions move by a few metres only."""

    piece: Array
    """(positions, most) pieces of road, -1 = none."""
    ends: Array
    """(positions, most, 4) their ends in metres."""
    directions: Array
    """(pieces, 2) unit vectors of all pieces."""

    def most(self) -> int:
        """Return the length of the lists."""
        return int(self.piece.shape[1])

    def near(self, x: Array, y: Array, most: int, xp: ModuleType) -> tuple[Array, Array]:
        """Return the lists, and the distances from the current positions."""
        ends, listed = self.ends, self.piece >= 0
        ux, uy = ends[..., 2] - ends[..., 0], ends[..., 3] - ends[..., 1]
        px, py = x[:, None] - ends[..., 0], y[:, None] - ends[..., 1]
        share = xp.clip((px * ux + py * uy) / xp.maximum(ux * ux + uy * uy, 1e-12), 0.0, 1.0)
        dx, dy = px - share * ux, py - share * uy
        return self.piece, xp.where(listed, safe_sqrt(dx * dx + dy * dy, xp), FAR_M)


def near_pieces(
    segments: Segments, shares: tuple[float, ...], motion: Motion
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (piece, ends, directions) for `NearbyRoads`, at these fractions of each step."""
    most = segments.most()
    x, y = np.asarray(motion.x_m, np.float64), np.asarray(motion.y_m, np.float64)
    dx, dy = np.where(motion.joins, np.diff(x), 0.0), np.where(motion.joins, np.diff(y), 0.0)
    along = np.array(shares)[:, None]
    cell = segments.cell_of((x[:-1] + along * dx).ravel(), (y[:-1] + along * dy).ravel(), np)
    first = np.append(segments.starts, segments.starts[-1])[cell]
    rank = np.arange(most)
    listed = rank < segments.counts()[cell][:, None]
    piece = np.where(listed, segments.pieces[np.where(listed, first[:, None] + rank, 0)], -1).astype(np.int32)
    ends = segments.ends[np.maximum(piece, 0)].astype(np.float32)
    return piece, ends, segments.directions.astype(np.float32)

"""The pieces of road near each step, listed once for a round of descent instead of being looked up at every step.

Privacy: free (post-processing).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from wayveil.rules.motion import Array, Motion, safe_sqrt
from wayveil.rules.one_way import OneWay
from wayveil.rules.segments import FAR_M


@dataclass(frozen=True, eq=False)
class Nearby:
    """Stands in for a rule's `Segments`, as `RoadPieces`, while positions move by metres only: the lists are given."""

    piece: Array
    """(positions, most) pieces of road, -1 = none."""
    ends: Array
    """(positions, most, 4) their ends."""
    directions: Array
    """(pieces, 2) unit vectors of all pieces."""

    def most(self) -> int:
        """Length of the lists."""
        return int(self.piece.shape[1])

    def near(self, x: Array, y: Array, most: int, xp: ModuleType) -> tuple[Array, Array]:
        """The lists and the distances from the positions as they are now."""
        ends, listed = self.ends, self.piece >= 0
        ux, uy = ends[..., 2] - ends[..., 0], ends[..., 3] - ends[..., 1]
        px, py = x[:, None] - ends[..., 0], y[:, None] - ends[..., 1]
        share = xp.clip((px * ux + py * uy) / xp.maximum(ux * ux + uy * uy, 1e-12), 0.0, 1.0)
        dx, dy = px - share * ux, py - share * uy
        return self.piece, xp.where(listed, safe_sqrt(dx * dx + dy * dy, xp), FAR_M)


def near_pieces(rule: OneWay, motion: Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(piece, ends, directions, oneway) for `Nearby`, at the positions of each step that the rule looks at."""
    segments, most = rule.segments, rule.segments.most()
    x, y = np.asarray(motion.x_m, np.float64), np.asarray(motion.y_m, np.float64)
    dx, dy = np.where(motion.joins, np.diff(x), 0.0), np.where(motion.joins, np.diff(y), 0.0)
    shares = np.array((0.0, 1.0, 0.5) if rule.of_map else (0.0, 1.0))[:, None]
    cell = segments.cell_of((x[:-1] + shares * dx).ravel(), (y[:-1] + shares * dy).ravel(), np)
    first = np.append(segments.starts, segments.starts[-1])[cell]
    rank = np.arange(most)
    listed = rank < segments.counts()[cell][:, None]
    piece = np.where(listed, segments.pieces[np.where(listed, first[:, None] + rank, 0)], -1).astype(np.int32)
    ends = segments.ends[np.maximum(piece, 0)].astype(np.float32)
    return piece, ends, segments.directions.astype(np.float32), np.asarray(rule.oneway)

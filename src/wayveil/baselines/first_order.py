"""First-order walks on a uniform grid: starts, moves to the eight neighbours, ends.

Privacy: free (post-processing); the weights are outputs of a mechanism.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import draw_rows
from wayveil.baselines.sequences import NOTHING, neighbour_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST = 60
"""Cells of the longest walk."""
_SCALINGS = 10
"""Rounds that scale the probabilities of ending to a given mean; they are capped at 1, so one round is not enough."""


@dataclass(frozen=True, eq=False)
class Walks:
    """Weights of starts, of moves (cells, 9) with 4 = none, and of ends, on `across` × `across` cells."""

    across: int
    start: Floats
    move: Floats
    end: Floats

    def draw(self, n: int, rng: np.random.Generator, lengths: Floats | None = None) -> Ints:
        """(n, LONGEST) cells, NOTHING after the end.

        `lengths` are weights of walks of 1, 2, … cells. If they are given, the lengths of walks have these proportions,
        and a walk is more likely to end in a cell where many end.
        """
        target, exists = neighbour_table(self.across)
        exists = exists.copy()
        exists[:, 4] = False
        # Direction 4 (no move) ends the walk. A cell without any weight also ends it.
        weight = np.where(exists, np.maximum(self.move, 0.0), 0.0)
        weight[:, 4] = np.maximum(self.end, 0.0)
        weight[weight.sum(1) <= 0, 4] = 1.0
        path = np.full((n, LONGEST), NOTHING, np.int64)
        path[:, 0] = draw_rows(np.maximum(self.start, 0.0)[None], rng, n)
        walking = np.arange(n)
        for step in range(1, LONGEST):
            at = path[walking, step - 1]
            here = weight[at]
            if lengths is not None:
                here[:, 4] = _weight_of_end(here, lengths[step - 1 :])
            heading = draw_rows(here, rng)
            walking, at, heading = walking[heading != 4], at[heading != 4], heading[heading != 4]
            if len(walking) == 0:
                break
            path[walking, step] = target[at, heading]
        return path


def _weight_of_end(weight: Floats, left: Floats) -> Floats:
    """The weight of ending in each row, such that the wanted share of walks ends with this number of cells.

    `left` are the weights of this and of larger numbers of cells. The probability of ending in each row is that of the
    row's own weights, scaled by a common factor.
    """
    moves, alone = weight.sum(1) - weight[:, 4], weight[:, 4] / weight.sum(1)
    ends = float(left[0] / left.sum()) if left.sum() > 0 else 1.0
    share = alone if alone.mean() > 0 and ends < 1 else np.full(len(alone), ends)
    for _ in range(_SCALINGS):
        share = np.minimum(share * ends / max(float(share.mean()), 1e-12), 1 - 1e-9)
    return np.where(moves > 0, moves * share / (1 - share), 1.0)

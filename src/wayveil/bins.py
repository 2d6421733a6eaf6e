"""Bins of one quantity: public edges, chosen before anything is counted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Bins:
    """Half-open bins [edge_k, edge_{k+1}); smaller values count in the first, larger ones in the last."""

    edges: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.edges) - 1

    def index(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.clip(np.searchsorted(np.asarray(self.edges), values, side="right") - 1, 0, len(self) - 1)


def merge_bins(bins: Bins, run: int) -> Bins:
    """Every `run` neighbouring bins become one; the last may be shorter."""
    edges = (*bins.edges[:-1:run], bins.edges[-1])
    return Bins(edges)

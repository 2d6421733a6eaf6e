"""Bins of one quantity, with public edges that are fixed before any value is counted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 14
"""Values compared at once, so that they stay in the cache."""
_MOST_COMPARED = 40
"""Up to this many bins, comparing with each edge is faster than a binary search."""


@dataclass(frozen=True)
class Bins:
    """Half-open bins [edge_k, edge_{k+1}); smaller values count in the first, larger ones in the last."""

    edges: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def geometric_middles(self) -> NDArray[np.float64]:
        """Geometric mean of each bin's edges; half of the upper edge for the first, which begins at zero."""
        edges = np.asarray(self.edges)
        result: NDArray[np.float64] = np.r_[edges[1] / 2, np.sqrt(edges[1:-1] * edges[2:])]
        return result

    def index(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The bin of each value."""
        if len(self) > _MOST_COMPARED or np.ndim(values) != 1 or len(values) < _BLOCK:
            return np.clip(np.searchsorted(np.asarray(self.edges), values, side="right") - 1, 0, len(self) - 1)
        # For many values and few edges, comparing with every edge is faster than a binary search: it has no branches.
        result = np.empty(len(values), np.int64)
        for first in range(0, len(values), _BLOCK):
            part = values[first : first + _BLOCK]
            bin_of = np.full(len(part), len(self) - 1, np.uint8)
            for edge in self.edges[1:-1]:
                bin_of -= part < edge
            result[first : first + _BLOCK] = bin_of
        return result


def merge_bins(bins: Bins, run: int) -> Bins:
    """Merge each run of `run` neighbouring bins into one; the last run may be shorter."""
    edges = (*bins.edges[:-1:run], bins.edges[-1])
    return Bins(edges)

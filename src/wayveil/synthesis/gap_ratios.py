"""gap_ratios: how far the gaps of a recording are from its beat, from few noisy counts.

The beat is the median gap, so at most half of the gaps are shorter and at most half are longer, whatever the noise
says. Shapes with any share on the beat, and the others falling off to both sides, are weighed by their evidence, and
beside them the smooth curves of `curves.py`, which know nothing of a beat and have to earn their place.

Privacy: free (post-processing).
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from wayveil.bins import Bins
from wayveil.synthesis.curves import Total
from wayveil.synthesis.histogram import estimate_among

_ON_BEAT = (0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97)
_FALL_OFF = (0.05, 0.15, 0.4, 1.0)
"""Scales on which the logarithm of gap / beat falls off."""
_SHORTER = (0.05, 0.2, 0.35, 0.5)
"""Of the gaps off the beat, how many are shorter."""
_ANYTHING = 0.005
_SHORTEST_RATIO = 1e-3
_DOUBT = 7.5
"""Nats by which a curve without a beat must be better: with fewer, noise alone makes everything a curve."""


def estimate_gap_ratio(counts: NDArray[np.float64], noise: float, bins: Bins, total: Total) -> NDArray[np.float64]:
    """Shares of each bin of gap / beat, adding up to one, never zero."""
    edges = np.asarray(bins.edges)
    return estimate_among(counts, noise, (edges[1:] + edges[:-1]) / 2, total, _shapes(bins), doubt=_DOUBT)


@cache
def _shapes(bins: Bins) -> NDArray[np.float64]:
    """(shapes, bins): shares with a spike on the beat and what falls off from it to both sides."""
    edges = np.asarray(bins.edges)
    shorter, longer = edges[1:] < 1, edges[:-1] > 1
    on_beat = ~shorter & ~longer
    shapes = []
    for scale in _FALL_OFF:
        reached = np.exp(-np.abs(np.log(np.maximum(edges, _SHORTEST_RATIO))) / scale)
        below, above = (np.where(side, np.abs(np.diff(reached)), 0.0) for side in (shorter, longer))
        for spike in _ON_BEAT:
            for share in _SHORTER:
                shape = (1 - spike) * share * below / below.sum()
                shape += min((1 - spike) * (1 - share), 0.5) * above / above.sum()
                shape[on_beat] += (1 - shape.sum()) / on_beat.sum()
                shapes.append((1 - _ANYTHING) * shape + _ANYTHING / len(shape))
    return np.array(shapes)

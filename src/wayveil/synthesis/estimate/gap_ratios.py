"""Ratios of gaps between points to the sampling interval of their trajectory, from few noisy counts.

The sampling interval is the median gap, so at most half of the gaps are shorter and at most half are longer. The prior
shapes have a share of the gaps exactly at the interval, and densities that decay to both sides. They are averaged with
their evidence as weights, together with the smooth curves of `curves.py`, which have no spike and a lower prior.

Privacy: free (post-processing).
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from wayveil.core.bins import Bins
from wayveil.core.posterior import NoisyCounts
from wayveil.synthesis.estimate.curves import Total
from wayveil.synthesis.estimate.histogram import ShapePrior, estimate_among
from wayveil.synthesis.estimate.settings import GAP_RATIOS


def estimate_gap_ratio(answer: NoisyCounts, bins: Bins, total: Total) -> NDArray[np.float64]:
    """Shares of each bin of gap / interval, adding up to one, never zero."""
    edges = np.asarray(bins.edges)
    middles = (edges[1:] + edges[:-1]) / 2
    prior = ShapePrior(_shapes(bins), curve_nats=GAP_RATIOS.curve_nats)
    return estimate_among(answer, middles, total, prior)


@cache
def _shapes(bins: Bins) -> NDArray[np.float64]:
    """(shapes, bins): shares with a spike at the interval that falls off to both sides."""
    edges = np.asarray(bins.edges)
    shorter, longer = edges[1:] < 1, edges[:-1] > 1
    at_interval = ~shorter & ~longer
    shapes = []
    for scale in GAP_RATIOS.scales:
        reached = np.exp(-np.abs(np.log(np.maximum(edges, GAP_RATIOS.least_ratio))) / scale)
        below, above = (np.where(side, np.abs(np.diff(reached)), 0.0) for side in (shorter, longer))
        for spike in GAP_RATIOS.at_interval:
            for share in GAP_RATIOS.shorter:
                shape = (1 - spike) * share * below / below.sum()
                shape += min((1 - spike) * (1 - share), 0.5) * above / above.sum()
                shape[at_interval] += (1 - shape.sum()) / at_interval.sum()
                shapes.append((1 - GAP_RATIOS.anything_share) * shape + GAP_RATIOS.anything_share / len(shape))
    return np.array(shapes)

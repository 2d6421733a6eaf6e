"""Mean and top speeds of trips, which are about lognormal, from few noisy counts.

In every city, speeds (of walking, cycling or driving) vary around one value by a factor of two or three. So the prior
consists of lognormal shapes with various medians and widths, and of the smooth curves of `curves.py`, with equal
weight.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.posterior import NoisyCounts
from wayveil.synthesis.estimate.curves import Total, about_lognormal
from wayveil.synthesis.estimate.histogram import ShapePrior, estimate_among
from wayveil.synthesis.estimate.settings import SPEEDS


def estimate_speeds(
    answer: NoisyCounts, edges: NDArray[np.float64], total: Total, long_tails: bool = False
) -> NDArray[np.float64]:
    """Shares of each bin, adding up to one, never zero; `long_tails` as in `estimate_among`."""
    middles, prior = (edges[1:] + edges[:-1]) / 2, ShapePrior(lognormal_shapes(edges), about_lognormal)
    return estimate_among(answer, middles, total, prior, long_tails=long_tails)


def lognormal_shapes(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """(shapes, bins): shares of the lognormal distributions that have at least half of their mass within the bins."""
    from scipy.special import ndtr

    log_edges = np.log(np.maximum(edges, 1e-12))
    lowest = np.log(max(float(edges[1]), SPEEDS.slowest * float(edges[-1])))
    middle, width = np.meshgrid(np.linspace(lowest, log_edges[-1], SPEEDS.middles), SPEEDS.spreads)
    shares = np.diff(ndtr((log_edges - middle.ravel()[:, None]) / width.ravel()[:, None]), axis=1)
    shares = shares[shares.sum(axis=1) > SPEEDS.least_inside]
    result: NDArray[np.float64] = (1 - SPEEDS.anything_share) * shares / shares.sum(
        axis=1, keepdims=True
    ) + SPEEDS.anything_share / shares.shape[1]
    return result

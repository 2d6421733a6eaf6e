"""speeds: mean speeds and fastest steps of trips, which are about lognormal, from few noisy counts.

People walk, ride or drive: speeds gather around one value, within a factor of two or three, in every city. Lognormal
shapes of any middle and width stand beside the smooth curves of `curves.py`, as likely as those.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.synthesis.curves import Total, about_lognormal
from wayveil.synthesis.histogram import estimate_among

_MIDDLES = 24
_WIDTHS = (0.25, 0.45, 0.7, 1.0, 1.4)
"""Standard deviations of the logarithm."""
_SLOWEST = 1e-3
"""Of the fastest speed; slower middles are all in the first bin."""
_ANYTHING = 0.002


def estimate_speeds(
    counts: NDArray[np.float64], noise: float, edges: NDArray[np.float64], total: Total, long_tails: bool = False
) -> NDArray[np.float64]:
    """Shares of each bin, adding up to one, never zero; `long_tails` as in `estimate_among`."""
    middles, shapes = (edges[1:] + edges[:-1]) / 2, lognormal_shapes(edges)
    return estimate_among(counts, noise, middles, total, shapes, kind=about_lognormal, long_tails=long_tails)


def lognormal_shapes(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """(shapes, bins): shares of lognormal distributions, of those that lie at least half within the bins."""
    from scipy.special import ndtr

    log_edges = np.log(np.maximum(edges, 1e-12))
    lowest = np.log(max(float(edges[1]), _SLOWEST * float(edges[-1])))
    middle, width = np.meshgrid(np.linspace(lowest, log_edges[-1], _MIDDLES), _WIDTHS)
    shares = np.diff(ndtr((log_edges - middle.ravel()[:, None]) / width.ravel()[:, None]), axis=1)
    shares = shares[shares.sum(axis=1) > 0.49]
    return (1 - _ANYTHING) * shares / shares.sum(axis=1, keepdims=True) + _ANYTHING / shares.shape[1]

"""durations: how long trips take, from few noisy counts.

Smooth curves of two kinds are averaged by their evidence. Where the noise hides the data, trips of a quarter of an hour
are more usual than trips of six: one nat for each factor of four or so, which any data that is heard outweighs.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.posterior import posterior_mean
from wayveil.synthesis.curves import (
    Family,
    Total,
    about_lognormal,
    averaged,
    from_bin_to_bin,
    laplace_evidence,
    smooth_curves,
)

_USUAL_S = 900.0
_WITHIN = 1.0
"""The usual duration (a geometric mean), and the spread of its logarithm from city to city."""
_FEWEST = 4


def estimate_durations(
    counts: NDArray[np.float64], noise: float, edges: NDArray[np.float64], total: Total
) -> NDArray[np.float64]:
    """Shares of each bin of seconds, adding up to one, never zero."""
    noisy, middles = np.asarray(counts, float), (edges[1:] + edges[:-1]) / 2
    if len(noisy) < _FEWEST:
        smooth = np.maximum(noisy, noise)
    else:
        curves, evidence = smooth_curves(noisy, noise, _families(middles), total)
        evidence = laplace_evidence(noisy, noise, curves, evidence)
        log_mean = curves @ np.log(middles) / curves.sum(axis=1)
        smooth = averaged(curves, evidence - 0.5 * ((log_mean - np.log(_USUAL_S)) / _WITHIN) ** 2)
    estimate = posterior_mean(noisy, np.maximum(smooth, 1e-9 * smooth.sum()), noise, groups=1)
    return np.asarray(estimate / estimate.sum())


def _families(middles: NDArray[np.float64]) -> tuple[Family, ...]:
    return (*from_bin_to_bin(middles), *about_lognormal(middles))

"""Durations of trips, from few noisy counts.

Curves of two families are averaged, weighted by evidence and by two priors. The first expects a mean duration of a
quarter of an hour; a factor of four costs about one nat. The second expects trips much longer than the median trip to
take a small part of all travel time: the noise of a hundred empty bins could otherwise pass for as many points there as
all other trips have. Any signal above the noise outweighs these priors.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.posterior import Noisy, posterior_mean
from wayveil.synthesis.estimate.curves import (
    Family,
    Total,
    about_lognormal,
    averaged,
    from_bin_to_bin,
    laplace_evidence,
    smooth_curves,
)
from wayveil.synthesis.estimate.settings import DURATIONS


def estimate_durations(
    counts: NDArray[np.float64], noise: float, edges: NDArray[np.float64], total: Total, gaussian: bool = False
) -> NDArray[np.float64]:
    """Shares of each bin of seconds, adding up to one, never zero; `gaussian` as in `estimate_histogram`."""
    noisy, middles = np.asarray(counts, float), (edges[1:] + edges[:-1]) / 2
    if len(noisy) < DURATIONS.fewest_bins:
        smooth = np.maximum(noisy, noise)
    else:
        curves, evidence = smooth_curves(noisy, noise, _families(middles), total)
        evidence = laplace_evidence(noisy, noise, curves, evidence, gaussian)
        log_mean = curves @ np.log(middles) / curves.sum(axis=1)
        evidence -= 0.5 * ((log_mean - np.log(DURATIONS.usual_s)) / DURATIONS.usual_spread) ** 2
        smooth = averaged(curves, evidence - _long_time(curves, middles) / DURATIONS.usual_long_time)
    estimate = posterior_mean(Noisy(noisy, noise, gaussian), np.maximum(smooth, 1e-9 * smooth.sum()), groups=1)
    return np.asarray(estimate / estimate.sum())


def _long_time(curves: NDArray[np.float64], middles: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of all travel time that is spent in trips much longer than the median trip, for each curve."""
    running = np.cumsum(curves, axis=1)
    median_s = middles[(running < running[:, -1:] / 2).sum(axis=1)]
    time = curves * middles
    in_long = np.where(middles > DURATIONS.long * median_s[:, None], time, 0.0).sum(axis=1)
    return np.asarray(in_long / time.sum(axis=1))


def _families(middles: NDArray[np.float64]) -> tuple[Family, ...]:
    return (*from_bin_to_bin(middles), *about_lognormal(middles))

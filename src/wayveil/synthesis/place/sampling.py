"""Sampling intervals of devices in whole seconds, and the numbers of points and durations that follow from them.

The sampling interval of a trajectory is the median gap between its points. For devices that record at fixed intervals,
most gaps equal this interval; the others are pauses and lost points.

Privacy: free (post-processing).
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.gap_ratio import GapRatio
from wayveil.questions.median_interval import MedianInterval
from wayveil.synthesis.place.settings import SAMPLING
from wayveil.synthesis.trips.draw import stratified

if TYPE_CHECKING:
    from wayveil.synthesis.estimate.estimates import Distribution, Estimates


def is_steady(gap_ratio: "Distribution") -> bool:
    """Whether nearly all gaps equal the sampling interval."""
    return _share_at_interval(gap_ratio) >= SAMPLING.steady_share


def _share_at_interval(gap_ratio: "Distribution") -> float:
    edges, shares = np.asarray(gap_ratio.bins.edges), gap_ratio.shares
    return float(shares[(edges[:-1] < 1) & (edges[1:] > 1)].sum() / shares.sum())


def roundness(seconds: NDArray[np.float64], steady: bool = False) -> NDArray[np.float64]:
    """Prior probability of each sampling interval, relative to that of a number that is not round."""
    weight = np.ones(len(seconds))
    for multiple, factor in SAMPLING.round_weights:
        weight[seconds % multiple == 0] = factor
    return weight**SAMPLING.steady_power if steady else weight


def whole_seconds_in(low: float, high: float) -> NDArray[np.float64]:
    """The whole seconds in a bin, from one second on; at least one value."""
    found = np.arange(max(np.ceil(low), 1.0), max(np.ceil(high), 2.0))
    return found if len(found) else np.array([max(np.rint((low + high) / 2), 1.0)])


def with_sampling_intervals(
    estimates: "Estimates",
    duration_s: NDArray[np.float64],
    points: NDArray[np.int64],
    random: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Durations, numbers of points, and ratios of sampling interval to mean gap, for trips with drawn mean gaps.

    Longer mean gaps are matched with longer intervals. If both are about equal and devices record at fixed intervals,
    the number of points follows from the interval; if devices are also exact, the duration is a whole number of
    intervals.
    """
    mean_gap_s = duration_s / (points - 1)
    interval_s = np.empty(len(points))
    interval_s[np.argsort(mean_gap_s, kind="stable")] = np.sort(_draw(estimates, len(points), random))
    counted = np.maximum(np.rint(duration_s / interval_s).astype(np.int64), 1) + 1
    same = np.maximum(interval_s / mean_gap_s, mean_gap_s / interval_s) < SAMPLING.same
    same &= _share_at_interval(estimates.distribution(GapRatio)) >= SAMPLING.clocked_share
    caps = estimates.scope.caps
    same &= (counted <= caps.points) & ((counted - 1) * interval_s <= caps.duration_h * 3600)
    points = np.where(same, counted, points)
    if is_steady(estimates.distribution(GapRatio)):
        duration_s = np.where(same, (points - 1) * interval_s, duration_s)
    return duration_s, points, np.minimum(interval_s * (points - 1) / duration_s, SAMPLING.longest)


def shortest_interval_s(estimates: "Estimates") -> float:
    """A low quantile of the sampling intervals, as a lower limit of gaps: a point may be late but is never early.

    Zero if most gaps differ from the sampling interval: such devices record at events, not at fixed intervals.
    """
    if _share_at_interval(estimates.distribution(GapRatio)) < SAMPLING.clocked_share:
        return 0.0
    interval = estimates.distribution(MedianInterval)
    running = np.cumsum(interval.shares) / interval.shares.sum()
    k = int(np.searchsorted(running, SAMPLING.faster_share))
    edges = interval.bins.edges
    return float(whole_seconds_in(edges[k], edges[k + 1])[0])


def _draw(estimates: "Estimates", count: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw `count` sampling intervals in whole seconds, round numbers more often."""
    interval, steady = estimates.distribution(MedianInterval), is_steady(estimates.distribution(GapRatio))
    edges = np.asarray(interval.bins.edges)
    bins = stratified(interval.shares, count, random)
    interval_s = np.empty(count)
    for k in np.unique(bins):
        seconds, here = whole_seconds_in(edges[k], edges[k + 1]), bins == k
        weight = roundness(seconds, steady)
        interval_s[here] = random.choice(seconds, int(here.sum()), p=weight / weight.sum())
    return interval_s

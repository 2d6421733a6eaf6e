"""beats: the rhythm at which each device records, in whole seconds, and the points and durations that go with it.

Privacy: free (post-processing).
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.gap_ratio import GapRatio
from wayveil.questions.median_interval import MedianInterval
from wayveil.synthesis.draw import systematic

if TYPE_CHECKING:
    from wayveil.synthesis.estimates import Distribution, Estimates

_LONGEST_BEAT = 1.5
"""Over the mean gap: half of the gaps are as long as the beat, so a longer one would leave the others no time."""
_SAME_RHYTHM = 1.2
"""Beat over mean gap, or the other way round, up to which a recording has no pauses."""
_STEADY = 0.8
"""Share of the gaps on the beat from which on devices are steady: recordings last whole numbers of beats."""
_BY_CLOCK = 0.6
"""Share of the gaps on the beat from which on devices record by a clock, though signals get lost."""
_FEW_FASTER = 0.05
_ROUND = ((5, 3.0), (10, 4.0), (15, 4.0), (30, 6.0), (60, 8.0))
"""How much more often a device is set to a multiple of so many seconds: a guess, until the data says otherwise."""
_STRICT = 3
"""Power of that guess where devices are steady: whoever keeps a rhythm to the second was set to it by a person."""


def is_steady(gap_ratio: "Distribution") -> bool:
    """Whether nearly all gaps are on the beat."""
    return _share_on_the_beat(gap_ratio) >= _STEADY


def _share_on_the_beat(gap_ratio: "Distribution") -> float:
    edges, shares = np.asarray(gap_ratio.bins.edges), gap_ratio.shares
    return float(shares[(edges[:-1] < 1) & (edges[1:] > 1)].sum() / shares.sum())


def roundness(seconds: NDArray[np.float64], steady: bool = False) -> NDArray[np.float64]:
    """How likely a device is set to record every so many seconds, against a number that is not round."""
    weight = np.ones(len(seconds))
    for multiple, worth in _ROUND:
        weight[seconds % multiple == 0] = worth
    return weight**_STRICT if steady else weight


def whole_seconds_in(low: float, high: float) -> NDArray[np.float64]:
    """The whole seconds of a bin, at least one second long and at least one of them."""
    found = np.arange(max(np.ceil(low), 1.0), max(np.ceil(high), 2.0))
    return found if len(found) else np.array([max(np.rint((low + high) / 2), 1.0)])


def on_the_beat(
    estimates: "Estimates",
    duration_s: NDArray[np.float64],
    points: NDArray[np.int64],
    random: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Durations, numbers of points, and beats over the mean gap, of trips whose mean gaps were drawn.

    The longer the mean gap, the longer the beat. Where both are about the same there are as many points as beats, and
    where devices are steady the recording ends on one.
    """
    mean_gap_s = duration_s / (points - 1)
    beat_s = np.empty(len(points))
    beat_s[np.argsort(mean_gap_s, kind="stable")] = np.sort(_draw(estimates, len(points), random))
    counted = np.maximum(np.rint(duration_s / beat_s).astype(np.int64), 1) + 1
    same = np.maximum(beat_s / mean_gap_s, mean_gap_s / beat_s) < _SAME_RHYTHM
    caps = estimates.scope.caps
    same &= (counted <= caps.points) & ((counted - 1) * beat_s <= caps.duration_h * 3600)
    points = np.where(same, counted, points)
    if is_steady(estimates.distribution(GapRatio)):
        duration_s = np.where(same, (points - 1) * beat_s, duration_s)
    return duration_s, points, np.minimum(beat_s * (points - 1) / duration_s, _LONGEST_BEAT)


def shortest_beat_s(estimates: "Estimates") -> float:
    """The beat of the fastest devices but a few: who records by a clock is late at times, but never early.

    Zero where most gaps are off the beat: there devices record when something happens.
    """
    if _share_on_the_beat(estimates.distribution(GapRatio)) < _BY_CLOCK:
        return 0.0
    interval = estimates.distribution(MedianInterval)
    running = np.cumsum(interval.shares) / interval.shares.sum()
    k = int(np.searchsorted(running, _FEW_FASTER))
    edges = interval.bins.edges
    return float(whole_seconds_in(edges[k], edges[k + 1])[0])


def _draw(estimates: "Estimates", count: int, random: np.random.Generator) -> NDArray[np.float64]:
    """So many beats in whole seconds, round ones more often."""
    interval, steady = estimates.distribution(MedianInterval), is_steady(estimates.distribution(GapRatio))
    edges = np.asarray(interval.bins.edges)
    bins = systematic(interval.shares, count, random)
    beat_s = np.empty(count)
    for k in np.unique(bins):
        seconds, here = whole_seconds_in(edges[k], edges[k + 1]), bins == k
        weight = roundness(seconds, steady)
        beat_s[here] = random.choice(seconds, int(here.sum()), p=weight / weight.sum())
    return beat_s

"""How many, how long, when: one bin a trajectory, so the L1 norm is 1 by construction."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.bins import Bins
from wayveil.prepare import Prepared
from wayveil.scope import Scope
from wayveil.views.base import Features, one_hot
from wayveil.week import hour_of_week


@dataclass(frozen=True)
class Count:
    """φ(T) = 1."""

    name: str = "count"
    resolution: int = 1
    shape: tuple[int, ...] = (1,)

    def features(self, batch: Prepared) -> Features:
        return one_hot(np.zeros(len(batch), np.int64))


@dataclass(frozen=True)
class _Histogram:
    """What the views of one quantity share: its bins."""

    bins: Bins

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.bins),)


@dataclass(frozen=True)
class Length(_Histogram):
    """φ(T) = 1 at the bin of the polyline length (km)."""

    name: str = "length"
    resolution: int = 1

    def features(self, batch: Prepared) -> Features:
        return one_hot(self.bins.index(batch.length_m / 1000))


@dataclass(frozen=True)
class Duration(_Histogram):
    """φ(T) = 1 at the bin of the duration (s)."""

    name: str = "duration"
    resolution: int = 1

    def features(self, batch: Prepared) -> Features:
        return one_hot(self.bins.index(batch.duration_s))


@dataclass(frozen=True)
class MeanInterval(_Histogram):
    """φ(T) = 1 at the bin of duration / (points − 1) (s), at least the lower edge of the second bin.

    The first bin is for trajectories of one point, which have no interval, and for nothing else.
    """

    name: str = "mean_interval"
    resolution: int = 1

    def features(self, batch: Prepared) -> Features:
        interval_s = np.maximum(batch.duration_s / np.maximum(batch.points - 1, 1), self.bins.edges[1])
        return one_hot(self.bins.index(np.where(batch.points > 1, interval_s, self.bins.edges[0])))


@dataclass(frozen=True)
class MeanSpeed(_Histogram):
    """φ(T) = 1 at the bin of length / duration (km/h); who stays in no time at all has speed 0."""

    name: str = "mean_speed"
    resolution: int = 1

    def features(self, batch: Prepared) -> Features:
        taken_h = batch.duration_s / 3600
        speed_kmh = np.divide(batch.length_m / 1000, taken_h, out=np.zeros(len(batch)), where=taken_h > 0)
        return one_hot(self.bins.index(speed_kmh))


@dataclass(frozen=True)
class TopSpeed(_Histogram):
    """φ(T) = 1 at the bin of the fastest step between two points (km/h, in the scope's projection).

    A step of no time counts as a second's.
    """

    name: str = "top_speed"
    resolution: int = 1

    def features(self, batch: Prepared) -> Features:
        fastest_mps = np.zeros(len(batch))
        if len(batch.x_m) > 1:
            step_m = np.hypot(np.diff(batch.x_m, prepend=0.0), np.diff(batch.y_m, prepend=0.0))
            speed_mps = step_m / np.maximum(np.diff(batch.t_utc, prepend=0.0), 1.0)
            speed_mps[batch.first] = 0.0  # the step from the trajectory before is none
            fastest_mps = np.maximum.reduceat(speed_mps, batch.first)
        return one_hot(self.bins.index(3.6 * fastest_mps))


@dataclass(frozen=True)
class Beat(_Histogram):
    """φ(T) = 1 at the bin of the median gap between two points (s): the rhythm at which the device records.

    Of an even number of gaps it is the lower of the middle two; of none it is 0.
    """

    name: str = "beat"
    resolution: int = 1

    def features(self, batch: Prepared) -> Features:
        return one_hot(self.bins.index(batch.beat_s))


GAP_RESOLUTION = 1 << 16


@dataclass(frozen=True)
class GapRatio(_Histogram):
    """φ_k(T) = share of T's gaps whose length, divided by T's beat, falls into bin k: how irregular sampling is.

    Of a trajectory whose beat is 0, gaps of no time are on the beat and all others are longer than any.
    """

    name: str = "gap_ratio"
    resolution: int = GAP_RESOLUTION

    def features(self, batch: Prepared) -> Features:
        gaps = np.maximum(batch.points - 1, 0)
        row, gap_s = batch.gaps
        beat_s = batch.beat_s[row]
        ratio = np.divide(gap_s, beat_s, out=np.where(gap_s > 0, np.inf, 1.0), where=beat_s > 0)
        return Features(row, self.bins.index(ratio), (self.resolution // np.maximum(gaps, 1))[row])


@dataclass(frozen=True)
class Displacement(_Histogram):
    """φ(T) = 1 at the bin of the straight distance from start to end (km)."""

    name: str = "displacement"
    resolution: int = 1

    def features(self, batch: Prepared) -> Features:
        return one_hot(self.bins.index(_straight_km(batch)))


@dataclass(frozen=True)
class DisplacementLength:
    """φ(T) = 1 at (bin of the straight distance from start to end, bin of the length), both in km."""

    displacement: Bins
    length: Bins
    name: str = "displacement_length"
    resolution: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.displacement), len(self.length))

    def features(self, batch: Prepared) -> Features:
        row = self.displacement.index(_straight_km(batch))
        return one_hot(row * len(self.length) + self.length.index(batch.length_m / 1000))


@dataclass(frozen=True)
class LengthDuration:
    """φ(T) = 1 at (bin of the length in km, bin of the duration in s)."""

    length: Bins
    duration: Bins
    name: str = "length_duration"
    resolution: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.length), len(self.duration))

    def features(self, batch: Prepared) -> Features:
        row = self.length.index(batch.length_m / 1000)
        return one_hot(row * len(self.duration) + self.duration.index(batch.duration_s))


@dataclass(frozen=True)
class DepartureHour:
    """φ(T) = 1 at the local hour of the first point: 24 bins."""

    scope: Scope
    name: str = "departure_hour"
    resolution: int = 1
    shape: tuple[int, ...] = (24,)

    def features(self, batch: Prepared) -> Features:
        return one_hot(_hour_of_week(self.scope, batch) % 24)


@dataclass(frozen=True)
class DepartureWeek:
    """φ(T) = 1 at (weekday, hour) of the first point, Monday first: 7 × 24 bins."""

    scope: Scope
    name: str = "departure_week"
    resolution: int = 1
    shape: tuple[int, ...] = (7, 24)

    def features(self, batch: Prepared) -> Features:
        return one_hot(_hour_of_week(self.scope, batch))


def _straight_km(batch: Prepared) -> NDArray[np.float64]:
    dx = batch.x_m[batch.last] - batch.x_m[batch.first]
    dy = batch.y_m[batch.last] - batch.y_m[batch.first]
    return np.hypot(dx, dy) / 1000


def _hour_of_week(scope: Scope, batch: Prepared) -> NDArray[np.int64]:
    """Of each first point."""
    return hour_of_week(scope.local_seconds(batch.t_utc[batch.first]))

"""Settings of the stage that places points and times along routes.

The values were set by hand. The description of a field mentions if it was chosen on the trial data (research/log.md);
for the others no comparison with other values is recorded.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class SamplingSettings:
    """Sampling intervals of devices, in whole seconds."""

    longest: float = 1.5
    """Largest ratio of sampling interval to mean gap. The interval is the median gap, so half of the gaps are at least
    as long, and a longer interval would leave no time for the others."""
    same: float = 1.2
    """Ratio of sampling interval and mean gap, in either direction, up to which a recording has no pauses."""
    steady_share: float = 0.8
    """Least share of the gaps at the sampling interval for which devices count as exact to the second, so that
    recordings last a whole number of intervals. On irregular data this assumption makes the density metric 1 to 2.5 %
    worse."""
    clocked_share: float = 0.6
    """Least such share for which devices count as recording at fixed intervals with lost points: no point is early."""
    faster_share: float = 0.05
    """Share of the devices that may have a shorter interval than `shortest_interval_s`."""
    round_weights: tuple[tuple[int, float], ...] = ((5, 3.0), (10, 4.0), (15, 4.0), (30, 6.0), (60, 8.0))
    """(seconds, factor): prior odds of a multiple of these seconds against another number; the last match applies. A
    guess, which the answer about intervals corrects."""
    steady_power: int = 3
    """Exponent of these factors if devices are exact to the second, because a person chose such an interval."""


@dataclass(frozen=True)
class PointSettings:
    """Positions and times of the points of a trip on its route."""

    gap_quantiles: int = 1 << 12
    """Size of the quantile table from which gaps are drawn; a table is faster than a search."""
    most_speed_ratio: float = 4.0
    """Largest ratio of a trip's speed in a cell to its mean speed. Smaller limits gave fewer long steps and up to 8 %
    more error of the density."""
    speed_rounds: int = 8
    """Rounds of slowing down to a trip's own top speed; time that is added in one cell is missing in others."""
    slowness_rounds: int = 3
    """Updates of the slowness of cells by target / realised density."""
    slowness_power: float = 0.8
    """Exponent of that ratio; below 1, because a route that is slower in one cell is faster in others."""
    slowness_bounds: tuple[float, float] = (0.02, 50.0)
    """Smallest and largest slowness of a cell relative to its initial value."""
    soft_mean: float = 0.02
    """Share of the mean density that is added to both sides of the ratio, so that it is finite in empty cells."""
    soft_trajectories: float = 0.05
    """Trajectories that are also added to each cell, if the whole density corresponds to `soft_among` trajectories."""
    soft_among: int = 20_000
    """See `soft_trajectories`; about the size of a shard."""
    histogram_points: int = 1 << 18
    """Points that are counted at a time; bounds the memory."""


@dataclass(frozen=True)
class TrackSettings:
    """Chosen candidates with all their points."""

    tried_points: int = 64
    """Largest number of points per trip in the fit of the slowness; more take time and change the density little."""
    furthest_m: float = 250.0
    """Largest move in metres of a sparse point to match the density, without a map."""
    furthest_on_roads_m: float = 60.0
    """The same limit with a map, where points should stay near their road."""
    least_top_speed: float = 1.25
    """Least ratio of a trip's top speed to its mean speed; with less, the other steps have not enough spare time."""
    speed_reserve: float = 0.97
    """Share of the top speed that is the limit when points are placed; the reserve allows for rounding to seconds."""
    least_speed_ratio: float = 1.05
    """Least ratio of that limit to the mean speed."""


@dataclass(frozen=True)
class SpreadSettings:
    """Moves of sparse points so that the counts of cells match the density. Chosen on the trial data as a whole."""

    reach: float = 0.4
    """Largest move of a point as a share of its shorter adjacent step, so that the order along the route is kept. Turns
    above 150° fell from 8 % to 1 % on Cabspotting (research/log.md)."""
    sparse_m: float = 15.0
    """Least possible move in metres for which a point is considered; shorter moves have no relevant effect."""
    proposals: int = 8
    """Places that are tried for each point."""
    sweeps: int = 2
    """Number of passes over all points."""
    least_wanted: float = 0.01
    """Least target count of a cell, so that no place is excluded."""
    block: int = 1 << 10
    """Largest number of points that are moved at a time; their data fits into the processor's cache."""
    cells_each: int = 16
    """Least number of cells per point that is moved at a time; with fewer, all points would move to the same cells."""
    least_block: int = 32
    """Least number of points that are moved at a time."""


CAP_ROUNDS = 12
"""Largest number of rounds to find the cap of each row (`capping.py`); the search ends when no cap rises."""

SAMPLING = SamplingSettings()
POINTS = PointSettings()
TRACKS = TrackSettings()
SPREAD = SpreadSettings()

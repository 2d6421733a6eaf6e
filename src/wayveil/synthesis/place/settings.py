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
    """Exponent of these factors if devices are exact to the second: a person chose such an interval, probably a round
    number."""


@dataclass(frozen=True)
class PointSettings:
    """Positions and times of the points of a trip on its route."""

    gap_quantiles: int = 1 << 12
    """Size of the quantile table from which gaps are drawn; a table is faster than a search."""
    least_last: float = 0.1
    """Least length of a last gap that the end of the trip cuts, in sampling intervals."""
    few_gaps: int = 64
    """Largest number of gaps whose drawn ratios are divided by their median; the median of more varies by only 1 %."""
    most_speed_ratio: float = 4.0
    """Largest ratio of a trip's speed in a cell to its mean speed. Smaller limits gave fewer long steps and up to 8 %
    more error of the density."""
    comfortable_mps2: float = 1.5
    """Acceleration in m/s² at which trips slow down before turns and speed up after them."""
    most_turn_m: float = 150.0
    """Largest cost of a U-turn in metres at the usual pace: 15 m/s squared over that acceleration."""
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
class StopSettings:
    """Rests and waits. Orders of magnitude are physical; values were adjusted on the trial data."""

    wait_s: float = 30.0
    """Mean wait in seconds, exponential: cycles of traffic lights take one to two minutes, half of them red."""
    rest_spread: float = 1.8
    """Standard deviation of the logarithm of the time by which a rest exceeds the sampling interval; its mean is
    `wait_s`. Most are traffic lights, and one in fifty takes more than four minutes."""
    wait_share: float = 0.1
    """Share of the time in such waits: half of the idling in the urban driving cycle FTP-75 (18 %). The moves of points
    along their routes (`spread_points`) have the effect of the other half."""
    most_waiting: float = 0.6
    """Largest share of a gap spent waiting; longer waits are rests."""
    least_wait_s: float = 0.1
    """Expected seconds of waits in a gap below which none is drawn."""
    by_chance: float = 0.5
    """Weight of chance in the order in which trips get the largest shares of rest; the other weight is that of a
    mean speed that is low for the length of the trip."""
    of_one_length: int = 100
    """Number of trips of about the same length whose mean speeds are compared."""
    longest_share: float = 0.95
    """Largest share of a trip's time at rest."""
    least_moving: float = 0.02
    """Least share of a trip's time in which it moves; with less, rests are left out."""
    pause_intervals: float = 2.0
    """Intervals above which the longest gap of a trip is a pause, if the trip rests at least that long."""
    at_end: float = 0.4
    """Probability that a trip's first rest is at its start, and the same for its last rest and its end."""


@dataclass(frozen=True)
class ErrorSettings:
    """Errors of recorded positions. Orders of magnitude are physical; values were adjusted on the trial data."""

    drift_m: float = 6.0
    """Median over devices of the standard deviation in metres of the slow error along each axis: satellite receivers
    have 95 % of their fixes within about 8 m under open sky, and within about 15 m between houses."""
    device_spread: float = 0.5
    """Standard deviation over devices of the logarithm of that error."""
    drift_s: float = 30.0
    """Seconds between independent values of the slow error."""
    holding: float = 0.5
    """Share of devices that hold the last position while they stand still, as many receivers do."""
    single_m: float = 1.2
    """Standard deviation in metres of the error of a single fix."""
    single_share: float = 0.15
    """Largest standard deviation of that error relative to the shorter adjacent step: receivers smooth their tracks."""


@dataclass(frozen=True)
class TrackSettings:
    """Chosen candidates with all their points."""

    tried_points: int = 64
    """Largest number of points per trip in the fit of the slowness; more take time and change the density little."""
    pace_power: float = 0.8
    """Exponent of the fitted slowness: the rest of its variation compensates for errors of routes. Chosen on the trial
    data: smaller exponents give better speeds and a worse density (research/log.md)."""
    least_top_speed: float = 1.25
    """Least ratio of a trip's top speed to its mean speed while it moves; with less, its pace could not vary."""
    speed_reserve: float = 0.97
    """Share of the top speed that is the limit when points are placed; the reserve allows for rounding to seconds."""
    error_room: float = 1.03
    """Ratio of the final limit to a trip's top speed, so that errors of positions do not change the times."""
    least_speed_ratio: float = 1.05
    """Least ratio of that limit to the mean speed."""


@dataclass(frozen=True)
class SpreadSettings:
    """Moves of sparse points so that the counts of cells match the density."""

    reach: float = 0.45
    """Largest move of a point as a share of the adjacent step, so that the order along the route is kept."""
    furthest_m: float = 250.0
    """Largest move in metres without a map, where routes run on a grid of blocks."""
    sparse_m: float = 15.0
    """Least possible move in metres for which a point is considered; shorter moves have no relevant effect."""
    proposals: int = 10
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
STOPS = StopSettings()
ERRORS = ErrorSettings()
TRACKS = TrackSettings()
SPREAD = SpreadSettings()

"""Settings of the stage that estimates distributions from noisy answers: one frozen object for each kind of quantity.

The values were set by hand. The description of a field mentions if it was chosen on the trial data (research/log.md);
for the others no comparison with other values is recorded. Lists of shapes, strengths and spreads are grids over which
an estimate is averaged, weighted by evidence, so the range of a list matters more than its spacing.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CurveSettings:
    """Smooth curves through noisy counts."""

    stiffness: tuple[float, ...] = tuple(float(v) for v in np.exp(np.linspace(np.log(3e4), np.log(0.3), 7)))
    """λ, from nearly straight lines to curves that follow single bins; no unit (log counts per bin²)."""
    decays: tuple[float, ...] = (0.0, 4.0, 12.0, 36.0)
    """Nats by which counts decay from zero to the last bin, as in a gamma distribution."""
    narrowness: tuple[float, ...] = (1.0, 3.0, 9.0)
    """1/σ² of lognormals: one standard deviation is a factor of 2.7, 1.8 or 1.4."""
    first_steps: int = 40
    """Gauss–Newton steps for the stiffest curve, whose starting point is far from the solution."""
    steps: int = 12
    """Steps for each further curve, which starts at the previous one."""
    longest_step: float = 1.5
    """Largest change of a log count in a step; keeps the iteration from overshooting."""
    converged: float = 1e-3
    """Largest change of a log count at which the iteration ends."""
    deepest: float = -60.0
    """Least log of a decay; keeps exponentials within the range of floats."""
    first_bins: int = 24
    """About how many first bins are tried for a curve with an unknown first bin."""
    table_rounds: int = 20
    """Rounds of raking a two-way table to its margins."""


@dataclass(frozen=True)
class DayShapeSettings:
    """Typical distributions of departures over the hours of a day."""

    concentrations: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    """κ of von Mises distributions: from nearly uniform to nearly all departures within eight hours."""
    mornings_h: tuple[float, ...] = (7.5, 8.5)
    """Hour of the morning peak."""
    evenings_h: tuple[float, ...] = (17.0, 18.0)
    """Hour of the evening peak."""
    morning_spread_h: float = 1.2
    """Standard deviation of the morning peak in hours."""
    evening_spread_h: float = 1.6
    """Standard deviation of the evening peak in hours."""
    rush_shares: tuple[float, ...] = (0.2, 0.4, 0.6)
    """Share of the trips in both peaks."""
    day_begins_h: float = 6.0
    """Hour at which the departures outside the peaks have risen to half of their daytime level."""
    day_ends_h: float = 21.0
    """Hour at which they have fallen to half of that level."""
    begin_steepness: float = 1.5
    """Steepness of the rise relative to that of the fall: most people get up within two hours."""
    any_hour_share: float = 0.03
    """Share of the trips that is uniform over the hours."""


@dataclass(frozen=True)
class DurationSettings:
    """Durations of trips."""

    usual_s: float = 900.0
    """Prior of the geometric mean duration, in seconds; it matters only if the noise exceeds the signal."""
    usual_spread: float = 1.0
    """Prior standard deviation of its logarithm."""
    long: float = 8.0
    """Ratio to the median from which a trip counts as much longer."""
    usual_long_time: float = 0.02
    """Prior mean of the share of all travel time in such trips (exponential). A lognormal with a spread of .7 has 1 %;
    real and simulated cities have 0 to 1 %."""
    fewest_bins: int = 4
    """Least number of bins for which curves are fitted."""


@dataclass(frozen=True)
class LengthSettings:
    """Lengths and displacements of trips, relative to a usual median that follows from the scope's size."""

    medians: tuple[float, ...] = tuple(np.linspace(-2.4, 1.2, 19).tolist())
    """Logarithms of a shape's median over the usual one: from an eleventh of it to three times as much."""
    usual_spread: float = 0.6
    """Prior standard deviation of that logarithm. Medians of five simulated cities differ by .2."""
    spreads: tuple[float, ...] = (0.35, 0.5, 0.7, 1.0)
    """Standard deviations of the logarithm of single lengths; .5 to .72 in five simulated cities."""
    remote_chance: float = 0.5
    """Prior probability that some trips form a second peak at longer lengths."""
    remote_shares: tuple[float, ...] = (0.08, 0.16, 0.32)
    """Shares of those trips."""
    remote_ratios: tuple[float, ...] = (2.5, 3.5, 5.0)
    """Their median length over that of the others."""
    remote_spread: float = 0.15
    """Standard deviation of the logarithm of their lengths: they go to one place."""
    anything_share: float = 0.02
    """Share of each shape that is uniform over the bins, so that no count is impossible."""
    ratio_spread: float = 0.2
    """Prior standard deviation of the logarithm of a median length over the median displacement, around its usual
    value."""
    curve_nats: float = 4.0
    """Nats by which the log prior of smooth curves is lower: they follow noise more than the shapes do."""
    trust_units: float = 30.0
    """Noise units of the answer at which the shapes and smooth curves alone have equal weight. Seen on the trial data:
    between 15 and 100 units, shapes are better on Cabspotting, curves on Geolife and T-Drive."""


@dataclass(frozen=True)
class SpikeSettings:
    """Recordings that were cut at the same length."""

    cut_chance: float = 0.05
    """Prior probability that recordings were cut; the evidence is that of all groups of bins together."""
    spike_chance: float = 0.25
    """Prior probability of a spike in a group of bins, if recordings were cut."""
    spike_shares: tuple[float, ...] = tuple(np.linspace(0.1, 0.95, 12).tolist())
    """Possible shares of a spike in its group."""
    slopes: tuple[float, ...] = (0.0, -1.2, -0.6, -0.3, 0.3, 0.6, 1.2)
    """Possible log slopes of a group, in nats per bin; the first is level."""
    level_chance: float = 0.5
    """Prior probability that a group is level."""
    most_nats: float = 50.0
    """Largest log odds; keeps the exponential within the range of floats."""


@dataclass(frozen=True)
class SpeedSettings:
    """Mean and top speeds, which are about lognormal."""

    middles: int = 24
    """Number of medians of the lognormal shapes, evenly spaced in the logarithm."""
    spreads: tuple[float, ...] = (0.25, 0.45, 0.7, 1.0, 1.4)
    """Standard deviations of the logarithm."""
    least_inside: float = 0.49
    """Least share of a shape within the bins; just below a half, so that a median at the last edge counts."""
    slowest: float = 1e-3
    """Least ratio of a median to the fastest speed; slower shapes would be entirely in the first bin."""
    anything_share: float = 0.002
    """Share of each shape that is uniform over the bins, so that no count is impossible."""


@dataclass(frozen=True)
class GapRatioSettings:
    """Ratios of gaps between points to the sampling interval of their trajectory, which is the median gap."""

    at_interval: tuple[float, ...] = (0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97)
    """Share of the gaps that equal the sampling interval."""
    scales: tuple[float, ...] = (0.05, 0.15, 0.4, 1.0)
    """Decay scales of the log ratio of the other gaps."""
    shorter: tuple[float, ...] = (0.05, 0.2, 0.35, 0.5)
    """Share of the other gaps that are shorter; at most half, because the interval is the median."""
    anything_share: float = 0.005
    """Share of each shape that is uniform over the bins, so that no count is impossible."""
    least_ratio: float = 1e-3
    """Lower bound of a ratio before its logarithm is taken."""
    curve_nats: float = 4.0
    """Nats by which the log prior of a smooth curve without a spike is lower. With a smaller value, noise alone favours
    the curves. Chosen on the trial data."""


@dataclass(frozen=True)
class IntervalSettings:
    """Median sampling intervals."""

    unusual_share: float = 0.03
    """Share of the prior of median intervals that is uniform, independent of the mean intervals."""
    same_edge_s: float = 1e-4
    """Tolerance in seconds for equal edges of bins."""


@dataclass(frozen=True)
class HourSettings:
    """Departures by hour of the day and by weekday. Chosen on the trial data as a whole."""

    any_hour_share: float = 0.03
    """Least share of the departures that is uniform over the hours. Next to a sharp peak a smooth curve falls to zero,
    and the few trajectories at other hours would be missing."""
    any_hour_noise: float = 0.25
    """The uniform share as a multiple of the relative noise of all hours, if that is more: a curve through noise alone
    is steep."""
    peak_chance: float = 0.05
    """Prior probability that nearly all recordings begin in the same hour, or on the same day."""
    peak_noise_units: float = 8.0
    """Least count of such a peak in noise units; noise alone reaches it in one of 24 hours once in 250 releases."""
    peak_shares: tuple[float, ...] = tuple(np.linspace(0.6, 0.995, 13).tolist())
    """Possible shares of the departures in such a peak, the others being uniform; the curves model smaller peaks."""
    peak_seen: float = 0.5
    """Least share of the total that the noisy count of the hour must have, because the noise has long tails."""
    usual_noise_units: float = 6.0
    """Signal of the whole answer, in noise units, that lowers the log prior of the typical days by one nat."""
    deviation: float = 0.5
    """Prior scale of the spread of an hour's log deviation from the average of the shapes."""
    week_rounds: int = 2
    """Rounds of estimating the weekdays and the weekend's hours in turn."""
    small_error: float = 0.05
    """Relative noise of a day's plain sum below which the sum is not weighted by expected hours."""
    weekend_ratios: tuple[float, ...] = tuple(np.exp(np.linspace(-1.6, 1.6, 17)).tolist())
    """Possible ratios of trips on a weekend day to those on a working day."""
    weekend_ratio_spread: float = 0.4
    """Prior standard deviation of the logarithm of that ratio."""
    day_spreads: tuple[float, ...] = (0.02, 0.06, 0.15, 0.35, 0.8, 2.0, 5.0)
    """Possible standard deviations of a day relative to the mean of its kind (working day or weekend)."""
    least_day: float = 0.02
    """Least ratio of a day's trips to the mean of its kind."""


@dataclass(frozen=True)
class WeekendSettings:
    """Difference of the weekend's hours from those of other days. The prior was changed after inspecting trial data."""

    waves_per_day: tuple[int, ...] = (1, 2, 3, 4)
    """Frequencies (cycles per day) of the waves whose sum is the log ratio; a cosine and a sine of each."""
    strengths: tuple[float, ...] = (0.1, 0.3, 0.6, 1.2)
    """Possible standard deviations of the first wave; that of the k-th is smaller by 1/√k."""
    chances: tuple[float, ...] = (0.4, 0.25, 0.2, 0.1, 0.05)
    """Prior probabilities of no difference, and of each strength."""
    steps: int = 12
    """Gauss–Newton steps."""
    most_log_ratio: float = 4.0
    """Largest log ratio; keeps the iteration within bounds."""
    most_share: float = 0.98
    """Largest share of an hour's trips that is on the weekend."""


@dataclass(frozen=True)
class PlaceHourSettings:
    """Hours at which trips start and end in each place."""

    similar_h: float = 3.5
    """Correlation length in hours: the width of a Gaussian wrapped around the clock."""
    weekend_share: float = 0.5
    """Share of the variance that differs between working days and the weekend."""
    own: tuple[float, ...] = (0.0, 0.15, 0.3, 0.6, 1.2)
    """Possible standard deviations of a place's own relative share at an hour."""
    own_chances: tuple[float, ...] = (0.3, 0.25, 0.25, 0.15, 0.05)
    """Prior probabilities of these."""
    commuting: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4, 0.8)
    """Possible standard deviations of the relative share that follows the distance from the centre."""
    commuting_chances: tuple[float, ...] = (0.15, 0.25, 0.3, 0.25, 0.05)
    """Prior probabilities of these. Most cities have moderate commuting."""
    ratio_bounds: tuple[float, float] = (0.05, 20.0)
    """Smallest and largest ratio of a place's share at an hour to that of all places."""


@dataclass(frozen=True)
class FlowSettings:
    """Trips between regions."""

    gravity_pairs: int = 60_000
    """Pairs of ends for the numerical integration of the gravity model: 60,000 stratified draws with a fixed seed."""
    least_expected: float = 1e-4
    """Least share of the pairs in a bin of displacements for which the bin has its own factor."""
    factor_bounds: tuple[float, float] = (0.05, 20.0)
    """Smallest and largest factor of distance."""
    independent_share: float = 0.02
    """Weight of start × end next to the gravity model, so that no pair of regions is impossible."""
    mean_rounds: int = 30
    """Rounds of raking the prior mean to starts and ends."""
    posterior_rounds: int = 10
    """Rounds of raking the posterior."""
    posterior_power: float = 0.5
    """Exponent of the factors there; below 1, because the posterior is also informative about starts and ends."""
    least: float = 1e-9
    """Trajectories added to the starts and ends of each region, so that no region is empty."""


@dataclass(frozen=True)
class FieldSettings:
    """Densities of points and ends."""

    end_point_power: float = 1.5
    """Exponent of the occupancy in the prior of end points inside a block: they concentrate in its busiest cells. The
    network was trained with this value."""
    tilt_spreads: tuple[float, float] = (0.01, 1.0)
    """Smallest and largest standard deviation of the difference of starts and ends in a block, as a share of their
    sum."""
    tilt_sizes: int = 12
    """Number of such standard deviations."""
    tilt_rounds: int = 30
    """Rounds of expectation maximisation of their distribution."""
    most_tilt: float = 0.9
    """Largest difference between starts and ends in a block, as a share of their sum."""


@dataclass(frozen=True)
class MappedDensitySettings:
    """Densities that follow a road map."""

    road_rates: tuple[float, ...] = (16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25)
    """Expected points per cell width of road, from motorway to service, and per cell without a map: each class carries
    twice as much as the next. The best of four rules on simulated cities (research/log.md)."""
    off_road_rate: float = 0.05
    """Expected points per cell without a road."""
    rate_spread: float = 0.3
    """Prior standard deviation of a rate's correction at one level."""
    least_correction: float = 0.05
    """Least correction of a rate."""
    own_spread: float = 0.3
    """Prior standard deviation of the coefficients of a cell's own classes in the regression on neighbouring cells."""
    around_spread: float = 0.1
    """Prior standard deviation of the coefficients of the neighbouring cells."""


@dataclass(frozen=True)
class WaySettings:
    """The density of distance travelled, given that of time."""

    standing: float = 0.1
    """Expected share of a trip's time that it stands still at its two ends together: half a minute of five."""
    least_moving: float = 0.3
    """Least share of a cell's time that is spent moving."""
    usual_spread: float = 0.3
    """Usual standard deviation of the logarithm of a block's pace: a third faster or slower than elsewhere."""
    merged_blocks: tuple[int, ...] = (8, 4, 2, 1)
    """Sides of the blocks that correct the expectation one after the other, in blocks of the answer."""


CURVES = CurveSettings()
DAY_SHAPES = DayShapeSettings()
DURATIONS = DurationSettings()
LENGTHS = LengthSettings()
SPIKES = SpikeSettings()
SPEEDS = SpeedSettings()
GAP_RATIOS = GapRatioSettings()
INTERVALS = IntervalSettings()
HOURS = HourSettings()
WEEKEND_HOURS = WeekendSettings()
PLACE_HOURS = PlaceHourSettings()
FLOWS = FlowSettings()
FIELDS = FieldSettings()
MAPPED_DENSITY = MappedDensitySettings()
WAYS = WaySettings()

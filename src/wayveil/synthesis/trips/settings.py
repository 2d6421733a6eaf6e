"""Settings of the stage that draws trips before they have a route.

The values were set by hand. The description of a field mentions if it was chosen on the trial data (research/log.md);
for the others no comparison with other values is recorded.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TripSettings:
    """How ends, lengths, durations and numbers of points are drawn."""

    zone_cells: int = 10
    """Side of a zone in base cells: a kilometre in a city. Each pair of zones gets a whole number of trips."""
    displacement_classes: int = 4
    """Classes of the displacement of a pair of zones within a factor of two."""
    run_trips: float = 16.0
    """Trips in a run of neighbouring pairs of zones, whose sum is kept. Chosen on the trial data; longer runs make
    relations between trajectories worse."""
    ends_per_trip: int = 16
    """Pairs of ends that are drawn per trip, so that raking has a choice."""
    ends_rounds: int = 8
    """Rounds of raking the drawn ends to flows, displacements and districts."""
    durations_per_trip: int = 6
    """Durations that are drawn per trip, so that raking has a choice."""
    durations_rounds: int = 6
    """Rounds of raking the drawn durations to speeds and durations."""
    most_factor: float = 5.0
    """Largest factor in a step of raking, so that few draws in a bin do not get extreme weights."""
    weight_bounds: tuple[float, float] = (0.05, 20.0)
    """Smallest and largest weight of a pair of ends, relative to the mean."""
    district_depth: int = 8
    """Depth of the cuts of the scope into 2^8 = 256 districts with about equal numbers of ends."""
    least_detour: float = 1.01
    """Least ratio of a trip's length to its displacement: no route is exactly straight."""
    shortest_s: float = 10.0
    """Least duration of a trip in seconds; bins of durations begin at zero."""
    spare_time: float = 1.25
    """Least ratio of a duration to that at the scope's fastest speed, so that the speed can vary along the route."""


@dataclass(frozen=True)
class OnePointSettings:
    """When trajectories of a single point are assumed to exist."""

    clear_sd: float = 3.0
    """Standard deviations of noise by which a count must exceed zero."""


@dataclass(frozen=True)
class ExchangeSettings:
    """How trips exchange departures, so that each place has its own distribution of hours."""

    sweeps: int = 60
    """Number of possible exchanges of departures for each trip."""
    factor_rounds: int = 15
    """Rounds of fitting the factors of starts and ends."""
    most_factor: float = 5.0
    """Largest factor in a step of that fit, and the inverse of the smallest."""


TRIPS = TripSettings()
ONE_POINT = OnePointSettings()
EXCHANGE = ExchangeSettings()

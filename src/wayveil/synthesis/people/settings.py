"""Settings of the assignment of trips to people."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PeopleSettings:
    """Distances and times of the assignment; set by hand on the simulated city."""

    snap_m: float = 600.0
    """Maximum distance by which a start or end is moved, to the place where the person is or goes."""
    repeat_m: float = 900.0
    """A leg that the person has travelled before may replace a trip whose start and end are at most this far away."""
    hour_m: float = 700.0
    """Distance that counts as much as a departure one hour too early or too late."""
    other_kind_of_day_m: float = 30_000.0
    """Distance between working days and weekends in a search: so large that trips stay on their kind of day."""
    nearest: int = 16
    """Candidate trips for each leg."""
    tolerance: float = 0.3
    """How much farther than the true k-th nearest trip the k-th candidate may be, as a share; makes searches faster."""
    least_unassigned: float = 0.7
    """A search tree is rebuilt when a smaller share of its trips than this is still unassigned."""
    range_rounds: int = 100
    """Rounds in which pairs of people exchange a trip, so that their radii of gyration come nearer to those wanted."""
    range_tries: int = 8
    """Exchanges that each pair tries in a round."""
    least_stay_s: float = 60.0
    """Minimum time between two trips of a person."""
    travel_reserve: float = 2.0
    """Safety factor on the time that the straight line between two trips takes at top speed."""


SETTINGS = PeopleSettings()

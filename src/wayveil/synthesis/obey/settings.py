"""Settings of the stages that make trajectories obey rules: one frozen object for each stage.

No value was tuned on trial data. They were set by hand; the benchmarks `closures.py`, `closed_hours.py` and
`rules_bench.py`, which use simulated data, measure their effect.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class SteeringSettings:
    """How routes and densities avoid what rules forbid."""

    blocked_factor: float = 1_000.0
    """Factor on the cost of an edge that breaks a rule; finite, so that a trip that starts inside finds a way out."""
    touched_m: float = 1.0
    """Least length in metres that must violate a rule for an edge to break it; less is round-off of overlays."""
    forbidden_m: float = 30.0
    """Metres of a candidate's route that may break a rule: a route may cut a corner with no point inside."""
    least_density: float = 1e-6
    """Share of a density that remains in closed places, so that no district becomes empty."""
    spread_m: float = 100.0
    """Least distance in metres over which the density of a closed place is spread around it."""
    spread_per_width: float = 0.25
    """That distance as a share of the width (square root of the area) of the largest closed area."""
    widest_spread_m: float = 2_000.0
    """Upper limit of that distance in metres."""
    widest_spread_share: float = 0.1
    """Upper limit of that distance as a share of the longer side of the scope."""
    least_open_share: float = 0.02
    """Lower bound of the open share of the density around a place; keeps the factor near a closed area finite."""
    cell_samples: int = 3
    """Positions along each side of a cell at which it is tested whether the cell is open."""
    passing_m: float = 60.0
    """Least length in metres inside an area with hours for which a route counts as passing it."""
    exchangeable_share: float = 0.7
    """Share of the trips elsewhere at open hours that count as partners, because not every exchange is legal."""


@dataclass(frozen=True)
class DepartureSettings:
    """How departures are changed."""

    exchange_rounds: int = 32
    """Rounds in which trips are paired at random to exchange departures; each round pairs as many as possible."""
    near_minutes: int = 20
    """Shifts of up to this many whole minutes are tried first: the smallest change."""
    draws: int = 24
    """Number of other trips' departures that are tried on the same day, and again on any day."""
    grid_s: float = 1_800.0
    """Seconds between the shifts that are tried last, over the whole week."""
    columns: int = 32
    """Shifts that are tested together; most trips find one among the first."""
    tracks: int = 2_000
    """Tracks that are tested together; bounds the memory."""
    block: int = 2_000_000
    """Points times shifts that are tested together; bounds the memory (about 16 MB per array)."""


@dataclass(frozen=True)
class DescentSettings:
    """Gradient descent on coordinates."""

    rounds: int = 6
    """Rounds for each track; after each round the track is checked with the exact rules."""
    steps: int = 20
    """Steps of Adam in a round."""
    growth: float = 1.4
    """Factor on the weight of the rules from round to round, so that they dominate in the end."""
    neighbours: int = 4
    """Points before and after a violation that move with it, so that the track stays smooth."""
    stay_weight: float = 0.002
    """Weight of a squared displacement, in 1/m."""
    stay_weight_end: float = 0.02
    """The same weight for the first and the last point, whose positions matter more."""
    smooth_weight: float = 0.004
    """Weight of the squared difference of neighbouring displacements, in 1/m."""
    attraction_m: float = 4.0
    """Weight of the logarithm of the density, in metres: moved points prefer places where people are."""
    density_floor: float = 1e-3
    """Share of the largest density that is added before the logarithm, so that it is finite."""
    jitter_m: float = 0.3
    """Standard deviation of the initial displacement in metres; it breaks ties, such as in the middle of a road."""
    depth_per_step: float = 40.0
    """Adam's step is the track's largest penalty divided by this, so that two rounds suffice to cross the violation."""
    least_step_m: float = 0.7
    """Lower limit of Adam's step in metres."""
    most_step_m: float = 10.0
    """Upper limit of Adam's step in metres."""
    windows: tuple[int, ...] = (512, 4096)
    """Numbers of points for which the descent is compiled; each compilation takes seconds."""
    few_rules: int = 8
    """Up to this many rules are all compiled in, so that the next shard can use the same compiled program."""
    most_rules: int = 40
    """Largest number of rules that are compiled in; more take minutes to compile, and repair handles the others."""
    first_moment: float = 0.9
    """Decay of Adam's mean of gradients; the usual value."""
    second_moment: float = 0.95
    """Decay of Adam's mean of squared gradients; below the usual 0.999 because a round has only 20 steps."""


@dataclass(frozen=True)
class RepairSettings:
    """Moves of single points after the descent."""

    margin_m: float = 0.5
    """Metres by which a point is moved clear of an area's border; written degrees round to about a centimetre."""
    around: int = 3
    """Points before and after a moved point whose steps are checked with it."""
    radii_m: tuple[float, ...] = (13.0, 24.0, 45.0)
    """Distances of the moves that are tried, in metres: across a narrow, a typical and a wide street."""
    directions: int = 12
    """Directions of the moves that are tried."""
    passes: int = 2
    """Number of times that each violating point is tried."""
    windows: int = 256
    """Violating points that are tried together; bounds the memory."""
    end_cost_m: float = 1_000.0
    """Extra cost in metres of moving an end of a trajectory, so that inner points are preferred."""


@dataclass(frozen=True)
class RefineSettings:
    """The sequence of corrections."""

    deep_m: float = 60.0
    """Depth in metres inside a closed area above which another departure is a smaller change than moving points."""
    repairs: int = 3
    """Rounds of repair; a round may create a violation elsewhere that the next one corrects."""
    moved_m: float = 0.05
    """Least displacement in metres for which a point counts as moved; less is rounding."""
    judged_points: int = 1 << 18
    """Points that are checked at a time; a copy of all points would be the largest array."""


STEERING = SteeringSettings()
DEPARTURES = DepartureSettings()
DESCENT = DescentSettings()
REPAIR = RepairSettings()
REFINE = RefineSettings()

REPLACEMENTS = 5
"""Maximum number of times that trajectories that still break a rule are replaced by other candidates."""

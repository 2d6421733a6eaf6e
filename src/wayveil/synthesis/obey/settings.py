"""Settings of the stages that make trajectories obey rules: one frozen object for each stage.

No value was tuned on trial data. They were set by hand, and the scripts `closures.py`, `closed_hours.py` and
`rules_bench.py` of the benchmarks, which use simulated data, watch their effect.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class SteeringSettings:
    """How routes and densities avoid what rules forbid."""

    blocked_factor: float = 1_000.0
    """Factor on the cost of an edge that breaks a rule; finite, so that a trip that starts inside finds a way out."""
    touched_m: float = 1.0
    """Metres against a rule from which on an edge counts as breaking it; less is round-off of overlays."""
    forbidden_m: float = 30.0
    """Metres of a candidate's route that may break a rule: a route may cut a corner with no point inside."""
    least_density: float = 1e-6
    """Share of a density that stays where nobody may be, so that no district becomes empty."""
    spread_m: float = 100.0
    """Metres over which the density of a closed place is spread around it, at least."""
    spread_per_width: float = 0.25
    """The same as a share of the width (square root of the area) of the largest closed area: large areas divert far."""
    widest_spread_m: float = 2_000.0
    """The same at most, in metres."""
    widest_spread_share: float = 0.1
    """The same at most, as a share of the longer side of the scope."""
    least_open_share: float = 0.02
    """Share of the density around a place that counts as open at least; keeps the factor near a closed area finite."""
    cell_samples: int = 3
    """Positions along each side of a cell at which it is tested whether the cell is open."""
    passing_m: float = 60.0
    """Metres of a route inside an area with hours from which on the trip passes the area."""
    exchangeable_share: float = 0.7
    """Share of the trips elsewhere at open hours that count as partners; not every exchange is legal."""


@dataclass(frozen=True)
class DepartureSettings:
    """How trips get another departure."""

    exchange_rounds: int = 32
    """Rounds in which trips ask random others to exchange departures; each round pairs as many as it can."""
    near_minutes: int = 20
    """Shifts of up to this many whole minutes are tried first: the smallest change."""
    draws: int = 24
    """Departures of other trips that are tried on the same day, and as many on any day."""
    grid_s: float = 1_800.0
    """Seconds between the shifts that are tried last, over the whole week."""
    columns: int = 32
    """Shifts that are tested together; most trips find one among the first."""
    tracks: int = 2_000
    """Tracks that are tested together; bounds the memory."""
    block: int = 2_000_000
    """Points times shifts that are tested together; bounds the memory (about 16 MB an array)."""


@dataclass(frozen=True)
class DescentSettings:
    """Gradient descent on coordinates."""

    rounds: int = 6
    """Rounds for each track; after each the exact rules decide whether the track still breaks one."""
    steps: int = 20
    """Steps of Adam in a round."""
    growth: float = 1.4
    """Factor on the weight of the rules from round to round, so that they win in the end."""
    neighbours: int = 4
    """Points before and after a violation that move with it, so that the track stays smooth."""
    stay_weight: float = 0.002
    """Weight of a squared displacement, in 1/m."""
    stay_weight_end: float = 0.02
    """The same for the first and the last point: where trips start and end matters more."""
    smooth_weight: float = 0.004
    """Weight of the squared difference of neighbouring displacements, in 1/m."""
    attraction_m: float = 4.0
    """Weight of the logarithm of the density, in metres: moved points prefer places where people are."""
    density_floor: float = 1e-3
    """Share of the largest density that is added before the logarithm, so that it is finite."""
    jitter_m: float = 0.3
    """Standard deviation of the start, in metres: on the middle of a road both sides are equally near."""
    depth_per_pace: float = 40.0
    """A step of Adam is the deepest penalty of the track over this, so that two rounds cross the violation."""
    least_pace_m: float = 0.7
    """The same at least, in metres."""
    most_pace_m: float = 10.0
    """The same at most, in metres."""
    windows: tuple[int, ...] = (512, 4096)
    """Numbers of points for which the descent is compiled; each compilation takes seconds."""
    few_rules: int = 8
    """Up to this many rules all are compiled in, so that the next shard needs no other program."""
    most_rules: int = 40
    """Rules that are compiled in at most: more take minutes to compile, and repair handles the others."""
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
    """Points before and after a moved point whose steps are judged with it."""
    radii_m: tuple[float, ...] = (13.0, 24.0, 45.0)
    """Distances of the moves that are tried, in metres: beyond a narrow, a usual and a wide street."""
    directions: int = 12
    """Directions of the moves that are tried."""
    passes: int = 2
    """How often each violating point is tried."""
    windows: int = 256
    """Violating points that are tried together; bounds the memory."""
    end_cost_m: float = 1_000.0
    """Metres that moving an end of a trajectory counts extra, so that inner points are preferred."""


@dataclass(frozen=True)
class RefineSettings:
    """The order of cures."""

    deep_m: float = 60.0
    """Metres inside a closed area from which on another departure is a smaller change than moving points."""
    repairs: int = 3
    """Rounds of repair; each may create a violation elsewhere that the next one cures."""
    moved_m: float = 0.05
    """Metres from which on a point counts as moved; less is rounding."""
    judged_points: int = 1 << 18
    """Points that are judged at a time; a copy of all points would be the largest array."""


STEERING = SteeringSettings()
DEPARTURES = DepartureSettings()
DESCENT = DescentSettings()
REPAIR = RepairSettings()
REFINE = RefineSettings()

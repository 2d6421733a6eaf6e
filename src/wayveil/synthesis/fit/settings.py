"""Settings of the stage that fits the weights of the candidates.

The values were set by hand. Comparisons with other values are recorded only where the description of a field mentions
one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class FitSettings:
    """Mirror descent on the logarithms of the weights."""

    rounds: int = 40
    """Rounds over all views."""
    log_weight_bounds: tuple[float, float] = (-4.0, 2.5)
    """Smallest and largest logarithm of a weight relative to the mean: at most twelve times the mean."""
    pull_back: float = 0.02
    """κ in units of a step: shrinkage of each log-weight towards zero in a round."""
    forbidden_log_weight: float = -60.0
    """Log-weight of candidates that break a rule: negligible, but finite."""
    floor: float = 1e-6
    """Added to shares before their ratio is taken, so that it is finite."""
    most_log_ratio: float = 1.0
    """Largest logarithm of target / current share in a step."""
    noise_left: float = 0.2
    """Variance that remains in a smoothed estimate, divided by noise²: a tenth of the variance before, 2·noise²."""
    block_m: float = 1_600.0
    """Side in metres of the blocks in which the occupancy is fitted. Smaller blocks improved the trip metric by .5 %
    and took 15 % more time (research/log.md)."""
    district_depth: int = 9
    """Depth of the cuts into 2^9 = 512 districts with about equal numbers of ends, whose starts and ends are fitted."""
    step: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType(
            {
                "occupancy": 0.5,
                "displacement": 0.3,
                "duration": 0.5,
                "speed": 0.5,
                "starts": 0.7,
                "ends": 0.7,
                "origin_destination": 0.7,
                "zone_pairs": 0.5,
                "length": 0.7,
            }
        )
    )
    """Length of a step for each view; a step of 1 would meet its targets at once and change the other views more."""


FIT = FitSettings()

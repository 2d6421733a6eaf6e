"""The constants of the evaluation of trips."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Sizes, distances and thresholds; none of them was tuned on data."""

    most_trips: int = 10_000
    """Trips of each side in the tasks and tables: bounds the time to about a minute."""
    most_points: int = 1_500_000
    """Points of each side, for dense recordings."""
    most_classified: int = 3_000
    """Trips of each side for the classifier and the comparison of features."""
    fewest: int = 20
    """With fewer trips than this on one side, nothing can be said about a population."""
    folds: int = 5
    """Folds of the cross-validation of the classifier."""
    cell_m: float = 500.0
    """Side of the cells for the next move and for speeds: a few blocks."""
    density_cell_m: float = 1_000.0
    """Side of the cells in which starts and ends around a trip are counted: a district."""
    stretch_m: float = 250.0
    """Length of a stretch of street, about two blocks."""
    on_road_m: float = 40.0
    """A point farther than this from every road is not on a street: four times the usual GPS error in a city."""
    road_reach_m: float = 250.0
    """A point farther than this from every road lies where the map has no roads."""
    longest_step_s: float = 300.0
    """Steps over longer gaps say nothing about the speed at a place."""
    rest_mps: float = 1.0
    """Below this speed, which is slower than walking, a vehicle or a person stands still."""
    fewest_steps: int = 30
    """Steps that a cell or an hour needs for a mean speed of the real trips."""
    fewest_synthetic_steps: int = 5
    """Steps that a cell or an hour needs for a mean speed of the compared trips."""
    stay_m: float = 100.0
    """Radius of a stay around its first point."""
    stay_s: float = 300.0
    """Least duration of a stay."""
    telling: int = 8
    """Number of features listed as those that differ most."""
    alike: float = 0.9
    """Features with a higher rank correlation carry the same information; only the one that differs more is listed."""


SETTINGS = Settings()
DAY_PARTS_H = (6.0, 10.0, 16.0, 20.0)
"""Local hours at which a part of the day ends: night, morning, midday, afternoon; the last part is the evening."""

"""The result of an evaluation of trips."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class TripScore:
    """One score, its floor, and what a reader should conclude."""

    value: float
    floor: float
    """The score of one half of the real trips against the other half."""
    unit: str
    better: str
    """"lower", "higher" or "near 1"."""
    compares: str
    conclusion: str


@dataclass(frozen=True)
class TellingFeature:
    """A feature that differs between real and synthetic trips: medians, and the distance between the distributions."""

    name: str
    group: str
    real_median: float
    synthetic_median: float
    distance: float
    """Kolmogorov–Smirnov distance, from 0 (alike) to 1."""
    floor: float
    """The distance between two halves of the real trips."""


@dataclass(frozen=True)
class TripEvaluation:
    """Scores of single trips by name, and the features that give synthetic trips away.

    Privacy: not private (trusted side only); computed from the private data.
    """

    scores: dict[str, TripScore]
    telling: tuple[TellingFeature, ...]
    trips: int
    """Trips of each side that were compared."""
    left_out: tuple[str, ...] = ()
    """Scores that this data does not allow."""

    def __str__(self) -> str:
        """One line per score with its floor and conclusion, then one per telling feature."""
        width = max(map(len, self.scores), default=6)
        lines = [f"{'score':<{width}}    value    floor"]
        for name, score in self.scores.items():
            lines.append(f"{name:<{width}}  {score.value:7.3f}  {score.floor:7.3f}  {score.conclusion}")
        if self.telling:
            lines.append("features that differ most (median real, median synthetic, distance):")
        for feature in self.telling:
            medians = f"{feature.real_median:.3g} {feature.synthetic_median:.3g}"
            lines.append(f"  {feature.name} {medians} {feature.distance:.2f}")
        return "\n".join([*lines, *([f"left out: {', '.join(self.left_out)}"] if self.left_out else [])])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "scores": {name: asdict(score) for name, score in self.scores.items()},
            "telling": [asdict(feature) for feature in self.telling],
            "trips": self.trips,
            "left_out": list(self.left_out),
        }

"""Kinds of results that data made from a release can give, and when an error is called good, rough or noise.

`wayveil plan` uses them before the measurement, the data sheet after it, so that the same word means the same error.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of result: what its error is, when it is small, and the questions whose noise decides it.

    `questions` is empty for the number of trips, which follows from nearly all answers (`wayveil.release.number`).
    """

    title: str
    meaning: str
    good: float
    rough: float
    """Largest errors that are called good and rough."""
    questions: tuple[str, ...]

    def word(self, error: float) -> str:
        """The error in a word: 'good', 'rough' or 'noise'."""
        return "good" if error <= self.good else "rough" if error <= self.rough else "noise"


KINDS: Mapping[str, Kind] = {
    "number": Kind("number of trips", "how far off it is", 0.05, 0.3, ()),
    "zones": Kind(
        "trips between zones", "trips counted between the wrong two of 16 zones", 0.2, 0.45,
        ("end_points/coarse", "end_points/detail", "origin_destination/fine"),
    ),
    "streets": Kind(
        "streets", "distance counted in the wrong 100 m cell", 0.3, 0.55, ("occupancy/coarse", "occupancy/detail"),
    ),
    "hours": Kind("hours", "departures counted in the wrong hour of the day", 0.1, 0.25, ("departure_hour",)),
    "lengths": Kind("lengths", "how far off the quartiles are", 0.1, 0.3, ("length", "displacement")),
    "speeds": Kind("speeds", "how far off the quartiles are", 0.1, 0.3, ("mean_speed",)),
}  # fmt: skip
"""The bounds are a convention: a good result shows large differences correctly, a rough one shows their order."""

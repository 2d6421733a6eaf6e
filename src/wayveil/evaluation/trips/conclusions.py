"""What a reader should conclude from each score."""

import math
from dataclasses import dataclass

from wayveil.evaluation.trips.result import TripScore


@dataclass(frozen=True)
class Measure:
    """A score in words: what it compares, the finding, and what follows if it is near the floor, fair, or poor."""

    compares: str
    finding: str
    near: str
    fair: str
    poor: str
    unit: str = ""
    better: str = "lower"
    near_ratio: float = 1.25
    fair_ratio: float = 2.0
    """Errors up to these multiples of the floor are near it, and fair."""
    slack: float = 0.0
    """Differences from the floor below this mean nothing."""

    def score(self, value: float, floor: float) -> TripScore:
        """The score with its conclusion."""
        follows = {0: self.near, 1: self.fair, 2: self.poor}[self._grade(value, floor)]
        sentence = f"{self.finding.format(value=value, floor=floor)}: {follows}."
        return TripScore(value, floor, self.unit, self.better, self.compares, sentence)

    def _grade(self, value: float, floor: float) -> int:
        """0 near the floor, 1 between, 2 far from it."""
        if self.better == "near 1":
            far = abs(math.log(max(value, 1e-9)))
            return 0 if far <= math.log(1 / 0.7) else 1 if far <= math.log(2) else 2
        if self.better == "higher":
            lost = (floor - value) / max(floor, 1e-9)
            return 0 if lost <= 0.1 else 1 if lost <= 0.25 else 2
        if value <= floor * self.near_ratio + self.slack:
            return 0
        return 1 if value <= floor * self.fair_ratio + 2 * self.slack else 2


def _alike(what: str, advice: str) -> Measure:
    """The mean distance of the features of one group."""
    return Measure(
        f"{what}: mean Kolmogorov–Smirnov distance of its features",
        "The distance between the distributions is {value:.2f} ({floor:.2f} between two real halves)",
        f"{what} is as in real trips",
        f"{what} differs somewhat, so look at the features that differ most",
        advice,
        slack=0.02,
    )


MEASURES: dict[str, Measure] = {
    "auc": Measure(
        "real against synthetic trips, by a classifier (AUC; 0.5 = indistinguishable)",
        "The classifier has an AUC of {value:.2f} ({floor:.2f} on two real halves)",
        "single synthetic trips pass for real ones",
        "many single trips are recognised, so test a model of single trips on real data before use",
        "nearly every synthetic trip is recognised, so use totals and do not take a single trip for a real one",
        near_ratio=1.2,
        fair_ratio=1.7,
    ),
    "ks_shape": _alike("the shape of trips", "do not study turns, detours or smoothness of single trips"),
    "ks_speed": _alike("the speed of trips", "do not study speeds, stops or accelerations of single trips"),
    "ks_recording": _alike("the recording", "do not study intervals between points"),
    "ks_departure": _alike("the time of departure", "do not study hours and weekdays of departure"),
    "ks_place": _alike("the popularity of starts and ends", "do not study how often a place is a start or an end"),
    "ks_road": _alike("the relation to roads", "match trips to the map before any use of points on streets"),
    "next_cell": Measure(
        "next 500 m cell, predicted by a model trained on the file, tested on real trips (share of hits)",
        "A model trained on synthetic trips predicts {value:.0%} of real moves ({floor:.0%} if trained on real ones)",
        "routes can be learned from the file",
        "main routes, but not details, can be learned from the file",
        "do not train a model of routes on the file",
        better="higher",
    ),
    "travel_time": Measure(
        "travel time from origin, destination, weekday and hour: mean error on real trips",
        "Travel times are off by {value:.0f} s on average ({floor:.0f} s with a model trained on real trips)",
        "travel times can be learned from the file",
        "travel times are rough",
        "do not train a model of travel times on the file",
        unit="s",
        near_ratio=1.1,
        fair_ratio=1.25,
    ),
    "link_flow": Measure(
        "trips by link of the map: sum of errors over sum of flows (WAPE)",
        "Flows by link are off by {value:.0%} ({floor:.0%} between two real halves)",
        "flows on single links can be used",
        "flows on busy links can be used",
        "use flows on larger streets or areas and not on single links",
        slack=0.02,
    ),
    "street_flow": Measure(
        "trips by 250 m of street: sum of errors over sum of flows (WAPE)",
        "Flows by street are off by {value:.0%} ({floor:.0%} between two real halves)",
        "street flows can be used",
        "flows on busy streets can be used",
        "compare streets only roughly",
        slack=0.02,
    ),
    "directed_street_flow": Measure(
        "trips by 250 m of street and direction: sum of errors over sum of flows (WAPE)",
        "Flows by street and direction are off by {value:.0%} ({floor:.0%} between two real halves)",
        "directions of street flows can be used",
        "directions on busy streets can be used",
        "do not compare the directions of a street",
        slack=0.02,
    ),
    "cell_speed": Measure(
        "mean speed by 500 m cell: mean error",
        "Speeds by place are off by {value:.1f} km/h ({floor:.1f} between two real halves)",
        "speeds by place can be used",
        "fast and slow districts can be distinguished",
        "do not use speeds by place",
        unit="km/h",
        slack=0.5,
    ),
    "hour_speed": Measure(
        "mean speed by hour of the day: mean error",
        "Speeds by hour are off by {value:.1f} km/h ({floor:.1f} between two real halves)",
        "speeds by hour can be used",
        "peak and quiet hours can be distinguished",
        "do not use speeds by hour",
        unit="km/h",
        slack=0.5,
    ),
    "inward": Measure(
        "movement towards the centre by part of the day: root mean square error",
        "Movement towards the centre is off by {value:.2f} km ({floor:.2f} between two real halves)",
        "tidal flows can be used",
        "tidal flows are weaker or later than in the real data",
        "do not study commuting towards the centre and back",
        unit="km",
        slack=0.1,
    ),
    "stays": Measure(
        "stays (5 minutes within 100 m) in 100 trips, relative to the real number",
        "There are {value:.2f} times as many stays as in real trips ({floor:.2f} times in the other real half)",
        "stays are about as frequent as in real trips",
        "stays are too rare or too frequent, but of the same order",
        "do not study stays",
        better="near 1",
    ),
}

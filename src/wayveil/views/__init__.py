"""What is asked of the data.

A view maps one trajectory to a vector φ(T) with ‖φ(T)‖₁ ≤ 1, quantised towards zero to whole multiples of
1/resolution. The answer is Σ φ(T) in exact integers, so adding or removing one trajectory moves it by at most
`resolution` in L1, whatever the number of cells, points or trajectories (docs/method.md, Lemma 1).
"""

from wayveil.questions.relation import AnchorDistance, Relation
from wayveil.views.base import Features, View, exact_sums
from wayveil.views.histograms import (
    Beat,
    Count,
    DepartureHour,
    DepartureWeek,
    Displacement,
    DisplacementLength,
    Duration,
    GapRatio,
    Length,
    LengthDuration,
    MeanInterval,
    MeanSpeed,
    TopSpeed,
)
from wayveil.views.places import EndPointHours, EndPoints, Occupancy, OriginDestination, StartMinusEnd

__all__ = [
    "AnchorDistance",
    "Beat",
    "Count",
    "DepartureHour",
    "DepartureWeek",
    "Displacement",
    "DisplacementLength",
    "Duration",
    "EndPointHours",
    "EndPoints",
    "Features",
    "GapRatio",
    "Length",
    "LengthDuration",
    "MeanInterval",
    "MeanSpeed",
    "Occupancy",
    "OriginDestination",
    "Relation",
    "StartMinusEnd",
    "TopSpeed",
    "View",
    "exact_sums",
]

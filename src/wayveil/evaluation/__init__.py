"""Utility metrics. Trusted side only: all functions here read the private data.

`evaluate(real, synthetic, scope)` computes every metric in `METRICS` with an interval and its floor; `headline`
computes the five that benchmarks need; each metric is also a function in `metrics` or `adatrace_metrics`.
`evaluate_trips` judges single trips.
"""

from wayveil.evaluation.all_metrics import HEADLINE, METRICS
from wayveil.evaluation.paths import Paths, project
from wayveil.evaluation.score import Evaluation, Score, evaluate, floors, headline
from wayveil.evaluation.trips import TripEvaluation, evaluate_trips

__all__ = [
    "HEADLINE",
    "METRICS",
    "Evaluation",
    "Paths",
    "Score",
    "TripEvaluation",
    "evaluate",
    "evaluate_trips",
    "floors",
    "headline",
    "project",
]

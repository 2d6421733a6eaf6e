"""Utility metrics and the scoreboard. Trusted side: everything here sees the private data.

`evaluate(real, synthetic, scope)` gives every metric of `METRICS` with an interval and the floor; `headline` the five
that benchmarks need; each metric is also a function of its own in `metrics` and `adatrace_metrics`.
"""

from wayveil.evaluation.paths import Paths, project
from wayveil.evaluation.score import HEADLINE, METRICS, Evaluation, Score, evaluate, floors, headline

__all__ = ["HEADLINE", "METRICS", "Evaluation", "Paths", "Score", "evaluate", "floors", "headline", "project"]

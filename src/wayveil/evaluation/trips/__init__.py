"""How realistic single trips are, and what a model learns from them. Trusted side: this reads the private data.

`evaluate_trips(real, synthetic, scope)` distinguishes real from synthetic trips with a classifier, compares features of
trips, trains models on the synthetic trips and tests them on real ones, and compares street flows, speeds and stays.
Each score comes with its floor, the score of one half of the real data against the other.
"""

from wayveil.evaluation.trips.evaluate import evaluate_trips
from wayveil.evaluation.trips.result import TellingFeature, TripEvaluation, TripScore

__all__ = ["TellingFeature", "TripEvaluation", "TripScore", "evaluate_trips"]

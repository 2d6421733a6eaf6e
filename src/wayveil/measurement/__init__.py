"""Measurement: exact sums → mechanism → release. The only code that reads private data and spends."""

from wayveil.measurement.exact import exact_answers
from wayveil.measurement.pipeline import SameContentWarning, measure

__all__ = ["SameContentWarning", "exact_answers", "measure"]

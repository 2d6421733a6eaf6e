"""The error bars of the charts on a page, from the release alone.

Privacy: free (post-processing of the release).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.questions.duration import Duration
from wayveil.questions.mean_interval import MeanInterval
from wayveil.release.kinds import KINDS
from wayveil.synthesis.uncertainty.parts import Ranges, moved_errors, wrong_share
from wayveil.synthesis.uncertainty.uncertainty import Uncertainty
from wayveil.synthesis.uncertainty.verdict import scale_error, verdicts

Floats = NDArray[np.float64]

_SECONDS_PER_MINUTE = 60.0
"""Seconds in a minute: durations are measured in seconds and shown in minutes."""
_STANDARD_ERRORS = 1.96
"""Standard errors on each side of an interval that contains the truth in 95 % of cases."""
_LARGEST_LOG_FACTOR = 3.0
"""A range reaches at most a factor of e³ ≈ 20 from its bar."""
_SMALLEST_SHARE = 1e-4
"""If the error shifts a whole distribution, smaller shares are raised to this value."""


@dataclass(frozen=True, eq=False)
class Bars:
    """The likely range (95 %) of each bar of a chart, and what the chart is good for."""

    low: Floats
    high: Floats
    word: str


@dataclass(frozen=True, eq=False)
class ChartErrors:
    """Error bars of every chart, for data made from one release."""

    found: Uncertainty
    words: dict[str, str]
    """'good', 'rough' or 'noise' by kind of result."""

    @classmethod
    def of(cls, found: Uncertainty) -> "ChartErrors":
        return cls(found, {verdict.kind: verdict.word for verdict in verdicts(found)})

    def bars(self, quantity: str, edges: Floats, shares: Floats, trips: int) -> Bars:
        """Error bars of the `shares` of `trips` synthetic trips in the bins of one field of `figures.Quantities`.

        The number of synthetic trips adds an error of its own, 1/√k for a bar of k trips.
        """
        error, word = self._errors(quantity, edges, shares)
        least = np.maximum(shares, 1 / max(trips, 1))
        reach = np.exp(np.minimum(_STANDARD_ERRORS * np.hypot(error, 1 / np.sqrt(least * trips)), _LARGEST_LOG_FACTOR))
        return Bars(shares / reach, np.minimum(least * reach, 1.0), word)

    def _errors(self, quantity: str, edges: Floats, shares: Floats) -> tuple[Floats, str]:
        found = self.found
        if quantity == "start_hour":
            return found.hours(), self.words["hours"]
        if quantity == "start_day":
            return found.days, KINDS["hours"].word(wrong_share(found.days**2, shares))
        if quantity == "length_km":
            return found.lengths(edges), self.words["lengths"]
        if quantity == "speed_kmh":
            return found.speeds(edges), self.words["speeds"]
        duration = found.scale(Duration)
        if quantity == "duration_min":
            return found.durations(_SECONDS_PER_MINUTE * edges), KINDS["lengths"].word(scale_error(duration))
        # The number of points follows from the duration and the sampling interval: both shift the whole distribution.
        scale = math.hypot(duration, found.scale(MeanInterval))
        errors = moved_errors(Ranges(edges, shares), edges, scale, _SMALLEST_SHARE)
        return errors, KINDS["lengths"].word(scale_error(scale))


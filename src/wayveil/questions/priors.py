"""Priors: what is publicly known about a quantity before any data is seen.

A question names its prior; the estimator of its kind (`wayveil.synthesis.estimate.estimators`) turns it into a
distribution. A question with the default prior of its kind needs no code on the synthesis side.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Smooth:
    """Neighbouring bins of a histogram have similar counts, and large values are rare."""

    by_ratios: bool = False
    """Curves may also be smooth in the logarithm of the value."""
    starts_anywhere: bool = False
    """There may be nothing at all below some bin."""
    wide_bins: bool = False
    """Few wide bins that are never merged: a bin's value is its geometric mean."""
    usual_part: float | None = None
    """The usual median as a share of the scope's diagonal, for lengths; None if there is no usual value."""
    related: str | None = None
    """The quantity whose median has about a fixed ratio to this one's."""


@dataclass(frozen=True)
class LogNormal:
    """Values gather around one value within a factor of two or three, as speeds do."""

    long_tails: bool = False
    """A single count far from the expected one is attributed to noise (whose tails are long), not to the data."""


@dataclass(frozen=True)
class CutDurations:
    """Trip durations: about a quarter of an hour, and recordings may all be cut at the same length."""


@dataclass(frozen=True)
class AroundMedian:
    """Ratios to a median: many are exactly one, at most half are smaller and at most half are larger."""


@dataclass(frozen=True)
class RoundSeconds:
    """Sampling intervals: whole seconds, round ones more often, about as long as the mean intervals are."""

    mean: str
    ratio: str
    """The quantities that give the mean intervals, and how close to the median the intervals of a recording are."""


@dataclass(frozen=True)
class DailyRhythm:
    """Hours of the day: usual days, a single peak, or a smooth curve that never reaches zero."""


@dataclass(frozen=True)
class Independent:
    """A table is about the product of its margins."""

    columns_reach_rows: bool = False
    """A column's value is never smaller than its row's: a trip is at least as long as the distance of its ends."""
    ratio_spreads: tuple[float | None, ...] = (None,)
    """Possible standard deviations of the logarithm of column over row around its typical value; None: any ratio is as
    likely. The evidence weighs them."""


@dataclass(frozen=True)
class WeeklyRhythm:
    """Weekdays by hours: working days are alike, and so are the days of the weekend, with other hours."""


@dataclass(frozen=True)
class Plain:
    """A density over the grid, smooth from block to block."""


@dataclass(frozen=True)
class Traffic:
    """Where points lie, or where trips end: streets continue, and trips end where points lie."""


@dataclass(frozen=True)
class Way:
    """Where distance is covered: about where time is spent, with a smooth pace that depends on the road class."""

    time: str
    ends: str
    """The quantities that give where time is spent, and where trips end."""


@dataclass(frozen=True)
class Difference:
    """A signed difference that divides another field into two."""

    of: str


@dataclass(frozen=True)
class Gravity:
    """Trips between regions follow the ends in both and the distance between them."""


@dataclass(frozen=True)
class RegionalHours:
    """Regions have hours of their own, similar in neighbouring regions and at neighbouring hours."""

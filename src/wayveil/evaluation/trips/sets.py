"""The three sets of trips that every score compares: two halves of the real data, and the synthetic trips."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.scope import Scope
from wayveil.evaluation.paths import Paths
from wayveil.evaluation.trips.settings import SETTINGS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_DIGITS = 5
"""Decimals of a degree (about a metre): both sides are rounded in the same way, so that precision does not distinguish
them."""


@dataclass(frozen=True, eq=False)
class Sets:
    """Equally many trips in each set, so that every score has the sampling error of its floor.

    Privacy: not private (trusted side only).
    """

    real: Paths
    """One half of the real trips; everything is compared with it."""
    other_half: Paths
    """The other half; its score is the floor."""
    synthetic: Paths
    rest: Paths
    """Real trips that the classifier does not see, for the number of starts and ends around a place."""
    classified: int
    """How many trips of each set, from the first on, the classifier sees."""


def make_sets(real: Paths, synthetic: Paths, scope: Scope, seed: int = 0) -> Sets:
    """Draw two halves of the real trips and as many synthetic ones.

    Positions are rounded to five digits of a degree and times to seconds on both sides: the number of digits in a file
    must reveal nothing.
    """
    rng = np.random.default_rng(seed)
    order, drawn = rng.permutation(len(real)), rng.permutation(len(synthetic))
    half = len(real) // 2
    dense = max(len(paths.x_m) / max(len(paths), 1) for paths in (real, synthetic))
    size = min(half, len(synthetic), SETTINGS.most_trips, max(int(SETTINGS.most_points / dense), SETTINGS.fewest))
    # At least a third of each half remains to count the starts and ends around a place.
    classified = min(size, SETTINGS.most_classified, int(half * 2 / 3))
    one, other = order[:half], order[half : 2 * half]
    rest = np.r_[one[classified:], other[classified:]]
    reference, other_half = (rounded(take(real, index[:size]), scope) for index in (one, other))
    compared = rounded(take(synthetic, drawn[:size]), scope)
    return Sets(reference, other_half, compared, take(real, rest), classified)


def take(paths: Paths, index: Ints) -> Paths:
    """The paths at these positions, in that order."""
    offsets, points = ragged.take(paths.offsets, index)
    return replace(
        paths,
        offsets=offsets,
        x_m=paths.x_m[points],
        y_m=paths.y_m[points],
        t_utc=paths.t_utc[points],
        start_week_s=paths.start_week_s[index],
    )


def rounded(paths: Paths, scope: Scope) -> Paths:
    """Positions to five digits of a degree, about a metre, and times to seconds."""
    lon, lat = scope.to_degrees(paths.x_m, paths.y_m)
    x_m, y_m = scope.to_metres(np.round(lon, _DIGITS), np.round(lat, _DIGITS))
    return replace(paths, x_m=x_m, y_m=y_m, t_utc=np.round(paths.t_utc))


def hours(paths: Paths) -> Floats:
    """Local hour of the day of each point, from that of the trip's start."""
    elapsed_s = paths.t_utc - paths.t_utc[paths.first][paths.owner]
    return (paths.start_clock_s[paths.owner] + elapsed_s) / 3600.0 % 24.0


def cell_codes(x_m: Floats, y_m: Floats, cell_m: float) -> Ints:
    """A number for the square cell of each position; positions outside the box have cells of their own."""
    column = np.clip(np.floor(x_m / cell_m), -(2**20), 2**20).astype(np.int64)
    row = np.clip(np.floor(y_m / cell_m), -(2**20), 2**20).astype(np.int64)
    return (row + 2**20) * 2**22 + column + 2**20

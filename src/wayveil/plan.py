"""The one written rule: which views, at which size, with which share of ε.

Everything here follows from the scope, ε and noisy answers given earlier; the same for every dataset.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from wayveil.bins import Bins, merge_bins
from wayveil.grid import Grid
from wayveil.privacy.budget import Budget
from wayveil.questions.detail_weights import PARTS, coarse_parts
from wayveil.scope import Scope

SHARES: dict[str, Fraction] = {
    name: Fraction(per_mille, 1000)
    for name, per_mille in {
        "count": 10,
        "occupancy/coarse": 90,
        "occupancy/detail": 300,
        "end_points/coarse": 50,
        "end_points/detail": 170,
        "start_minus_end": 25,
        "origin_destination/coarse": 30,
        "origin_destination/fine": 55,
        "length": 62,
        "displacement": 30,
        "displacement_length": 23,
        "length_duration": 20,
        "duration": 30,
        "duration/spikes": 10,
        "mean_speed": 20,
        "top_speed": 10,
        "mean_interval": 20,
        "beat": 5,
        "gap_ratio": 10,
        "departure_hour": 18,
        "departure_week": 12,
    }.items()
}
"""Share of ε of each view; they add up to one. The optimum is flat (docs/method.md). How a field's share is divided
between its coarse blocks and their detail is settled after the noisy count is known (`focused`)."""

FIELDS = ("occupancy", "end_points")
YOUNGER = ("top_speed", "beat")
"""Answers that releases of earlier versions lack; synthesis does without."""
DETAILS = tuple(name for name in SHARES if name.endswith("/detail"))
"""Answers about the middle and the fine cells of a field at once, weighed as `wayveil.questions.detail_weights` says."""


@dataclass(frozen=True)
class Merging:
    """Neighbouring bins become one until each is worth `units` of noise on average, or `fewest` or fewer are left."""

    units: float = 3.0
    fewest: int = 24


MERGING = {name: Merging(units=0.5, fewest=12) for name in ("mean_interval", "beat")}
"""Devices record at one or two rhythms: merged bins blur a spike more than noise does, until the noise drowns it."""


WEEK_PARTS = (24, 8, 4, 2, 1)
"""Parts of a day in which the week can be asked."""

HOURS = "end_points/hours"
HOURS_PART = Fraction(3, 32)
HOURS_FROM = 11_000.0
"""Where ends lie at which time of day: the part of the end points' share that is asked about it, and how many noise
units that share must be worth. With fewer all hours would stay alike, and the ε would be lost (docs/method.md)."""

CLEAR_UNITS = 0.8
USUALLY_CONCENTRATED = 16.0
"""Noise units that a fine cell must be worth where trajectories are, and how much busier these places are than the
average one before anything is known. Seen on the trial data, one rule for all of it (docs/method.md)."""


@dataclass(frozen=True)
class Levels:
    """Side of a cell at the three levels of a field, in cells of the base grid; each divides the one before it."""

    coarse: int
    middle: int
    fine: int


def focused(budget: Budget, signals: Mapping[str, float], grid: Grid) -> Budget:
    """The same budget with each field's own share divided between coarse blocks and detail by what it is worth.

    Of many end points' share a part is for their hours.

    `signals` are the fields' m̃·ε_v / c, coarse blocks and detail together.
    """
    shares = dict(budget.shares)
    for field, signal in signals.items():
        coarse, detail = f"{field}/coarse", f"{field}/detail"
        both = shares[coarse] + shares[detail]
        if field == "end_points" and signal >= HOURS_FROM:
            shares[HOURS] = both * HOURS_PART
            both -= shares[HOURS]
        shares[coarse] = both * coarse_parts(signal, grid.cells) / PARTS
        shares[detail] = both - shares[coarse]
    return Budget(budget.epsilon, shares)


def field_levels(grid: Grid, signal: float, concentrated: float = USUALLY_CONCENTRATED) -> Levels:
    """16f, 4f and f base cells (the coarsest at most 64), f the smallest of 1, 2, 4, 8 … that can be heard.

    That is where a cell of f × f is worth `CLEAR_UNITS` of noise for those who are there.

    Parameters
    ----------
    signal
        m̃·ε_v / c: how many noise units the whole field is worth, with c the unit's sensitivity.
    concentrated
        How much busier the places of trajectories are than the average place, where another noisy answer tells. Less
        than usual counts as usual: larger cells would be heard better, and sums far away worse.
    """
    fine = 1
    busier = max(concentrated, USUALLY_CONCENTRATED)
    while fine < 64 and busier * signal * fine * fine < CLEAR_UNITS * grid.cells:
        fine *= 2
    return Levels(min(64, 16 * fine) if fine <= 16 else fine * 4, min(4 * fine, 256), fine)


def asymmetry_side(grid: Grid, signal: float) -> int:
    """Side of the blocks on which starts are told from ends: the smallest of 8, 16, 32, 64 with signal·f²/cells ≥ 2."""
    side = 8
    while side < 64 and signal * side * side < 2 * grid.cells:
        side *= 2
    return side


MOST_REGIONS = 128


def region_depth(signal: float) -> int:
    """Depth of the k-d tree of regions: 2^depth of them, 2^depth ≤ sqrt(2·signal), from 4 to MOST_REGIONS."""
    return int(np.clip(np.floor(np.log2(np.sqrt(max(2.0 * signal, 1.0)))), 2, np.log2(MOST_REGIONS)))


def week_parts(signal: float) -> int:
    """Parts of a day in which the week is asked: as many of 24, 8, 4, 2 as are worth three units of noise each."""
    return next((parts for parts in WEEK_PARTS[:-1] if signal >= 3 * 7 * parts), WEEK_PARTS[-1])


def histogram_bins(bins: Bins, signal: float, merging: Merging | None = None) -> Bins:
    """The bins that a histogram worth `signal` units of noise is asked with."""
    rule = merging or Merging()
    run = 1
    while len(bins) / run > max(rule.fewest, signal / rule.units) and run < 64:
        run *= 2
    return merge_bins(bins, run)


def length_bins(scope: Scope) -> Bins:
    """150 m wide up to 3.75 km, then 4 % wide, to the cap; for a small scope everything shrinks with it."""
    unit = min(1.0, np.hypot(scope.width_m, scope.height_m) / 28_000)
    return _mixed(0.15 * unit, 3.75 * unit, 0.04, scope.caps.length_km)


def duration_bins(scope: Scope) -> Bins:
    """20 s wide up to 20 minutes, then 4 % wide, to the cap."""
    return _mixed(20.0, 1200.0, 0.04, scope.caps.duration_h * 3600)


def speed_bins(scope: Scope) -> Bins:
    """1 km/h wide up to 25 km/h, then 4 % wide, to the cap."""
    return _mixed(1.0, 25.0, 0.04, scope.caps.speed_kmh)


def top_speed_bins(scope: Scope) -> Bins:
    """2.5 km/h wide up to 40 km/h, then 5 % wide, to the cap."""
    return _mixed(2.5, 40.0, 0.05, scope.caps.speed_kmh)


def coarse_length_bins(scope: Scope) -> Bins:
    """18 bins: below a small length, then logarithmic to the cap."""
    unit = min(1.0, np.hypot(scope.width_m, scope.height_m) / 28_000)
    return _logarithmic(0.5 * unit, max(scope.caps.length_km * 0.75, unit), 18)


def coarse_duration_bins(scope: Scope) -> Bins:
    """20 bins: below two minutes, then logarithmic to the cap."""
    return _logarithmic(120.0, max(scope.caps.duration_h * 3600, 300.0), 20)


def displacement_bins(scope: Scope) -> Bins:
    """15 bins from standing still to the scope's diagonal, wider and wider."""
    diagonal_km = np.hypot(scope.width_m, scope.height_m) / 1000
    shares = np.array([0, 0.002, 0.006, 0.012, 0.02, 0.03, 0.044, 0.06, 0.08, 0.11, 0.15, 0.2, 0.28, 0.4, 0.56, 1.0])
    return Bins(tuple(float(v) for v in shares * diagonal_km))


def interval_bins(scope: Scope) -> Bins:
    """48 logarithmic bins from 1 s to 20 minutes."""
    return Bins(tuple(float(v) for v in np.exp(np.linspace(0.0, np.log(1200.0), 49))))


def beat_bins() -> Bins:
    """A second wide around each whole second up to 20 s, then 5 % wide, to 20 minutes."""
    longer = np.round(20.5 * np.exp(0.05 * np.arange(82)), 6)  # rounded: the last bit differs between processors
    return Bins((0.0, *(float(v) for v in np.r_[np.arange(1.5, 20.0), longer])))


def gap_ratio_bins() -> Bins:
    """14 bins of gap / beat: three below a half, one for gaps on the beat, fine around it, a tail."""
    return Bins((0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 1.01, 1.05, 1.2, 1.5, 2.0, 3.5, 8.0))


def _mixed(width: float, knee: float, growth: float, top: float) -> Bins:
    linear = np.arange(0.0, min(knee, top), width)
    steps = int(np.ceil(np.log(max(top / knee, 1.0)) / growth))
    tail = knee * np.exp(growth * np.arange(steps + 1)) if top > knee else np.array([top])
    return Bins(tuple(float(v) for v in np.r_[linear, tail]))


def _logarithmic(low: float, high: float, count: int) -> Bins:
    return Bins((0.0, *(float(v) for v in np.exp(np.linspace(np.log(low), np.log(high), count)))))

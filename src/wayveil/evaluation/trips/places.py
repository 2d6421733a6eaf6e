"""Speeds by place and hour, movement towards the centre by part of the day, and stays."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.week import DAY_S
from wayveil.evaluation.paths import Paths
from wayveil.evaluation.trips.sets import cell_codes, hours
from wayveil.evaluation.trips.settings import DAY_PARTS_H, SETTINGS
from wayveil.evaluation.trips.steps import steps_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_FEWEST_BINS = 3
"""Bins with enough steps on both sides that a mean difference needs."""


def speed_errors(real: Paths, other: Paths) -> dict[str, float | None]:
    """Mean absolute error in km/h of the mean speed by 500 m cell and by hour, weighted by the real time there."""
    sides = [_timed_steps(paths) for paths in (real, other)]
    return {
        "cell_speed": _speed_error(*((cell, length, time) for cell, _, length, time in sides)),
        "hour_speed": _speed_error(*((hour, length, time) for _, hour, length, time in sides)),
    }


def _timed_steps(paths: Paths) -> tuple[Ints, Ints, Floats, Floats]:
    """Cell of the middle, hour, length and duration of the steps that are informative about the speed at a place."""
    steps = steps_of(paths)
    gap_s = paths.t_utc[steps.point + 1] - paths.t_utc[steps.point]
    kept = (gap_s > 0) & (gap_s <= SETTINGS.longest_step_s)
    point = steps.point[kept]
    middle = (paths.x_m[point] + steps.dx_m[kept] / 2, paths.y_m[point] + steps.dy_m[kept] / 2)
    cell = cell_codes(*middle, SETTINGS.cell_m)
    return cell, np.floor(hours(paths)[point]).astype(np.int64), steps.length_m[kept], gap_s[kept]


def _speed_error(real: tuple[Ints, Floats, Floats], other: tuple[Ints, Floats, Floats]) -> float | None:
    known, code = np.unique(np.r_[real[0], other[0]], return_inverse=True)
    split = len(real[0])
    tables = []
    for at, (_, length_m, time_s) in ((code[:split], real), (code[split:], other)):
        tables.append([np.bincount(at, weight, minlength=len(known)) for weight in (None, length_m, time_s)])
    (steps_a, length_a, time_a), (steps_b, length_b, time_b) = tables
    kept = (steps_a >= SETTINGS.fewest_steps) & (steps_b >= SETTINGS.fewest_synthetic_steps)
    if kept.sum() < _FEWEST_BINS:
        return None
    difference = np.abs(length_a[kept] / time_a[kept] - length_b[kept] / time_b[kept]) * 3.6
    return float(np.average(difference, weights=time_a[kept]))


def inward_error(real: Paths, other: Paths) -> float | None:
    """RMSE in km of the mean movement towards the centre by part of the day, minus that of the whole day.

    The centre is the median position of the real trips.
    """
    centre = np.median(real.x_m), np.median(real.y_m)
    (a, count), (b, count_b) = (_inward(paths, centre) for paths in (real, other))
    kept = (count >= SETTINGS.fewest_steps) & (count_b > 0)
    if kept.sum() < 2:
        return None
    a, b, weight = a[kept] / count[kept], b[kept] / count_b[kept], count[kept]
    a, b = a - np.average(a, weights=weight), b - np.average(b, weights=weight)
    return float(np.sqrt(np.average((a - b) ** 2, weights=weight)))


def _inward(paths: Paths, centre: tuple[float, float]) -> tuple[Floats, Floats]:
    """Sum of the kilometres by which trips come closer to the centre, and the number of trips, by part of the day."""
    distance_m = np.hypot(paths.x_m - centre[0], paths.y_m - centre[1])
    closer_km = (distance_m[paths.first] - distance_m[paths.last]) / 1000
    part = np.digitize(paths.start_clock_s / 3600, DAY_PARTS_H)
    parts = len(DAY_PARTS_H) + 1
    counts = np.bincount(part, minlength=parts).astype(float)
    return np.bincount(part, closer_km, minlength=parts).astype(float), counts


def stays_per_100(paths: Paths) -> float:
    """Number of stays (five minutes within 100 m of the first point of the stay) in 100 trips."""
    x, y, t = paths.x_m, paths.y_m, paths.t_utc
    stays = free_from = 0
    for at in _may_stay(paths).tolist():
        if at < free_from:
            continue
        end = int(paths.offsets[paths.owner[at] + 1])
        far = np.hypot(x[at + 1 : end] - x[at], y[at + 1 : end] - y[at]) > SETTINGS.stay_m
        leaves = at + 1 + (int(np.argmax(far)) if far.any() else len(far))
        if t[leaves - 1] - t[at] >= SETTINGS.stay_s:
            stays, free_from = stays + 1, leaves
    return 100 * stays / max(len(paths), 1)


def _may_stay(paths: Paths) -> Ints:
    """Points that a trip has not left by more than `stay_m` after `stay_s`: only these can begin a stay."""
    # One sorted axis for all trips: each begins a day after the one before has ended.
    owner = paths.owner
    elapsed = np.maximum(paths.t_utc - paths.t_utc[paths.first][owner], 0.0)
    span = np.maximum.reduceat(elapsed, paths.first) + DAY_S
    clock = elapsed + np.r_[0.0, np.cumsum(span[:-1])][owner]
    then = np.searchsorted(clock, clock + SETTINGS.stay_s)
    point = np.flatnonzero(then <= paths.last[owner])
    then = then[point]
    away_m = np.hypot(paths.x_m[then] - paths.x_m[point], paths.y_m[then] - paths.y_m[point])
    return np.asarray(point[away_m <= SETTINGS.stay_m])

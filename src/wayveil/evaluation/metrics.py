"""The utility metrics: each one a pure function of (real, synthetic).

Jensen–Shannon divergences (JSD) are in nats, without a square root: 0 = equal, ln 2 = 0.6931 = disjoint.
Cells are squares in metres anchored at the scope's south-west corner. Every JSD depends on the sample size, so compare
equal numbers of trajectories, and compare each value with its floor.

Call a metric with two `Paths`, or with two `Trajectories` and a scope: `length(real, synthetic, scope)`.

Privacy: not private (trusted side only).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.core.week import DAY_S
from wayveil.evaluation.paths import Paths, groups, project, waypoints
from wayveil.evaluation.tally import GROUPS, Counts, Mean, Tally, energy_tally, tabulate

_WAYPOINTS = 16
"""Waypoints at equal arc length that represent the shape of a trajectory."""
_RELATION_SAMPLE = 3_000
"""Trajectories of each side: the metric compares all pairs."""
_TIME_SCALE_MPS = 5.0
"""Metres that one second of elapsed time counts as: a slow car."""
_CLOCK_RADIUS_M = 5_000.0
"""Metres: radius of the circle on which the time of day lies, so that noon and midnight are 10 km apart."""
_WHOLE_S = 10
"""Intervals up to this many seconds have a bin per second, longer ones bins that grow by 10 %."""


@dataclass(frozen=True)
class Metric:
    """A metric: calling it returns its value; `tally` returns its counts by groups of trajectories."""

    tally: Callable[..., Tally]
    needs_time: bool = False
    higher_is_better: bool = False
    unbiased: bool = False
    """Its expected floor is 0 at every sample size."""
    draws: int | None = None
    """The largest number of trajectories of each side that it uses; None = all."""

    def __call__(
        self, real: Paths | Trajectories, synthetic: Paths | Trajectories, scope: Scope | None = None, **options: Any
    ) -> float:
        everything = np.arange(GROUPS)
        counted = self.tally(as_paths(real, scope), as_paths(synthetic, scope), **options)
        return counted.score(everything, everything)

    def at(self, **options: Any) -> "Metric":
        """The same metric with fixed options, such as the cell size."""
        return replace(self, tally=partial(self.tally, **options))


def as_paths(data: Paths | Trajectories, scope: Scope | None) -> Paths:
    """Project trajectories with `scope`; paths are passed through."""
    if isinstance(data, Paths):
        return data
    if scope is None:
        raise TypeError("scope= is needed to compare trajectories in metres")
    return project(data, scope)


def metric(**flags: Any) -> Callable[[Callable[..., Tally]], Metric]:
    """Make a metric from the function that computes its counts."""

    def wrap(function: Callable[..., Tally]) -> Metric:
        result = Metric(function, **flags)
        object.__setattr__(result, "__doc__", function.__doc__)
        return result

    return wrap


def _group(paths: Paths) -> NDArray[np.int64]:
    return groups(len(paths), GROUPS, paths.sample_size)


def equal_bins(value: NDArray[np.float64], top: float, bins: int) -> NDArray[np.int64]:
    """Index among `bins` equal bins from 0 to `top`; values outside go to the first or last bin."""
    return np.clip(np.floor(value * (bins / max(top, 1e-12))), 0, bins - 1).astype(np.int64)


def histogram(
    real: Paths, synthetic: Paths, real_value: NDArray[np.float64], synthetic_value: NDArray[np.float64],
    top: float, bins: int,
) -> Counts:  # fmt: skip
    """JSD of one number per trajectory, in equal bins."""
    codes = equal_bins(real_value, top, bins), equal_bins(synthetic_value, top, bins)
    return tabulate(codes[0], _group(real), codes[1], _group(synthetic))


@metric()
def length(real: Paths, synthetic: Paths, *, bins: int = 400) -> Tally:
    """JSD of polyline lengths in 400 equal bins from 0 to the longest real one; longer ones are in the last bin."""
    return histogram(real, synthetic, real.length_m, synthetic.length_m, float(real.length_m.max()), bins)


def _cells(
    one: tuple[NDArray[np.float64], NDArray[np.float64]],
    other: tuple[NDArray[np.float64], NDArray[np.float64]],
    cell_m: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Cell codes of two sets of positions, and a bound on the codes; positions outside the box keep their own cells."""
    column = [np.floor(x / cell_m).astype(np.int64) for x, _ in (one, other)]
    row = [np.floor(y / cell_m).astype(np.int64) for _, y in (one, other)]
    west, south = (min(int(a.min()), int(b.min())) for a, b in (column, row))
    columns = max(int(c.max()) for c in column) - west + 1
    rows = max(int(r.max()) for r in row) - south + 1
    codes = [(r - south) * columns + (c - west) for c, r in zip(column, row)]
    return codes[0], codes[1], rows * columns


@metric()
def density(real: Paths, synthetic: Paths, *, cell_m: float) -> Tally:
    """JSD of the share of sample points in each square cell."""
    a, b, _ = _cells((real.x_m, real.y_m), (synthetic.x_m, synthetic.y_m), cell_m)
    return tabulate(a, _group(real)[real.owner], b, _group(synthetic)[synthetic.owner])


@metric()
def path_density(real: Paths, synthetic: Paths, *, cell_m: float) -> Tally:
    """JSD of the share of path length (points every 50 m) in each square cell; independent of the sampling interval."""
    (xr, yr, owner_r), (xs, ys, owner_s) = real.every_50_m, synthetic.every_50_m
    a, b, _ = _cells((xr, yr), (xs, ys), cell_m)
    return tabulate(a, _group(real)[owner_r], b, _group(synthetic)[owner_s])


def _ends(paths: Paths) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    at = np.concatenate([paths.first, paths.last])
    return paths.x_m[at], paths.y_m[at]


@metric()
def trip(real: Paths, synthetic: Paths, *, cell_m: float) -> Tally:
    """JSD of the joint distribution of (start cell, end cell). At 100 m it is saturated on most data."""
    a, b, cells = _cells(_ends(real), _ends(synthetic), cell_m)
    pairs = [code[: len(code) // 2] * cells + code[len(code) // 2 :] for code in (a, b)]
    return tabulate(pairs[0], _group(real), pairs[1], _group(synthetic))


@metric()
def start(real: Paths, synthetic: Paths, *, cell_m: float) -> Tally:
    """JSD of the share of start points in each square cell."""
    a, b, _ = _cells(_ends(real), _ends(synthetic), cell_m)
    return tabulate(a[: len(real)], _group(real), b[: len(synthetic)], _group(synthetic))


@metric()
def end(real: Paths, synthetic: Paths, *, cell_m: float) -> Tally:
    """JSD of the share of end points in each square cell."""
    a, b, _ = _cells(_ends(real), _ends(synthetic), cell_m)
    return tabulate(a[len(real) :], _group(real), b[len(synthetic) :], _group(synthetic))


@metric()
def endpoints(real: Paths, synthetic: Paths, *, cell_m: float) -> Tally:
    """Mean of `start` and `end`."""
    return Mean((start.tally(real, synthetic, cell_m=cell_m), end.tally(real, synthetic, cell_m=cell_m)))


def _vectors(paths: Paths, which: NDArray[np.int64], with_time: bool) -> NDArray[np.float64]:
    parts = [waypoints(paths, which, _WAYPOINTS, paths.x_m), waypoints(paths, which, _WAYPOINTS, paths.y_m)]
    if with_time:
        elapsed_s = waypoints(paths, which, _WAYPOINTS, paths.t_utc - paths.t_utc[paths.first][paths.owner])
        angle = (paths.start_clock_s[which][:, None] + elapsed_s) * (2 * np.pi / DAY_S)
        parts += [elapsed_s * _TIME_SCALE_MPS, _CLOCK_RADIUS_M * np.cos(angle), _CLOCK_RADIUS_M * np.sin(angle)]
    features: NDArray[np.float64] = np.hstack(parts) / 1_000 / np.sqrt(_WAYPOINTS)
    return features


def _relation(real: Paths, synthetic: Paths, with_time: bool) -> Tally:
    rng = np.random.default_rng(0)
    # One generator for both sides, real first: the subsampling is part of the definition.
    which = [rng.permutation(len(paths))[:_RELATION_SAMPLE] for paths in (real, synthetic)]
    a, b = (_vectors(paths, index, with_time) for paths, index in zip((real, synthetic), which))
    return energy_tally(a, b, _group(real)[which[0]], _group(synthetic)[which[1]])


@metric(unbiased=True, draws=_RELATION_SAMPLE)
def relation(real: Paths, synthetic: Paths) -> Tally:
    """(2·E d(X,Y) − E d(X,X') − E d(Y,Y')) / E d(X,Y), the energy distance between whole trajectories.

    Each trajectory is the vector of 16 waypoints at equal arc length, in km and divided by √16; d is Euclidean;
    3,000 trajectories of each side are drawn with a fixed seed. 0 = the same distribution of whole trajectories.
    """
    return _relation(real, synthetic, with_time=False)


@metric(unbiased=True, draws=_RELATION_SAMPLE, needs_time=True)
def relation_time(real: Paths, synthetic: Paths) -> Tally:
    """`relation` with the time of each waypoint added to the vectors.

    Time enters twice, in metres: the time since the start at 5 m/s, and the local clock as a position on a circle
    of 5 km radius, so that duration and hour are compared together with the place.
    """
    return _relation(real, synthetic, with_time=True)


@metric(needs_time=True)
def start_hour(real: Paths, synthetic: Paths) -> Tally:
    """JSD of the local hour of the first point, 24 bins."""
    codes = [(paths.start_clock_s // 3600).astype(np.int64) for paths in (real, synthetic)]
    return tabulate(codes[0], _group(real), codes[1], _group(synthetic))


@metric(needs_time=True)
def start_week(real: Paths, synthetic: Paths) -> Tally:
    """JSD of the weekday and local hour of the first point, 168 bins."""
    codes = [(paths.start_week_s // 3600).astype(np.int64) for paths in (real, synthetic)]
    return tabulate(codes[0], _group(real), codes[1], _group(synthetic))


@metric(needs_time=True)
def start_place_hour(real: Paths, synthetic: Paths, *, cell_m: float) -> Tally:
    """JSD of the joint distribution of the first point's cell and its local time of day in six parts of four hours."""
    places = [(paths.x_m[paths.first], paths.y_m[paths.first]) for paths in (real, synthetic)]
    *cells, _ = _cells(places[0], places[1], cell_m)
    codes = [
        cell * 6 + (paths.start_clock_s // 14_400).astype(np.int64) for cell, paths in zip(cells, (real, synthetic))
    ]
    return tabulate(codes[0], _group(real), codes[1], _group(synthetic))


@metric(needs_time=True)
def duration(real: Paths, synthetic: Paths) -> Tally:
    """JSD of durations in 100 equal bins from 0 to the 99.5 % quantile of the real ones, larger ones in the last."""
    a, b = (paths.t_utc[paths.last] - paths.t_utc[paths.first] for paths in (real, synthetic))
    return histogram(real, synthetic, a, b, float(np.quantile(a, 0.995)), 100)


@metric(needs_time=True)
def speed(real: Paths, synthetic: Paths) -> Tally:
    """JSD of mean speeds (length / duration) in 100 equal bins from 0 to the 99.5 % quantile of the real ones."""
    a, b = (
        paths.length_m / np.maximum(paths.t_utc[paths.last] - paths.t_utc[paths.first], 1.0)
        for paths in (real, synthetic)
    )
    return histogram(real, synthetic, a, b, float(np.quantile(a, 0.995)), 100)


@metric(needs_time=True)
def interval(real: Paths, synthetic: Paths) -> Tally:
    """JSD of the sampling intervals: whole seconds up to 10, then bins with a width of 10 %."""
    a, b = (_gaps(paths) for paths in (real, synthetic))
    return tabulate(*a, *b)


def _gaps(paths: Paths) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(bin, group) of every gap between two points; a single point counts as a gap of 0."""
    seconds = np.diff(paths.t_utc, append=0.0)
    counted = np.ones(len(seconds), bool)
    counted[paths.last] = False
    single = paths.first[paths.first == paths.last]
    counted[single], seconds[single] = True, 0.0
    seconds = seconds[counted]
    longer = np.log(np.maximum(seconds, _WHOLE_S + 0.5) / (_WHOLE_S + 0.5)) / np.log(1.1)
    code = np.where(seconds < _WHOLE_S + 0.5, np.rint(seconds), _WHOLE_S + 1 + np.floor(longer))
    return code.astype(np.int64), _group(paths)[paths.owner[counted]]


@metric()
def longest_step(real: Paths, synthetic: Paths) -> Tally:
    """JSD of each trajectory's longest step between two points, 100 equal bins to the 99.5 % quantile of the real ones.

    It detects points that cluster in some places with long steps between them; lengths and densities do not show that.
    """
    a, b = (np.maximum.reduceat(paths.steps_m, paths.first) for paths in (real, synthetic))
    return histogram(real, synthetic, a, b, float(np.quantile(a, 0.995)), 100)


@metric(needs_time=True)
def top_speed(real: Paths, synthetic: Paths) -> Tally:
    """JSD of each trajectory's fastest step, 100 equal bins from 0 to the 99.5 % quantile of the real ones."""
    a, b = (_fastest_mps(paths) for paths in (real, synthetic))
    return histogram(real, synthetic, a, b, float(np.quantile(a, 0.995)), 100)


def _fastest_mps(paths: Paths) -> NDArray[np.float64]:
    """(n,) speed of each trajectory's fastest step; steps count as lasting at least one second."""
    seconds = np.ones(len(paths.t_utc))
    np.maximum(np.diff(paths.t_utc), 1.0, out=seconds[:-1])
    seconds[paths.last] = 1.0
    return np.asarray(np.maximum.reduceat(paths.steps_m / seconds, paths.first))

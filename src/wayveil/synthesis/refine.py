"""refine: trajectories that break a rule are changed, as little as it takes, until they obey; the others stay.

First what is exact and cheap: departures traded with others where an area is in its closed hours, new times for
speeds and durations, another departure for whom nobody trades with. Then gradient descent on the coordinates around
each violation. Then, for what remains, departures again and single points at the nearest legal place. Whatever resists
comes back unchanged and is named, so that another candidate can take its place. The exact rules judge what a file would
hold: degrees rounded to 1e-7, whole seconds.

Privacy: free (post-processing).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.progress import Progress, quiet
from wayveil.pyramid import Field
from wayveil.rules.bounds import StayWithin, scope_bounds
from wayveil.rules.hours import has_hours
from wayveil.rules.motion import Motion
from wayveil.rules.one_way import OneWay
from wayveil.rules.pace import MinSpeed
from wayveil.rules.rule import Rule, unique_names
from wayveil.rules.speed import SpeedLimit
from wayveil.scope import Scope
from wayveil.synthesis.departures import open_departures, traded_departures
from wayveil.synthesis.physics import (
    ELLIPSOID,
    Tracks,
    as_written,
    legal_times,
    motion_of_tracks,
    physical_times,
    points_of,
    put_tracks,
    take_tracks,
)
from wayveil.synthesis.polylines import runs

__all__ = ["Refined", "physical_times", "refine"]

_DEEP_M = 60.0
"""Deeper in a closed area another departure is the smaller change; nearer to its border, moving points is."""
_SLACK_M = 0.15
_REPAIRS = 3
_JUDGED_POINTS = 1 << 18

Counts = dict[str, dict[str, int]]


@dataclass(frozen=True, eq=False)
class Refined:
    """Trajectories with the same numbers of points as before, and what was done to them."""

    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    t_utc: NDArray[np.float64]
    violations_before: Counts
    """{rule: {"points", "trajectories"}} of what came in."""
    violations_after: Counts
    """The same of what goes out; all zero unless some are unresolved."""
    iterations: int
    """Steps of gradient descent."""
    moved: int
    """Trajectories with a point elsewhere by more than 5 cm."""
    retimed: int
    """Trajectories with another time."""
    furthest_m: float
    """The largest displacement of a point."""
    unresolved: NDArray[np.int64]
    """Trajectories that still break a rule; they are as they came."""


def refine(
    offsets: NDArray[np.int64],
    x_m: NDArray[np.float64],
    y_m: NDArray[np.float64],
    t_utc: NDArray[np.float64],
    rules: Iterable[Rule],
    scope: Scope,
    *,
    random: np.random.Generator,
    attraction: Field | None = None,
    grid: Grid | None = None,
    progress: Progress = quiet,
) -> Refined:
    """argmin over the trajectories that break a rule of displacement² + roughness, subject to no violation.

    Parameters
    ----------
    offsets, x_m, y_m, t_utc
        Trajectory i owns the points `offsets[i]:offsets[i + 1]`, in the scope's metres and Unix seconds.
    rules
        The scope's bounds are always among them.
    attraction, grid
        A density that draws moved points to where people are, and its grid.

    Privacy: free (post-processing).
    """
    given = Tracks(
        np.asarray(offsets, np.int64), np.asarray(x_m, float), np.asarray(y_m, float), np.asarray(t_utc, float)
    )
    rules = tuple(rules)
    if not any(isinstance(rule, StayWithin) and rule.of_scope for rule in rules):
        rules = (*rules, _bounds(scope))
    progress("rules", 0.0)
    before, broken = _judge_written(given, rules, scope)
    strict = tuple(_stricter(rule) for rule in rules)
    if any(one is not other for one, other in zip(rules, strict)):
        broken = _judge_written(given, strict, scope)[1]
    traded = given
    if broken.any() and any(has_hours(rule) for rule in rules):
        traded = _with_times(given, traded_departures(given, rules, scope, random))
        broken = _judge_written(traded, strict, scope)[1]
    which = np.flatnonzero(broken)
    progress("rules", 1.0)
    if len(which) == 0:
        after = _judge_written(traded, rules, scope)[0] if traded is not given else before
        return Refined(
            given.x_m, given.y_m, traded.t_utc, before, after, 0, 0, _retimed(given, traded.t_utc, which), 0.0, which
        )
    original = as_written(take_tracks(traded, which), scope)
    pool_utc = np.rint(given.t_utc[given.offsets[:-1]])
    part, iterations, left = _cure(original, rules, strict, scope, pool_utc, random, attraction, grid, progress)
    part = put_tracks(part, left, take_tracks(take_tracks(given, which), left))
    after, _ = _judge_written(part, rules, scope)
    result = put_tracks(traded, which, part)
    far = np.hypot(part.x_m - original.x_m, part.y_m - original.y_m)
    return Refined(
        result.x_m, result.y_m, result.t_utc, before, after, iterations,
        int((np.maximum.reduceat(far, part.offsets[:-1]) > 0.05).sum()), _retimed(given, result.t_utc, which[left]),
        float(far.max()), which[left],
    )  # fmt: skip


def _retimed(given: Tracks, t_utc: NDArray[np.float64], unresolved: NDArray[np.int64]) -> int:
    """How many tracks have another time."""
    other = np.rint(t_utc) != np.rint(given.t_utc)
    other[points_of(given.offsets, unresolved)] = False
    return int(np.logical_or.reduceat(other, given.offsets[:-1]).sum()) if len(other) else 0


def _stricter(rule: Rule) -> Rule:
    """Rules about speeds and streets with so much to spare that they hold on the sphere and on the ellipsoid."""
    if isinstance(rule, SpeedLimit):
        return replace(rule, limit_mps=rule.limit_mps / ELLIPSOID, slack=_SLACK_M)
    if isinstance(rule, MinSpeed):
        return replace(rule, limit_mps=rule.limit_mps * ELLIPSOID)
    return replace(rule, slack=_SLACK_M) if isinstance(rule, OneWay) else rule


@functools.lru_cache(maxsize=4)
def _bounds(scope: Scope) -> Rule:
    # The same object for the same scope, so that the compiled descent is found again.
    return scope_bounds(scope)


def _cure(
    original: Tracks,
    rules: tuple[Rule, ...],
    strict: tuple[Rule, ...],
    scope: Scope,
    pool_utc: NDArray[np.float64],
    random: np.random.Generator,
    attraction: Field | None,
    grid: Grid | None,
    progress: Progress,
) -> tuple[Tracks, int, NDArray[np.int64]]:
    """The tracks after all cures, the steps of descent, and the tracks that still break a rule."""
    tracks = _with_times(original, legal_times(original, strict, scope))
    tracks = _with_times(tracks, open_departures(tracks, rules, scope, pool_utc, random, _DEEP_M))
    left = np.flatnonzero(_judge(tracks, strict, scope)[1])
    iterations = 0
    if len(left):
        tracks, iterations = _descended(tracks, left, rules, strict, scope, random, attraction, grid, progress)
        left = left[_judge(take_tracks(tracks, left), strict, scope)[1]]
    for turn in range(_REPAIRS):
        if len(left) == 0:
            break
        progress("repair", turn / _REPAIRS)
        part = _repaired(take_tracks(tracks, left), strict, scope, pool_utc, random)
        tracks = put_tracks(tracks, left, part)
        left = left[_judge(part, strict, scope)[1]]
    return tracks, iterations, left


def _descended(
    tracks: Tracks,
    left: NDArray[np.int64],
    rules: tuple[Rule, ...],
    strict: tuple[Rule, ...],
    scope: Scope,
    random: np.random.Generator,
    attraction: Field | None,
    grid: Grid | None,
    progress: Progress,
) -> tuple[Tracks, int]:
    from wayveil.synthesis.descent import descend

    part = take_tracks(tracks, left)

    def settle(index: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> Tracks:
        own = take_tracks(part, index)
        own = as_written(Tracks(own.offsets, x, y, own.t_utc), scope)
        return _with_times(own, legal_times(own, strict, scope))

    def broken(index: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        return _judge(settle(index, x, y), strict, scope)[1]

    found = descend(part, rules, scope, broken, random, attraction, grid, progress)
    return put_tracks(tracks, left, settle(np.arange(len(part)), found.x_m, found.y_m)), found.iterations


def _repaired(
    tracks: Tracks,
    rules: tuple[Rule, ...],
    scope: Scope,
    pool_utc: NDArray[np.float64],
    random: np.random.Generator,
) -> Tracks:
    from wayveil.synthesis.repair import project, search

    tracks = _with_times(tracks, open_departures(tracks, rules, scope, pool_utc, random))
    tracks = search(project(tracks, rules, scope), rules, scope)
    return _with_times(tracks, legal_times(tracks, rules, scope))


def _with_times(tracks: Tracks, t_utc: NDArray[np.float64]) -> Tracks:
    return Tracks(tracks.offsets, tracks.x_m, tracks.y_m, t_utc)


def _judge_written(tracks: Tracks, rules: tuple[Rule, ...], scope: Scope) -> tuple[Counts, NDArray[np.bool_]]:
    """`_judge` of what a file would hold, some tracks at a time: a copy of all of them would be the largest thing."""
    broken = np.zeros(len(tracks), bool)
    counts: Counts = {name: {"points": 0, "trajectories": 0} for name in unique_names(rules)}
    for first, last in runs(tracks.offsets, _JUDGED_POINTS):
        points = slice(tracks.offsets[first], tracks.offsets[last])
        columns = (column[points] for column in (tracks.x_m, tracks.y_m, tracks.t_utc))
        part = Tracks(tracks.offsets[first : last + 1] - points.start, *columns)
        found, broken[first:last] = _judge(as_written(part, scope), rules, scope)
        for name, kinds in found.items():
            for kind, number in kinds.items():
                counts[name][kind] += number
    return counts, broken


def _judge(tracks: Tracks, rules: tuple[Rule, ...], scope: Scope) -> tuple[Counts, NDArray[np.bool_]]:
    """Violations by rule, and the tracks that have one; every rule is asked once."""
    if all(isinstance(rule, StayWithin) for rule in rules):  # the most frequent case, and it needs no clock
        x, y, unused = tracks.x_m, tracks.y_m, tracks.t_utc
        motion = Motion(x, y, unused, unused, np.zeros(0, bool), tracks.offsets, unused)
    else:
        motion = motion_of_tracks(tracks, scope)
    broken = np.zeros(len(tracks), bool)
    counts: Counts = {}
    for rule, name in zip(rules, unique_names(rules)):
        wrong = np.flatnonzero(rule.violations(motion))
        owners = np.unique(np.searchsorted(tracks.offsets, wrong, side="right") - 1)
        counts[name] = {"points": len(wrong), "trajectories": len(owners)}
        broken[owners] = True
    return counts, broken

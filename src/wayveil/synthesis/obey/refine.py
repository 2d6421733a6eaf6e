"""Trajectories that break a rule are changed, as little as possible, until they obey; the others stay.

First come exact and cheap corrections: exchanged departures for areas with hours, new times for speeds and durations,
and another departure for trips without a partner. Next is gradient descent on the coordinates around each violation.
For the remaining violations, departures are changed again and single points are moved to the nearest legal place. A
trajectory that still breaks a rule is returned unchanged and listed, so that another candidate can replace it. The
exact rules are evaluated on the values that a file contains: degrees rounded to 1e-7, whole seconds.

Privacy: free (post-processing).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.scope import Scope
from wayveil.progress import Progress, part, quiet
from wayveil.rules.bounds import with_scope_bounds
from wayveil.rules.counting import unique_names
from wayveil.rules.motion import Motion
from wayveil.rules.rule import Rule
from wayveil.synthesis.obey.departures import exchanged_departures, open_departures
from wayveil.synthesis.obey.descent import descend
from wayveil.synthesis.obey.repair import project, search
from wayveil.synthesis.obey.settings import REFINE
from wayveil.synthesis.obey.task import Attraction, Task
from wayveil.synthesis.obey.times import legal_times
from wayveil.synthesis.place.track_columns import (
    Tracks,
    as_written,
    motion_of_tracks,
    put_tracks,
    take_tracks,
)

Counts = dict[str, dict[str, int]]


@dataclass(frozen=True, eq=False)
class Refined:
    """Trajectories with unchanged numbers of points, and a summary of the changes."""

    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    t_utc: NDArray[np.float64]
    violations_before: Counts
    """{rule: {"points", "trajectories"}} of the input."""
    moved: int
    """Number of trajectories with a point that moved by more than 5 cm."""
    retimed: int
    """Number of trajectories whose times changed."""
    unresolved: NDArray[np.int64]
    """Indices of trajectories that still break a rule; they are unchanged."""


def refine(
    tracks: Tracks,
    rules: Iterable[Rule],
    scope: Scope,
    *,
    random: np.random.Generator,
    attraction: Attraction | None = None,
    progress: Progress = quiet,
) -> Refined:
    """Return trajectories that obey: argmin of displacement² + roughness, subject to no violation.

    Parameters
    ----------
    tracks
        Trajectories in the scope's metres and Unix seconds.
    rules
        The rules to obey; the scope's bounds are always added.

    Privacy: free (post-processing).
    """
    columns = (np.asarray(column, float) for column in (tracks.x_m, tracks.y_m, tracks.t_utc))
    given = Tracks(np.asarray(tracks.offsets, np.int64), *columns)
    rules = with_scope_bounds(rules, scope)
    progress("obeying rules", 0.0)
    before, broken = _judge_written(given, rules, scope)
    strict = tuple(rule.stricter() for rule in rules)
    if any(one is not other for one, other in zip(rules, strict)):
        broken = _judge_written(given, strict, scope)[1]
    exchanged = given
    if broken.any() and any(rule.closed_hours() is not None for rule in rules):
        exchanged = _with_times(given, exchanged_departures(given, rules, scope, random))
        broken = _judge_written(exchanged, strict, scope)[1]
    which = np.flatnonzero(broken)
    progress("obeying rules", 0.1)
    if len(which) == 0:
        retimed = _retimed(given, exchanged.t_utc, which)
        return Refined(given.x_m, given.y_m, exchanged.t_utc, before, 0, retimed, which)
    original = as_written(take_tracks(exchanged, which), scope)
    pool_utc = np.rint(given.t_utc[given.offsets[:-1]])
    task = Task(rules, strict, scope, pool_utc, random, attraction, progress)
    part, left = _cure(original, task)
    part = put_tracks(part, left, take_tracks(take_tracks(given, which), left))
    result = put_tracks(exchanged, which, part)
    distance_m = np.hypot(part.x_m - original.x_m, part.y_m - original.y_m)
    return Refined(
        result.x_m, result.y_m, result.t_utc, before,
        int((np.maximum.reduceat(distance_m, part.offsets[:-1]) > REFINE.moved_m).sum()),
        _retimed(given, result.t_utc, which[left]), which[left],
    )  # fmt: skip


def _retimed(given: Tracks, t_utc: NDArray[np.float64], unresolved: NDArray[np.int64]) -> int:
    """Return how many tracks have changed times."""
    changed = np.rint(t_utc) != np.rint(given.t_utc)
    changed[ragged.take(given.offsets, unresolved)[1]] = False
    return int(np.logical_or.reduceat(changed, given.offsets[:-1]).sum()) if len(changed) else 0


def _cure(original: Tracks, task: Task) -> tuple[Tracks, NDArray[np.int64]]:
    """Return the tracks after all corrections, and the indices of tracks that still break a rule."""
    scope, strict = task.scope, task.strict
    tracks = _with_times(original, legal_times(original, strict, scope))
    tracks = _with_times(tracks, open_departures(tracks, task.rules, scope, task.pool_utc, task.random, REFINE.deep_m))
    left = np.flatnonzero(_judge(tracks, strict, scope)[1])
    if len(left):
        tracks = _descended(tracks, left, task)
        left = left[_judge(take_tracks(tracks, left), strict, scope)[1]]
    for turn in range(REFINE.repairs):
        if len(left) == 0:
            break
        task.progress("obeying rules", 0.9 + 0.1 * turn / REFINE.repairs)
        part = _repaired(take_tracks(tracks, left), task)
        tracks = put_tracks(tracks, left, part)
        left = left[_judge(part, strict, scope)[1]]
    return tracks, left


def _descended(tracks: Tracks, left: NDArray[np.int64], task: Task) -> Tracks:
    """Return the tracks with those at `left` moved by gradient descent."""
    scope, strict = task.scope, task.strict
    moving = take_tracks(tracks, left)

    def retimed(index: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> Tracks:
        own = take_tracks(moving, index)
        own = as_written(Tracks(own.offsets, x, y, own.t_utc), scope)
        return _with_times(own, legal_times(own, strict, scope))

    def broken(index: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        return _judge(retimed(index, x, y), strict, scope)[1]

    descending = part(task.progress, "obeying rules", 0.1, 0.9)
    found = descend(moving, broken, task, descending)
    return put_tracks(tracks, left, retimed(np.arange(len(moving)), found.x_m, found.y_m))


def _repaired(tracks: Tracks, task: Task) -> Tracks:
    """Return the tracks with other departures, then with single points moved, then with new times."""
    rules, scope = task.strict, task.scope
    tracks = _with_times(tracks, open_departures(tracks, rules, scope, task.pool_utc, task.random))
    tracks = search(project(tracks, rules, scope), rules, scope)
    return _with_times(tracks, legal_times(tracks, rules, scope))


def _with_times(tracks: Tracks, t_utc: NDArray[np.float64]) -> Tracks:
    return Tracks(tracks.offsets, tracks.x_m, tracks.y_m, t_utc)


def _judge_written(tracks: Tracks, rules: tuple[Rule, ...], scope: Scope) -> tuple[Counts, NDArray[np.bool_]]:
    """Return `_judge` of the tracks as a file would contain them, in blocks to bound the memory."""
    broken = np.zeros(len(tracks), bool)
    counts: Counts = {name: {"points": 0, "trajectories": 0} for name in unique_names(rules)}
    for first, last in ragged.runs(tracks.offsets, REFINE.judged_points):
        points = slice(tracks.offsets[first], tracks.offsets[last])
        columns = (column[points] for column in (tracks.x_m, tracks.y_m, tracks.t_utc))
        part = Tracks(tracks.offsets[first : last + 1] - points.start, *columns)
        found, broken[first:last] = _judge(as_written(part, scope), rules, scope)
        for name, kinds in found.items():
            for kind, number in kinds.items():
                counts[name][kind] += number
    return counts, broken


def _judge(tracks: Tracks, rules: tuple[Rule, ...], scope: Scope) -> tuple[Counts, NDArray[np.bool_]]:
    """Return the violations by rule, and whether each track has one."""
    if all(rule.reads_positions_only() for rule in rules):  # the most frequent case: only the bounds of the scope
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

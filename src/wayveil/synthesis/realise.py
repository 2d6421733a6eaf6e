"""realise: chosen candidates → tracks, with every point on its route, every time physical, everything in the scope.

Privacy: free (post-processing).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.polylines import Polylines, place, runs, step_lengths
from wayveil.pyramid import Field
from wayveil.questions.gap_ratio import GapRatio
from wayveil.questions.top_speed import TopSpeed
from wayveil.synthesis.beats import is_steady, shortest_beat_s
from wayveil.synthesis.candidates import Trips
from wayveil.synthesis.caps import fastest_mps, within_caps
from wayveil.synthesis.draw import repeats, systematic
from wayveil.synthesis.ends import settle_in_cells
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.evening import even_out
from wayveil.synthesis.physics import physical_times
from wayveil.synthesis.place_hours import exchanged_departures
from wayveil.synthesis.placing import (
    Course,
    Fixes,
    draw_fixes,
    fit_slowness,
    slowness_weight,
    take_course,
    with_ends,
)
from wayveil.synthesis.prior import Prior
from wayveil.synthesis.timing import departures, within_days
from wayveil.synthesis.tracks import Tracks

_FURTHEST_M = 250.0
_FURTHEST_ON_ROADS_M = 60.0
_TRIED_POINTS = 64
_STEADIEST = 1.25
"""Least ratio of a trip's fastest step to its mean speed: with less the other steps could not spare the seconds."""
_NEARLY, _LEAST_SPREAD = 0.97, 1.05
"""Of a limit, how much of it points are placed by (whole seconds ask for a little room); and how much faster than its
mean a route may be passed at least."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates: trips, their routes, their departures."""

    trips: Trips
    course: Course
    departure_utc: NDArray[np.float64]


def fixes_of(
    estimates: Estimates,
    points: NDArray[np.int64],
    beat: NDArray[np.float64],
    random: np.random.Generator,
    least: NDArray[np.float64] | None = None,
) -> Fixes:
    """When so many points are seen, as irregularly as the release says."""
    ratio = estimates.distribution(GapRatio)
    return draw_fixes(points, beat, ratio.shares, np.asarray(ratio.bins.edges), random, least)


def settled_ends(
    estimates: Estimates, prior: Prior, pool_of: Pool, chosen: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.float64]:
    """Starts and ends (x, y, x, y) of the chosen trips, some moved to where the fields ask for more of them.

    A trip that is chosen again begins and ends somewhere else in the same cells: nobody shall take it for a copy.
    """
    grid, lines, trips = estimates.grid, pool_of.course.lines, pool_of.trips
    again = repeats(chosen)
    ends = np.empty((4, len(chosen)))
    for xy, vertex, cell, field in (
        (ends[:2], lines.offsets[:-1][chosen], trips.origin[chosen], estimates.starts),
        (ends[2:], lines.offsets[1:][chosen] - 1, trips.destination[chosen], estimates.ends),
    ):
        xy[:] = lines.x_m[vertex], lines.y_m[vertex]
        settled = settle_in_cells(cell, field, grid, random)
        moved = again | (settled != cell)
        xy[:, moved] = prior.places(grid)(settled[moved], random)
    return ends


def settled_slowness(
    estimates: Estimates,
    pool_of: Pool,
    slowness: Field,
    chosen: NDArray[np.int64],
    ends: NDArray[np.float64],
    random: np.random.Generator,
) -> Field:
    """The pool's slowness fitted once more to the chosen routes: they pass places more or less often than the pool."""
    course = with_ends(take_course(pool_of.course, chosen), ends, estimates.grid)
    points = pool_of.trips.points[chosen]
    fixes = fixes_of(estimates, np.minimum(points, _TRIED_POINTS), pool_of.trips.beat[chosen], random)
    return fit_slowness(course, points, fixes.offsets, fixes.way, estimates.occupancy, estimates.grid, start=slowness)


def timed_tracks(
    estimates: Estimates,
    prior: Prior,
    pool_of: Pool,
    slowness: Field,
    chosen: NDArray[np.int64],
    random: np.random.Generator,
    ends: NDArray[np.float64] | None = None,
) -> Tracks:
    """Candidates as tracks: every point placed, every time physical, everything inside the scope.

    `ends` are other starts and ends (x, y, x, y) for the routes. Who is chosen again departs at another time.
    """
    scope, grid, count = estimates.scope, estimates.grid, pool_of.trips.points[chosen]
    offsets = np.r_[0, np.cumsum(count)]
    departure_utc, again = pool_of.departure_utc[chosen], repeats(chosen)
    departure_utc[again] = departures(estimates, int(again.sum()), random)
    if estimates.place_hours is not None:
        ways = pool_of.trips.origin[chosen], pool_of.trips.destination[chosen]
        departure_utc = exchanged_departures(estimates.place_hours, departure_utc, *ways, scope, random)
    x_m, y_m, t_utc = (np.empty(offsets[-1]) for _ in range(3))
    limit_mps = np.empty(len(chosen)) if is_steady(estimates.distribution(GapRatio)) else None
    shortest_s = shortest_beat_s(estimates)
    for first, last in runs(offsets):
        which, points = chosen[first:last], slice(offsets[first], offsets[last])
        duration_s = pool_of.trips.duration_s[which]
        least = shortest_s * (count[first:last] - 1) / duration_s
        fixes = fixes_of(estimates, count[first:last], pool_of.trips.beat[which], random, least)
        course = take_course(pool_of.course, which)
        if ends is not None:
            course = with_ends(course, ends[:, first:last], grid)
        placed = place(course.lines, slowness_weight(course, slowness), fixes.offsets, fixes.way)
        t_utc[points] = fixes.time * np.repeat(duration_s, count[first:last])
        if limit_mps is not None:
            limit = _top_speeds(estimates, Tracks(fixes.offsets, placed.x_m, placed.y_m, t_utc[points]), random)
            unhurried = slowness_weight(course, slowness, _haste(course, duration_s, limit))
            placed = place(course.lines, unhurried, fixes.offsets, fixes.way)
            limit_mps[first:last] = limit
        np.clip(placed.x_m, 0, grid.width_m, out=x_m[points])
        np.clip(placed.y_m, 0, grid.height_m, out=y_m[points])
        t_utc[points] += np.repeat(np.rint(departure_utc[first:last]), count[first:last])
    furthest_m = _FURTHEST_M if prior.roads is None else _FURTHEST_ON_ROADS_M
    room_m = None if limit_mps is None else _room(Tracks(offsets, x_m, y_m, t_utc), limit_mps)
    evened = even_out(Polylines(offsets, x_m, y_m), estimates.occupancy, grid, furthest_m, random, room_m=room_m)
    x_m, y_m = evened.x_m, evened.y_m  # what they were is not kept: tracks are the largest thing here
    tracks = Tracks(offsets, x_m, y_m, t_utc)
    if limit_mps is None:
        limit_mps = _top_speeds(estimates, tracks, random)
    t_utc = physical_times(offsets, tracks.x_m, tracks.y_m, t_utc, np.repeat(limit_mps, count))
    tracks = within_caps(replace(tracks, t_utc=t_utc), scope)
    return replace(tracks, t_utc=within_days(tracks.offsets, tracks.t_utc, scope))


def _haste(course: Course, duration_s: NDArray[np.float64], limit_mps: NDArray[np.float64]) -> NDArray[np.float64]:
    """The limit over each route's mean speed.

    Where devices are steady, places are passed slowly enough from the start: other times would leave the beat.
    """
    length_m = np.add.reduceat(course.step_m, course.lines.offsets[:-1])
    return np.maximum(_NEARLY * limit_mps * duration_s / np.maximum(length_m, 1.0), _LEAST_SPREAD)


def _room(tracks: Tracks, limit_mps: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far both ends of the step that ends at each point may move along each axis, and stay below the limit."""
    room_m = np.repeat(limit_mps, np.diff(tracks.offsets))
    room_m[1:] *= np.diff(tracks.t_utc)
    room_m -= step_lengths(tracks.offsets, tracks.x_m, tracks.y_m)
    return np.maximum(room_m, 0.0) / (2 * np.sqrt(2))


def _top_speeds(estimates: Estimates, tracks: Tracks, random: np.random.Generator) -> NDArray[np.float64]:
    """How fast the fastest step of each track may be.

    The tracks whose fastest steps are the fastest get the fastest speeds of the asked distribution: so few times have
    to change.
    """
    first, last = tracks.offsets[:-1], tracks.offsets[1:] - 1
    step_m = step_lengths(tracks.offsets, tracks.x_m, tracks.y_m)
    mean_mps = np.add.reduceat(step_m, first) / np.maximum(tracks.t_utc[last] - tracks.t_utc[first], 1.0)
    gap_s = np.diff(tracks.t_utc)
    step_m[1:] /= np.maximum(gap_s, 1.0, out=gap_s)  # from here on a speed
    top_speed = estimates.distribution(TopSpeed)
    edges = np.asarray(top_speed.bins.edges) / 3.6
    bins = systematic(top_speed.shares, len(mean_mps), random)
    top_mps = np.empty(len(mean_mps))
    asked = np.sort(edges[bins] + random.random(len(bins)) * np.diff(edges)[bins])
    top_mps[np.argsort(np.maximum.reduceat(step_m, first), kind="stable")] = asked
    return np.minimum(np.maximum(top_mps, _STEADIEST * mean_mps), fastest_mps(estimates.scope))

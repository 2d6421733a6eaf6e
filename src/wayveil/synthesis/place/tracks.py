"""Tracks of the chosen candidates: points on their routes, physically possible times, all inside the scope.

Privacy: free (post-processing).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.polylines import Polylines, place, step_lengths
from wayveil.core.pyramid import Field
from wayveil.questions.gap_ratio import GapRatio
from wayveil.questions.top_speed import TopSpeed
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.estimate.place_hours import exchanged_departures
from wayveil.synthesis.place.caps import fastest_mps, within_caps
from wayveil.synthesis.place.end_points import assign_to_cells
from wayveil.synthesis.place.physics import physical_times
from wayveil.synthesis.place.points import (
    Course,
    Fixes,
    draw_fixes,
    fit_slowness,
    slowness_weight,
    take_course,
    with_ends,
)
from wayveil.synthesis.place.sampling import is_steady, shortest_interval_s
from wayveil.synthesis.place.settings import TRACKS
from wayveil.synthesis.place.spread_points import spread_points
from wayveil.synthesis.place.track_columns import Tracks
from wayveil.synthesis.routes.prior import Prior
from wayveil.synthesis.trips.candidates import Trips
from wayveil.synthesis.trips.departures import departures, within_days
from wayveil.synthesis.trips.draw import repeats, systematic


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates: trips, their routes, their departures."""

    trips: Trips
    course: Course
    departure_utc: NDArray[np.float64]


def fixes_of(
    estimates: Estimates,
    points: NDArray[np.int64],
    interval: NDArray[np.float64],
    random: np.random.Generator,
    least: NDArray[np.float64] | None = None,
) -> Fixes:
    """Draw the fixes of routes, with gaps as irregular as in the release."""
    ratio = estimates.distribution(GapRatio)
    return draw_fixes(points, interval, ratio.shares, np.asarray(ratio.bins.edges), random, least)


def assigned_ends(
    estimates: Estimates, prior: Prior, pool_of: Pool, chosen: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.float64]:
    """Starts and ends (x, y, x, y) of the chosen trips, some moved to cells with too few ends for their field.

    If a trip is chosen several times, each repetition has other ends in the same cells, so that no two are equal.
    """
    grid, lines, trips = estimates.grid, pool_of.course.lines, pool_of.trips
    again = repeats(chosen)
    ends = np.empty((4, len(chosen)))
    for xy, vertex, cell, field in (
        (ends[:2], lines.offsets[:-1][chosen], trips.origin[chosen], estimates.starts),
        (ends[2:], lines.offsets[1:][chosen] - 1, trips.destination[chosen], estimates.ends),
    ):
        xy[:] = lines.x_m[vertex], lines.y_m[vertex]
        assigned = assign_to_cells(cell, field, grid, random)
        moved = again | (assigned != cell)
        xy[:, moved] = prior.places(grid)(assigned[moved], random)
    return ends


def refitted_slowness(
    estimates: Estimates,
    pool_of: Pool,
    slowness: Field,
    chosen: NDArray[np.int64],
    ends: NDArray[np.float64],
    random: np.random.Generator,
) -> Field:
    """The pool's slowness, fitted again to the chosen routes, which pass cells more or less often than the pool."""
    course = with_ends(take_course(pool_of.course, chosen), ends, estimates.grid)
    points = pool_of.trips.points[chosen]
    fixes = fixes_of(estimates, np.minimum(points, TRACKS.tried_points), pool_of.trips.interval[chosen], random)
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
    """Tracks of the chosen candidates: points placed, times physically possible, all inside the scope.

    `ends` are new starts and ends (x, y, x, y) of the routes. If a trip is chosen several times, each repetition has
    another departure.
    """
    scope, grid, count = estimates.scope, estimates.grid, pool_of.trips.points[chosen]
    offsets = ragged.offsets_of(count)
    departure_utc, again = pool_of.departure_utc[chosen], repeats(chosen)
    departure_utc[again] = departures(estimates, int(again.sum()), random)
    if estimates.place_hours is not None:
        ways = pool_of.trips.origin[chosen], pool_of.trips.destination[chosen]
        departure_utc = exchanged_departures(estimates.place_hours, departure_utc, *ways, scope, random)
    x_m, y_m, t_utc = (np.empty(offsets[-1]) for _ in range(3))
    limit_mps = np.empty(len(chosen)) if is_steady(estimates.distribution(GapRatio)) else None
    shortest_s = shortest_interval_s(estimates)
    for first, last in ragged.runs(offsets):
        which, points = chosen[first:last], slice(offsets[first], offsets[last])
        duration_s = pool_of.trips.duration_s[which]
        least = shortest_s * (count[first:last] - 1) / duration_s
        fixes = fixes_of(estimates, count[first:last], pool_of.trips.interval[which], random, least)
        course = take_course(pool_of.course, which)
        if ends is not None:
            course = with_ends(course, ends[:, first:last], grid)
        placed = place(course.lines, slowness_weight(course, slowness), fixes.offsets, fixes.way)
        t_utc[points] = fixes.time * np.repeat(duration_s, count[first:last])
        if limit_mps is not None:
            limit = _top_speeds(estimates, Tracks(fixes.offsets, placed.x_m, placed.y_m, t_utc[points]), random)
            weight = slowness_weight(course, slowness, _speed_ratios(course, duration_s, limit))
            placed = place(course.lines, weight, fixes.offsets, fixes.way)
            limit_mps[first:last] = limit
        np.clip(placed.x_m, 0, grid.width_m, out=x_m[points])
        np.clip(placed.y_m, 0, grid.height_m, out=y_m[points])
        t_utc[points] += np.repeat(np.rint(departure_utc[first:last]), count[first:last])
    furthest_m = TRACKS.furthest_m if prior.roads is None else TRACKS.furthest_on_roads_m
    room_m = None if limit_mps is None else _room(Tracks(offsets, x_m, y_m, t_utc), limit_mps)
    moved = spread_points(Polylines(offsets, x_m, y_m), estimates.occupancy, grid, furthest_m, random, room_m=room_m)
    x_m, y_m = moved.x_m, moved.y_m  # frees the old columns: tracks are the largest arrays of a shard
    tracks = Tracks(offsets, x_m, y_m, t_utc)
    if limit_mps is None:
        limit_mps = _top_speeds(estimates, tracks, random)
    t_utc = physical_times(offsets, tracks.x_m, tracks.y_m, t_utc, np.repeat(limit_mps, count))
    tracks = within_caps(replace(tracks, t_utc=t_utc), scope)
    return replace(tracks, t_utc=within_days(tracks.offsets, tracks.t_utc, scope))


def _speed_ratios(
    course: Course, duration_s: NDArray[np.float64], limit_mps: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The ratio of each trip's top speed to its mean speed, with a small reserve.

    If devices are exact, points are placed so that no step is too fast, because new times would change the intervals.
    """
    length_m: NDArray[np.float64] = ragged.sums(course.step_m, course.lines.offsets)
    return np.maximum(
        TRACKS.speed_reserve * limit_mps * duration_s / np.maximum(length_m, 1.0), TRACKS.least_speed_ratio
    )


def _room(tracks: Tracks, limit_mps: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far both ends of the step that ends at each point may move along each axis without exceeding the limit."""
    room_m = np.repeat(limit_mps, np.diff(tracks.offsets))
    room_m[1:] *= np.diff(tracks.t_utc)
    room_m -= step_lengths(tracks.offsets, tracks.x_m, tracks.y_m)
    result: NDArray[np.float64] = np.maximum(room_m, 0.0) / (2 * np.sqrt(2))
    return result


def _top_speeds(estimates: Estimates, tracks: Tracks, random: np.random.Generator) -> NDArray[np.float64]:
    """Speed limit of the fastest step of each track.

    Top speeds are drawn from the estimated distribution and assigned in the order of the tracks' fastest steps, so that
    few times have to change.
    """
    first, last = tracks.offsets[:-1], tracks.offsets[1:] - 1
    step_m = step_lengths(tracks.offsets, tracks.x_m, tracks.y_m)
    mean_mps = ragged.sums(step_m, tracks.offsets) / np.maximum(tracks.t_utc[last] - tracks.t_utc[first], 1.0)
    gap_s = np.diff(tracks.t_utc)
    step_m[1:] /= np.maximum(gap_s, 1.0, out=gap_s)  # from here on a speed
    top_speed = estimates.distribution(TopSpeed)
    edges = np.asarray(top_speed.bins.edges) / 3.6
    bins = systematic(top_speed.shares, len(mean_mps), random)
    top_mps = np.empty(len(mean_mps))
    drawn_mps = np.sort(edges[bins] + random.random(len(bins)) * np.diff(edges)[bins])
    top_mps[np.argsort(np.maximum.reduceat(step_m, first), kind="stable")] = drawn_mps
    return np.minimum(np.maximum(top_mps, TRACKS.least_top_speed * mean_mps), fastest_mps(estimates.scope))

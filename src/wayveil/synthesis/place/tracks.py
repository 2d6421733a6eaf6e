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
from wayveil.synthesis.place.caps import fastest_mps, within_caps
from wayveil.synthesis.place.end_points import assign_to_cells
from wayveil.synthesis.place.errors import with_errors
from wayveil.synthesis.place.physics import physical_times, whole_times
from wayveil.synthesis.place.points import (
    Course,
    Fixes,
    draw_fixes,
    fit_slowness,
    running_shares,
    slowness_weight,
    take_course,
    with_ends,
)
from wayveil.synthesis.place.sampling import is_steady, shortest_interval_s
from wayveil.synthesis.place.settings import TRACKS
from wayveil.synthesis.place.spread_points import places_along, places_around, spread_points
from wayveil.synthesis.place.stops import draw_rest_shares, moving_times, with_short_moves
from wayveil.synthesis.place.track_columns import Tracks
from wayveil.synthesis.routes.prior import Prior
from wayveil.synthesis.trips.candidates import Trips
from wayveil.synthesis.trips.departures import departures, within_days
from wayveil.synthesis.trips.draw import repeats, stratified
from wayveil.synthesis.trips.hours_by_place import departures_by_place


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
    estimates: Estimates, prior: Prior, pool: Pool, chosen: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.float64]:
    """Starts and ends (x, y, x, y) of the chosen trips, some moved to cells with too few ends for their field.

    If a trip is chosen several times, each repetition has other ends in the same cells, so that no two are equal.
    """
    grid, lines, trips = estimates.grid, pool.course.lines, pool.trips
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
    pool: Pool,
    slowness: Field,
    chosen: NDArray[np.int64],
    ends: NDArray[np.float64],
    random: np.random.Generator,
) -> Field:
    """The pool's slowness, fitted again to the chosen routes, which pass cells more or less often than the pool."""
    course = with_ends(take_course(pool.course, chosen), ends, estimates.grid)
    points = pool.trips.points[chosen]
    fixes = fixes_of(estimates, np.minimum(points, TRACKS.tried_points), pool.trips.interval[chosen], random)
    fitted = fit_slowness(
        course, points, fixes.offsets, fixes.moving_share, estimates.occupancy, estimates.grid, start=slowness
    )
    return np.asarray(fitted**TRACKS.pace_power)


def timed_tracks(
    estimates: Estimates,
    prior: Prior,
    pool: Pool,
    slowness: Field,
    chosen: NDArray[np.int64],
    random: np.random.Generator,
    ends: NDArray[np.float64] | None = None,
) -> Tracks:
    """Tracks of the chosen candidates: points placed, times physically possible, all inside the scope.

    `ends` are new starts and ends (x, y, x, y) of the routes. If a trip is chosen several times, each repetition has
    another departure.
    """
    scope, grid, count = estimates.scope, estimates.grid, pool.trips.points[chosen]
    offsets = ragged.offsets_of(count)
    departure_utc, again = pool.departure_utc[chosen], repeats(chosen)
    departure_utc[again] = departures(estimates, int(again.sum()), random)
    if estimates.place_hours is not None:
        cells = pool.trips.origin[chosen], pool.trips.destination[chosen]
        departure_utc = departures_by_place(estimates.place_hours, departure_utc, *cells, scope, random)
    x_m, y_m, t_utc = (np.empty(offsets[-1]) for _ in range(3))
    limit_mps, moving_s = (np.empty(len(chosen)) for _ in range(2))
    interval_s = _intervals_s(pool.trips, chosen)
    # Where intervals are exact or routes follow streets, places depend on the top speed, and times do not change later.
    times_fixed = prior.roads is not None or is_steady(estimates.distribution(GapRatio))
    length_m = ragged.sums(pool.course.step_m, pool.course.lines.offsets)[chosen]
    rest_share = draw_rest_shares(estimates, length_m, pool.trips.duration_s[chosen], random)
    shortest_s = shortest_interval_s(estimates)
    choices = []
    for first, last in ragged.runs(offsets):
        which, points = chosen[first:last], slice(offsets[first], offsets[last])
        duration_s, rows = pool.trips.duration_s[which], slice(first, last)
        fixes = fixes_of(
            estimates, count[rows], pool.trips.interval[which], random, shortest_s * (count[rows] - 1) / duration_s
        )
        course = take_course(pool.course, which)
        if ends is not None:
            course = with_ends(course, ends[:, rows], grid)
        # When the trip moves, at which pace, and where it is at its fixes.
        time_s = whole_times(fixes.offsets, fixes.time_share * np.repeat(duration_s, count[rows]))
        mean_mps = ragged.sums(course.step_m, course.lines.offsets) / duration_s
        least = TRACKS.least_top_speed * mean_mps / fastest_mps(scope)
        step_s = moving_times(fixes.offsets, time_s, rest_share[rows], interval_s[rows], random, least)
        step_s = with_short_moves(fixes.offsets, step_s, np.diff(time_s, prepend=0.0), mean_mps, random)
        moving_share = running_shares(fixes.offsets, step_s)
        weight = slowness_weight(course, slowness)
        placed = place(course.lines, weight, fixes.offsets, moving_share)
        moving_s[rows] = ragged.sums(step_s, fixes.offsets)
        if times_fixed:
            tried = Tracks(fixes.offsets, placed.x_m, placed.y_m, time_s)
            limit_mps[rows] = _top_speeds(estimates, tried, moving_s[rows], random)
            weight = slowness_weight(course, slowness, _speed_ratios(course, moving_s[rows], limit_mps[rows]))
            placed = place(course.lines, weight, fixes.offsets, moving_share)
        recorded = with_errors(placed, interval_s[rows], grid, random)
        reserve = np.full(len(time_s), np.inf)
        if times_fixed:
            reserve = _reserve(Tracks(fixes.offsets, recorded.x_m, recorded.y_m, time_s), limit_mps[rows])
        if prior.roads is None:
            here = places_around(placed, reserve, random)
        else:
            here = places_along(course.lines, weight, moving_share, placed, reserve, random)
        here = here.moved(placed, recorded)
        choices.append(replace(here, fix=here.fix + offsets[first]))
        x_m[points], y_m[points] = recorded.x_m, recorded.y_m
        t_utc[points] = time_s + np.repeat(np.rint(departure_utc[rows]), count[rows])
    lines = spread_points(Polylines(offsets, x_m, y_m), choices, estimates.occupancy, grid, random)
    if times_fixed:
        limit_mps = np.minimum(TRACKS.error_room * limit_mps, fastest_mps(scope))
    else:
        limit_mps = _top_speeds(estimates, Tracks(offsets, lines.x_m, lines.y_m, t_utc), moving_s, random)
    t_utc = physical_times(offsets, lines.x_m, lines.y_m, t_utc, np.repeat(limit_mps, count))
    tracks = within_caps(Tracks(offsets, lines.x_m, lines.y_m, t_utc), scope)
    return replace(tracks, t_utc=within_days(tracks.offsets, tracks.t_utc, scope))


def _intervals_s(trips: Trips, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sampling interval of each chosen trip in seconds."""
    mean_gap_s = trips.duration_s[chosen] / np.maximum(trips.points[chosen] - 1, 1)
    result: NDArray[np.float64] = trips.interval[chosen] * mean_gap_s
    return result


def _speed_ratios(course: Course, moving_s: NDArray[np.float64], limit_mps: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ratio of each trip's top speed to its mean speed while it moves, with a small reserve.

    Points are placed so that no step is too fast; new times would change the intervals of the device.
    """
    length_m: NDArray[np.float64] = ragged.sums(course.step_m, course.lines.offsets)
    return np.maximum(TRACKS.speed_reserve * limit_mps * moving_s / np.maximum(length_m, 1.0), TRACKS.least_speed_ratio)


def _reserve(tracks: Tracks, limit_mps: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much longer the step that ends at each fix may be at the speed limit, as a share of its length."""
    most_m = np.repeat(limit_mps, np.diff(tracks.offsets))
    most_m[1:] *= np.diff(tracks.t_utc)
    step_m = step_lengths(tracks.offsets, tracks.x_m, tracks.y_m)
    ratio = np.divide(most_m, step_m, out=np.ones(len(step_m)), where=step_m > 0)
    return np.asarray(np.maximum(ratio - 1, 0.0))


def _top_speeds(
    estimates: Estimates, tracks: Tracks, moving_s: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float64]:
    """Upper limit on the speed of each track's steps; `moving_s` is the time for which the track moves.

    Top speeds are drawn from the estimated distribution and assigned in the order of the tracks' fastest steps, so that
    few times have to change.
    """
    step_m = step_lengths(tracks.offsets, tracks.x_m, tracks.y_m)
    mean_mps = ragged.sums(step_m, tracks.offsets) / np.maximum(moving_s, 1.0)
    gap_s = np.diff(tracks.t_utc)
    step_mps = step_m  # the same array, divided in place
    step_mps[1:] /= np.maximum(gap_s, 1.0, out=gap_s)
    top_speed = estimates.distribution(TopSpeed)
    edges = np.asarray(top_speed.bins.edges) / 3.6
    bins = stratified(top_speed.shares, len(mean_mps), random)
    top_mps = np.empty(len(mean_mps))
    drawn_mps = np.sort(edges[bins] + random.random(len(bins)) * np.diff(edges)[bins])
    top_mps[np.argsort(np.maximum.reduceat(step_mps, tracks.offsets[:-1]), kind="stable")] = drawn_mps
    return np.minimum(np.maximum(top_mps, TRACKS.least_top_speed * mean_mps), fastest_mps(estimates.scope))

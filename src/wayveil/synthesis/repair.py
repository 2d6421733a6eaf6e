"""What a descent leaves: points put to the nearest legal place, one by one, each choice judged by the exact rules.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.rules.bounds import StayWithin
from wayveil.rules.closed import Closed
from wayveil.rules.motion import Motion
from wayveil.rules.rule import Rule
from wayveil.scope import Scope
from wayveil.synthesis.descent import place_rules
from wayveil.synthesis.physics import Tracks, as_written, motion_of_tracks

_MARGIN_M = 0.5
"""Written degrees move a point by a centimetre; areas are left by this much."""
_AROUND = 3
_RADII_M = (13.0, 24.0, 45.0)
_DIRECTIONS = 12
_APART = 2 * _AROUND - 2
_PASSES = 2
_MOST_WINDOWS = 256
_END_COST_M = 1_000.0


def project(tracks: Tracks, rules: tuple[Rule, ...], scope: Scope) -> Tracks:
    """Each point in a closed area, or outside an area to stay within, at the nearest place that is always legal.

    Privacy: free (post-processing).
    """
    import shapely

    areas = [rule for rule in rules if isinstance(rule, Closed | StayWithin)]
    motion = motion_of_tracks(tracks, scope)
    wrong = np.zeros(len(tracks.x_m), bool)
    for rule in areas:
        wrong |= rule.violations(motion)
    points = np.flatnonzero(wrong)
    if len(points) == 0:
        return tracks
    free = shapely.box(0, 0, scope.width_m, scope.height_m)
    for rule in areas:
        if isinstance(rule, StayWithin):
            free = free.intersection(rule.area.shape.buffer(-_MARGIN_M))
    shut = [rule.area.shape.buffer(_MARGIN_M) for rule in areas if isinstance(rule, Closed)]
    free = free.difference(shapely.union_all(shut)) if shut else free
    if free.is_empty:
        return tracks
    shapely.prepare(free)
    lines = shapely.shortest_line(free, shapely.points(tracks.x_m[points], tracks.y_m[points]))
    target = shapely.get_coordinates(lines).reshape(-1, 2, 2)[:, 0]
    x, y = tracks.x_m.copy(), tracks.y_m.copy()
    x[points], y[points] = target[:, 0], target[:, 1]
    return as_written(Tracks(tracks.offsets, x, y, tracks.t_utc), scope)


def search(tracks: Tracks, rules: tuple[Rule, ...], scope: Scope) -> Tracks:
    """Move single points (or merge them with a neighbour) where that lowers the exact count of violations.

    A wrong step may be cured at either end; inner points are tried before the ends of a trajectory, small moves
    before large ones. Bounded: every wrong point is looked at twice.

    Privacy: free (post-processing).
    """
    rules = place_rules(rules)
    for turn in range(_PASSES * _APART):
        motion = motion_of_tracks(tracks, scope)
        wrong = np.zeros(len(tracks.x_m), bool)
        for rule in rules:
            wrong |= rule.violations(motion)
        if not wrong.any():
            break
        # Points this far apart on a track have windows in which only one point moves.
        points = np.flatnonzero(wrong)
        rank = points - tracks.offsets[tracks.owner[points]]
        points = points[rank % _APART == turn % _APART]
        x, y = tracks.x_m.copy(), tracks.y_m.copy()
        for start in range(0, len(points), _MOST_WINDOWS):
            vertex, new_x, new_y = _best_moves(tracks, motion, points[start : start + _MOST_WINDOWS], rules, scope)
            x[vertex], y[vertex] = new_x, new_y
        tracks = as_written(Tracks(tracks.offsets, x, y, tracks.t_utc), scope)
    return tracks


def _best_moves(
    tracks: Tracks, motion: Motion, points: NDArray[np.int64], rules: tuple[Rule, ...], scope: Scope
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The vertices to move and where to, for those of the wrong points that a move helps."""
    owner = tracks.owner[points]
    first, last = tracks.offsets[owner], tracks.offsets[owner + 1] - 1
    vertex, to_x, to_y, of = _proposals(tracks, points, first, last, scope)
    low, high = np.maximum(points - _AROUND, first)[of], np.minimum(points + _AROUND, last)[of]
    sizes = high - low + 1
    offsets = np.r_[0, np.cumsum(sizes)]
    index = np.arange(offsets[-1]) + np.repeat(low - offsets[:-1], sizes)
    x, y = tracks.x_m[index], tracks.y_m[index]
    place = offsets[:-1] + vertex - low
    x[place], y[place] = to_x, to_y
    joins = np.ones(max(len(x) - 1, 0), bool)
    joins[offsets[1:-1] - 1] = False
    copies = Motion(x, y, motion.t_s[index], motion.week_s[index], joins, offsets, motion.ground[index])
    count = np.zeros(len(x))
    for rule in rules:
        count += rule.violations(copies)
    wrong = np.add.reduceat(count, offsets[:-1])
    far = np.hypot(to_x - tracks.x_m[vertex], to_y - tracks.y_m[vertex])
    is_end = (vertex == first[of]) | (vertex == last[of])
    order = np.lexsort((far + np.where(is_end & (far > 0), _END_COST_M, 0.0), wrong, of))
    best = order[np.r_[True, of[order][1:] != of[order][:-1]]]
    # The first proposal of each window is to leave everything as it is.
    stays = wrong[np.searchsorted(of, np.arange(len(points)))]
    better = best[wrong[best] < stays]
    return vertex[better], to_x[better], to_y[better]


def _proposals(
    tracks: Tracks, points: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], scope: Scope
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """(vertex, x, y, which wrong point) of everything that is tried, sorted by wrong point; staying comes first."""
    angle = np.arange(_DIRECTIONS) * 2 * np.pi / _DIRECTIONS
    ring_x = np.concatenate([radius * np.cos(angle) for radius in _RADII_M])
    ring_y = np.concatenate([radius * np.sin(angle) for radius in _RADII_M])
    vertices, xs, ys = [points[:, None]], [tracks.x_m[points][:, None]], [tracks.y_m[points][:, None]]
    for vertex in (points, np.maximum(points - 1, first)):
        before, after = np.maximum(vertex - 1, first), np.minimum(vertex + 1, last)
        x, y = tracks.x_m, tracks.y_m
        merged_x = np.column_stack([x[before], x[after], (x[before] + x[after]) / 2])
        merged_y = np.column_stack([y[before], y[after], (y[before] + y[after]) / 2])
        xs.append(np.hstack([x[vertex][:, None] + ring_x, merged_x]))
        ys.append(np.hstack([y[vertex][:, None] + ring_y, merged_y]))
        vertices.append(np.broadcast_to(vertex[:, None], xs[-1].shape))
    all_x, all_y, vertex = np.hstack(xs), np.hstack(ys), np.hstack(vertices)
    of = np.repeat(np.arange(len(points)), vertex.shape[1])
    copy = as_written(Tracks(np.array([0, all_x.size]), all_x.ravel(), all_y.ravel(), np.zeros(all_x.size)), scope)
    return vertex.ravel(), copy.x_m, copy.y_m, of

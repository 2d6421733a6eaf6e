"""Repair: single points are moved to the nearest legal place, and each move is checked with the exact rules.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.scope import Scope
from wayveil.rules.motion import Motion
from wayveil.rules.rule import Rule
from wayveil.synthesis.obey.settings import REPAIR
from wayveil.synthesis.place.track_columns import Tracks, as_written, motion_of_tracks


def place_rules(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the rules for which points may have to move; new times obey the others exactly."""
    return tuple(rule for rule in rules if not rule.new_times_suffice())


def project(tracks: Tracks, rules: tuple[Rule, ...], scope: Scope) -> Tracks:
    """Move each violating point to the nearest place that all areas allow, then to the place that its rule proposes.

    Privacy: free (post-processing).
    """
    tracks = _into_open_area(tracks, rules, scope)
    motion = motion_of_tracks(tracks, scope)
    for rule in rules:
        x, y = rule.legal_positions(motion)
        if x is not motion.x_m or y is not motion.y_m:
            tracks = as_written(Tracks(tracks.offsets, x, y, tracks.t_utc), scope)
            motion = motion_of_tracks(tracks, scope)
    return tracks


def _into_open_area(tracks: Tracks, rules: tuple[Rule, ...], scope: Scope) -> Tracks:
    """Move points in a closed area, or outside an area to stay within, to the nearest place that is always legal."""
    import shapely

    areas = [rule for rule in rules if rule.closed_area() is not None or rule.stay_area() is not None]
    motion = motion_of_tracks(tracks, scope)
    wrong = np.zeros(len(tracks.x_m), bool)
    for rule in areas:
        wrong |= rule.violations(motion)
    points = np.flatnonzero(wrong)
    if len(points) == 0:
        return tracks
    free = shapely.box(0, 0, scope.width_m, scope.height_m)
    for rule in areas:
        if (stay := rule.stay_area()) is not None:
            free = free.intersection(stay.shape.buffer(-REPAIR.margin_m))
    closed = [area.shape.buffer(REPAIR.margin_m) for rule in areas if (area := rule.closed_area()) is not None]
    free = free.difference(shapely.union_all(closed)) if closed else free
    if free.is_empty:
        return tracks
    shapely.prepare(free)
    lines = shapely.shortest_line(free, shapely.points(tracks.x_m[points], tracks.y_m[points]))
    target = shapely.get_coordinates(lines).reshape(-1, 2, 2)[:, 0]
    x, y = tracks.x_m.copy(), tracks.y_m.copy()
    x[points], y[points] = target[:, 0], target[:, 1]
    return as_written(Tracks(tracks.offsets, x, y, tracks.t_utc), scope)


def search(tracks: Tracks, rules: tuple[Rule, ...], scope: Scope) -> Tracks:
    """Move single points, or merge them with a neighbour, if that lowers the exact number of violations.

    Either end of a violating step may move. Inner points are preferred to the ends of a trajectory, and small moves to
    large ones. Every violating point is tried twice.

    Privacy: free (post-processing).
    """
    rules = place_rules(rules)
    apart = 2 * REPAIR.around - 2
    for turn in range(REPAIR.passes * apart):
        motion = motion_of_tracks(tracks, scope)
        wrong = np.zeros(len(tracks.x_m), bool)
        for rule in rules:
            wrong |= rule.violations(motion)
        if not wrong.any():
            break
        # Points this far apart on a track are in different windows, so each window contains only one that moves.
        points = np.flatnonzero(wrong)
        rank = points - tracks.offsets[tracks.owner[points]]
        points = points[rank % apart == turn % apart]
        x, y = tracks.x_m.copy(), tracks.y_m.copy()
        for start in range(0, len(points), REPAIR.windows):
            vertex, new_x, new_y = _best_moves(tracks, motion, points[start : start + REPAIR.windows], rules, scope)
            x[vertex], y[vertex] = new_x, new_y
        tracks = as_written(Tracks(tracks.offsets, x, y, tracks.t_utc), scope)
    return tracks


def _best_moves(
    tracks: Tracks, motion: Motion, points: NDArray[np.int64], rules: tuple[Rule, ...], scope: Scope
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the vertices to move and their new positions, for violating points that a move helps."""
    owner = tracks.owner[points]
    first, last = tracks.offsets[owner], tracks.offsets[owner + 1] - 1
    vertex, to_x, to_y, window = _proposals(tracks, points, first, last, scope)
    low, high = np.maximum(points - REPAIR.around, first)[window], np.minimum(points + REPAIR.around, last)[window]
    sizes = high - low + 1
    offsets = ragged.offsets_of(sizes)
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
    wrong = ragged.sums(count, offsets)
    moved_m = np.hypot(to_x - tracks.x_m[vertex], to_y - tracks.y_m[vertex])
    is_end = (vertex == first[window]) | (vertex == last[window])
    order = np.lexsort((moved_m + np.where(is_end & (moved_m > 0), REPAIR.end_cost_m, 0.0), wrong, window))
    best = order[np.r_[True, window[order][1:] != window[order][:-1]]]
    # The first proposal of each window is to change nothing.
    stays = wrong[np.searchsorted(window, np.arange(len(points)))]
    better = best[wrong[best] < stays]
    return vertex[better], to_x[better], to_y[better]


def _proposals(
    tracks: Tracks, points: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], scope: Scope
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return (vertex, x, y, window) of all proposals, sorted by window; the first of each changes nothing."""
    angle = np.arange(REPAIR.directions) * 2 * np.pi / REPAIR.directions
    ring_x = np.concatenate([radius * np.cos(angle) for radius in REPAIR.radii_m])
    ring_y = np.concatenate([radius * np.sin(angle) for radius in REPAIR.radii_m])
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
    window = np.repeat(np.arange(len(points)), vertex.shape[1])
    copy = as_written(Tracks(np.array([0, all_x.size]), all_x.ravel(), all_y.ravel(), np.zeros(all_x.size)), scope)
    return vertex.ravel(), copy.x_m, copy.y_m, window

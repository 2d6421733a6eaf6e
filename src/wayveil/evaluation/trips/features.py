"""Numbers that describe a single trip, by group; NaN where a trip is too short for one."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.week import DAY_S
from wayveil.evaluation.paths import Paths
from wayveil.evaluation.trips import rows
from wayveil.evaluation.trips.roads import Matched
from wayveil.evaluation.trips.sets import cell_codes
from wayveil.evaluation.trips.settings import SETTINGS
from wayveil.evaluation.trips.steps import Steps, clocks, every_metres, every_seconds, segments, steps_of, turns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Features = dict[str, Floats]
"""Feature -> one value per trip."""
_PATH_STEP_M = 100.0
"""Metres between points along a path, and the side of a cell."""
_MOVED_M = 2.0
"""Metres: the direction of a shorter step is that of the measurement error."""
_SAME_PLACE_M = 1.5
"""Metres: shorter steps count as standing still; coordinates are rounded to about a metre."""
_STRAIGHT_DEG, _SHARP_DEG, _REVERSAL_DEG = 3, 45, 150
"""Turns below which a trip goes straight on, and above which it turns sharply, or back."""
_RIGHT_ANGLE_DEG = 75, 105
"""Turns that count as right angles."""
_ON_ROAD_M, _OFF_ROAD_M = 20, 50
"""Distances from a road within which a point is on it, and beyond which it is certainly not."""
_WRONG_WAY_DEG = 135
"""Angle to the direction of a one-way street above which a trip runs against it."""
_ROAD_CLASSES = ("motorway", "trunk", "primary", "secondary", "tertiary", "residential")


def features(paths: Paths, rest: Paths, matched: Matched | None, with_time: bool) -> dict[str, Features]:
    """Group -> features of all trips.

    `rest` are real trips for the number of starts and ends around a place; `matched` are the roads at the points.
    """
    steps = steps_of(paths)
    groups = {"shape": {**_extent(paths, steps), **_path(paths), **_points(steps)}}
    if with_time:
        groups["speed"] = {**_speed(paths, steps), **_standing(paths, steps), **_rhythm(paths, steps)}
        groups["recording"] = _recording(paths, steps)
        groups["departure"] = _departure(paths)
    groups["place"] = _place(paths, rest)
    if matched is not None:
        groups["road"] = _road(paths, matched)
    return groups


def _extent(paths: Paths, steps: Steps) -> Features:
    first, last, owner, offsets = paths.first, paths.last, paths.owner, paths.offsets
    across, up = paths.x_m[last] - paths.x_m[first], paths.y_m[last] - paths.y_m[first]
    chord_m = np.hypot(across, up)
    aside = (paths.x_m - paths.x_m[first][owner]) * up[owner] - (paths.y_m - paths.y_m[first][owner]) * across[owner]
    spread = rows.centred(paths.x_m, offsets) ** 2 + rows.centred(paths.y_m, offsets) ** 2
    length_m = np.where(np.diff(offsets) > 1, paths.length_m, np.nan)
    return {
        "length_m": length_m,
        "displacement_m": chord_m,
        "straightness": rows.divided(chord_m, np.maximum(length_m, 1.0)),
        "detour_width": rows.divided(rows.largest(np.abs(aside), offsets), np.where(chord_m > 1, chord_m**2, np.nan)),
        "width_m": rows.largest(paths.x_m, offsets) - rows.smallest(paths.x_m, offsets),
        "height_m": rows.largest(paths.y_m, offsets) - rows.smallest(paths.y_m, offsets),
        "gyration_m": np.sqrt(rows.mean(spread, offsets)),
        "longest_step_share": rows.divided(
            rows.largest(steps.length_m, steps.offsets), np.maximum(paths.length_m, 1.0)
        ),
        "shortest_step_m": rows.smallest(steps.length_m, steps.offsets),
        "step_variation": _variation(steps.length_m, steps.offsets),
    }


def _variation(column: Floats, offsets: Ints) -> Floats:
    """Coefficient of variation of each row."""
    return rows.divided(rows.deviation(column, offsets), np.maximum(rows.mean(column, offsets), 0.1))


def _path(paths: Paths) -> Features:
    """The path itself, at steps of 100 m, however the device recorded it."""
    line = every_metres(paths, _PATH_STEP_M)
    dx, dy, offsets = segments(line)
    heading = np.arctan2(dy, dx)
    turn, turn_offsets = turns(heading, offsets)
    size = np.abs(np.degrees(turn))
    enough = np.where(np.diff(turn_offsets) >= 3, 1.0, np.nan)
    km = np.maximum(paths.length_m / 1000, 0.1)
    sharp = rows.total(size > _SHARP_DEG, turn_offsets)
    right = (size > _RIGHT_ANGLE_DEG[0]) & (size < _RIGHT_ANGLE_DEG[1])
    axis = np.hypot(rows.mean(np.cos(4 * heading), offsets), rows.mean(np.sin(4 * heading), offsets))
    return {
        "turn_mean_deg": rows.mean(size, turn_offsets) * enough,
        "straight_on_share": rows.mean(size < _STRAIGHT_DEG, turn_offsets) * enough,
        "slight_turn_share": rows.mean((size >= _STRAIGHT_DEG) & (size < _SHARP_DEG), turn_offsets) * enough,
        "sharp_turns_per_km": sharp / km * enough,
        "right_angle_share": rows.divided(rows.total(right, turn_offsets), sharp) * enough,
        "u_turns_per_km": rows.total(size > _REVERSAL_DEG, turn_offsets) / km * enough,
        "turn_autocorrelation": rows.autocorrelation(turn, turn_offsets),
        "turn_autocorrelation_2": rows.autocorrelation(turn, turn_offsets, lag=2),
        "grid_alignment": axis * np.where(np.diff(offsets) >= 4, 1.0, np.nan),
        **_returns(line.x_m, line.y_m, line.offsets),
    }


def _returns(x_m: Floats, y_m: Floats, offsets: Ints) -> Features:
    """Shares of 100 m cells that a trip enters again, and of moves between cells that it also makes backwards."""
    count = len(offsets) - 1
    owner, cell = ragged.owners(np.diff(offsets)), cell_codes(x_m, y_m, _PATH_STEP_M)
    _, cell = np.unique(cell, return_inverse=True)
    new = np.r_[True, (cell[1:] != cell[:-1]) | (owner[1:] != owner[:-1])][: len(cell)]
    owner, cell = owner[new], cell[new]
    cells = int(cell.max(initial=0)) + 1
    entered = np.bincount(owner, minlength=count).astype(float)
    distinct = np.bincount(np.unique(owner * cells + cell) // cells, minlength=count)
    same = owner[1:] == owner[:-1]
    trip, before, after = owner[1:][same], cell[:-1][same], cell[1:][same]
    _, code = np.unique(
        np.r_[before * cells + after, after * cells + before], return_inverse=True
    )  # small numbers, so that trip and move fit into one
    moves = int(code.max(initial=0)) + 1
    outward, back = trip * moves + code[: len(trip)], trip * moves + code[len(trip) :]
    reversed_moves = np.bincount(trip, np.isin(outward, back), minlength=count)
    return {
        "revisited_share": 1 - rows.divided(distinct.astype(float), entered),
        "backtracked_share": rows.divided(reversed_moves, np.maximum(entered - 1, 0)),
    }


def _points(steps: Steps) -> Features:
    """Turns from point to point: smoothness and measurement error."""
    moved = steps.length_m > _MOVED_M
    owner = steps.owner[moved]
    offsets = ragged.offsets_of(np.bincount(owner, minlength=len(steps.offsets) - 1))
    turn, offsets = turns(np.arctan2(steps.dy_m[moved], steps.dx_m[moved]), offsets)
    size = np.abs(np.degrees(turn))
    enough = np.where(np.diff(offsets) >= 3, 1.0, np.nan)
    return {
        "point_turn_mean_deg": rows.mean(size, offsets) * enough,
        "point_turn_p90_deg": rows.quantiles(size, offsets, (0.9,))[0] * enough,
        "point_straight_share": rows.mean(size < _STRAIGHT_DEG, offsets) * enough,
        "point_reversal_share": rows.mean(size > _REVERSAL_DEG, offsets) * enough,
        "point_turn_autocorrelation": rows.autocorrelation(turn, offsets),
    }


def _speed(paths: Paths, steps: Steps) -> Features:
    speed, offsets = steps.speed_mps, steps.offsets
    duration_s = paths.t_utc[paths.last] - paths.t_utc[paths.first]
    low, lower, middle, upper, high = rows.quantiles(speed, offsets, (0.1, 0.25, 0.5, 0.75, 0.9))
    change, change_offsets = _changes(steps)
    moving = np.where(np.diff(offsets) > 0, 1.0, np.nan)
    return {
        "duration_s": duration_s,
        "speed_mean_mps": paths.length_m / np.maximum(duration_s, 1.0) * moving,
        "speed_median_mps": middle,
        "speed_p10_mps": low,
        "speed_p25_mps": lower,
        "speed_p75_mps": upper,
        "speed_p90_mps": high,
        "speed_max_mps": rows.largest(speed, offsets),
        "speed_deviation_mps": rows.deviation(speed, offsets),
        "speed_variation": _variation(speed, offsets),
        "speed_autocorrelation": rows.autocorrelation(speed, offsets),
        "speed_autocorrelation_2": rows.autocorrelation(speed, offsets, lag=2),
        "acceleration_mean_mps2": rows.mean(change, change_offsets),
        "acceleration_p95_mps2": rows.quantiles(change, change_offsets, (0.95,))[0],
    }


def _changes(steps: Steps) -> tuple[Floats, Ints]:
    """Absolute acceleration between successive steps, and its offsets."""
    same = steps.owner[1:] == steps.owner[:-1]
    between_s = (steps.duration_s[1:] + steps.duration_s[:-1]) / 2
    return np.abs(np.diff(steps.speed_mps) / between_s)[same], rows.shortened(steps.offsets, 1)


def _standing(paths: Paths, steps: Steps) -> Features:
    count = len(paths)
    slow, owner = steps.speed_mps < SETTINGS.rest_mps, steps.owner
    begins = slow & np.r_[True, ~slow[:-1] | (owner[1:] != owner[:-1])][: len(slow)]
    stop = np.cumsum(begins)[slow] - 1
    stop_s = np.bincount(stop, steps.duration_s[slow])
    longest = np.zeros(count)
    np.maximum.at(longest, owner[begins], stop_s)
    some = np.where(np.diff(steps.offsets) > 0, 1.0, np.nan)
    elapsed_s = np.maximum(rows.total(steps.duration_s, steps.offsets), 1.0)
    return {
        "standing_share": rows.total(steps.duration_s * slow, steps.offsets) / elapsed_s * some,
        "longest_standing_s": longest * some,
        "standing_spells": np.bincount(owner[begins], minlength=count).astype(float) * some,
        "same_place_share": rows.mean(steps.length_m < _SAME_PLACE_M, steps.offsets),
    }


def _rhythm(paths: Paths, steps: Steps) -> Features:
    """How the speed varies along a trip: first and last fifth, slowing in turns, variation from minute to minute."""
    clock = clocks(paths, steps)
    begin, span = clock[paths.first], clock[paths.last] - clock[paths.first]
    early, late = (np.interp(begin + share * span, clock, paths.arc_m) for share in (0.2, 0.8))
    length_m = np.where(paths.length_m > 1, paths.length_m, np.nan)
    turn, offsets = turns(np.arctan2(steps.dy_m, steps.dx_m), steps.offsets)
    same = steps.owner[1:] == steps.owner[:-1]
    around = ((steps.speed_mps[1:] + steps.speed_mps[:-1]) / 2)[same]
    dx, dy, minute_offsets = segments(every_seconds(paths, steps, 60.0))
    minute_speed = np.hypot(dx, dy) / 60
    enough = np.where(np.diff(minute_offsets) >= 3, 1.0, np.nan)
    return {
        "first_fifth_speed": (early - paths.arc_m[paths.first]) / (0.2 * length_m),
        "last_fifth_speed": (paths.arc_m[paths.last] - late) / (0.2 * length_m),
        "speed_turn_correlation": rows.correlation(np.abs(turn), around, offsets, fewest=4),
        "minute_speed_deviation_mps": rows.deviation(minute_speed, minute_offsets) * enough,
        "minute_speed_variation": _variation(minute_speed, minute_offsets) * enough,
    }


def _recording(paths: Paths, steps: Steps) -> Features:
    wait, offsets = steps.duration_s, steps.offsets
    middle = rows.quantiles(wait, offsets, (0.5,))[0]
    return {
        "points": np.diff(paths.offsets).astype(float),
        "interval_median_s": middle,
        "interval_min_s": rows.smallest(wait, offsets),
        "interval_max_s": rows.largest(wait, offsets),
        "interval_variation": _variation(wait, offsets),
        "commonest_interval_share": _commonest_share(wait, steps),
        "interval_median_mod_5_s": middle % 5,
    }


def _commonest_share(wait: Floats, steps: Steps) -> Floats:
    """Share of each trip's intervals that equal the most frequent one."""
    _, code = np.unique(wait, return_inverse=True)
    kinds = int(code.max(initial=0)) + 1
    pair, count = np.unique(steps.owner * kinds + code, return_counts=True)
    most = np.zeros(len(steps.offsets) - 1)
    np.maximum.at(most, pair // kinds, count)
    return rows.divided(most, np.diff(steps.offsets).astype(float))


def _departure(paths: Paths) -> Features:
    hour = paths.start_clock_s / 3600
    return {
        "departure_hour": hour,
        "departure_weekday": np.floor(paths.start_week_s / DAY_S),
        "departure_minute": hour % 1 * 60,
    }


def _place(paths: Paths, rest: Paths) -> Features:
    """log(1 + real starts, or ends, in the 1 km cell of the trip's own)."""
    result = {}
    for name, own, others in (("start_density", paths.first, rest.first), ("end_density", paths.last, rest.last)):
        known, count = np.unique(
            cell_codes(rest.x_m[others], rest.y_m[others], SETTINGS.density_cell_m), return_counts=True
        )
        wanted = cell_codes(paths.x_m[own], paths.y_m[own], SETTINGS.density_cell_m)
        place = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
        found = known[place] == wanted if len(known) else np.zeros(len(wanted), bool)
        result[name] = np.log1p(np.where(found, count[place] if len(known) else 0, 0))
    return result


def _road(paths: Paths, matched: Matched) -> Features:
    count = len(paths)

    def kept(mask: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Ints]:
        return mask, ragged.offsets_of(np.bincount(paths.owner[mask], minlength=count))

    near, near_offsets = kept(matched.road >= 0)
    mapped = np.where(rows.mean(near, paths.offsets) > 0.5, 1.0, np.nan)
    distance_m = matched.distance_m[near]
    middle, high = (value * mapped for value in rows.quantiles(distance_m, near_offsets, (0.5, 0.9)))
    on, on_offsets = kept((matched.road >= 0) & (matched.distance_m < _ON_ROAD_M))
    enough = np.where(np.diff(on_offsets) >= 3, mapped, np.nan)
    against = np.degrees(matched.angle[on])
    one_way, one_way_offsets = kept(on & matched.one_way)
    same = paths.owner[1:] == paths.owner[:-1]
    changed = np.bincount(paths.owner[1:][same], (np.diff(matched.road) != 0)[same], minlength=count)
    result = {
        "road_distance_mean_m": rows.mean(distance_m, near_offsets) * mapped,
        "road_distance_median_m": middle,
        "road_distance_p90_m": high,
        "off_road_20m_share": rows.mean(distance_m > _ON_ROAD_M, near_offsets) * mapped,
        "off_road_50m_share": rows.mean(distance_m > _OFF_ROAD_M, near_offsets) * mapped,
        "road_angle_deg": rows.mean(np.minimum(against, 180 - against), on_offsets) * enough,
        "wrong_way_share": rows.mean(matched.angle[one_way] > np.radians(_WRONG_WAY_DEG), one_way_offsets)
        * np.where(np.diff(one_way_offsets) >= 2, mapped, np.nan),
        "links_per_km": changed / np.maximum(paths.length_m / 1000, 0.1) * mapped,
    }
    for name in _ROAD_CLASSES:
        result[f"{name}_share"] = rows.mean(matched.class_name[on] == name, on_offsets) * enough
    return result

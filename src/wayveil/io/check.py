"""Count what a file contains and what is wrong with it.

Privacy: not private (trusted side only); nothing is spent, and the result must not be published.
"""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.scope import EARTH_RADIUS_M, Scope
from wayveil.core.week import DAY_S
from wayveil.errors import InputError
from wayveil.io.check_report import PROBLEMS, CheckReport
from wayveil.io.options import SPLIT_NOTE, read_options
from wayveil.io.readers import grouping
from wayveil.io.readers.dispatch import metadata_of
from wayveil.io.readers.labels import Labels
from wayveil.io.readers.points import DAMAGED, Points, bad_rows
from wayveil.io.scope_files import scope_of
from wayveil.io.source import open_source
from wayveil.progress import Progress, quiet

_SLACK = 1.001
"""Factor by which lengths on the sphere and on the scope's map may differ; synthetic steps may be just at the cap."""
_EDGE_M = 1e-3
"""Tolerance in metres, because synthetic points may lie on the edge of the box."""
_STILL_SHARE, _FEWEST_STEPS = 0.9, 3
"""If this share of the steps takes no time, the times are useless; with fewer steps nothing is concluded."""
_MOST_MIDNIGHTS = 2
"""Dates are read as midnight: one time of day in UTC, or two if daylight saving time changed."""
_YEAR_1970_S = 365 * DAY_S
"""Unix times below this are probably seconds since the start of a recording, not since 1970."""


class _Tally:
    """Counts over all slices of the data; the last good row of a slice is kept for comparison with the next slice."""

    def __init__(self, scope: Scope | None, already_split: bool = False) -> None:
        self.scope = scope
        self.already_split = already_split
        self.rows = 0
        self.problems: dict[str, int] = dict.fromkeys(PROBLEMS, 0)
        self.low = np.full(3, np.inf)
        self.high = np.full(3, -np.inf)
        self.pieces: list[NDArray[np.generic]] = []
        self.piece_sizes: list[NDArray[np.int64]] = []
        self.piece_times: list[NDArray[np.float64]] = []
        self.piece_metres: list[NDArray[np.float64]] = []
        self.steps = 0
        self.times_of_day: set[float] = set()
        self.users: list[NDArray[np.generic]] | None = None
        self.owners: dict[int | str, int | str] = {}
        self.shared: set[int | str] = set()
        self.before: tuple[int | str, float, float, float, bool] | None = None

    def add(self, points: Points) -> None:
        self.rows += len(points) + sum(count for name, count in points.lost.items() if name != DAMAGED)
        for name, count in points.lost.items():
            self.problems[name] += count
        if points.user is not None and self.users is None:
            self.users = []
        kinds = bad_rows(points)
        bad = np.zeros(len(points), bool)
        for name, mask in kinds.items():
            self.problems[name] += int((mask & ~bad).sum())
            bad |= mask
        good = points.take(~bad)
        if not len(good):
            return
        columns = np.stack([good.lat, good.lon, good.t_utc])
        self.low, self.high = np.minimum(self.low, columns.min(1)), np.maximum(self.high, columns.max(1))
        if good.user is not None:
            self.users = [*(self.users or []), _distinct(good.user)]
            self._note_owners(good.label, good.user)
        if len(self.times_of_day) <= _MOST_MIDNIGHTS:
            self.times_of_day.update(np.unique(good.t_utc % DAY_S)[: _MOST_MIDNIGHTS + 1].tolist())
        inside = np.ones(len(good), bool) if self.scope is None else _inside(good.lon, good.lat, self.scope)
        self._compare(good, inside)
        if self.scope is not None:
            self._count_outside(good, inside, self.scope)

    def _note_owners(self, label: Labels, user: Labels) -> None:
        """Note trajectories that have several users."""
        changes = (label.code[1:] != label.code[:-1]) | (user.code[1:] != user.code[:-1])
        for row in np.flatnonzero(np.r_[True, changes]).tolist():
            key, owner = label.value(row), user.value(row)
            if self.owners.setdefault(key, owner) != owner:
                self.shared.add(key)

    def _compare(self, good: Points, inside: NDArray[np.bool_]) -> None:
        """Compare each row with the one above it in the same trajectory; lengths count inside the box only."""
        code, t_utc, lon, lat = good.label.code, good.t_utc, good.lon, good.lat
        same = np.r_[False, code[1:] == code[:-1]]
        wait_s = np.r_[0.0, np.diff(t_utc)]
        metres = np.r_[0.0, _metres(lon[:-1], lat[:-1], lon[1:], lat[1:])]
        counted = np.r_[False, inside[1:] & inside[:-1]]
        if self.before is not None and self.before[0] == good.label.value(0):
            _, t_before, lon_before, lat_before, inside_before = self.before
            same[0], wait_s[0], counted[0] = True, t_utc[0] - t_before, inside_before and inside[0]
            metres[0] = _metres(np.array([lon_before]), np.array([lat_before]), lon[:1], lat[:1])[0]
        self.before = (good.label.value(-1), float(t_utc[-1]), float(lon[-1]), float(lat[-1]), bool(inside[-1]))
        self.steps += int(same.sum())
        self.problems["time before the row above"] += int((same & (wait_s < 0)).sum())
        self.problems["same time as the row above"] += int((same & (wait_s == 0)).sum())
        if self.scope is not None:
            cap_mps = _SLACK * self.scope.caps.speed_kmh / 3.6
            self.problems["faster than the scope's cap"] += int((same & (metres > cap_mps * np.abs(wait_s))).sum())
        begins = np.flatnonzero(~same)
        sizes = np.diff(np.r_[begins, len(code)])
        lead = int(begins[0]) if len(begins) else len(code)
        within_m = np.where(same & counted, metres, 0.0)
        if lead:  # the piece that began in the previous slice
            self.piece_sizes[-1][-1] += lead
            self.piece_metres[-1][-1] += within_m[:lead].sum()
            edge = self.piece_times[-1][:, -1]
            edge[:] = min(edge[0], t_utc[:lead].min()), max(edge[1], t_utc[:lead].max())
        if len(begins):
            ends = t_utc[begins[0] :], begins - begins[0]
            self.piece_times.append(np.stack([np.minimum.reduceat(*ends), np.maximum.reduceat(*ends)]))
            self.pieces.append(good.label.take(begins).values())
            self.piece_sizes.append(sizes)
            self.piece_metres.append(np.add.reduceat(within_m, begins))

    def _count_outside(self, good: Points, inside: NDArray[np.bool_], scope: Scope) -> None:
        self.problems["outside the scope's box"] += int((~inside).sum())
        swapped = ~inside & _inside(good.lat, good.lon, scope)
        self.problems["inside it if latitude and longitude are swapped"] += int(swapped.sum())
        window = scope.time_window()
        if window is not None:
            outside = (good.t_utc < window[0]) | (good.t_utc >= window[1])
            self.problems["outside the scope's days"] += int(outside.sum())
        if (hours := scope.hours_window_s) is not None:
            outside = scope.seconds_into_hours(good.t_utc) >= hours[1]
            self.problems["outside the scope's hours of the day"] += int(outside.sum())

    def report(self) -> CheckReport:
        trajectories = 0
        if self.pieces:
            names, where, pieces = np.unique(_concatenated(self.pieces), return_inverse=True, return_counts=True)
            points = np.bincount(where, np.concatenate(self.piece_sizes))
            trajectories = len(names)
            self.problems["trajectory in several pieces"] = int((pieces > 1).sum())
            self.problems["several users in one trajectory"] = len(self.shared)
            self.problems["too many points"] = int((points > grouping.MAX_TRAJECTORY_POINTS).sum())
            self.problems["only one point"] = int((points == 1).sum())
            if self.scope is not None:
                caps, length_m = self.scope.caps, np.bincount(where, np.concatenate(self.piece_metres))
                self.problems["more points than the scope's cap"] = int((points > caps.points).sum())
                self.problems["longer than the scope's length cap"] = int(
                    (length_m > _SLACK * 1000 * caps.length_km).sum()
                )
                self.problems["longer than the scope's duration cap"] = int(
                    (self._duration_s(where) > 3600 * caps.duration_h).sum()
                )
        self._check_times()
        users = None if self.users is None else len(np.unique(_concatenated(self.users))) if self.users else 0
        problems = {name: count for name, count in self.problems.items() if count}
        zone = "UTC" if self.scope is None else self.scope.timezone
        if not self.pieces:
            nothing = (None, None, None, None, None, None)
            return CheckReport(self.rows, 0, users, *nothing, problems, zone, self.already_split)
        (south, west, first), (north, east, last) = self.low.tolist(), self.high.tolist()
        return CheckReport(
            self.rows, trajectories, users, first, last, south, west, north, east, problems, zone, self.already_split
        )

    def _check_times(self) -> None:
        """Find problems that only the times of all rows together show."""
        rows = sum(int(sizes.sum()) for sizes in self.piece_sizes)
        still = self.problems["same time as the row above"]
        if self.steps >= _FEWEST_STEPS and still >= _STILL_SHARE * self.steps:
            if len(self.times_of_day) <= _MOST_MIDNIGHTS:
                self.problems["date without a time of day"] = rows
            else:
                self.problems["time that does not advance"] = still
            self.problems["same time as the row above"] = 0
        window = None if self.scope is None else self.scope.time_window()
        scope_in_1970 = window is not None and window[0] < _YEAR_1970_S
        if self.pieces and self.low[2] >= 0.0 and self.high[2] < _YEAR_1970_S and not scope_in_1970:
            self.problems["time in the year 1970"] = rows

    def _duration_s(self, where: NDArray[np.int64]) -> NDArray[np.float64]:
        """Duration of each trajectory in seconds; `where` is the trajectory of each piece."""
        first, last = np.concatenate(self.piece_times, axis=1)
        low, high = np.full(where.max() + 1, np.inf), np.full(where.max() + 1, -np.inf)
        np.minimum.at(low, where, first)
        np.maximum.at(high, where, last)
        return high - low


def _inside(lon: NDArray[np.float64], lat: NDArray[np.float64], scope: Scope) -> NDArray[np.bool_]:
    """Whether points lie in the box, with a tolerance of a millimetre, because synthetic points may lie on its edge."""
    x_m, y_m = scope.to_metres(lon, lat)
    across, along = (np.abs(at - size / 2) for at, size in ((x_m, scope.width_m), (y_m, scope.height_m)))
    return np.asarray((across <= scope.width_m / 2 + _EDGE_M) & (along <= scope.height_m / 2 + _EDGE_M))


def _distinct(labels: Labels) -> NDArray[np.generic]:
    codes = np.unique(labels.code)
    return codes if labels.names is None else labels.names[codes]


def _concatenated(parts: list[NDArray[np.generic]]) -> NDArray[np.generic]:
    """One array; if part files disagree on whether labels are numbers, all become text."""
    if len({part.dtype.kind for part in parts}) > 1:
        parts = [part.astype(np.str_) for part in parts]
    elif parts[0].dtype == object:
        return np.array([f"{type(value).__name__} {value}" for part in parts for value in part], np.str_)
    return np.concatenate(parts)


def _metres(
    lon: NDArray[np.float64], lat: NDArray[np.float64], lon_to: NDArray[np.float64], lat_to: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Haversine distance."""
    a, b = np.radians(lat), np.radians(lat_to)
    half = np.sin((b - a) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin(np.radians(lon_to - lon) / 2) ** 2
    result: NDArray[np.float64] = 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.clip(half, 0, 1)))
    return result


def check(
    source: "str | os.PathLike[str] | Any",
    scope: Scope | str | os.PathLike[str] | None = None,
    *,
    progress: Progress = quiet,
    **options: Any,
) -> CheckReport:
    """Report what the data contains and what is wrong with it, in exact counts.

    Bad rows are counted, not refused; they are the rows that `measure` leaves out.

    Parameters
    ----------
    source
        A file, a folder, a frame or trajectories, as `wayveil.read` takes them.
    scope
        A `Scope`, a file, or the name of a shipped one; rows outside it are counted too.
    options
        Options of `wayveil.read` (`traj_id=…, time=…, timezone=…`) if columns are not recognized automatically.

    Returns
    -------
    CheckReport
        `print` it; `problems` are counts by kind and `advice` says what to do about each.

    Raises
    ------
    InputError
        If the file cannot be read or has no rows.

    Examples
    --------
    >>> import wayveil
    >>> print(wayveil.check("rides.csv", "san-francisco", timezone="America/Los_Angeles"))  # doctest: +SKIP
    >>> city = wayveil.simulate.simulate_city(size_km=(3, 3))
    >>> rides = wayveil.simulate.simulate_trajectories(city, 20)
    >>> wayveil.check(rides, city.scope)
    CheckReport(0 kinds of problems; print it for the counts, which are private)

    Privacy
    -------
    Not private (trusted side only); spends nothing.
    """
    tally = _Tally(None if scope is None else scope_of(scope), _was_split(source))
    for points in open_source(source, read_options(options, "check", ("scope",))).points(progress):
        tally.add(points)
    if tally.rows == 0:
        raise InputError("The data has no rows.")
    return tally.report()


def _was_split(source: Any) -> bool:
    """Whether the notes of a file say that `convert` split it into trips."""
    if not isinstance(source, str | os.PathLike) or os.path.isdir(source):
        return False
    try:
        return SPLIT_NOTE in metadata_of(source)
    except InputError:
        return False

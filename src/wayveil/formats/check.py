"""What a file holds and what is wrong with it, counted.

Privacy: not private (trusted side only); nothing is spent, and nothing of this may be published.
"""

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError
from wayveil.formats import grouping
from wayveil.formats.labels import Labels
from wayveil.formats.points import DAMAGED, MALFORMED, Points, bad_rows, label_problems
from wayveil.progress import Progress, quiet
from wayveil.scope import EARTH_RADIUS_M, Scope

_BAD_IDS = tuple(label_problems("trajectory id").values())
_BAD_USERS = tuple(label_problems("user").values())
_BAD = (
    MALFORMED,
    "missing coordinate",
    "latitude and longitude exchanged",
    "coordinate out of range",
    "time without a time zone",
    "missing or unreadable time",
    *_BAD_IDS,
)
"""Rows that contribute nothing to any measurement."""

PROBLEMS = {
    DAMAGED: "files",
    **dict.fromkeys(_BAD, "rows"),
    **dict.fromkeys(_BAD_USERS, "rows"),
    "time before the row above": "rows",
    "same time as the row above": "rows",
    "date without a time of day": "rows",
    "time that stands still": "rows",
    "time in the year 1970": "rows",
    "trajectory in several pieces": "trajectories",
    "several users in one trajectory": "trajectories",
    "too many points": "trajectories",
    "only one point": "trajectories",
    "outside the scope's box": "rows",
    "inside it if latitude and longitude are exchanged": "rows",
    "outside the scope's days": "rows",
    "faster than the scope's cap": "steps",
    "longer than the scope's hours": "trajectories",
}
"""Every kind of problem, and what is counted."""

_EDGE_M = 1e-3
_SLACK = 1.001
"""Metres on the sphere and on the scope's map differ by less than this; synthetic steps may be exactly at the cap."""
_LEFT_OUT = "left out of every measurement; repair them if they are many"
_HARMLESS = "nothing: harmless"
ADVICE = {
    DAMAGED: "left out of every measurement; repair them, or move them away",
    **dict.fromkeys(_BAD, _LEFT_OUT),
    MALFORMED: "left out of every measurement; a row is one line with as many values as the header has names, and "
    "quotation marks must be closed on that line",
    "latitude and longitude exchanged": "exchange --lat-column and --lon-column",
    "time without a time zone": "say which clocks they follow with --timezone; without it they are left out",
    "missing or unreadable time": f"{_LEFT_OUT}; Unix seconds, or ISO 8601 text (2024-03-04 07:30:00)",
    **dict.fromkeys(_BAD_USERS, "left out with --unit user; with --unit trajectory nobody needs a user"),
    "time before the row above": "nothing: rows are sorted",
    "same time as the row above": _HARMLESS,
    "date without a time of day": "no speed or hour can be told: name the column of times with --time-column, "
    "or write date and time into one",
    "time that stands still": "no speed or hour can be told: see --time-column; it may be a trip's time, or rounded",
    "time in the year 1970": "every row is: seconds since a start, or a spreadsheet's days? Write Unix seconds, or "
    "dates with times",
    "trajectory in several pieces": "nothing: they are put together, unless ids are used twice",
    "several users in one trajectory": "left out with --unit trajectory; with --unit user each user's rows are a "
    "trajectory of their own. Make trajectory ids unique across users",
    "too many points": "left out of every measurement; see --traj-column, or cut recordings into trips: wayveil "
    "convert --split-minutes 10",
    "only one point": _HARMLESS,
    "outside the scope's box": "nothing: left out; if many, see the box and the columns",
    "inside it if latitude and longitude are exchanged": "exchange --lat-column and --lon-column if these are many",
    "outside the scope's days": "nothing: left out; if many, see the days and --timezone",
    "faster than the scope's cap": "nothing: kept; if many, ids mix trips or times are wrong",
    "longer than the scope's hours": "cut recordings into trips: wayveil convert --split-minutes 10",
}
"""What to do about each kind."""
_ALL_OUTSIDE = {
    "outside the scope's box": "every row is: the scope is probably wrong, or the columns; see its box",
    "outside the scope's days": "every row is: the scope is probably wrong, or --timezone; see its days",
}
_ONE_POINT = "only one point"
_MOST_ONE_POINT = (
    "most are: is it a table with one row a trip? Then give start and end a row each, with the trip's id; "
    "as it is, synthetic trajectories will have one point as well"
)
_STILL_SHARE, _FEWEST_STEPS = 0.9, 3
"""Where this share of the steps takes no time, times say nothing; of fewer steps nothing is concluded."""
_MOST_MIDNIGHTS = 2
"""Dates are read as midnights: one time of day in UTC, or two where clocks were changed."""
_YEAR_1970_S = 365 * 86_400.0


@dataclass(frozen=True)
class CheckReport:
    """Exact numbers about private data.

    Privacy: not private (trusted side only).
    """

    rows: int
    trajectories: int
    users: int | None
    first_utc: float | None
    last_utc: float | None
    south: float | None
    west: float | None
    north: float | None
    east: float | None
    problems: dict[str, int]
    """Counts by kind, only those that occur; kinds as in `PROBLEMS`."""

    @property
    def advice(self) -> dict[str, str]:
        """What to do about each kind that occurs."""
        special = {name: text for name, text in _ALL_OUTSIDE.items() if self.problems.get(name) == self._good_rows}
        if 2 * self.problems.get(_ONE_POINT, 0) > self.trajectories:
            special[_ONE_POINT] = _MOST_ONE_POINT
        return {name: special.get(name, ADVICE[name]) for name in self.problems}

    @property
    def nothing_left(self) -> bool:
        """Whether no row can be used: all are bad, or all that are not lie outside the scope."""
        bad = sum(self.problems.get(name, 0) for name in _BAD)
        outside = any(self.problems.get(name) == self._good_rows for name in _ALL_OUTSIDE)
        return bad == self.rows or (self._good_rows > 0 and outside)

    @property
    def likely_cause(self) -> str:
        """What most rows suffer from, and what to do about it; for the case that none can be used."""
        rows = {name: count for name, count in self.problems.items() if name in (*_BAD, *_ALL_OUTSIDE)}
        name = max(rows, key=lambda kind: rows[kind], default="")
        return f"{name} ({self.advice[name]})" if name else "the data holds no rows"

    @property
    def _good_rows(self) -> int:
        """Rows that count for the statistics of this report."""
        return self.rows - sum(self.problems.get(name, 0) for name in (*_BAD, *_BAD_USERS))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


class _Tally:
    """Counts that grow slice by slice; the last good row of the slice before is kept to compare with."""

    def __init__(self, scope: Scope | None) -> None:
        self.scope = scope
        self.rows = 0
        self.problems: dict[str, int] = dict.fromkeys(PROBLEMS, 0)
        self.low = np.full(3, np.inf)
        self.high = np.full(3, -np.inf)
        self.pieces: list[NDArray[np.generic]] = []
        self.piece_sizes: list[NDArray[np.int64]] = []
        self.piece_times: list[NDArray[np.float64]] = []
        self.steps = 0
        self.clocks: set[float] = set()
        self.users: list[NDArray[np.generic]] | None = None
        self.owners: dict[int | str, int | str] = {}
        self.shared: set[int | str] = set()
        self.before: tuple[int | str, float, float, float] | None = None

    def add(self, points: Points) -> None:
        self.rows += len(points) + points.lost.get(MALFORMED, 0)
        for name, count in points.lost.items():
            self.problems[name] += count
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
        if len(self.clocks) <= _MOST_MIDNIGHTS:
            self.clocks.update(np.unique(good.t_utc % 86_400.0)[: _MOST_MIDNIGHTS + 1].tolist())
        self._compare(good)
        if self.scope is not None:
            self._place(good, self.scope)

    def _note_owners(self, label: Labels, user: Labels) -> None:
        """Which trajectories name several users."""
        changes = (label.code[1:] != label.code[:-1]) | (user.code[1:] != user.code[:-1])
        for row in np.flatnonzero(np.r_[True, changes]).tolist():
            key, owner = label.value(row), user.value(row)
            if self.owners.setdefault(key, owner) != owner:
                self.shared.add(key)

    def _compare(self, good: Points) -> None:
        """Each row with the one above it, where both are of the same trajectory."""
        code, t_utc, lon, lat = good.label.code, good.t_utc, good.lon, good.lat
        same = np.r_[False, code[1:] == code[:-1]]
        wait_s = np.r_[0.0, np.diff(t_utc)]
        metres = np.r_[0.0, _metres(lon[:-1], lat[:-1], lon[1:], lat[1:])]
        if self.before is not None and self.before[0] == good.label.value(0):
            _, t_before, lon_before, lat_before = self.before
            same[0], wait_s[0] = True, t_utc[0] - t_before
            metres[0] = _metres(np.array([lon_before]), np.array([lat_before]), lon[:1], lat[:1])[0]
        self.before = (good.label.value(-1), float(t_utc[-1]), float(lon[-1]), float(lat[-1]))
        self.steps += int(same.sum())
        self.problems["time before the row above"] += int((same & (wait_s < 0)).sum())
        self.problems["same time as the row above"] += int((same & (wait_s == 0)).sum())
        if self.scope is not None:
            cap_mps = _SLACK * self.scope.caps.speed_kmh / 3.6
            self.problems["faster than the scope's cap"] += int((same & (metres > cap_mps * np.abs(wait_s))).sum())
        begins = np.flatnonzero(~same)
        sizes = np.diff(np.r_[begins, len(code)])
        lead = int(begins[0]) if len(begins) else len(code)
        if lead:  # the piece that the slice before had begun
            self.piece_sizes[-1][-1] += lead
            edge = self.piece_times[-1][:, -1]
            edge[:] = min(edge[0], t_utc[:lead].min()), max(edge[1], t_utc[:lead].max())
        if len(begins):
            ends = t_utc[begins[0] :], begins - begins[0]
            self.piece_times.append(np.stack([np.minimum.reduceat(*ends), np.maximum.reduceat(*ends)]))
            self.pieces.append(good.label.take(begins).values())
            self.piece_sizes.append(sizes)

    def _place(self, good: Points, scope: Scope) -> None:
        inside = _inside(good.lon, good.lat, scope)
        self.problems["outside the scope's box"] += int((~inside).sum())
        exchanged = ~inside & _inside(good.lat, good.lon, scope)
        self.problems["inside it if latitude and longitude are exchanged"] += int(exchanged.sum())
        window = scope.time_window()
        if window is not None:
            outside = (good.t_utc < window[0]) | (good.t_utc >= window[1])
            self.problems["outside the scope's days"] += int(outside.sum())

    def report(self) -> CheckReport:
        trajectories = 0
        if self.pieces:
            names, where, pieces = np.unique(_all(self.pieces), return_inverse=True, return_counts=True)
            points = np.bincount(where, np.concatenate(self.piece_sizes))
            trajectories = len(names)
            self.problems["trajectory in several pieces"] = int((pieces > 1).sum())
            self.problems["several users in one trajectory"] = len(self.shared)
            self.problems["too many points"] = int((points > grouping.MAX_TRAJECTORY_POINTS).sum())
            self.problems["only one point"] = int((points == 1).sum())
            if self.scope is not None:
                longest_s = 3600 * self.scope.caps.duration_h
                self.problems["longer than the scope's hours"] = int((self._lasts_s(where) > longest_s).sum())
        self._judge_times()
        users = None if self.users is None else len(np.unique(_all(self.users)))
        problems = {name: count for name, count in self.problems.items() if count}
        if not self.pieces:
            return CheckReport(self.rows, 0, users, None, None, None, None, None, None, problems)
        (south, west, first), (north, east, last) = self.low.tolist(), self.high.tolist()
        return CheckReport(self.rows, trajectories, users, first, last, south, west, north, east, problems)

    def _judge_times(self) -> None:
        """What is wrong with the times as a whole, and with no row by itself."""
        rows = sum(int(sizes.sum()) for sizes in self.piece_sizes)
        still = self.problems["same time as the row above"]
        if self.steps >= _FEWEST_STEPS and still >= _STILL_SHARE * self.steps:
            if len(self.clocks) <= _MOST_MIDNIGHTS:
                self.problems["date without a time of day"] = rows
            else:
                self.problems["time that stands still"] = still
            self.problems["same time as the row above"] = 0
        window = None if self.scope is None else self.scope.time_window()
        meant = window is not None and window[0] < _YEAR_1970_S
        if self.pieces and self.low[2] >= 0.0 and self.high[2] < _YEAR_1970_S and not meant:
            self.problems["time in the year 1970"] = rows

    def _lasts_s(self, where: NDArray[np.int64]) -> NDArray[np.float64]:
        """From the first to the last time of each trajectory; `where` says which one a piece belongs to."""
        first, last = np.concatenate(self.piece_times, axis=1)
        low, high = np.full(where.max() + 1, np.inf), np.full(where.max() + 1, -np.inf)
        np.minimum.at(low, where, first)
        np.maximum.at(high, where, last)
        return high - low


def _inside(lon: NDArray[np.float64], lat: NDArray[np.float64], scope: Scope) -> NDArray[np.bool_]:
    """Whether points lie in the box; a millimetre of rounding is not outside: synthetic ones may lie on its edge."""
    x_m, y_m = scope.to_metres(lon, lat)
    across, along = (np.abs(at - size / 2) for at, size in ((x_m, scope.width_m), (y_m, scope.height_m)))
    return np.asarray((across <= scope.width_m / 2 + _EDGE_M) & (along <= scope.height_m / 2 + _EDGE_M))


def _distinct(labels: Labels) -> NDArray[np.generic]:
    codes = np.unique(labels.code)
    return codes if labels.names is None else labels.names[codes]


def _all(parts: list[NDArray[np.generic]]) -> NDArray[np.generic]:
    """One array; part files may disagree on whether labels are numbers, and then all are text."""
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
    return 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.clip(half, 0, 1)))


def check(
    source: "str | os.PathLike[str] | Any",
    scope: Scope | None = None,
    *,
    progress: Progress = quiet,
    **options: Any,
) -> CheckReport:
    """Go through all rows as they stand and count what is there; bad rows are counted, not refused.

    What is counted as bad is what `measure` leaves out.

    `source` and `options` are those of `wayveil.source.open_source`.

    Privacy: not private (trusted side only); spends nothing.
    """
    from wayveil.source import open_source

    tally = _Tally(scope)
    for points in open_source(source, **options).points(progress):
        tally.add(points)
    if tally.rows == 0:
        raise InputError("The data holds no rows.")
    return tally.report()

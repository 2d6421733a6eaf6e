"""The result of `wayveil.check`: kinds of problems, their counts, and advice.

Privacy: not private (trusted side only); it must not be published.
"""

import datetime as dt
from dataclasses import asdict, dataclass
from typing import Any
from zoneinfo import ZoneInfo

from wayveil.io.readers.points import DAMAGED, MALFORMED, UNTIMED, label_problems

_BAD_IDS = tuple(label_problems("trajectory id").values())
_BAD_USERS = tuple(label_problems("user").values())
_BAD = (
    MALFORMED,
    UNTIMED,
    "missing coordinate",
    "latitude and longitude swapped",
    "coordinate out of range",
    "time without a time zone",
    "missing or unreadable time",
    *_BAD_IDS,
)
"""Rows that contribute nothing to any measurement."""

PROBLEMS = {
    DAMAGED: "files",
    MALFORMED: "rows",
    UNTIMED: "lines",
    **dict.fromkeys(_BAD[2:], "points"),
    **dict.fromkeys(_BAD_USERS, "points"),
    "time before the row above": "points",
    "same time as the row above": "points",
    "date without a time of day": "points",
    "time that does not advance": "points",
    "time in the year 1970": "points",
    "trajectory in several pieces": "trajectories",
    "several users in one trajectory": "trajectories",
    "too many points": "trajectories",
    "only one point": "trajectories",
    "outside the scope's box": "points",
    "inside it if latitude and longitude are swapped": "points",
    "outside the scope's days": "points",
    "outside the scope's hours of the day": "points",
    "faster than the scope's cap": "steps",
    "more points than the scope's cap": "trajectories",
    "longer than the scope's length cap": "trajectories",
    "longer than the scope's duration cap": "trajectories",
}
"""Every kind of problem, and what is counted."""

_LEFT_OUT = "left out of every measurement; fix them if there are many"
_HARMLESS = "nothing; this is harmless"
ADVICE = {
    DAMAGED: "left out of every measurement; repair them or remove them",
    **dict.fromkeys(_BAD, _LEFT_OUT),
    MALFORMED: "left out of every measurement; a row must be one line with as many values as the header, and "
    "quotation marks must be closed on the same line",
    UNTIMED: "left out of every measurement; a line needs M values, a list with as many times as positions, or a start "
    "time and interval_s=",
    "latitude and longitude swapped": "swap lat= and lon=",
    "time without a time zone": "set their time zone with timezone=; otherwise they are left out",
    "missing or unreadable time": f"{_LEFT_OUT}; write Unix seconds or ISO 8601 text (2024-03-04 "
    "07:30:00), or set dayfirst= for dates such as 31/12/2024",
    **dict.fromkeys(_BAD_USERS, 'left out with unit="user"; unit="trajectory" needs no users'),
    "time before the row above": "nothing; rows are sorted by time",
    "same time as the row above": _HARMLESS,
    "date without a time of day": "speeds and hours are unknown; name the column with the full time with time=, or "
    "put date and time into one column",
    "time that does not advance": "speeds and hours are unknown; check time= (the column may hold the time of the "
    "trip, or rounded times)",
    "time in the year 1970": "all rows; the values may be seconds since the start of a recording, or spreadsheet "
    "dates; write Unix seconds, or dates with times",
    "trajectory in several pieces": "nothing; the pieces are joined (make sure that no id is used for two trips)",
    "several users in one trajectory": 'left out with unit="trajectory"; with unit="user", each user\'s rows '
    "form a separate trajectory. Make trajectory ids unique across users",
    "too many points": "left out of every measurement; check traj_id=, or split recordings into trips: "
    "wayveil.convert(split_minutes=10)",
    "only one point": _HARMLESS,
    "outside the scope's box": "left out; if there are many, check the scope's box and the columns",
    "inside it if latitude and longitude are swapped": "if there are many, swap lat= and lon=",
    "outside the scope's days": "left out; if there are many, check the scope's days and timezone=",
    "outside the scope's hours of the day": "left out; if there are many, check the scope's hours and timezone=",
    "faster than the scope's cap": "kept; if there are many, an id may cover several trips, or times may be wrong",
    "more points than the scope's cap": "thinned evenly to the cap",
    "longer than the scope's length cap": "counted as having the length of the cap; if there are many, an id may "
    "cover several trips",
    "longer than the scope's duration cap": "counted as lasting as long as the cap; split recordings into trips: "
    "wayveil.convert(split_minutes=10)",
}
"""What to do about each kind."""
_ALL_OUTSIDE = {
    "outside the scope's box": "all rows; the scope is probably wrong (check its box), or the columns are",
    "outside the scope's days": "all rows; the scope is probably wrong (check its days), or timezone= is",
    "outside the scope's hours of the day": "all rows; the scope is probably wrong (check its hours), or timezone= is",
}
_CAPPED = (
    "more points than the scope's cap",
    "longer than the scope's length cap",
    "longer than the scope's duration cap",
)
_MOST_ABOVE_A_CAP = (
    "most trajectories; an id may cover several trips (see wayveil.convert(split_minutes=10)), or the cap in the scope "
    "is too small: set it above any plausible trip in this area"
)
_MOST_ABOVE_THOUGH_SPLIT = (
    "most trajectories; the cap in the scope is probably too small: set it above any plausible trip in this area"
)
_SWAPPED = "inside it if latitude and longitude are swapped"
_SPLIT_ALREADY = {
    "too many points": "left out of every measurement; check traj_id=",
    "longer than the scope's duration cap": "counted as lasting as long as the cap",
}
"""Advice for data that was split into trips already."""
_NO_PLACE = "missing coordinate"
_MOST_WITHOUT_PLACE = 'most rows, which are left out; set decimal="," if the numbers have decimal commas'
_ONE_POINT = "only one point"
_MOST_ONE_POINT = (
    "most trajectories; if the table has one row per trip, name the columns of start and end with trip_columns=; "
    "otherwise synthetic trajectories will have one point too"
)


@dataclass(frozen=True, repr=False)
class CheckReport:
    """The result of `wayveil.check`: exact numbers about private data.

    `print` it to see them; `repr` shows none, because a `repr` may end up in logs.

    Examples
    --------
    >>> import wayveil
    >>> city = wayveil.simulate.simulate_city(size_km=(3, 3))
    >>> report = wayveil.check(wayveil.simulate.simulate_trajectories(city, 20))
    >>> report.trajectories, report.problems
    (20, {})
    >>> report.nothing_left
    False

    Privacy
    -------
    Not private (trusted side only).
    """

    rows: int
    """Points, including those that cannot be used; a row of a trip table counts as two."""
    trajectories: int
    users: int | None
    first_utc: float | None
    last_utc: float | None
    south: float | None
    west: float | None
    north: float | None
    east: float | None
    problems: dict[str, int]
    """Counts by kind of problem (see `PROBLEMS`); only kinds that occur."""
    timezone: str = "UTC"
    """The zone of the scope, in which times are printed."""
    already_split: bool = False
    """Whether `convert` split the recordings of the file into trips."""

    @property
    def advice(self) -> dict[str, str]:
        """What to do about each kind that occurs."""
        special = {name: text for name, text in _ALL_OUTSIDE.items() if self.problems.get(name) == self._good_rows}
        special |= _SPLIT_ALREADY if self.already_split else {}
        if 2 * self.problems.get(_NO_PLACE, 0) > self.rows:
            special[_NO_PLACE] = _MOST_WITHOUT_PLACE
        if 2 * self.problems.get(_ONE_POINT, 0) > self.trajectories:
            special[_ONE_POINT] = _MOST_ONE_POINT
        for name in _CAPPED:
            if 2 * self.problems.get(name, 0) > self.trajectories:
                special[name] = _MOST_ABOVE_THOUGH_SPLIT if self.already_split else _MOST_ABOVE_A_CAP
        return {name: special.get(name, ADVICE[name]) for name in self.problems}

    @property
    def advice_once(self) -> dict[str, str]:
        """Like `advice`, with "as above" instead of repeated advice."""
        given = list(self.advice.items())
        before = [("", ""), *given]
        return {name: "as above" if text == last else text for (name, text), (_, last) in zip(given, before)}

    @property
    def nothing_left(self) -> bool:
        """Whether no row can be used: every row is bad or outside the scope."""
        bad = sum(self.problems.get(name, 0) for name in _BAD)
        outside = any(self.problems.get(name) == self._good_rows for name in _ALL_OUTSIDE)
        return bad == self.rows or (self._good_rows > 0 and outside)

    @property
    def likely_cause(self) -> str:
        """The most frequent problem and what to do about it, for a file without a usable row."""
        if 2 * self.problems.get(_SWAPPED, 0) > self._good_rows:
            return "latitude and longitude are swapped (swap lat= and lon=)"
        rows = {name: count for name, count in self.problems.items() if name in (*_BAD, *_ALL_OUTSIDE)}
        name = max(rows, key=lambda kind: rows[kind], default="")
        return f"{name} ({self.advice[name]})" if name else "the data has no rows"

    @property
    def _good_rows(self) -> int:
        """Rows that count for the statistics of this report."""
        return self.rows - sum(self.problems.get(name, 0) for name in (*_BAD, *_BAD_USERS))

    def __repr__(self) -> str:
        # Without exact numbers, like `Trajectories`: a repr ends up in logs.
        usable = "no row can be used" if self.nothing_left else f"{len(self.problems)} kinds of problems"
        return f"CheckReport({usable}; print it for the counts, which are private)"

    def __str__(self) -> str:
        found = {"points": f"{self.rows:,}", "trajectories": f"{self.trajectories:,}"}
        found["users"] = "no column" if self.users is None else f"{self.users:,}"
        found |= {"first time": self.moment(self.first_utc), "last time": self.moment(self.last_utc)}
        if self.south is not None:
            found["south, west"] = f"{self.south:.5f}, {self.west:.5f}"
            found["north, east"] = f"{self.north:.5f}, {self.east:.5f}"
        lines = ["Not for publication: these are exact numbers of the private data."]
        lines += [f"{name + ':':<14}{value}" for name, value in found.items()]
        lines += ["Problems:" if self.problems else "No problems."]
        for (name, count), advice in zip(self.problems.items(), self.advice_once.values()):
            lines.append(f"- {name}: {count:,} {PROBLEMS[name]}; {advice}")
        return "\n".join(lines)

    def moment(self, seconds: float | None) -> str:
        """A time as text in local time, to the second; "none" if there is none."""
        if seconds is None:
            return "none"
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=round(seconds))
        try:
            moment = moment.astimezone(ZoneInfo(self.timezone))
        except OverflowError:  # the local time is before the year 1 or after the year 9999
            return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
        return f"{moment:%Y-%m-%d %H:%M:%S} {self.timezone}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)



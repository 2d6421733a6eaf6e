"""Layouts of tables: one row per point, one row per trajectory with a line, or one row per trip with two ends.

A layout follows from the names of the columns and the options alone, never from the rows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from wayveil.errors import InputError
from wayveil.io.options import (
    KNOWN_NAMES,
    MAX_COLUMNS,
    NO_USERS,
    SECOND_NAMES,
    Columns,
    ReadOptions,
    Roles,
    find_column,
    quoted,
    resolve_roles,
)

LINE_NAMES = ("polyline", "wkt", "linestring", "geometry", "geom", "the_geom", "wkb_geometry")
TIMES_NAMES = ("times", "coordtimes", "coord_times", "timestamps")
_START_NAMES = ("start_time", "starttime", "started_at", "start_t", "start")
_TAXI_NAMES = ("taxi_id",)
"""The user column of Kaggle's Porto table."""
PORTO_INTERVAL_S = 15.0
"""Kaggle's Porto table has a column POLYLINE with one position every 15 seconds, and documents this."""

TRIP_ROLES = ("start_lon", "start_lat", "start_time", "end_lon", "end_lat", "end_time")
_SIDES = {
    "start": {"start", "started", "starttime", "startdate", "pickup", "origin", "from", "departure"},
    "end": {"end", "ended", "stop", "stoptime", "endtime", "enddate", "dropoff", "destination", "to", "arrival"},
}
_KINDS = {
    "lon": {"lon", "lng", "longitude", "long"},
    "lat": {"lat", "latitude"},
    "time": {
        "time", "datetime", "timestamp", "at", "date", "starttime", "startdate", "stoptime", "endtime", "enddate",
    },
}  # fmt: skip
"""A column with one word of a side and one of a kind has that role: `started_at`, `end station latitude`."""


@dataclass(frozen=True)
class LineRoles(Columns):
    """A table with one row per trajectory: a line (WKT, WKB or a JSON list), and times or a start time."""

    line: int
    traj_id: int | None
    user: int | None
    time: int | None
    interval_s: float | None = None
    """Seconds between the points of a line with a start time."""


@dataclass(frozen=True)
class TripRoles(Columns):
    """A table with one row per trip: where and when it started and ended."""

    traj_id: int | None
    user: int | None
    start_lon: int
    start_lat: int
    start_time: int
    end_lon: int
    end_lat: int
    end_time: int


Layout = Roles | LineRoles | TripRoles
_Found = TypeVar("_Found", LineRoles, TripRoles)


def resolve_layout(
    names: Sequence[str], options: ReadOptions, origin: str, geometry: int | None = None, *, lines: bool = False
) -> Layout:
    """The layout of a table with these columns; `geometry` is its geometry column, which holds `lines` or points."""
    if len(names) > MAX_COLUMNS:
        raise InputError(f"'{origin}' has more than {MAX_COLUMNS} columns; keep only the needed ones.")
    if options.trip_columns is not None:
        return _trip_roles(names, options, origin, _named_trip_columns(names, options.trip_columns, origin))
    if options.line is not None:
        line = find_column("line", names, options.line, origin)
        assert line is not None
        return line_roles(names, options, origin, line)
    lowered = [name.strip().lower() for name in names]
    if geometry is not None:
        # The declared geometry type may depend on the rows, so a list of times means lines, whatever is declared.
        timed = options.interval_s is not None or (options.time is None and _first(lowered, TIMES_NAMES) is not None)
        if lines or timed:
            return line_roles(names, options, origin, geometry)
        return resolve_roles(names, options, origin, geometry)
    given = options.lon is not None or options.lat is not None
    if given or all(set(lowered) & {*KNOWN_NAMES[role], *SECOND_NAMES[role]} for role in ("lon", "lat")):
        return resolve_roles(names, options, origin)
    if (line := _first(lowered, LINE_NAMES)) is not None:
        return line_roles(names, options, origin, line)
    found = _recognized_trip_columns(names, origin)
    if len(found) == len(TRIP_ROLES):
        return _trip_roles(names, options, origin, found)
    return resolve_roles(names, options, origin)


def line_roles(names: Sequence[str], options: ReadOptions, origin: str, line: int) -> LineRoles:
    """The roles of a table whose lines are in the column `line`; only the line is required."""
    lowered = [name.strip().lower() for name in names]
    traj_id = find_column("traj_id", names, options.traj_id, origin, {line})
    user = find_column("user", names, options.user, origin, {line})
    user = _first(lowered, _TAXI_NAMES) if user is None else user
    if options.time is not None:
        time = find_column("time", names, options.time, origin)
    else:
        time = _first(lowered, (*TIMES_NAMES, *KNOWN_NAMES["time"], *SECOND_NAMES["time"], *_START_NAMES))
    # An int would be taken for the position of a column (`Columns.positions`).
    interval_s = None if options.interval_s is None else float(options.interval_s)
    if interval_s is None and lowered[line] == "polyline":
        interval_s = PORTO_INTERVAL_S
    return _checked(LineRoles(line, traj_id, user, time, interval_s), options, origin)


def _trip_roles(names: Sequence[str], options: ReadOptions, origin: str, ends: dict[str, int]) -> TripRoles:
    taken = set(ends.values())
    traj_id = find_column("traj_id", names, options.traj_id, origin, taken)
    user = find_column("user", names, options.user, origin, taken)
    return _checked(TripRoles(traj_id, user, **ends), options, origin)


def _checked(found: _Found, options: ReadOptions, origin: str) -> _Found:
    if options.measured_unit == "user" and found.user is None:
        raise InputError(NO_USERS)
    used = [at for at in vars(found).values() if isinstance(at, int)]
    if len(set(used)) < len(used):
        raise InputError(f"One column of '{origin}' was named for two roles; check the column names.")
    return found


def _first(lowered: Sequence[str], candidates: Sequence[str]) -> int | None:
    """The column with the first of these names that occurs."""
    for name in candidates:
        if name in lowered:
            return lowered.index(name)
    return None


def _recognized_trip_columns(names: Sequence[str], origin: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for at, name in enumerate(names):
        words = set(re.findall(r"[a-z]+", name.lower()))
        sides = [side for side, known in _SIDES.items() if words & known]
        kinds = [kind for kind, known in _KINDS.items() if words & known]
        if len(sides) != 1 or len(kinds) != 1:
            continue
        role = f"{sides[0]}_{kinds[0]}"
        if role in found:
            raise InputError(
                f"'{origin}' has several columns that could be the {role} of a trip; name all six with "
                f'trip_columns="{",".join(f"{one}=NAME" for one in TRIP_ROLES)}".{quoted(names)}'
            )
        found[role] = at
    return found


def _named_trip_columns(names: Sequence[str], wanted: str | Mapping[str, str], origin: str) -> dict[str, int]:
    """The columns in `wanted`; those that it does not name are recognized by their names."""
    given: dict[str, int] = {}
    for role, name in _pairs(wanted):
        if role not in TRIP_ROLES or not isinstance(name, str):
            raise InputError(
                "trip_columns= must be pairs ROLE=NAME with commas between, or a dictionary of role and name; roles: "
                f"{', '.join(TRIP_ROLES)}."
            )
        at = find_column(role, names, name, origin)
        assert at is not None
        given[role] = at
    if len(given) < len(TRIP_ROLES):
        given = _recognized_trip_columns(names, origin) | given
    missing = [role for role in TRIP_ROLES if role not in given]
    if missing:
        raise InputError(f"trip_columns= must also name {', '.join(missing)}.{quoted(names)}")
    return given


def _pairs(wanted: str | Mapping[str, str]) -> Iterator[tuple[object, object]]:
    """Roles and names, from a mapping or from `start_lon=A,start_lat=B,...`; a pair without '=' has no name."""
    if not isinstance(wanted, str):
        yield from dict(wanted).items()
        return
    for pair in wanted.split(","):
        role, equals, name = pair.partition("=")
        yield role.strip(), name.strip() if equals else None

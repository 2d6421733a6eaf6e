"""Trip tables and inputs of traffic simulators: the start and the end of each trajectory.

SUMO reads `<trip>` elements with a departure and two places in degrees. MATSim reads plans of two activities with a leg
between them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.clocks import offsets_s
from wayveil.core.tables import user_column, whole_seconds
from wayveil.core.trajectories import Trajectories
from wayveil.io.atomic import atomic_path
from wayveil.io.options import Notes, WriteOptions, zone_named
from wayveil.io.writers.stamps import check_times, iso_times

_DAY_S = 86_400
_SQUARE_DEG = 0.005
"""Side of the squares, about 500 m; a user's home is in the one with the most starts and ends."""
_HOME_DEG = 0.003
"""Largest distance from a user's home, on each axis, at which an activity counts as at home: about 300 m."""
_DEFAULT_MODE = "car"
_ROUTES = "http://sumo.dlr.de/xsd/routes_file.xsd"
_POPULATION = "http://www.matsim.org/files/dtd/population_v6.dtd"


def trip_table(trajectories: Trajectories, times: str = "iso") -> pa.Table:
    """One row per trajectory: traj_id, start_time, end_time, start_lat, start_lon, end_lat, end_lon.

    With users also user_id and trip_number, which counts a user's trips from 1 in the order of time.
    """
    first, last = trajectories.offsets[:-1], trajectories.offsets[1:] - 1

    def moments(rows: NDArray[np.int64]) -> Any:
        t_utc = trajectories.t_utc[rows]
        if times == "iso":
            return iso_times(t_utc)
        return t_utc.astype(np.int64) if whole_seconds(trajectories.t_utc) else t_utc

    columns: dict[str, Any] = {
        "traj_id": np.arange(len(trajectories)),
        "start_time": moments(first),
        "end_time": moments(last),
        "start_lat": trajectories.lat[first],
        "start_lon": trajectories.lon[first],
        "end_lat": trajectories.lat[last],
        "end_lon": trajectories.lon[last],
    }
    if trajectories.user is not None:
        columns["user_id"] = user_column(trajectories.user)
        columns["trip_number"] = _trip_numbers(trajectories)
    return pa.table(columns)


def _trip_numbers(trajectories: Trajectories) -> NDArray[np.int64]:
    """The rank of each trip among those of its user, from 1."""
    _, order, count = _by_user(trajectories)
    number = np.empty(len(trajectories), np.int64)
    number[order] = 1 + ragged.ranks(count)
    return number


def _by_user(trajectories: Trajectories) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int64]]:
    """The users, their trips by user and time, and the number of trips of each user."""
    assert trajectories.user is not None
    labels = user_column(trajectories.user).to_pylist()
    codes: dict[Any, int] = {}
    code = np.array([codes.setdefault(label, len(codes)) for label in labels], np.int64)
    order = np.lexsort((trajectories.t_utc[trajectories.offsets[:-1]], code))
    return list(codes), order, np.bincount(code, minlength=len(codes))


def write_sumo(
    trajectories: Trajectories, path: Path, notes: Notes, *, private: bool, timezone: str | None = None
) -> None:
    """Write SUMO trips in the order of departure; departures count from local midnight of the first day.

    The user is written as a parameter of the trip.
    """
    clock = _Clock.of(trajectories, notes, timezone)
    departures_s = clock.seconds(trajectories.t_utc[trajectories.offsets[:-1]])
    users = None if trajectories.user is None else user_column(trajectories.user).to_pylist()
    with atomic_path(path, private=private) as part, open(part, "w", encoding="utf-8") as out:
        out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        out.writelines(_comments(notes, f"Departures are seconds after {clock}."))
        out.write('<routes xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ')
        out.write(f'xsi:noNamespaceSchemaLocation="{_ROUTES}">\n')
        for i in np.argsort(departures_s, kind="stable").tolist():
            first, last = trajectories.offsets[i], trajectories.offsets[i + 1] - 1
            depart = f"{departures_s[i]:.2f}"
            places = [f"{_digits(trajectories.lon[k])},{_digits(trajectories.lat[k])}" for k in (first, last)]
            out.write(f'  <trip id="{i}" depart="{depart}" fromLonLat="{places[0]}" toLonLat="{places[1]}"')
            parameter = "" if users is None else f'<param key="user_id" value={quoteattr(str(users[i]))}/>'
            out.write(f">{parameter}</trip>\n" if parameter else "/>\n")
        out.write("</routes>\n")


def write_matsim(trajectories: Trajectories, path: Path, options: WriteOptions) -> None:
    """Write a MATSim population: one person per trajectory, who travels from an origin to a destination.

    With users, there is one person per user, with an activity before, between and after the trips: `home` where most
    of the user's trips start or end, `other` elsewhere.

    Coordinates are degrees, as the attribute `coordinateReferenceSystem` says; MATSim reprojects them.
    """
    clock, mode = _Clock.of(trajectories, options.notes, options.timezone), options.mode or _DEFAULT_MODE
    departures_s = clock.seconds(trajectories.t_utc[trajectories.offsets[:-1]])
    order = np.argsort(departures_s, kind="stable")
    with atomic_path(path, private=options.private) as part, open(part, "w", encoding="utf-8") as out:
        out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE population SYSTEM "{_POPULATION}">\n')
        out.writelines(_comments(options.notes, f"Hours count from {clock}."))
        out.write('<population>\n<attributes>\n<attribute name="coordinateReferenceSystem" class="java.lang.String">')
        out.write("EPSG:4326</attribute>\n</attributes>\n")
        if trajectories.user is not None:
            out.writelines(_plans(trajectories, departures_s, mode))
        for i in order.tolist() if trajectories.user is None else ():
            first, last = trajectories.offsets[i], trajectories.offsets[i + 1] - 1
            departure = _hms(departures_s[i])
            duration = _hms(trajectories.t_utc[last] - trajectories.t_utc[first])
            (x, y), (x_to, y_to) = ((_digits(trajectories.lon[k]), _digits(trajectories.lat[k])) for k in (first, last))
            out.write(
                f'<person id={quoteattr(str(i))}><plan selected="yes">'
                f'<activity type="origin" x="{x}" y="{y}" end_time="{departure}"/>'
                f'<leg mode="{mode}" dep_time="{departure}" trav_time="{duration}"/>'
                f'<activity type="destination" x="{x_to}" y="{y_to}"/></plan></person>\n'
            )
        out.write("</population>\n")


def _plans(trajectories: Trajectories, departures_s: NDArray[np.float64], mode: str) -> Iterator[str]:
    """One person per user.

    An activity takes place where the next trip starts, and the last one where the last trip ends. If a trip starts away
    from the end of the previous one, the user moved without being recorded, which a plan cannot show.
    """
    users, order, count = _by_user(trajectories)
    first, last = trajectories.offsets[:-1], trajectories.offsets[1:] - 1
    lon, lat, t_utc = trajectories.lon, trajectories.lat, trajectories.t_utc
    for user, trips in zip(users, np.split(order, np.cumsum(count)[:-1])):
        where = [int(k) for k in (*first[trips], last[trips[-1]])]
        at_home = _at_home(lon, lat, np.r_[first[trips], last[trips]])
        yield f'<person id={quoteattr(str(user))}><plan selected="yes">'
        for k, i in zip(where, (*trips.tolist(), None)):
            kind = "home" if k in at_home else "other"
            activity = f'<activity type="{kind}" x="{_digits(lon[k])}" y="{_digits(lat[k])}"'
            if i is None:
                yield activity + "/>"
            else:
                departure, duration = _hms(departures_s[i]), _hms(t_utc[last[i]] - t_utc[first[i]])
                yield f'{activity} end_time="{departure}"/>'
                yield f'<leg mode="{mode}" dep_time="{departure}" trav_time="{duration}"/>'
        yield "</plan></person>\n"


def _at_home(lon: NDArray[np.float64], lat: NDArray[np.float64], points: NDArray[np.int64]) -> set[int]:
    """The points near the median of those in the square with the most points."""
    degrees = np.column_stack([lon[points], lat[points]])
    _, square, count = np.unique(np.rint(degrees / _SQUARE_DEG), axis=0, return_inverse=True, return_counts=True)
    middle = np.median(degrees[square.ravel() == count.argmax()], axis=0)
    return set(points[(np.abs(degrees - middle) <= _HOME_DEG).all(axis=1)].tolist())


@dataclass(frozen=True)
class _Clock:
    """Seconds on the local clock since midnight of the first day, as simulators count time.

    Where the clocks change within the data, later times follow the clock, so that 8:00 stays 8:00.
    """

    zone: ZoneInfo
    midnight: float
    """Local midnight of the first day, in seconds of the local calendar since 1970."""

    @classmethod
    def of(cls, trajectories: Trajectories, notes: Notes, timezone: str | None) -> "_Clock":
        """The clock of `timezone`, of the note `timezone`, or UTC."""
        check_times(trajectories.t_utc)
        found = cls(zone_named(timezone or (notes or {}).get("timezone", "UTC")), 0.0)
        if not len(trajectories.t_utc):
            return found
        first = float(found.seconds(trajectories.t_utc[trajectories.offsets[:-1]]).min())
        return replace(found, midnight=float(np.floor(first / _DAY_S) * _DAY_S))

    def seconds(self, t_utc: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds since midnight of the first day."""
        return t_utc + offsets_s(t_utc, self.zone) - self.midnight

    def __str__(self) -> str:
        return f"midnight of {str(iso_times(np.array([self.midnight]))[0])[:10]} in the time zone {self.zone.key}"


def _comments(notes: Notes, *lines: str) -> Iterator[str]:
    """Notes as XML comments, which must not contain two hyphens in a row."""
    for line in (*lines, *(f"{key}: {value}" for key, value in (notes or {}).items())):
        yield f"<!-- {escape(line).replace('--', '- -')} -->\n"


def _hms(seconds: float) -> str:
    """A time as hours, minutes and seconds; later days have more than 24 hours."""
    whole = round(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _digits(degrees: float) -> str:
    return np.format_float_positional(degrees, unique=True, trim="-")

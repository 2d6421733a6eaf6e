"""Scope: the public frame of a dataset.

Everything that the method needs to know about the world stands here, written by a person who has not looked at
the data: the city's box, its time zone, the days that are covered, and caps that no honest trajectory exceeds.
"""

import datetime as dt
import difflib
import math
import os
import tomllib
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from wayveil.errors import InputError
from wayveil.inputs import TooLargeError, read_text

EARTH_RADIUS_M = 6_371_008.8
_METRES_A_DEGREE = math.radians(1.0) * EARTH_RADIUS_M
_WIDEST_KM = 3_000.0
_LONGEST_KM = 100_000.0
_MAX_SCOPE_BYTES = 1 << 20


class Caps(BaseModel):
    """What no trajectory exceeds; whatever does is clipped before anything is counted."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    points: Annotated[int, Field(ge=2, le=100_000)]
    length_km: Annotated[float, Field(gt=0, le=_LONGEST_KM)]
    duration_h: Annotated[float, Field(gt=0, le=24 * 366)]
    speed_kmh: Annotated[float, Field(gt=0, le=2_000)]


class Scope(BaseModel):
    """The public frame: a box in degrees, a time zone, days, caps.

    Metres are taken in the local equirectangular projection at the centre of the box, with the origin in its
    south-west corner: x grows to the east, y to the north. A box with `west` > `east` crosses the antimeridian.

    Privacy: free (public by definition).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    south: Annotated[float, Field(ge=-85, le=85)]
    west: Annotated[float, Field(ge=-180, le=180)]
    north: Annotated[float, Field(ge=-85, le=85)]
    east: Annotated[float, Field(ge=-180, le=180)]
    timezone: str = "UTC"
    first_day: dt.date | None = None
    last_day: dt.date | None = None
    caps: Caps

    @model_validator(mode="before")
    @classmethod
    def _fill_caps(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        given = values.get("caps") or {}
        try:
            width_deg = (float(values["east"]) - float(values["west"])) % 360.0
            height_deg = float(values["north"]) - float(values["south"])
            middle = math.radians((float(values["north"]) + float(values["south"])) / 2)
        except (KeyError, TypeError, ValueError, OverflowError):
            return values  # the field checks say what is missing
        diagonal_km = math.hypot(width_deg * math.cos(middle), height_deg) * _METRES_A_DEGREE / 1000
        if not math.isfinite(diagonal_km) or not isinstance(given, dict):
            return values
        return {**values, "caps": {**_default_caps(diagonal_km), **given}}

    @model_validator(mode="after")
    def _check(self) -> "Scope":
        if not self.name.isprintable():
            raise ValueError("name must be one line of printable characters")
        if self.north <= self.south:
            raise ValueError("north must be larger than south")
        if self.east == self.west:
            raise ValueError("east and west must differ")
        try:
            ZoneInfo(self.timezone)
        except Exception:
            raise ValueError("timezone must be a name like 'Europe/Paris'") from None
        if (self.first_day is None) != (self.last_day is None):
            raise ValueError("give both first_day and last_day, or neither")
        if self.first_day and self.last_day and self.last_day < self.first_day:
            raise ValueError("last_day must not be before first_day")
        if self.first_day and self.last_day and not 1900 < self.first_day.year <= self.last_day.year < 3000:
            raise ValueError("first_day and last_day must be between the years 1901 and 2999")
        if max(self.width_m, self.height_m) > _WIDEST_KM * 1000:
            cure = (
                "its west and east seem exchanged"
                if self.west > self.east
                else "wayveil is made for cities and regions"
            )
            raise ValueError(f"the box is wider than {_WIDEST_KM:.0f} km; {cure}")
        if min(self.width_m, self.height_m) < 100:
            raise ValueError("the box is narrower than 100 m")
        return self

    @property
    def _span_deg(self) -> float:
        span = self.east - self.west
        return span if span > 0 else span + 360.0

    @property
    def _x_metres_a_degree(self) -> float:
        return _METRES_A_DEGREE * math.cos(math.radians((self.south + self.north) / 2))

    @property
    def width_m(self) -> float:
        """Extent from west to east."""
        return self._span_deg * self._x_metres_a_degree

    @property
    def height_m(self) -> float:
        """Extent from south to north."""
        return (self.north - self.south) * _METRES_A_DEGREE

    @property
    def zone(self) -> ZoneInfo:
        """The time zone as an object."""
        return ZoneInfo(self.timezone)

    def to_metres(
        self, lon: NDArray[np.float64], lat: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Degrees to metres east and north of the south-west corner; nothing is clipped."""
        centre = self.west + self._span_deg / 2
        x = np.asarray(lon, float) - centre
        if x.size and not (x.max() <= 180.0 and x.min() >= -180.0):
            # Point by point: what one point needs must not move another, not even by a rounding error.
            x = np.where(np.abs(x) > 180.0, (x + 180.0) % 360.0 - 180.0, x)
        x += self._span_deg / 2
        x *= self._x_metres_a_degree
        y = np.asarray(lat, float) - self.south
        y *= _METRES_A_DEGREE
        return x, y

    def ground(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Metres on the ground that a metre of x is at each y: 1 in the box's middle, more towards the equator."""
        lat = self.south + np.asarray(y, float) / _METRES_A_DEGREE
        return np.asarray(np.cos(np.radians(lat)) * (_METRES_A_DEGREE / self._x_metres_a_degree))

    def to_degrees(
        self, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Metres to (lon, lat)."""
        lon = np.asarray(x, float) / self._x_metres_a_degree
        lon += self.west
        if lon.size and not lon.max() <= 180.0:
            lon = np.where(lon > 180.0, lon - 360.0, lon)
        lat = np.asarray(y, float) / _METRES_A_DEGREE
        lat += self.south
        return lon, lat

    def time_window(self) -> tuple[float, float] | None:
        """First and last instant of the days covered, in Unix seconds, or None where the scope names no days."""
        if self.first_day is None or self.last_day is None:
            return None
        first = dt.datetime.combine(self.first_day, dt.time(), self.zone)
        after = dt.datetime.combine(self.last_day + dt.timedelta(days=1), dt.time(), self.zone)
        return first.timestamp(), after.timestamp()

    def local_seconds(self, t_utc: NDArray[np.floating]) -> NDArray[np.float64]:
        """Seconds since Monday 00:00 of each instant's week, on the clocks of the scope's zone, in [0, 604800)."""
        return (t_utc + self._utc_offsets(np.asarray(t_utc, float)) + 3 * 86_400) % 604_800.0

    def _utc_offsets(self, t_utc: NDArray[np.float64]) -> NDArray[np.float64]:
        return offsets_s(t_utc, self.zone)


def no_zone_words(scope: Scope) -> str | None:
    """A sentence where the scope was written without a time zone: UTC then was nobody's choice."""
    if "timezone" in scope.model_fields_set:
        return None
    return (
        f"The scope '{scope.name}' names no time zone, so hours and weekdays are counted in UTC; write one into it, "
        'such as timezone = "Europe/Paris".'
    )


def offsets_s(t_utc: NDArray[np.float64], zone: ZoneInfo) -> NDArray[np.float64]:
    """Seconds that the clocks of `zone` are ahead of UTC at each instant.

    Offsets change on whole quarter hours at most, so each distinct quarter hour is looked up once.
    """
    if len(t_utc) == 0:
        return np.zeros(0)
    quarter_of = (np.clip(t_utc, -2e9, 4e9) // 900).astype(np.int64)
    low = int(quarter_of.min())
    # A table over the span instead of a sort: there are far more instants than quarter hours.
    quarter_of -= low
    seen = np.zeros(int(quarter_of.max()) + 1, bool)
    seen[quarter_of] = True
    quarter = np.flatnonzero(seen)
    table = np.zeros(len(seen))
    if len(quarter) > 5_000:  # long spans: transitions are at most a few a year, so a day's grid finds them
        table[quarter] = _offsets_between(quarter + low, zone)
    else:
        table[quarter] = [_offset_s(int(q + low) * 900, zone) for q in quarter]
    return table[quarter_of]


@lru_cache(maxsize=1 << 16)
def _offset_s(t_utc: int, zone: ZoneInfo) -> float:
    offset = dt.datetime.fromtimestamp(t_utc, zone).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def _offsets_between(quarter: NDArray[np.int64], zone: ZoneInfo) -> NDArray[np.float64]:
    """Offset at each quarter hour; only where the days around differ is the quarter hour itself asked."""
    day, inverse = np.unique(quarter // 96, return_inverse=True)
    begin = np.array([_offset_s(int(d) * 86_400, zone) for d in day])
    end = np.array([_offset_s(int(d + 1) * 86_400, zone) for d in day])
    result = begin[inverse]
    for position in np.flatnonzero(begin[inverse] != end[inverse]):
        result[position] = _offset_s(int(quarter[position]) * 900, zone)
    return result


def _default_caps(diagonal_km: float) -> dict[str, float]:
    """Caps by the size of the city: four crossings long, a day at most, 500 points, motorway speed."""
    return {
        "points": 500,
        # Of a box beyond all bounds the box is what is wrong, not a cap that nobody wrote.
        "length_km": min(max(5.0, round(4 * diagonal_km)), _LONGEST_KM),
        "duration_h": 12.0 if diagonal_km < 200 else 24.0,
        "speed_kmh": 150.0 if diagonal_km < 200 else 300.0,
    }


def parse_scope(text: str, origin: str) -> Scope:
    """A scope from TOML text; `origin` names it in messages."""
    try:
        return Scope.model_validate(tomllib.loads(text))
    except ValidationError as error:
        raise InputError(f"Scope '{origin}': {first_fault(error, 'scope', Scope)}; see `wayveil scope new`.") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and numbers too long to be read
        raise InputError(f"Scope '{origin}' is not valid TOML ({in_short(error)}); see `wayveil scope new`.") from None


def first_fault(error: ValidationError, whole: str, model: type[BaseModel]) -> str:
    """Where a file of `model` is wrong and why, on one line; `whole` names the place if it is the file as such."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(in_short(part) for part in first["loc"]) or whole
    if first["type"] == "extra_forbidden":
        return f"{where} is not a known key{_perhaps(first['loc'], model)}"
    return f"{where}: {in_short(first['msg'].removeprefix('Value error, '))}"


def _perhaps(place: tuple[int | str, ...], model: type[BaseModel]) -> str:
    """The known key that a misspelt one resembles."""
    for part in place[:-1]:
        found = model.model_fields[str(part)].annotation if str(part) in model.model_fields else None
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            return ""
        model = found
    close = difflib.get_close_matches(str(place[-1])[:50], model.model_fields, n=1)
    return f", perhaps '{close[0]}' is meant" if close else ""


def in_short(value: object) -> str:
    """At most 120 printable characters: keys of a file may be of any length and move the cursor."""
    text = "".join(letter if letter.isprintable() else "?" for letter in str(value)[:120])
    return text if len(str(value)) <= 120 else text + "..."


def shipped_scopes() -> list[str]:
    """Names of the scopes that come with wayveil."""
    folder = resources.files("wayveil") / "scopes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_scope(name_or_path: str | Path) -> Scope:
    """A scope from a TOML file, or by the name of a shipped one.

    Privacy: free (public by definition).
    """
    return parse_scope(scope_text(name_or_path), Path(name_or_path).name)


def scope_of(scope: Scope | str | os.PathLike[str]) -> Scope:
    """The scope, read where a file or a name is given.

    Privacy: free (public by definition).
    """
    if isinstance(scope, Scope):
        return scope
    if not isinstance(scope, str | os.PathLike):
        raise InputError("scope must be a wayveil.Scope, the file of one, or the name of a shipped one.")
    return read_scope(Path(scope) if isinstance(scope, os.PathLike) else scope)


def scope_text(name_or_path: str | Path) -> str:
    """The TOML text of a scope file or of a shipped scope."""
    if str(name_or_path) in shipped_scopes():
        return (resources.files("wayveil") / "scopes" / f"{name_or_path}.toml").read_text(encoding="utf-8")
    path = Path(name_or_path)
    if not os.path.isfile(path):  # unlike Path.is_file, False for a name that is too long
        raise InputError(
            f"No scope '{in_short(path.name)}': give a TOML file (`wayveil scope new` writes one) or one of "
            f"{', '.join(shipped_scopes())}."
        )
    try:
        return read_text(path, _MAX_SCOPE_BYTES)
    except TooLargeError:
        raise InputError(f"Scope '{path.name}' is larger than 1 MB; that is not a scope.") from None
    except PermissionError as error:
        raise InputError(f"Cannot read the scope '{path.name}': {error.strerror}.") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"Scope '{path.name}' cannot be read as text.") from None


TEMPLATE = """\
# A wayveil scope: the public frame of a dataset. Fill it in from public knowledge (a map, the project's plan),
# never from the data itself: whatever stands here is published with the release.

name = "my-city"

# The box in degrees (WGS 84), as "Export" on openstreetmap.org shows it. Points outside it are not counted.
south = 48.80
west = 2.22
north = 48.91
east = 2.47

# The clocks of the city, for hours and weekdays.
timezone = "Europe/Paris"

# The days that the data covers, both included. Leave both out if the dates themselves are confidential:
# synthetic trajectories are then dated into one made-up week.
first_day = 2024-03-04
last_day = 2024-03-31

# What no trajectory exceeds, from what such vehicles can do: the output keeps to it, and of little data closer caps
# leave less to the noise. Leave any of them out to get a default by the size of the box.
[caps]
points = 500        # points of one trajectory
length_km = 80.0    # length of one trajectory
duration_h = 12.0   # duration of one trajectory
speed_kmh = 150.0   # speed between two points
"""

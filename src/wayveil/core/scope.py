"""Scope: the public description of a dataset.

It contains all that the method knows in advance: the city's box, its time zone, the days covered, and caps that no
plausible trajectory exceeds. It must be written without looking at the data.
"""

import datetime as dt
import math
import re
from typing import Annotated
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from wayveil.core.clocks import offsets_s
from wayveil.core.week import DAY_S, WEEK_S

EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the Earth (IUGG), in metres."""
_METRES_PER_DEGREE = math.radians(1.0) * EARTH_RADIUS_M
"""Metres per degree of latitude on the sphere."""
_HOURS = re.compile(r"\s*([0-9]{1,2}):([0-5][0-9])\s*-\s*([0-9]{1,2}):([0-5][0-9])\s*", re.ASCII)
_WIDEST_KM = 3_000.0
"""Wider boxes are refused: the local projection would be too distorted."""
_LONGEST_KM = 100_000.0
"""Largest cap on the length of a trajectory."""


class Caps(BaseModel):
    """Upper limits of a trajectory; values above a cap are clipped before any query is computed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    points: Annotated[int, Field(ge=2, le=100_000)]
    length_km: Annotated[float, Field(gt=0, le=_LONGEST_KM)]
    duration_h: Annotated[float, Field(gt=0, le=24 * 366)]
    speed_kmh: Annotated[float, Field(gt=0, le=2_000)]


class Scope(BaseModel):
    """The public limits of a dataset: a box in degrees, a time zone, days, hours of the day, caps.

    Metres are taken in the local equirectangular projection at the centre of the box, with the origin in its
    south-west corner: x grows to the east, y to the north. A box with `west` > `east` crosses the antimeridian.

    Examples
    --------
    >>> import wayveil
    >>> scope = wayveil.Scope(name="Paris", south=48.80, west=2.22, north=48.91, east=2.47, timezone="Europe/Paris")
    >>> round(scope.width_m / 1000), scope.caps.duration_h
    (18, 12.0)

    Privacy
    -------
    Free (public by definition); fill it in from public knowledge, never from the data.
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
    hours: str | None = None
    """Hours of the day covered, such as "06:00-11:00", in local time; None for all day."""
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
            return values  # the checks of the fields report what is missing
        diagonal_km = math.hypot(width_deg * math.cos(middle), height_deg) * _METRES_PER_DEGREE / 1000
        if not math.isfinite(diagonal_km) or not isinstance(given, dict):
            return values
        caps = {**_default_caps(diagonal_km), **given}
        window = _clock_window(values.get("hours"))
        if window is not None and isinstance(caps["duration_h"], int | float):
            caps["duration_h"] = min(caps["duration_h"], window[1] / 3600)  # no trajectory outlasts the hours
        return {**values, "caps": caps}

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
        if self.hours is not None and _clock_window(self.hours) is None:
            raise ValueError('hours must be two different times of day, such as "06:00-11:00"')
        if self.first_day and self.last_day and self.last_day < self.first_day:
            raise ValueError("last_day must not be before first_day")
        if self.first_day and self.last_day and not 1900 < self.first_day.year <= self.last_day.year < 3000:
            raise ValueError("first_day and last_day must be between the years 1901 and 2999")
        if max(self.width_m, self.height_m) > _WIDEST_KM * 1000:
            remedy = (
                "its west and east seem to be swapped"
                if self.west > self.east
                else "wayveil is made for cities and regions"
            )
            raise ValueError(f"the box is wider than {_WIDEST_KM:.0f} km; {remedy}")
        if min(self.width_m, self.height_m) < 100:
            raise ValueError("the box is narrower than 100 m")
        return self

    @property
    def _span_deg(self) -> float:
        span = self.east - self.west
        return span if span > 0 else span + 360.0

    @property
    def _x_metres_per_degree(self) -> float:
        return _METRES_PER_DEGREE * math.cos(math.radians((self.south + self.north) / 2))

    @property
    def width_m(self) -> float:
        """Extent from west to east."""
        return self._span_deg * self._x_metres_per_degree

    @property
    def height_m(self) -> float:
        """Extent from south to north."""
        return (self.north - self.south) * _METRES_PER_DEGREE

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
            # For each point separately: a point outside the usual range must not change others, even by rounding.
            x = np.where(np.abs(x) > 180.0, (x + 180.0) % 360.0 - 180.0, x)
        x += self._span_deg / 2
        x *= self._x_metres_per_degree
        y = np.asarray(lat, float) - self.south
        y *= _METRES_PER_DEGREE
        return x, y

    def ground(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Metres on the ground per metre of x, at each y: 1 in the middle of the box, more towards the equator."""
        lat = self.south + np.asarray(y, float) / _METRES_PER_DEGREE
        return np.asarray(np.cos(np.radians(lat)) * (_METRES_PER_DEGREE / self._x_metres_per_degree))

    def to_degrees(
        self, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Metres to (lon, lat)."""
        lon = np.asarray(x, float) / self._x_metres_per_degree
        lon += self.west
        if lon.size and not lon.max() <= 180.0:
            lon = np.where(lon > 180.0, lon - 360.0, lon)
        lat = np.asarray(y, float) / _METRES_PER_DEGREE
        lat += self.south
        return lon, lat

    def time_window(self) -> tuple[float, float] | None:
        """Start of the first day and end of the last day, in Unix seconds; None if the scope names no days."""
        if self.first_day is None or self.last_day is None:
            return None
        first = dt.datetime.combine(self.first_day, dt.time(), self.zone)
        after = dt.datetime.combine(self.last_day + dt.timedelta(days=1), dt.time(), self.zone)
        return first.timestamp(), after.timestamp()

    @property
    def hours_window_s(self) -> tuple[float, float] | None:
        """Start, in seconds after midnight, and length of the hours; None if the scope covers all day."""
        return _clock_window(self.hours)

    def seconds_into_hours(self, t_utc: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds since the hours last began, in [0, 86400).

        An instant is within the hours if this is less than their length.
        """
        window = self.hours_window_s
        begin = 0.0 if window is None else window[0]
        return np.asarray((self.local_seconds(t_utc) - begin) % DAY_S)

    def local_seconds(self, t_utc: NDArray[np.floating]) -> NDArray[np.float64]:
        """Seconds since Monday 00:00 of each instant's week, in local time, in [0, 604800)."""
        # Unix time begins on a Thursday.
        return (t_utc + self._utc_offsets(np.asarray(t_utc, float)) + 3 * DAY_S) % WEEK_S

    def _utc_offsets(self, t_utc: NDArray[np.float64]) -> NDArray[np.float64]:
        return offsets_s(t_utc, self.zone)


def _clock_window(text: object) -> tuple[float, float] | None:
    """Start, in seconds after midnight, and length of hours such as "06:00-11:00"; past midnight if the end is earlier.

    None if there are no hours or they do not have this form.
    """
    match = _HOURS.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    hour, minute, hour_to, minute_to = map(int, match.groups())
    start, end = 3600 * hour + 60 * minute, 3600 * hour_to + 60 * minute_to
    if start >= DAY_S or end > DAY_S or (end - start) % DAY_S == 0:
        return None
    return float(start), (end - start) % DAY_S


def missing_zone_note(scope: Scope) -> str | None:
    """A sentence for the user if the scope names no time zone; None if it does, even if that is UTC."""
    if "timezone" in scope.model_fields_set:
        return None
    return (
        f"The scope '{scope.name}' names no time zone, so hours and weekdays are counted in UTC; add one, "
        'such as timezone = "Europe/Paris".'
    )


def _default_caps(diagonal_km: float) -> dict[str, float]:
    """Caps from the size of the city: 500 points, four times its diagonal, half a day or a day, and motorway speed."""
    return {
        "points": 500,
        # If the box is far too large, the error should name the box, not a cap that the user did not write.
        "length_km": min(max(5.0, round(4 * diagonal_km)), _LONGEST_KM),
        "duration_h": 12.0 if diagonal_km < 200 else 24.0,
        "speed_kmh": 150.0 if diagonal_km < 200 else 300.0,
    }

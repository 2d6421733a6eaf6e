"""Scope files in TOML, the scopes that come with wayveil, and the template for a new one."""

import datetime as dt
import difflib
import json
import math
import os
import tomllib
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ValidationError

from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.errors import InputError, in_short
from wayveil.io.inputs import TooLargeError, read_text

_MAX_SCOPE_BYTES = 1 << 20
"""A scope has a few hundred bytes."""


def parse_scope(text: str, origin: str) -> Scope:
    """A scope from TOML text; `origin` names it in messages."""
    try:
        values = tomllib.loads(text)
        _check_filled_in(values, origin)
        return Scope.model_validate(values)
    except ValidationError as error:
        fault = first_fault(error, "scope", Scope)
        raise InputError(f"Scope '{origin}': {fault}; see wayveil.template('scope').") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and numbers too long to be read
        fault = in_short(error)
        raise InputError(f"Scope '{origin}' is not valid TOML ({fault}); see wayveil.template('scope').") from None


def _check_filled_in(values: dict[str, object], origin: str) -> None:
    """InputError for a template in which a value is still `EMPTY`."""
    empty = [name for name in Scope.model_fields if values.get(name) == EMPTY]
    if empty:
        raise InputError(
            f"Scope '{in_short(origin)}' is not filled in yet: {', '.join(empty)}. Write the values "
            "from public knowledge (a map, the project's plan), never from the data."
        )


def first_fault(error: ValidationError, whole: str, model: type[BaseModel]) -> str:
    """The first error in a file of `model`, on one line; `whole` names the file if the error concerns all of it."""
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
    return f" (did you mean '{close[0]}'?)" if close else ""


def shipped_scopes() -> list[str]:
    """Name the scopes that come with wayveil.

    Examples
    --------
    >>> import wayveil
    >>> "san-francisco" in wayveil.shipped_scopes()
    True

    Privacy
    -------
    Free (public by definition).
    """
    folder = resources.files("wayveil") / "scopes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_scope(name_or_path: str | Path) -> Scope:
    """Read a scope from a TOML file, or a shipped scope by its name.

    Parameters
    ----------
    name_or_path
        The file (`wayveil.template("scope")` is the text of one to fill in), or one of `wayveil.shipped_scopes()`.

    Examples
    --------
    >>> import wayveil
    >>> wayveil.read_scope("san-francisco").timezone
    'America/Los_Angeles'

    Privacy
    -------
    Free (public by definition).
    """
    return parse_scope(scope_text(name_or_path), Path(name_or_path).name)


def scope_of(scope: Scope | str | os.PathLike[str]) -> Scope:
    """The scope, read if a file or a name is given.

    Privacy: free (public by definition).
    """
    if isinstance(scope, Scope):
        return scope
    if not isinstance(scope, str | os.PathLike):
        raise InputError("scope must be a wayveil.Scope, the path of a scope file, or the name of a shipped scope.")
    return read_scope(Path(scope) if isinstance(scope, os.PathLike) else scope)


def scope_text(name_or_path: str | Path) -> str:
    """The TOML text of a scope file or of a shipped scope."""
    if str(name_or_path) in shipped_scopes():
        return (resources.files("wayveil") / "scopes" / f"{name_or_path}.toml").read_text(encoding="utf-8")
    path = Path(name_or_path)
    if not os.path.isfile(path):  # unlike Path.is_file, False for a name that is too long
        raise InputError(
            f"There is no scope '{in_short(path.name)}': give a TOML file (wayveil.template('scope') is one to fill "
            f"in) or one of {', '.join(shipped_scopes())}."
        )
    try:
        return read_text(path, _MAX_SCOPE_BYTES)
    except TooLargeError:
        raise InputError(f"Scope '{path.name}' is larger than 1 MB; that is not a scope.") from None
    except PermissionError as error:
        raise InputError(f"Cannot read the scope '{path.name}': {error.strerror}.") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"Scope '{path.name}' cannot be read as text.") from None


def filled_scope(
    *,
    name: str,
    bbox: tuple[float, float, float, float],
    timezone: str,
    days: tuple[str, str] | None = None,
    hours: str | None = None,
) -> str:
    """The TOML text of a scope; `bbox` is south, west, north, east; `days` is the first and the last day."""
    lines = [f"name = {json.dumps(name, ensure_ascii=False)}"]
    lines += [f"{side} = {degrees!r}" for side, degrees in zip(("south", "west", "north", "east"), map(float, bbox))]
    lines.append(f"timezone = {json.dumps(timezone)}")
    if days is not None:
        try:
            first, last = (dt.date.fromisoformat(day) for day in days)
        except ValueError:
            raise InputError("days= must be two dates such as 2024-03-04.") from None
        lines += [f"first_day = {first}", f"last_day = {last}"]
    if hours is not None:
        lines.append(f"hours = {json.dumps(hours)}")
    text = "\n".join(lines) + "\n"
    scope = parse_scope(text, name)
    caps = scope.caps
    return (
        f"# A wayveil scope: the public limits of a dataset; everything in it is published with the release.\n{text}\n"
        "# Upper limits for every trajectory. These are defaults for the size of the box; lower ones give less noise.\n"
        f"[caps]\npoints = {caps.points}\nlength_km = {caps.length_km!r}\nduration_h = {caps.duration_h!r}\n"
        f"speed_kmh = {caps.speed_kmh!r}\n"
    )


def box_of_roads(roads: RoadMap) -> tuple[float, float, float, float]:
    """South, west, north and east of a public road map, rounded outwards to hundredths of a degree."""
    south, west = (math.floor(100 * float(column.min())) / 100 for column in (roads.lat, roads.lon))
    north, east = (math.ceil(100 * float(column.max())) / 100 for column in (roads.lat, roads.lon))
    return south, west, north, east


EMPTY = "?"
"""A value of the template that is not filled in yet."""
TEMPLATE = f"""\
# A wayveil scope: the public limits of a dataset. Replace every "{EMPTY}" from public knowledge (a map, the project's
# plan), never from the data itself: everything in this file is published with the release.

name = "{EMPTY}"  # such as "Paris"

# The box in degrees (WGS 84), as shown by "Export" on openstreetmap.org. Points outside it are not counted.
south = "{EMPTY}"  # such as 48.80
west = "{EMPTY}"  # such as 2.22
north = "{EMPTY}"  # such as 48.91
east = "{EMPTY}"  # such as 2.47

# The time zone of the city, for hours and weekdays.
timezone = "{EMPTY}"  # such as "Europe/Paris"

# The first and the last day of the data. Leave both out if the dates themselves are confidential:
# synthetic trajectories then get dates in one made-up week.
first_day = "{EMPTY}"  # such as 2024-03-04
last_day = "{EMPTY}"  # such as 2024-03-31

# The hours of the day in which data was recorded. Leave it out if that is the whole day.
# hours = "06:00-22:00"

# Upper limits for every trajectory, from what such vehicles can do. Synthetic trajectories stay below them, and with
# little data, lower limits give less noise. A limit that is left out gets a default that depends on the box.
[caps]
# points = 500        # points of one trajectory
# length_km = 80.0    # length of one trajectory
# duration_h = 12.0   # duration of one trajectory
# speed_kmh = 150.0   # speed between two points
"""

"""The options of a rule in GeoJSON: names, types, limits, and error messages."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from wayveil.errors import RuleError
from wayveil.rules import constructors
from wayveil.rules.classes import DEFAULT_WIDTH_M as ROAD_WIDTH_M
from wayveil.rules.one_way import DEFAULT_WIDTH_M

RULE_NAMES = ("closed", "speed_limit", "one_way", "stay_within", "min_speed", "max_duration")
_OPTIONS = ("rule", "name", "from", "to", "days", "kmh", "minutes", "hours", "width_m", "classes")
_LISTS = ("days", "classes")
MOST_LETTERS = {"name": 200, "from": 20, "to": 20}
"""Maximum number of letters of each text."""
MOST_WORDS = 50
"""Maximum number of entries of a list."""
WIDTHS_M = (1, 1000)
"""Smallest and largest width of a street."""


def _words(value: object) -> object:
    """Return a list of words; QGIS writes text fields, so "mon, tue" and '["mon", "tue"]' are accepted too."""
    if isinstance(value, str):
        if len(value) > 1000:
            raise ValueError("is too long")
        value = value.strip("[] ").replace('"', "").replace("'", "").split(",")
    if isinstance(value, list):
        return [word.strip().lower() if isinstance(word, str) else word for word in value]
    return value


def _one_line(value: object) -> object:
    return " ".join("".join(c if c.isprintable() else " " for c in value).split()) if isinstance(value, str) else value


Word = Annotated[str, Field(max_length=50)]
Words = Annotated[list[Word], BeforeValidator(_words), Field(min_length=1, max_length=MOST_WORDS)]
Clock = Annotated[str, Field(max_length=MOST_LETTERS["from"])]
Kmh = Annotated[float, Field(ge=constructors.LIMITS_KMH[0], le=constructors.LIMITS_KMH[1])]
Width = Annotated[float, Field(ge=WIDTHS_M[0], le=WIDTHS_M[1])]


class Options(BaseModel):
    """The options that every rule has."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: Annotated[str, BeforeValidator(_one_line), Field(max_length=MOST_LETTERS["name"])] = ""
    rule: str


class ClosedOptions(Options):
    """The options of `closed`."""

    rule: Literal["closed"]
    from_: Annotated[Clock | None, Field(alias="from")] = None
    to: Clock | None = None
    days: Words | None = None


class SpeedLimitOptions(Options):
    """The options of `speed_limit`."""

    rule: Literal["speed_limit"]
    kmh: Kmh
    classes: Words | None = None
    width_m: Width = ROAD_WIDTH_M


class OneWayOptions(Options):
    """The options of `one_way`."""

    rule: Literal["one_way"]
    width_m: Width = DEFAULT_WIDTH_M


class StayWithinOptions(Options):
    """The options of `stay_within`."""

    rule: Literal["stay_within"]


class MinSpeedOptions(Options):
    """The options of `min_speed`."""

    rule: Literal["min_speed"]
    kmh: Kmh


class MaxDurationOptions(Options):
    """The options of `max_duration`."""

    rule: Literal["max_duration"]
    minutes: Annotated[float, Field(gt=0)] | None = None
    hours: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> MaxDurationOptions:
        if (self.minutes is None) == (self.hours is None):
            raise ValueError("give either minutes or hours")
        return self


_MODELS: dict[str, type[Options]] = {
    "closed": ClosedOptions,
    "speed_limit": SpeedLimitOptions,
    "one_way": OneWayOptions,
    "stay_within": StayWithinOptions,
    "min_speed": MinSpeedOptions,
    "max_duration": MaxDurationOptions,
}


OPTIONS_OF = {
    rule: tuple(field.alias or name for name, field in model.model_fields.items()) for rule, model in _MODELS.items()
}
"""The options of each rule, in the order in which they are checked."""


def _meant(word: str, known: tuple[str, ...]) -> str | None:
    """Return the known word that is most similar to another one, including swapped letters (khm)."""
    same = [name for name in known if sorted(name) == sorted(word[:50])]
    close = same or difflib.get_close_matches(word[:50], known, n=1, cutoff=0.75)
    return close[0] if close else None


def options_of(properties: Any) -> Options:
    """Return the options of a feature; properties of drawing programs are ignored, misspelt options are not."""
    if not isinstance(properties, dict):
        raise RuleError(f'it has no properties; say which rule it is: "rule": one of {", ".join(RULE_NAMES)}')
    # QGIS writes null for attributes that a feature does not have.
    given = {key.strip().lower(): value for key, value in properties.items() if value is not None}
    rule = given.get("rule")
    if not isinstance(rule, str) or rule not in _MODELS:
        close = _meant(rule, RULE_NAMES) if isinstance(rule, str) else None
        raise RuleError(
            f'"rule" must be one of {", ".join(RULE_NAMES)}' + (f"; did you mean '{close}'?" if close else "")
        )
    known = {key: value for key, value in given.items() if key in _OPTIONS}
    for key in given.keys() - known.keys():
        close = _meant(key, _OPTIONS)
        if close:
            raise RuleError(f"it has an unknown option; did you mean '{close}'?")
    model = _MODELS[rule]
    for key in known:
        if key not in OPTIONS_OF[rule]:
            raise RuleError(f"'{key}' has no meaning for {rule}; leave it out")
    try:
        return model.model_validate(known)
    except ValidationError as error:
        raise RuleError(_fault(rule, error)) from None


def _fault(rule: str, error: ValidationError) -> str:
    """Return a message about the first invalid option of a feature."""
    first = error.errors()[0]
    where, kind, bounds = str(next(iter(first["loc"]), "")), first["type"], first.get("ctx", {})
    if kind == "missing":
        return f"{rule} needs '{where}'"
    for sign, relation in (("ge", "at least"), ("gt", "above"), ("le", "at most")):
        if sign in bounds:
            return f"{where} must be {relation} {bounds[sign]:g}"
    if kind.startswith(("float", "finite")):
        return f"{where} must be a number"
    if kind == "too_short":
        return f"{where} is an empty list; name at least one value, or leave {where} out"
    if kind == "too_long" and where in _LISTS:
        return f"{where} has more than {bounds['max_length']} entries"
    if kind in ("too_long", "string_too_long"):
        return f"{where} is longer than {bounds['max_length']} letters"
    if where in _LISTS:
        return f"{where} must be a list of words"
    if kind.startswith("string"):
        return f"{where} must be text"
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{where + ': ' if where else ''}{message}"

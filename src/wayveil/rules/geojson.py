"""Rules from a GeoJSON file, as drawn in QGIS or geojson.io; no code runs from it."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from wayveil.errors import RuleError
from wayveil.inputs import TooLargeError, read_text
from wayveil.progress import Progress, quiet
from wayveil.roads import RoadMap
from wayveil.rules import make
from wayveil.rules.contradictions import refuse_contradictions
from wayveil.rules.hours import hours
from wayveil.rules.one_way import DEFAULT_WIDTH_M
from wayveil.rules.rule import Rule
from wayveil.rules.unmapped import unmapped_one_way, unmapped_speed_limit
from wayveil.scope import Scope, read_scope

MAX_BYTES = 128 << 20
MAX_FEATURES = 2_000
RULE_NAMES = ("closed", "speed_limit", "one_way", "stay_within", "min_speed", "max_duration")
_OPTIONS = ("rule", "name", "from", "to", "days", "kmh", "minutes", "hours", "width_m", "classes")
_LISTS = ("days", "classes")
_WGS84 = ("crs84", "4326")


def _words(value: object) -> object:
    """A list of words; QGIS writes a text field, so "mon, tue" and '["mon", "tue"]' are lists as well."""
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
Words = Annotated[list[Word], BeforeValidator(_words), Field(min_length=1, max_length=50)]
Clock = Annotated[str, Field(max_length=20)]
Kmh = Annotated[float, Field(ge=make.LIMITS_KMH[0], le=make.LIMITS_KMH[1])]
Width = Annotated[float, Field(ge=1, le=1000)]


class _Options(BaseModel):
    """What every rule may say."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: Annotated[str, BeforeValidator(_one_line), Field(max_length=200)] = ""
    rule: str


class ClosedOptions(_Options):
    rule: Literal["closed"]
    from_: Annotated[Clock | None, Field(alias="from")] = None
    to: Clock | None = None
    days: Words | None = None


class SpeedLimitOptions(_Options):
    rule: Literal["speed_limit"]
    kmh: Kmh
    classes: Words | None = None
    width_m: Width = 25.0


class OneWayOptions(_Options):
    rule: Literal["one_way"]
    width_m: Width = DEFAULT_WIDTH_M


class StayWithinOptions(_Options):
    rule: Literal["stay_within"]


class MinSpeedOptions(_Options):
    rule: Literal["min_speed"]
    kmh: Kmh


class MaxDurationOptions(_Options):
    rule: Literal["max_duration"]
    minutes: Annotated[float, Field(gt=0)] | None = None
    hours: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> MaxDurationOptions:
        if (self.minutes is None) == (self.hours is None):
            raise ValueError("give either minutes or hours")
        return self


_MODELS: dict[str, type[_Options]] = {
    "closed": ClosedOptions,
    "speed_limit": SpeedLimitOptions,
    "one_way": OneWayOptions,
    "stay_within": StayWithinOptions,
    "min_speed": MinSpeedOptions,
    "max_duration": MaxDurationOptions,
}


def read_rules(
    path_or_dict: str | Path | dict[str, Any],
    scope: Scope | str | os.PathLike[str],
    roadmap: RoadMap | None = None,
    progress: Progress = quiet,
    *,
    map_may_miss: bool = False,
) -> tuple[Rule, ...]:
    """The rules of a GeoJSON file or mapping, in its order; contradictions are refused. The scope may be a file too.

    The scope's own bounds are not among them: `with_scope_bounds` adds them. With `map_may_miss`, rules about the
    streets of a map are read without one as well: they then have words and no place (`unmapped`), and bind nobody.

    Privacy: free (a rules file is public).
    """
    scope = scope if isinstance(scope, Scope) else read_scope(os.fspath(scope))
    origin, features = features_of(path_or_dict)
    rules = rules_of(features, origin, [scope] * len(features), roadmap, progress, map_may_miss)
    refuse_contradictions(rules, scope, f"Rules '{origin}'")
    return rules


def rules_of(
    features: Sequence[Any],
    origin: str,
    scopes: Sequence[Scope],
    roadmap: RoadMap | None = None,
    progress: Progress = quiet,
    map_may_miss: bool = False,
) -> tuple[Rule, ...]:
    """One rule a feature, each read in the scope of its own place in `scopes`; a bad one is refused by its number."""
    rules: list[Rule] = []
    for number, (feature, scope) in enumerate(zip(features, scopes), start=1):
        progress("reading the rules", (number - 1) / len(features))
        try:
            rules.append(_rule(feature, number, scope, roadmap, map_may_miss))
        except RuleError as error:
            message = str(error).rstrip(".")
            stop = "" if message.endswith("?") else "."
            raise RuleError(f"Rules '{origin}', feature {number}: {message}{stop}") from None
    return tuple(rules)


def features_of(source: str | Path | dict[str, Any]) -> tuple[str, list[Any]]:
    """What a file or mapping is called in messages, and its features as they were written."""
    origin, document = _document(source)
    return origin, _features(document, origin)


def _document(source: str | Path | dict[str, Any]) -> tuple[str, Any]:
    if isinstance(source, dict):
        return "in memory", source
    path = Path(source)
    try:
        if not path.is_file():
            raise RuleError(f"No rules file '{path.name}'; draw one in QGIS or geojson.io and save it as GeoJSON.")
        text = read_text(path, MAX_BYTES, "utf-8-sig")
    except TooLargeError:
        raise RuleError(f"Rules '{path.name}' is larger than {MAX_BYTES >> 20} MB; simplify its shapes.") from None
    except (OSError, UnicodeDecodeError, ValueError):
        raise RuleError(f"Rules '{path.name}' cannot be read as text; save it as GeoJSON in UTF-8.") from None
    try:
        return path.name, json.loads(text)
    except (ValueError, RecursionError):
        raise RuleError(f"Rules '{path.name}' is not valid JSON; save it as GeoJSON from QGIS or geojson.io.") from None


def _features(document: Any, origin: str) -> list[Any]:
    if not isinstance(document, dict) or document.get("type") not in ("FeatureCollection", "Feature"):
        raise RuleError(f"Rules '{origin}' is not a GeoJSON FeatureCollection; save it from QGIS or geojson.io.")
    crs = document.get("crs")
    if crs is not None:
        properties = crs.get("properties") if isinstance(crs, dict) else None
        name = properties.get("name") if isinstance(properties, dict) else None
        if not isinstance(name, str) or not name.lower().replace("::", ":").endswith(_WGS84):
            raise RuleError(f"Rules '{origin}' is in another projection; export it in WGS 84 (EPSG:4326).")
    features = [document] if document["type"] == "Feature" else document.get("features")
    if not isinstance(features, list) or not features:
        raise RuleError(f"Rules '{origin}' has no features; draw at least one rule.")
    if len(features) > MAX_FEATURES:
        raise RuleError(f"Rules '{origin}' has more than {MAX_FEATURES} features; merge the shapes of the same rule.")
    return features


def _rule(feature: Any, number: int, scope: Scope, roadmap: RoadMap | None, map_may_miss: bool) -> Rule:
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        raise RuleError("this is not a GeoJSON Feature")
    options = _options(feature.get("properties"))
    geometry = feature.get("geometry")
    name = options.name or f"{options.rule} {number}"
    match options:
        case ClosedOptions():
            return make.closed(geometry, scope, hours(options.from_, options.to, options.days), name)
        case StayWithinOptions():
            return make.stay_within(geometry, scope, name)
        case SpeedLimitOptions():
            classes = options.classes or ()
            if classes and geometry is None and roadmap is None and map_may_miss:
                return unmapped_speed_limit(options.kmh, classes, options.width_m, name)
            return make.speed_limit(options.kmh, scope, geometry, roadmap, classes, options.width_m, name)
        case OneWayOptions():
            if geometry is None and roadmap is None and map_may_miss:
                return unmapped_one_way(options.width_m, name)
            return make.one_way(geometry, scope, roadmap, options.width_m, name)
        case MinSpeedOptions():
            _refuse_shape(geometry, "min_speed")
            return make.min_speed(options.kmh, name)
        case MaxDurationOptions():
            _refuse_shape(geometry, "max_duration")
            return make.max_duration(options.hours or (options.minutes or 0.0) / 60, name)
    raise RuleError("the rule is not known")


def _refuse_shape(geometry: Any, rule: str) -> None:
    if geometry is not None:
        raise RuleError(f'{rule} holds for whole trajectories; set "geometry": null')


def _meant(word: str, known: tuple[str, ...]) -> str | None:
    """The known word that another one looks like, exchanged letters (khm) included."""
    same = [name for name in known if sorted(name) == sorted(word[:50])]
    close = same or difflib.get_close_matches(word[:50], known, n=1, cutoff=0.75)
    return close[0] if close else None


def _options(properties: Any) -> _Options:
    """The feature's options; what drawing programs add is left out, but a misspelt option is not taken for that."""
    if not isinstance(properties, dict):
        raise RuleError(f'it has no properties; say which rule it is: "rule": one of {", ".join(RULE_NAMES)}')
    # QGIS writes null for each attribute that a feature does not have.
    given = {key.strip().lower(): value for key, value in properties.items() if value is not None}
    rule = given.get("rule")
    if not isinstance(rule, str) or rule not in _MODELS:
        close = _meant(rule, RULE_NAMES) if isinstance(rule, str) else None
        raise RuleError(f'"rule" must be one of {", ".join(RULE_NAMES)}' + (f"; is '{close}' meant?" if close else ""))
    known = {key: value for key, value in given.items() if key in _OPTIONS}
    for key in given.keys() - known.keys():
        close = _meant(key, _OPTIONS)
        if close:
            raise RuleError(f"it has an option that is not known; is '{close}' meant?")
    model = _MODELS[rule]
    for key in known:
        if key not in {field.alias or name for name, field in model.model_fields.items()}:
            raise RuleError(f"'{key}' has no meaning for {rule}; leave it out")
    try:
        return model.model_validate(known)
    except ValidationError as error:
        raise RuleError(_fault(rule, error)) from None


def _fault(rule: str, error: ValidationError) -> str:
    """What is wrong with a feature's first bad option, as a person would say it."""
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
        return f"{where} is an empty list; name at least one, or leave {where} out"
    if kind == "too_long" and where in _LISTS:
        return f"{where} is a list of more than {bounds['max_length']}"
    if kind in ("too_long", "string_too_long"):
        return f"{where} is longer than {bounds['max_length']} letters"
    if where in _LISTS:
        return f"{where} must be a list of words"
    if kind.startswith("string"):
        return f"{where} must be text"
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{where + ': ' if where else ''}{message}"

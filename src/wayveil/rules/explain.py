"""Rules in plain language: descriptions and remarks."""

from __future__ import annotations

from collections.abc import Sequence

from wayveil.core.scope import Scope
from wayveil.rules.area import Area
from wayveil.rules.counting import unique_names
from wayveil.rules.rule import Rule
from wayveil.rules.speed import SpeedLimit
from wayveil.rules.unmapped import is_unmapped


def explained(rules: Sequence[Rule], roads_option: str = "roads=") -> list[dict[str, str | None]]:
    """Return each rule's name, class, description and, if needed, a remark.

    `roads_option` is how the caller names the road map: an argument in Python, an option on the command line.
    """
    return [
        {"name": name, "rule": type(rule).__name__, "text": rule.describe(), "remark": _remark(rule, roads_option)}
        for name, rule in zip(unique_names(rules), rules)
    ]


def closing_text(rules: Sequence[Rule], scope: Scope | None, scope_option: str = "scope=") -> str:
    """Return a closing sentence for all rules: the time zone of the hours, and what was and was not checked."""
    timed = any(rule.closed_hours() is not None for rule in rules)
    if scope is not None:
        return (f"Hours are in the time zone {scope.timezone}.\n" if timed else "") + "No contradiction was found."
    zone = " and to know the time zone of the hours" if timed else ""
    return (
        f"No contradiction was found among the rules. Use {scope_option} to check that they lie in the box of your "
        f"scope and leave room in it{zone}."
    )


def crossing_text(rule: Rule) -> str | None:
    """Return a sentence about an area whose border crosses itself; None if no border does."""
    import shapely

    places = [rule.closed_area(), rule.stay_area(), rule.where if isinstance(rule, SpeedLimit) else None]
    areas = [place for place in places if isinstance(place, Area)]
    if not any(area.crossed for area in areas):
        return None
    parts = sum(int(shapely.get_num_geometries(area.shape)) for area in areas)
    once, count = ("the part", "counts") if parts == 1 else (f"the {parts:,} parts", "count")
    return (
        f"Its polygon crosses itself: {once} that the border encloses once {count}, and what it encloses twice does "
        "not; if you meant another area, draw the polygon again."
    )


def _remark(rule: Rule, roads_option: str) -> str | None:
    if is_unmapped(rule):
        return f"It refers to the streets of a road map; use {roads_option} to check and draw it."
    return crossing_text(rule)

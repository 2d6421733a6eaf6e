"""A rules file in words."""

from __future__ import annotations

from collections.abc import Sequence

from wayveil.rules.area import crossing_words
from wayveil.rules.hours import has_hours
from wayveil.rules.rule import Rule, unique_names
from wayveil.rules.unmapped import is_unmapped
from wayveil.scope import Scope


def explained(rules: Sequence[Rule]) -> list[dict[str, str | None]]:
    """Each rule's name, kind and words, and a remark where there is something to know about it."""
    return [
        {"name": name, "rule": type(rule).__name__, "text": rule.describe(), "remark": _remark(rule)}
        for name, rule in zip(unique_names(rules), rules)
    ]


def closing_words(rules: Sequence[Rule], scope: Scope | None) -> str:
    """What holds for all of them: whose hours, that nothing contradicts, and what takes a scope to say."""
    timed = any(has_hours(rule) for rule in rules)
    if scope is not None:
        return (f"Hours are those of {scope.timezone}.\n" if timed else "") + "No contradiction was found."
    hours = ", and in which time zone the hours are" if timed else ""
    return (
        "No contradiction was found among the rules. "
        f"Whether they lie in your city's box and leave room in it{hours}, takes --scope to say."
    )


def _remark(rule: Rule) -> str | None:
    if is_unmapped(rule):
        return "It speaks of the streets of a road map: which ones, takes --roads to say and to draw."
    return crossing_words(rule)

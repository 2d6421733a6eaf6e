"""Convert rules in any accepted form (objects, functions, GeoJSON or a file) to rule objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.errors import InputError, RuleError
from wayveil.rules.contradictions import refuse_contradictions
from wayveil.rules.custom import custom
from wayveil.rules.geojson import read_rules
from wayveil.rules.motion import Motion, motion_from_metres
from wayveil.rules.rule import Rule

RuleLike = Rule | Callable[[Any, Any, Any], Any]
"""A rule, or a function of (x, y, t) that is zero where the rule is obeyed (`wayveil.rules.custom`)."""
Rules = RuleLike | Sequence[RuleLike] | Mapping[str, Any] | str | os.PathLike[str] | None
"""Rules, GeoJSON, or the path to a GeoJSON file."""

_NO_RULES = (
    "rules must be wayveil.rules.Rule objects, functions of (x, y, t), a whole GeoJSON FeatureCollection, or the "
    "path to such a file."
)


def as_rules(rules: Rules, scope: Scope, roadmap: RoadMap | None = None) -> tuple[Rule, ...]:
    """The rules as objects that synthesis can use; files are read, and contradictory rules are refused.

    Privacy: free (rules are public).
    """
    if isinstance(rules, Mapping):
        rules = dict(rules)
    if isinstance(rules, str | os.PathLike | dict):
        return tuple(read_rules(rules if isinstance(rules, dict) else os.fspath(rules), scope, roadmap))
    given = (rules,) if isinstance(rules, Rule) or callable(rules) else rules
    if not isinstance(given, Iterable | None):
        raise InputError(_NO_RULES)
    found = tuple(_as_rule(rule, scope) for rule in given or ())
    refuse_contradictions(found, scope)
    return found


def _as_rule(rule: object, scope: Scope) -> Rule:
    if isinstance(rule, Rule):
        return _tested(rule, scope)
    if isinstance(rule, type) or not callable(rule):
        raise InputError(_NO_RULES)
    return custom(rule, scope, name=getattr(rule, "__name__", "custom").strip("<>"))


def _tested(rule: Rule, scope: Scope) -> Rule:
    """The rule, after a test on two short trajectories; RuleError if its results have a wrong shape or type."""
    motion = _trial(scope)
    points = motion.x_m.shape
    for what, values in (("penalty", rule.penalty(motion)), ("violations", rule.violations(motion))):
        if np.shape(values) != points:
            raise RuleError(f"Rule '{rule.name}': {what} must return one value for each point.")
    if np.asarray(rule.violations(motion)).dtype != bool:
        raise RuleError(f"Rule '{rule.name}': violations must return booleans.")
    return rule


def _trial(scope: Scope) -> Motion:
    share, t_utc = np.array([0.2, 0.5, 0.8, 0.6, 0.4]), np.array([0.0, 60.0, 120.0, 0.0, 60.0])
    return motion_from_metres(share * scope.width_m, share * scope.height_m, t_utc, [0, 3, 5], scope)

"""`check`: explain and draw rules, and find contradictions, before they are used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.errors import InputError
from wayveil.io.roads import Roads, roads_of
from wayveil.io.scope_files import read_scope
from wayveil.progress import Progress, quiet
from wayveil.rules.bounds import with_scope_bounds
from wayveil.rules.explain import closing_text, explained
from wayveil.rules.geojson import read_rules
from wayveil.rules.picture import save_picture
from wayveil.rules.rule import Rule
from wayveil.rules.user_input import Rules, as_rules
from wayveil.rules.without_scope import read_without_scope


@dataclass(frozen=True, eq=False)
class RulesCheck:
    """Rules without contradictions: `print` it for their descriptions, `draw` it for a picture.

    Examples
    --------
    >>> import wayveil
    >>> wayveil.rules.check([wayveil.rules.speed_limit(50)], "demo-city")
    RulesCheck(2 rules in 'demo-city', no contradiction)

    Privacy
    -------
    Free (rules are public).
    """

    rules: tuple[Rule, ...]
    """The rules; with a scope, its bounds are the last one."""
    scope: Scope | None
    """The scope that they were checked in, if one was given."""
    frame: Scope | None = field(repr=False)
    """The box of the picture: the scope, or a box around the shapes; None if nothing can be drawn."""
    why_no_frame: str = field(default="", repr=False)
    """The reason if nothing can be drawn."""
    roads: RoadMap | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        where = "without a scope" if self.scope is None else f"in '{self.scope.name}'"
        return f"RulesCheck({len(self.rules)} rules {where}, no contradiction)"

    def __str__(self) -> str:
        return self.text()

    def text(self, scope_option: str = "scope=", roads_option: str = "roads=") -> str:
        """Return the rules in plain language; the arguments are the caller's names for the options."""
        lines = []
        for number, rule in enumerate(explained(self.rules, roads_option), start=1):
            lines.append(f"{number}. {rule['name']}: {rule['text']}")
            if rule["remark"]:
                lines.append(f"   {rule['remark']}")
        return "\n".join([*lines, closing_text(self.rules, self.scope, scope_option)])

    def to_dict(self, roads_option: str = "roads=") -> dict[str, Any]:
        """Return `scope`, `timezone` (None without a scope) and `rules` (`name`, `rule`, `text`, `remark`)."""
        named = (None, None) if self.scope is None else (self.scope.name, self.scope.timezone)
        return {"scope": named[0], "timezone": named[1], "rules": explained(self.rules, roads_option)}

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw the rules into a .png or .svg file."""
        if self.frame is None:
            raise InputError(self.why_no_frame)
        save_picture(Path(path), self.rules, self.frame, self.roads, border=self.scope is not None)


def check(
    rules: Rules,
    scope: Scope | str | os.PathLike[str] | None = None,
    roads: Roads = None,
    progress: Progress = quiet,
) -> RulesCheck:
    """Check rules for contradictions, and return their descriptions.

    Parameters
    ----------
    rules
        A GeoJSON file or mapping, rules, or functions of (x, y, t).
    scope
        The scope in which they will be used: a scope, its file or its name. A rules file can be checked without one;
        then its shapes are not compared with a box, and the time zone of the hours is not known.
    roads
        A road map or its file, for rules that refer to its streets and as the background of the picture.

    Returns
    -------
    RulesCheck
        `print` it for the descriptions; its `draw` method writes a picture.

    Examples
    --------
    >>> import wayveil
    >>> limit = {"type": "Feature", "geometry": None, "properties": {"rule": "speed_limit", "kmh": 50}}
    >>> print(wayveil.rules.check(limit, "demo-city"))
    1. speed_limit 1: No step may be faster than 50 km/h anywhere.
    2. scope bounds: No point may lie outside the box of the scope.
    No contradiction was found.

    Privacy
    -------
    Free (rules are public).
    """
    streets = roads_of(roads)
    is_file = isinstance(rules, str | os.PathLike)
    if scope is None:
        if not is_file:
            raise InputError("scope= is needed to check rules that are not in a file.")
        file_rules = read_without_scope(Path(os.fspath(rules)), streets, progress)  # type: ignore[arg-type]
        return RulesCheck(file_rules.rules, None, file_rules.frame, file_rules.why_no_frame, streets)
    frame = scope if isinstance(scope, Scope) else read_scope(os.fspath(scope))
    if is_file or isinstance(rules, Mapping):
        source = dict(rules) if isinstance(rules, Mapping) else os.fspath(rules)  # type: ignore[arg-type]
        found = read_rules(source, frame, streets, progress, map_may_miss=True)
    else:
        found = as_rules(rules, frame, streets)
    return RulesCheck(with_scope_bounds(found, frame), frame, frame, "", streets)

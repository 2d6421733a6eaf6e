"""Days of the week in their usual spellings: "mon", "Monday", "Mo-Fr", "mon to fri", "sat, sun", "weekdays"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wayveil.errors import RuleError, printable

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SETS = {"weekday": range(5), "weekdays": range(5), "weekend": range(5, 7), "weekends": range(5, 7), "daily": range(7)}
_BETWEEN = re.compile(r"\s*(?:[-‐‑‒–—−]|\b(?:to|through|until)\b)\s*")
_AND = re.compile(r"[,;/&+\s]+(?:and\b[,;/&+\s]*)?")
_LEAST_LETTERS = 2
"""Number of letters that distinguish all days."""
_MOST_LETTERS = 200
"""Longest text that is searched for days; bounds the time."""


def days_of(text: str | Sequence[str]) -> list[int]:
    """Return the numbers of the days in their order, Monday = 0; a range may run past Sunday ("fri-mon")."""
    parts = list(text) if isinstance(text, Sequence) and not isinstance(text, str) else [text]
    found: set[int] = set()
    for part in parts:
        if not isinstance(part, str) or len(part) > _MOST_LETTERS:
            raise _unknown(part)
        for word in filter(None, _AND.split(_BETWEEN.sub("-", part.strip().lower()))):
            found.update(_range(word, part))
    if not found:
        raise _unknown(text)
    return sorted(found)


def _range(word: str, whole: object) -> Sequence[int]:
    if word in _SETS:
        return _SETS[word]
    ends = [_day(name, whole) for name in word.split("-")]
    if len(ends) > 2:
        raise _unknown(whole)
    first, last = ends[0], ends[-1]
    return [day % 7 for day in range(first, last + 1 if last >= first else last + 8)]


def _day(name: str, whole: object) -> int:
    """Return the number of a day from the first two or more letters of its English name."""
    name = name.rstrip(".")
    for number, full in enumerate(_NAMES):
        if len(name) >= _LEAST_LETTERS and full.startswith(name):
            return number
    raise _unknown(whole)


def _unknown(what: object) -> RuleError:
    shown = f" '{printable(what)}' is not a day." if isinstance(what, str) and what and len(what) < 60 else ""
    return RuleError(f'days must be some of {", ".join(DAYS)}, or a range such as "mon-fri".{shown}')

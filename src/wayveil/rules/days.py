"""Days of the week as people write them: "mon", "Monday", "Mo-Fr", "mon to fri", "sat, sun", "weekdays"."""

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
_MOST_LETTERS = 200


def days_of(text: str | Sequence[str]) -> list[int]:
    """Numbers of the days, Monday 0, in their order; a range over Sunday ("fri-mon") is one too."""
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
    """Any beginning of an English name that has two letters or more."""
    name = name.rstrip(".")
    for number, full in enumerate(_NAMES):
        if len(name) >= _LEAST_LETTERS and full.startswith(name):
            return number
    raise _unknown(whole)


def _unknown(what: object) -> RuleError:
    shown = f" '{printable(what)}' is none of them." if isinstance(what, str) and what and len(what) < 60 else ""
    return RuleError(f'days must be some of {", ".join(DAYS)}, or a range such as "mon-fri".{shown}')

"""Classes of road as rules name them."""

from __future__ import annotations

from collections.abc import Sequence

from wayveil.errors import RuleError
from wayveil.roads import ROAD_CLASSES, road_class_of


def class_names(words: Sequence[str]) -> tuple[list[str], str]:
    """The names of ROAD_CLASSES that words stand for, and how a description calls them.

    A map keeps no finer classes: who limits OpenStreetMap's living_street limits all that counts as residential with
    it, and the description says so.
    """
    found = {word: road_class_of(word) if isinstance(word, str) else None for word in words}
    if not found or None in found.values():
        raise RuleError(f"classes must be a list of some of {', '.join(ROAD_CLASSES)}.")
    names = list(dict.fromkeys(name for name in found.values() if name is not None))
    finer = {name: [word for word, own in found.items() if own == name != word] for name in names}
    return names, ", ".join(name + _counting(finer[name]) for name in names)


def _counting(words: list[str]) -> str:
    return f" (as which {' and '.join(words)} count{'s' if len(words) == 1 else ''})" if words else ""

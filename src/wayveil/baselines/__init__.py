"""The published methods that the source paper builds on or compares itself with, for comparison.

Each has two modes: `published=True` follows the authors and is marked as not private; the default closes the leaks.
The module of a method is imported when the method is first used.
"""

from typing import Any

from wayveil.baselines.method import Method, Run
from wayveil.baselines.registry import MODULES, load, names, register
from wayveil.baselines.result import BaselineResult, LedgerLine

__all__ = ["BaselineResult", "LedgerLine", "Method", "Run", "load", "names", "register"]


def __getattr__(name: str) -> Any:
    known = name.replace("_", "-")
    if known in MODULES:
        return load(known)
    raise AttributeError(f"module 'wayveil.baselines' has no attribute '{name}'")

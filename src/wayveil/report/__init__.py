"""One offline HTML page, of two kinds that are never mixed: the public data sheet and the internal report."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wayveil.report.page import internal_report as internal_report
    from wayveil.report.page import public_sheet as public_sheet
    from wayveil.report.sheet import Sheet as Sheet
    from wayveil.report.sheet import make_sheet as make_sheet

_HOMES = {
    "Sheet": "wayveil.report.sheet",
    "internal_report": "wayveil.report.page",
    "make_sheet": "wayveil.report.sheet",
    "public_sheet": "wayveil.report.page",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    # Fetched when first used: most commands want this package's words, not its pages.
    if name not in _HOMES:
        raise AttributeError(f"module 'wayveil.report' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)

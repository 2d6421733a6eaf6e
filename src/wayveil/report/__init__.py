"""Offline HTML pages of two kinds that are never mixed: the public data sheet and the internal report."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wayveil.report.data_sheet import Sheet as Sheet
    from wayveil.report.data_sheet import make_sheet as make_sheet
    from wayveil.report.page import internal_report as internal_report
    from wayveil.report.page import public_sheet as public_sheet

_HOMES = {
    "Sheet": "wayveil.report.data_sheet",
    "internal_report": "wayveil.report.page",
    "make_sheet": "wayveil.report.data_sheet",
    "public_sheet": "wayveil.report.page",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    # Imported at first use, because most commands make no page.
    if name not in _HOMES:
        raise AttributeError(f"module 'wayveil.report' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)

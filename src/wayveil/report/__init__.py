"""Offline HTML pages of two kinds that are never mixed: the public data sheet and the internal report."""

from typing import TYPE_CHECKING

from wayveil.core.lazy import lazy_names

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

__getattr__ = lazy_names(__name__, _HOMES)

"""One offline HTML page, of two kinds that are never mixed: the public data sheet and the internal report."""

from wayveil.report.page import internal_report, public_sheet
from wayveil.report.sheet import Sheet, make_sheet

__all__ = ["Sheet", "internal_report", "make_sheet", "public_sheet"]

"""The audit as tables for a terminal."""

from typing import TYPE_CHECKING, Literal

from wayveil.audit.file_audit import AuditReport
from wayveil.audit.selfcheck import SelfCheck

if TYPE_CHECKING:
    from rich.console import Group

Columns = tuple[tuple[str, Literal["left", "right"]], ...]
_ATTACK_COLUMNS: Columns = (
    ("attack", "left"), ("found", "right"), ("interval", "right"), ("allowed", "right"), ("result", "left"),
)  # fmt: skip
_METHOD_COLUMNS: Columns = (
    ("method", "left"), ("claims", "right"), ("allowed", "right"), ("bound", "right"), ("verdict", "left"),
    ("runs", "right"),
)  # fmt: skip


def audit_table(report: AuditReport) -> "Group":
    """One row per attack, and below the table one line per attack on what it measures."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Attacks on the synthetic file ({report.confidence:.1%} confidence)")
    for name, justify in _ATTACK_COLUMNS:
        table.add_column(name, justify=justify)
    colours = {"passed": "green", "failed": "red", "too few": "yellow"}
    for test in report.tests:
        interval = "" if test.low is None or test.high is None else f"{test.low:.3g} – {test.high:.3g}"
        allowed = "" if test.allowed is None else f"{test.allowed:.3g}"
        word = report.word(test)
        result = f"[{colours[word]}]{word}[/]" if word in colours else word
        table.add_row(test.test, f"{test.value:.4g}", interval, allowed, result)
    meanings = (Text(f"- {test.test}: {test.meaning}") for test in report.tests)
    return Group(table, "What is measured:", *meanings)


def self_check_table(check: SelfCheck) -> "Group":
    """One row per method, and below the table one line per method on what was found."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Lower bound on epsilon at {check.confidence:.1%} confidence, simulated city")
    for name, justify in _METHOD_COLUMNS:
        table.add_column(name, justify=justify)
    for case in check.cases:
        colour = "green" if case.right else "red"
        table.add_row(case.method, f"{case.epsilon:g}", f"{case.allowed:g}", f"{case.bound:.2f}",
                      f"[{colour}]{case.verdict}[/{colour}]", f"2 × {case.runs}")  # fmt: skip
    seen = (Text(f"- {case.method}: {case.seen}") for case in check.cases)
    return Group(table, "What was found:", *seen)

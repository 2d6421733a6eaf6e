"""What is known about every method of the comparison, as rows and as tables for a terminal."""

from typing import TYPE_CHECKING, Any

from wayveil.baselines import load, names
from wayveil.baselines.conformance import CHECKS, Conformance

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

Row = dict[str, Any]
AUDIT = "wayveil audit self-check --all"
_OURS = (
    ("wayveil", False), ("wayveil-map", True), ("wayveil-bayes", False), ("wayveil-bayes-map", True),
)  # fmt: skip


def described() -> list[Row]:
    """One row per method and mode.

    Privacy: free: it sees no data.
    """
    rows = [
        _row(
            name, "default", "this project", "Noisy answers to public questions, then post-processing.",
            "one trajectory or one user, added or removed", True, "Proof: docs/explanation/method.md.", True, "yes",
            mapped,
        )
        for name, mapped in _OURS
    ]  # fmt: skip
    for name in names():
        m = load(name)
        for published in (False, True):
            mode = "published" if published else "default"
            why = f"{m.leaks} Counter-example: {AUDIT}." if published else f"Proof: {m.proof}"
            label = f"{name}-published" if published else name
            protects = "nothing" if published else m.protects
            rows.append(
                _row(label, mode, m.reference, m.idea, protects, not published, why, m.makes_times, m.obeys_rules,
                     m.needs_map)
            )  # fmt: skip
    rows.append(
        _row("dpe-published", "published", "the source paper", "Noise on an embedding of all pairs of trajectories.",
             "nothing", False, f"Not private: the output keeps its records' places. Counter-example: {AUDIT}.", True,
             "by penalties", False)
    )  # fmt: skip
    return rows


def _row(
    name: str, mode: str, reference: str, idea: str, protects: str, holds: bool, why: str, times: bool, rules: str,
    needs_map: bool,
) -> Row:  # fmt: skip
    return {
        "method": name, "mode": mode, "reference": reference, "idea": idea, "protects": protects,
        "epsilon_holds": holds, "why": why, "times": times, "rules": rules, "map": "needed" if needs_map else "no",
    }  # fmt: skip


def methods_table() -> "Group":
    """The rows for a terminal, with the reasons below the table."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = described()
    table = Table(title="Methods")
    table.add_column("method", no_wrap=True)
    for column in ("epsilon holds", "times", "rules", "map"):
        table.add_column(column)
    for row in rows:
        holds = "[green]yes[/green]" if row["epsilon_holds"] else "[red]no[/red]"
        table.add_row(row["method"], holds, "yes" if row["times"] else "no", row["rules"], row["map"])
    about = (
        Text(f"- {row['method']} ({row['reference']}). {row['idea']} Protects {row['protects']}. {row['why']}")
        for row in rows
    )
    return Group(table, "What they are, what they protect, and why epsilon holds or does not:", *about)


def conformance_table(found: list[Conformance]) -> "Table":
    """One row per method, one column per check; a problem is written out."""
    from rich.table import Table

    table = Table(title="Checks that every method must pass")
    table.add_column("method")
    for check in CHECKS:
        table.add_column(check)
    for method in dict.fromkeys(each.method for each in found):
        mine = {each.check: each.problem for each in found if each.method == method}
        table.add_row(method, *(f"[red]{mine[check]}[/red]" if mine[check] else "passed" for check in CHECKS))
    return table

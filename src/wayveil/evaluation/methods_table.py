"""What is known about every method of the comparison, as rows and as tables for a terminal."""

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from wayveil.baselines import load, names
from wayveil.baselines.conformance import CHECKS, Conformance

if TYPE_CHECKING:
    from rich.console import Group

Row = dict[str, Any]
AUDIT = "wayveil audit self-check --all"
VERDICTS = "verdicts.json"
"""What that command found, made with `--json`; with `--methods` the attack can be run on some methods at a time."""
_OURS = (
    ("wayveil", False), ("wayveil-map", True), ("wayveil-bayes", False), ("wayveil-bayes-map", True),
)  # fmt: skip


def described() -> list[Row]:
    """One row per method and mode.

    Privacy: free: it sees no data.
    """
    rows = [
        _with_attack(
            "sound method, whole release",
            method=name,
            mode="default",
            reference="this project",
            idea="Noisy answers to public questions, then post-processing.",
            protects="one trajectory or one user, added or removed",
            epsilon_holds=True,
            why="Proof: docs/explanation/method.md.",
            times=True,
            rules="yes",
            map="needed" if mapped else "no",
        )
        for name, mapped in _OURS
    ]
    for name in names():
        m = load(name)
        for mode in ("default", "published"):
            published = mode == "published"
            rows.append(
                _with_attack(
                    f"{name}, {mode}",
                    method=f"{name}-published" if published else name,
                    mode=mode,
                    reference=m.reference,
                    idea=m.idea,
                    protects="nothing" if published else m.protects,
                    epsilon_holds=not published,
                    why=m.leaks if published else f"Proof: {m.proof}",
                    times=m.makes_times,
                    rules=m.obeys_rules,
                    map="needed" if m.needs_map else "no",
                )
            )
    rows.append(
        _with_attack(
            "published DPE, epsilon 1",
            method="dpe-published",
            mode="published",
            reference="the source paper",
            idea="Noise on an embedding of all pairs of trajectories.",
            protects="nothing",
            epsilon_holds=False,
            why="Not private: the output keeps its records' places.",
            times=True,
            rules="by penalties",
            map="no",
        )
    )
    return rows


@cache
def verdicts() -> dict[str, Row]:
    """What the stored audit found, by the names that it gives to methods and modes.

    Privacy: free (simulated data).
    """
    stored = json.loads(files("wayveil.evaluation").joinpath(VERDICTS).read_text(encoding="utf-8"))
    return {case["method"]: case for case in stored["methods"]}


def _with_attack(audited_as: str, **row: Any) -> Row:
    """The row with what the stored audit found under this name."""
    case = verdicts().get(audited_as)
    kept = ("verdict", "bound", "allowed", "runs", "seen")
    return {**row, "why": f"{row['why']} {_attack(case)}", "audit": case and {name: case[name] for name in kept}}


def _attack(case: Row | None) -> str:
    if case is None:
        return "Not attacked yet; see `wayveil audit self-check --methods`."
    if case["verdict"] == "acquitted":
        return f"The attack proves no more than epsilon {case['bound']:.2f} (allowed: {case['allowed']:g})."
    found, allowed = f"{case['bound']:.2f}", f"{case['allowed']:g}"
    return f"Counter-example: epsilon is at least {found} (allowed: {allowed}), by {case['seen']}."


def methods_table() -> "Group":
    """The rows for a terminal, with the reasons below the table."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = described()
    table = Table(title="Methods")
    table.add_column("method", no_wrap=True)
    for column in ("epsilon holds", "attack at epsilon 1", "times", "rules", "map"):
        table.add_column(column)
    for row in rows:
        holds = "[green]yes[/green]" if row["epsilon_holds"] else "[red]no[/red]"
        attack = f"≥ {row['audit']['bound']:.2f}" if row["audit"] else "–"
        table.add_row(row["method"], holds, attack, "yes" if row["times"] else "no", row["rules"], row["map"])
    about = (
        Text(f"- {row['method']} ({row['reference']}). {row['idea']} Protects {row['protects']}. {row['why']}")
        for row in rows
    )
    attack = f"The attack is `{AUDIT}`, on simulated data; a bound above what is allowed refutes the claim."
    return Group(table, attack, "What they are, what they protect, and why epsilon holds or does not:", *about)


def conformance_table(found: list[Conformance]) -> "Group":
    """One row per method, one column per check; below the table the checks and the problems in words."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    numbers = {check: str(position) for position, check in enumerate(CHECKS, 1)}
    table = Table(title="Checks that every method must pass")
    table.add_column("method", no_wrap=True)
    for number in numbers.values():
        table.add_column(number, justify="center")
    for method in dict.fromkeys(each.method for each in found):
        failed = {each.check for each in found if each.method == method and each.problem}
        table.add_row(method, *("[red]no[/red]" if check in failed else "[green]✓[/green]" for check in numbers))
    meanings = Text("; ".join(f"{number}: {check}" for check, number in numbers.items()) + ".")
    problems = (
        Text(f"- {each.method}, check {numbers[each.check]}: {each.problem}", style="red")
        for each in found
        if each.problem
    )
    return Group(table, meanings, *problems)

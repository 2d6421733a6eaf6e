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
        _row(
            name, "default", "this project", "Noisy answers to public questions, then post-processing.",
            "one trajectory or one user, added or removed", True, "Proof: docs/explanation/method.md.", True, "yes",
            mapped, "sound method, whole release",
        )
        for name, mapped in _OURS
    ]  # fmt: skip
    for name in names():
        m = load(name)
        for published in (False, True):
            mode = "published" if published else "default"
            why = m.leaks if published else f"Proof: {m.proof}"
            label = f"{name}-published" if published else name
            protects = "nothing" if published else m.protects
            rows.append(
                _row(label, mode, m.reference, m.idea, protects, not published, why, m.makes_times, m.obeys_rules,
                     m.needs_map, f"{name}, {mode}")
            )  # fmt: skip
    rows.append(
        _row("dpe-published", "published", "the source paper", "Noise on an embedding of all pairs of trajectories.",
             "nothing", False, "Not private: the output keeps its records' places.", True, "by penalties", False,
             "published DPE, epsilon 1")
    )  # fmt: skip
    return rows


@cache
def verdicts() -> dict[str, Row]:
    """What the stored audit found, by the names that it gives to methods and modes.

    Privacy: free (simulated data).
    """
    stored = json.loads(files("wayveil.evaluation").joinpath(VERDICTS).read_text(encoding="utf-8"))
    return {case["method"]: case for case in stored["methods"]}


def _row(
    name: str, mode: str, reference: str, idea: str, protects: str, holds: bool, why: str, times: bool, rules: str,
    needs_map: bool, audited_as: str,
) -> Row:  # fmt: skip
    case = verdicts().get(audited_as)
    kept = ("verdict", "bound", "allowed", "runs", "seen")
    return {
        "method": name, "mode": mode, "reference": reference, "idea": idea, "protects": protects,
        "epsilon_holds": holds, "why": f"{why} {_attack(case)}", "times": times, "rules": rules,
        "map": "needed" if needs_map else "no", "audit": case and {name: case[name] for name in kept},
    }  # fmt: skip


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

"""What is known about every method of the comparison, as rows and as tables for a terminal."""

import json
from dataclasses import asdict, dataclass, replace
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
"""The result of that command with `--json`; `--methods` runs the attack on chosen methods only."""


@dataclass(frozen=True)
class About:
    """What the table says about a method, whatever the mode; the fields are the columns of its row."""

    reference: str
    idea: str
    protects: str
    why: str
    """Why epsilon holds, or does not."""
    times: bool
    rules: str
    map: str = "no"


_OURS = About(
    "this project", "Noisy answers to public questions, then post-processing.",
    "one trajectory or one user, added or removed", "Proof: docs/explanation/method.md.", times=True, rules="yes",
)  # fmt: skip
_MAPPED = replace(_OURS, map="needed")
_DPE = About(
    "the source paper", "Noise on an embedding of all pairs of trajectories.", "nothing",
    "Not private: the output keeps its records' places.", times=True, rules="by penalties",
)  # fmt: skip
_WHOLE_RELEASE = "sound method, whole release"


def described() -> list[Row]:
    """One row per method and mode.

    Privacy: free (no data is read).
    """
    ours = (("wayveil", _OURS), ("wayveil-map", _MAPPED), ("wayveil-bayes", _OURS), ("wayveil-bayes-map", _MAPPED))
    return [
        *(_row(name, "default", about, _WHOLE_RELEASE) for name, about in ours),
        *(_baseline_row(name, mode) for name in names() for mode in ("default", "published")),
        _row("dpe-published", "published", _DPE, "published DPE, epsilon 1"),
    ]


def _baseline_row(name: str, mode: str) -> Row:
    m, published = load(name), mode == "published"
    protects, why = ("nothing", m.leaks) if published else (m.protects, f"Proof: {m.proof}")
    about = About(m.reference, m.idea, protects, why, m.makes_times, m.obeys_rules, "needed" if m.needs_map else "no")
    return _row(f"{name}-published" if published else name, mode, about, f"{name}, {mode}")


def _row(method: str, mode: str, about: About, audited_as: str) -> Row:
    """The row of a method, with what the stored audit found under the name `audited_as`."""
    case = verdicts().get(audited_as)
    kept = ("verdict", "bound", "allowed", "runs", "seen")
    row = {"method": method, "mode": mode, **asdict(about), "epsilon_holds": mode == "default"}
    return {**row, "why": f"{about.why} {_attack(case)}", "audit": case and {name: case[name] for name in kept}}


@cache
def verdicts() -> dict[str, Row]:
    """What the stored audit found, by the names that it gives to methods and modes.

    Privacy: free (simulated data).
    """
    stored = json.loads(files("wayveil.evaluation").joinpath(VERDICTS).read_text(encoding="utf-8"))
    return {case["method"]: case for case in stored["methods"]}


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

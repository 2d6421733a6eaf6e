"""`wayveil ledger`: show, open and change the privacy budget of datasets."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from wayveil.cli import column_options as col
from wayveil.cli import options as opt
from wayveil.cli.console import note, print_json, progress_bar
from wayveil.errors import InputError

if TYPE_CHECKING:
    from wayveil.privacy.accounts import Dataset

Reason = Annotated[str, typer.Option("--reason", help="The reason; it is recorded in the ledger.")]
_EXAMPLE = "Example: wayveil ledger open rides.csv --dataset rides --unit trajectory --total 2"


def register(app: typer.Typer) -> None:
    """Add the command and its four subcommands."""
    group = typer.Typer(
        name="ledger",
        help="The privacy ledger: how much may be spent on each dataset, and what was spent.",
        epilog=_EXAMPLE,
        no_args_is_help=True,
    )
    group.command("open", epilog=_EXAMPLE)(open_)
    group.command("allow", epilog='Example: wayveil ledger allow rides --total 3 --reason "yearly report"')(allow)
    group.command("show", epilog="Example: wayveil ledger show rides --json")(show)
    group.command("accept", epilog='Example: wayveil ledger accept --reason "moved to a new computer"')(accept)
    app.add_typer(group)


@col.with_columns(bad_rows=False)
def open_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The private trajectories; the ledger stores a keyed digest of their content."
        ),
    ],
    dataset: Annotated[str, typer.Option("--dataset", help="The name of the dataset on the ledger.")],
    unit: Annotated[str, typer.Option("--unit", help="What the total applies to: trajectory or user.")],
    total: Annotated[str, typer.Option("--total", help="The total epsilon that may ever be spent per unit.")],
    total_delta: Annotated[
        str, typer.Option("--total-delta", help="The total delta that may ever be spent per unit.")
    ] = "0",
    ledger: opt.LedgerFile = None,
    as_json: opt.Json = False,
    *,
    columns: col.Columns,
) -> None:
    """Open a dataset and set how much privacy may ever be spent on it."""
    from wayveil.privacy.budget import decimal_text, exact_epsilon
    from wayveil.privacy.ledger import kind_of
    from wayveil.workflow.datasets import open_dataset

    kind, epsilon = kind_of(unit), exact_epsilon(total, "--total")
    with progress_bar() as progress:
        opened = open_dataset(
            file, dataset, epsilon, unit=kind, total_delta=total_delta, ledger=ledger, progress=progress, **columns
        )
    for warning in opened.warnings:
        note(f"Warning: {warning}")
    if as_json:
        print_json(_account(opened))
        return
    print(f"Dataset '{opened.name}' is open; epsilon {decimal_text(epsilon)} per {kind} may be spent on it.")


def allow(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A dataset on the ledger.")],
    total: Annotated[
        str,
        typer.Option(
            "--total",
            help="The new total epsilon, including what is already spent; with `none`, nothing is promised.",
        ),
    ],
    reason: Reason,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit", help="What the total applies to: trajectory or user; needed if neither or both have a total."
        ),
    ] = None,
    total_delta: Annotated[
        str | None, typer.Option("--total-delta", help="The new total delta; by default unchanged.")
    ] = None,
    ledger: opt.LedgerFile = None,
    as_json: opt.Json = False,
) -> None:
    """Change how much may be spent on a dataset, per trajectory or per user."""
    from wayveil.privacy.accounts import KINDS
    from wayveil.privacy.budget import exact_delta, exact_epsilon
    from wayveil.privacy.ledger import Ledger

    delta = None if total_delta is None else exact_delta(total_delta)
    epsilon = None if total.strip().lower() == "none" else exact_epsilon(total, "--total")
    known = Ledger(ledger).allow(name, epsilon, reason, unit=unit, total_delta=delta)
    if as_json:
        print_json(_account(known))
        return
    print(f"Dataset '{known.name}': " + " ".join(known.words(kind) for kind in KINDS))


def _account(known: "Dataset") -> dict[str, Any]:
    from wayveil.privacy.accounts import KINDS
    from wayveil.privacy.ledger_table import account_table

    return {"name": known.name, **{kind: account_table(known, kind) for kind in KINDS}}


def show(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only this dataset.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="One line per question instead of one per measurement.")
    ] = False,
    ledger: opt.LedgerFile = None,
    as_json: opt.Json = False,
) -> None:
    """Print every dataset with its totals, what was spent on it, when and for what."""
    from wayveil.privacy.ledger import Ledger, default_path

    datasets = [account for account in Ledger(ledger).table() if name in (None, account["name"])]
    if name is not None and not datasets:
        raise InputError(f"Dataset '{name}' is not on the ledger; see: wayveil ledger show.")
    note(f"Ledger: {ledger or default_path()}")
    if as_json:
        print_json({"datasets": datasets})
        return
    if not datasets:
        note("The ledger is empty; `wayveil ledger open` or the first `wayveil measure` opens a dataset.")
    for account in datasets:
        print(account["name"])
        for kind in ("trajectory", "user"):
            print(f"  {account[kind]['words']}")
        for line in account["lines"] if verbose else _by_measurement(account["lines"]):
            print(f"  {line['time']}  {_line_words(line)}".rstrip())
        for warning in account["warnings"]:
            note(f"Warning: {warning}")


def _by_measurement(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line per measurement, with its costs added up."""
    from wayveil.privacy.budget import decimal_text, read_fraction

    merged: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines):
        key = line["measurement"] or str(number)
        if key not in merged:
            merged[key] = {**line, "name": "" if line["kind"] == "spend" else line["name"]}
            continue
        for cost in ("epsilon", "delta"):
            merged[key][cost] = decimal_text(read_fraction(merged[key][cost]) + read_fraction(line[cost]))
    return list(merged.values())


def _line_words(line: dict[str, Any]) -> str:
    unit = line["unit"]
    text = f"{line['name']} ({line['purpose']})" if line["name"] else line["purpose"]
    delta = f", delta {line['delta']}" if line["delta"] != "0" else ""
    if line["kind"] == "waive":
        return f"allow  no total per {unit}  {text}"
    if line["kind"] != "spend":
        return f"{line['kind']:<5}  {line['epsilon']}{delta} per {unit}  {text}"
    most = f", at most {line['max_per_user']} per user" if unit == "user" else ""
    return f"spend  {line['epsilon']}{delta} at {unit} level{most}  {text}"


def accept(reason: Reason, ledger: opt.LedgerFile = None) -> None:
    """Continue with a ledger that was moved, restored from a copy, or started again."""
    from wayveil.privacy.ledger import Ledger

    Ledger(ledger).accept(reason)
    print("The ledger is accepted as it is; the reason is recorded in it.")

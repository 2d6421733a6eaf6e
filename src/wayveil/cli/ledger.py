"""`wayveil ledger`: see, open and change the account of spent privacy."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wayveil.cli import columns as col
from wayveil.cli.console import note, print_json, progress_bar

if TYPE_CHECKING:
    from wayveil.privacy.accounts import Dataset

_LEDGER = typer.Option(None, "--ledger", metavar="PATH", help="The ledger file; the default is in your data folder.")
_REASON = typer.Option(..., "--reason", help="Why; it stays on the ledger.")
_JSON = typer.Option(False, "--json", help="Machine-readable output.")
_EXAMPLE = "Example: wayveil ledger open rides.csv --dataset rides --unit trajectory --total 2"


def register(app: typer.Typer) -> None:
    """Add the verb and its four parts."""
    group = typer.Typer(
        name="ledger",
        help="The account of spent privacy: how much may be spent on which dataset, and what was spent.",
        epilog=_EXAMPLE,
        no_args_is_help=True,
    )
    group.command("open", epilog=_EXAMPLE)(open_)
    group.command("allow", epilog='Example: wayveil ledger allow rides --total 3 --reason "yearly report"')(allow)
    group.command("show", epilog="Example: wayveil ledger show rides --json")(show)
    group.command("accept", epilog='Example: wayveil ledger accept --reason "moved to a new computer"')(accept)
    app.add_typer(group)


def open_(
    file: str = typer.Argument(..., help="The private trajectories; their content is remembered by a keyed digest."),
    dataset: str = typer.Option(..., "--dataset", help="The name under which everything about this data is spent."),
    unit: str = typer.Option(..., "--unit", help="Whose total this is: trajectory or user."),
    total: str = typer.Option(..., "--total", help="The epsilon that each of them may ever lose."),
    total_delta: str = typer.Option("0", "--total-delta", help="The delta that each of them may ever lose."),
    ledger: Path | None = _LEDGER,
    as_json: bool = _JSON,
    format: col.Format = None,
    traj_column: col.TrajColumn = None,
    user_column: col.UserColumn = None,
    lon_column: col.LonColumn = None,
    lat_column: col.LatColumn = None,
    time_column: col.TimeColumn = None,
    timezone: col.Timezone = None,
    drop_bad_rows: col.DropBadRows = False,
) -> None:
    """Name a dataset and say how much privacy may ever be spent on it."""
    from wayveil.privacy.budget import decimal_text, exact_delta, exact_epsilon
    from wayveil.privacy.digest import digest_of
    from wayveil.privacy.ledger import Ledger, clean_name, kind_of
    from wayveil.source import measured_source

    kind = kind_of(unit)
    name, epsilon, delta = clean_name(dataset), exact_epsilon(total, "--total"), exact_delta(total_delta)
    columns = traj_column, user_column, lon_column, lat_column, time_column
    options = col.read_options(format, *columns, timezone, drop_bad_rows)
    source, account = measured_source(file, "trajectory", **options), Ledger(ledger)
    with progress_bar() as progress:
        digest = digest_of(source.batches(progress), account.secret)
    opened = account.open_dataset(name, epsilon, digest, unit=kind, total_delta=delta)
    for warning in opened.warnings:
        note(f"Warning: {warning}")
    if as_json:
        print_json(_account(opened))
        return
    print(f"Dataset '{opened.name}' is open; {decimal_text(epsilon)} per {kind} may be spent on it.")


def allow(
    name: str = typer.Argument(..., help="A dataset on the ledger."),
    total: str = typer.Option(
        ..., "--total", help="The new total epsilon, what is spent already included; `none` withdraws the promise."
    ),
    reason: str = _REASON,
    unit: str | None = typer.Option(
        None, "--unit", help="Whose total this is: trajectory or user; needed unless only one of them has a total."
    ),
    total_delta: str | None = typer.Option(None, "--total-delta", help="The new total delta; unchanged without it."),
    ledger: Path | None = _LEDGER,
    as_json: bool = _JSON,
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
    from wayveil.privacy.ledger import account_table

    return {"name": known.name, **{kind: account_table(known, kind) for kind in KINDS}}


def show(
    name: str | None = typer.Argument(None, help="Only this dataset."),
    verbose: bool = typer.Option(False, "--verbose", help="One line per question instead of one per measurement."),
    ledger: Path | None = _LEDGER,
    as_json: bool = _JSON,
) -> None:
    """Print every dataset with its totals, what was spent on it, when and for what."""
    from wayveil.errors import InputError
    from wayveil.privacy.ledger import as_table, default_path

    datasets = [account for account in as_table(ledger) if name in (None, account["name"])]
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
    """The lines of one measurement as one, their costs added up."""
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


def accept(reason: str = _REASON, ledger: Path | None = _LEDGER) -> None:
    """Go on with a ledger that was moved, restored from a copy, or begun anew."""
    from wayveil.privacy.ledger import Ledger

    Ledger(ledger).accept(reason)
    print("The ledger is accepted as it is; the reason is on it.")

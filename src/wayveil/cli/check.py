"""`wayveil check`: what a file contains, and what is wrong with it."""

from typing import TYPE_CHECKING, Annotated

import typer

from wayveil.cli import column_options as col
from wayveil.cli import options as opt
from wayveil.cli.argument_names import as_options
from wayveil.cli.console import NOT_FOR_PUBLICATION, note_missing_zone, print_json, progress_bar
from wayveil.errors import InputError

if TYPE_CHECKING:
    from wayveil.io.check_report import CheckReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: wayveil check rides.csv --scope san-francisco --timezone America/Los_Angeles")(check)


@col.with_columns(bad_rows=False)
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File or folder of trajectories.")],
    scope: Annotated[
        str | None,
        typer.Option("--scope", help="Scope file, or the name of a shipped scope; rows outside it are also counted."),
    ] = None,
    as_json: opt.Json = False,
    *,
    columns: col.Columns,
) -> None:
    """Report what a file contains and what is wrong with it; spends nothing. Not for publication.

    Run it before `wayveil measure`, which leaves bad rows out without a message, because whether there are any is
    private. The exit code is 2 if no row can be used: all are bad, or all lie outside the scope.
    """
    from wayveil.io.check import check as check_data
    from wayveil.io.scope_files import read_scope

    limits = None if scope is None else read_scope(scope)
    if limits is not None:
        note_missing_zone(limits)
    with progress_bar() as progress:
        report = check_data(file, limits, progress=progress, **columns)
    if as_json:
        advice = {name: as_options(text) for name, text in report.advice.items()}
        print_json({"notice": NOT_FOR_PUBLICATION, **report.to_dict(), "advice": advice})
    else:
        advice = {name: as_options(text) for name, text in report.advice_once.items()}
        if report.nothing_left:  # the error below names the problem and gives the advice
            advice = {name: "see below" if report.likely_cause.startswith(f"{name} (") else text
                      for name, text in advice.items()}  # fmt: skip
        _print_tables(report, advice, NOT_FOR_PUBLICATION)
    if report.nothing_left:
        raise InputError(f"No row can be used. Likely cause: {report.likely_cause}.")


def _print_tables(report: "CheckReport", advice: dict[str, str], notice: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from wayveil.io.check_report import PROBLEMS

    found = Table(title="What was found", title_justify="left", show_header=False)
    found.add_row("points", f"{report.rows:,}")
    found.add_row("trajectories", f"{report.trajectories:,}")
    no_users = "no user column recognized; if there is one, name it with --user-column"
    found.add_row("users", no_users if report.users is None else f"{report.users:,}")
    found.add_row("first time", report.moment(report.first_utc))
    found.add_row("last time", report.moment(report.last_utc))
    if report.south is not None:
        found.add_row("south, west", f"{report.south:.5f}, {report.west:.5f}")
        found.add_row("north, east", f"{report.north:.5f}, {report.east:.5f}")
    wrong = Table("problem", "how many", "what to do", title="Problems", title_justify="left")
    for name, count in report.problems.items():
        wrong.add_row(name, f"{count:,} {PROBLEMS[name]}", advice[name])
    console = Console(highlight=False)
    console.print(notice)
    console.print(found)
    if report.problems:
        console.print(wrong)
    else:
        console.print("No problems.")

"""`wayveil check`: what a file holds, and what is wrong with it."""

from typing import TYPE_CHECKING, Annotated

import typer

from wayveil.cli import columns as col

if TYPE_CHECKING:
    from wayveil.formats.check import CheckReport


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example: wayveil check rides.csv --scope san-francisco --timezone America/Los_Angeles")(check)


def check(
    file: Annotated[str, typer.Argument(help="File or folder of trajectories.")],
    scope: Annotated[str | None, typer.Option("--scope", help="Also count what lies outside this scope.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    format: col.Format = None,
    traj_column: col.TrajColumn = None,
    user_column: col.UserColumn = None,
    lon_column: col.LonColumn = None,
    lat_column: col.LatColumn = None,
    time_column: col.TimeColumn = None,
    timezone: col.Timezone = None,
) -> None:
    """Say what a file holds and what is wrong with it; spends nothing. Not for publication.

    Run it before `wayveil measure`, which leaves bad rows out without a word: whether there were any is private. Ends
    with exit code 2 if no row can be used: all are bad, or all lie outside the scope.
    """
    from wayveil.cli.console import NOT_FOR_PUBLICATION, note_clocks, print_json, progress_bar
    from wayveil.errors import InputError
    from wayveil.formats.check import check as check_data
    from wayveil.scope import read_scope

    frame = None if scope is None else read_scope(scope)
    if frame is not None:
        note_clocks(frame)
    options = col.read_options(format, traj_column, user_column, lon_column, lat_column, time_column, timezone)
    with progress_bar() as progress:
        report = check_data(file, frame, progress=progress, **options)
    if as_json:
        print_json({"notice": NOT_FOR_PUBLICATION, **report.to_dict(), "advice": report.advice})
    else:
        _print_tables(report, NOT_FOR_PUBLICATION)
    if report.nothing_left:
        raise InputError(f"No row can be used; the likely cause: {report.likely_cause}.")


def _print_tables(report: "CheckReport", notice: str) -> None:
    import datetime as dt

    from rich.console import Console
    from rich.table import Table

    from wayveil.formats.check import PROBLEMS

    def moment(seconds: float | None) -> str:
        if seconds is None:
            return "none"
        return str(dt.datetime(1970, 1, 1) + dt.timedelta(seconds=round(seconds))) + " UTC"

    found = Table(title="What was found", title_justify="left", show_header=False)
    found.add_row("rows", f"{report.rows:,}")
    found.add_row("trajectories", f"{report.trajectories:,}")
    nobody = "no column; --user-column NAME if there is one"
    found.add_row("users", nobody if report.users is None else f"{report.users:,}")
    found.add_row("first time", moment(report.first_utc))
    found.add_row("last time", moment(report.last_utc))
    if report.south is not None:
        found.add_row("south, west", f"{report.south:.5f}, {report.west:.5f}")
        found.add_row("north, east", f"{report.north:.5f}, {report.east:.5f}")
    wrong = Table("problem", "how many", "what to do", title="Problems", title_justify="left")
    for name, count in report.problems.items():
        wrong.add_row(name, f"{count:,} {PROBLEMS[name]}", report.advice[name])
    console = Console(highlight=False)
    console.print(notice)
    console.print(found)
    if report.problems:
        console.print(wrong)
    else:
        console.print("No problems.")

"""`wayveil plan`: what can be expected from a measurement, before anything is spent."""

from typing import TYPE_CHECKING, Annotated

import typer

from wayveil.cli import options as opt
from wayveil.cli.numbers import whole_number

if TYPE_CHECKING:
    from wayveil.workflow.plan import Plan, Setting


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Example: wayveil plan --trips 20000 --users 400 --epsilon 1 --delta 1e-6 --unit user --max-per-user 50 "
        "--scope san-francisco"
    )(plan)


def plan(
    trips: Annotated[
        int,
        typer.Option("--trips", parser=whole_number, metavar="N", help="Roughly how many trips there are."),
    ],
    scope: opt.ScopeName,
    epsilon: Annotated[str, typer.Option("--epsilon", help="How much privacy would be spent.")],
    unit: Annotated[str, typer.Option("--unit", help="What would be protected: trajectory or user.")] = "trajectory",
    max_per_user: opt.MaxPerUser = None,
    users: Annotated[
        int | None,
        typer.Option(
            "--users", parser=whole_number, metavar="U", help="About how many users there are (with --unit user)."
        ),
    ] = None,
    delta: Annotated[
        str, typer.Option("--delta", help="Delta of the guarantee; above 0 (such as 1e-6), the noise is Gaussian.")
    ] = "0",
    as_json: opt.Json = False,
) -> None:
    """Estimate the errors of a measurement, and how other settings would change them; nothing is read or spent.

    The error of the number of trips follows from the noise; it assumes that users' numbers of trips are geometrically
    distributed. The other errors were measured on simulated cities of two sizes (4 and 12 km). An error of 20 % means
    that a fifth of the trips (for streets, of the distance) is counted in the wrong pair of zones, cell or hour, or
    that lengths are off by a fifth. On real data the errors may be quite different.
    """
    from wayveil.cli.console import print_json
    from wayveil.workflow.plan import plan as make_plan

    found = make_plan(
        trips=trips, scope=scope, epsilon=epsilon, unit=unit, max_per_user=max_per_user, users=users, delta=delta
    )
    if as_json:
        print_json(found.to_dict())
    else:
        _print_table(found)


def _print_table(found: "Plan") -> None:
    from rich.console import Console
    from rich.table import Table

    from wayveil.release.kinds import KINDS

    table = Table(title="Expected errors", title_justify="left")
    table.add_column("result")
    for setting in (found, *found.others):
        table.add_column(_title(setting, found))
    for name, kind in KINDS.items():
        cells = (f"{one[name].word}, {one[name].percent}" for one in (found, *found.others))
        table.add_row(f"{kind.title} ({kind.meaning})", *cells)
    if found.unit == "user":
        table.add_row("trips used", *(f"{one.trips_used:,}" for one in (found, *found.others)))
    console = Console()
    console.print(table)


def _title(setting: "Setting", first: "Setting") -> str:
    most = "" if setting.max_per_user is None else f", {setting.max_per_user} per user"
    delta = f", delta {setting.delta:g}" if setting.delta else ""
    return f"{'' if setting is first else 'or '}epsilon {setting.epsilon}{delta}{most}"

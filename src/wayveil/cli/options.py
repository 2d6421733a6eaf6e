"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from wayveil.cli.numbers import whole_number

_PANEL = "Where the work runs"

ReleaseFile = Annotated[Path, typer.Argument(metavar="RELEASE", help="What `wayveil measure` wrote.")]
SyntheticFile = Annotated[Path, typer.Argument(metavar="SYNTH", help="What `wayveil synthesize` wrote.")]
PrivateData = Annotated[str, typer.Argument(metavar="REAL", help="The private trajectories.")]
SyntheticData = Annotated[str, typer.Argument(metavar="SYNTH", help="The synthetic trajectories.")]
ScopeName = Annotated[str, typer.Option("--scope", help="Scope file, or the name of a shipped scope.")]
MaxPerUser = Annotated[
    int | None,
    typer.Option(
        "--max-per-user",
        parser=whole_number,
        metavar="C",
        help="Maximum number of trajectories that count per user (with --unit user).",
    ),
]
LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", metavar="PATH", help="The ledger file; by default in your data folder.")
]
Times = Annotated[str | None, typer.Option("--times", help="Write times as iso or unix (seconds).")]
Mode = Annotated[
    str | None, typer.Option("--mode", help="Mode of travel in MATSim plans, such as bike; by default car.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
EngineName = Annotated[
    str, typer.Option("--engine", help=r"serial, or ray (needs wayveil\[ray]).", rich_help_panel=_PANEL)
]
Address = Annotated[
    str | None,
    typer.Option("--address", help="Address of a Ray cluster; without it, this machine.", rich_help_panel=_PANEL),
]


def engine_named(name: str, address: str | None) -> Any:
    """The engine of that name; None for the serial one, which is the default of every step."""
    if name == "serial" and address is None:
        return None
    from wayveil.engine import engine_named as named

    return named(name, address)

"""The options for where the work runs, the same for every command that can be distributed."""

from typing import Annotated, Any

import typer

_PANEL = "Where the work runs"

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

"""The options that say where the work runs, the same for every verb that can be distributed."""

from typing import Annotated, Any

import typer

from wayveil.errors import InputError

_PANEL = "Where the work runs"

EngineName = Annotated[
    str, typer.Option("--engine", help="serial, or ray (needs wayveil[ray]).", rich_help_panel=_PANEL)
]
Address = Annotated[
    str | None,
    typer.Option("--address", help="Address of a Ray cluster; without it, this machine.", rich_help_panel=_PANEL),
]


def engine_named(name: str, address: str | None) -> Any:
    """The engine of that name, or None for the one that is always there."""
    if name == "serial":
        if address is not None:
            raise InputError("--address belongs to --engine ray; leave it out.")
        return None
    if name != "ray":
        raise InputError(f"--engine '{name}' is unknown; choose serial or ray.")
    try:
        from wayveil.engine.ray import RayEngine
    except ImportError:
        raise InputError("--engine ray needs Ray; install it with: pip install 'wayveil[ray]'.") from None
    return RayEngine(address)

"""Where the work runs. An engine is two methods: add exact sums over a source, and map a function over pieces."""

from typing import TYPE_CHECKING

from wayveil.errors import InputError

if TYPE_CHECKING:
    from wayveil.engine.serial import Engine

ENGINES = ("serial", "ray")


def engine_named(name: str, address: str | None = None, workers: int | None = None) -> "Engine":
    """The engine of `--engine NAME [--address …]`; Ray starts, or is reached, here."""
    if name == "serial":
        if address is not None:
            raise InputError("--address goes with --engine ray.")
        from wayveil.engine.serial import Serial

        return Serial()
    if name == "ray":
        from wayveil.engine.ray import RayEngine

        return RayEngine(address, workers)
    raise InputError(f"Engine '{name}' is unknown; use {' or '.join(ENGINES)}.")

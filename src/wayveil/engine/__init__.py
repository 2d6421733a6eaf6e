"""Engines run the work. An engine has two methods: exact `sums` over a source, and `map` over pieces of work."""

from typing import TYPE_CHECKING

from wayveil.errors import InputError

if TYPE_CHECKING:
    from wayveil.engine.serial import Engine

ENGINES = ("serial", "ray")


def engine_named(name: str, address: str | None = None, workers: int | None = None) -> "Engine":
    """Return the engine of that name; for "ray", start Ray or connect to it.

    Parameters
    ----------
    name
        "serial", or "ray" (needs the extra wayveil[ray]).
    address, workers
        The address of a Ray cluster (None for this machine) and the number of workers.

    Examples
    --------
    >>> import wayveil
    >>> wayveil.measure(..., engine=wayveil.engine.engine_named("ray"))  # doctest: +SKIP

    Privacy
    -------
    Free (nothing is read).
    """
    # Each engine is imported when it is asked for: Ray is large, and its package may not be installed.
    if name == "serial":
        if address is not None:
            raise InputError("address= needs engine='ray'.")
        from wayveil.engine.serial import Serial

        return Serial()
    if name == "ray":
        from wayveil.engine.ray import RayEngine

        return RayEngine(address, workers)
    raise InputError(f"Unknown engine '{name}'; use {' or '.join(ENGINES)}.")

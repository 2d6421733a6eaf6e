"""Where the work runs. An engine is two methods: add exact sums over a source, and map a function over pieces."""

from wayveil.engine.serial import Engine, Serial

__all__ = ["Engine", "Serial"]

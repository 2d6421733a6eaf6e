"""The memory that a run needs and that the machine has, checked before anything starts."""

from collections.abc import Callable

from wayveil.core.memory import available_bytes
from wayveil.dpe.kernel import Plan, default_plan, on_gpu
from wayveil.errors import InputError

_ARRAYS = 12
"""Copies of the (m, D) matrix in memory at the peak: measured 9, and a reserve."""


def needed_bytes(m: int, dim: int, plan: Plan) -> int:
    """An upper estimate for one descent: O(mD) for the vectors, O(m block) for a strip."""
    item = 8 if plan.precision == "float64" else 4
    strip = plan.block * (m // 2 + plan.block)
    return item * (_ARRAYS * m * (dim + 16) + 4 * strip)


def device_bytes() -> float:
    """Memory that a new array may take, on the device where jax computes."""
    if on_gpu():
        import jax

        stats = jax.devices()[0].memory_stats() or {}
        if "bytes_limit" in stats:
            return float(stats["bytes_limit"]) - float(stats.get("bytes_in_use", 0))
    return available_bytes()


def check_memory(m: int, dim: int, plan: Plan, available: float | None = None) -> None:
    """Raise an InputError with a size that fits, before anything is allocated."""
    have = device_bytes() if available is None else available
    need = needed_bytes(m, dim, plan)
    if need <= have:
        return
    fits = _largest(m, lambda rows: needed_bytes(rows, dim, default_plan(rows, plan.precision)) <= have)
    if fits >= 2:
        advice = f"use subset={fits}, or shorter trajectories"
    else:
        widest = _largest(dim, lambda columns: needed_bytes(m, columns, plan) <= have)
        advice = f"reduce the dimensions to dim={widest} or fewer" if widest else "use a larger machine"
    raise InputError(f"This needs about {need / 1e9:.1f} GB, but only {have / 1e9:.1f} GB are free; {advice}.")


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number below `most` that fits, rounded down to two digits."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    unit = int(10 ** max(len(str(low)) - 2, 0))
    return low // unit * unit

"""One cell of the comparison in a process of its own, with limits on time and memory.

Privacy: not private (trusted side only); everything here is computed from the private data.
"""

import math
import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from wayveil.errors import InputError, WayveilError

_LOOK_EVERY_S = 0.1
"""Seconds between two checks of a running method."""
_MB = 1024.0
"""kB in a MB; /proc reports kB."""


@dataclass(frozen=True)
class Limits:
    """Limits on the time and memory of one cell; None = no limit."""

    seconds: float | None = None
    memory_mb: float | None = None

    def __post_init__(self) -> None:
        if any(limit is not None and not limit > 0 for limit in (self.seconds, self.memory_mb)):
            raise InputError("Limits of time and memory must be above 0.")

    @property
    def any(self) -> bool:
        return self.seconds is not None or self.memory_mb is not None

    def covers(self, stored: list[float | None]) -> bool:
        """Whether these limits are no higher than the stored ones, which a cell has exceeded."""
        own = self.seconds, self.memory_mb
        return all((new or math.inf) <= (old or math.inf) for new, old in zip(own, stored))


NO_LIMITS = Limits()


class LimitError(WayveilError):
    """A cell exceeded its limits."""


def reason_of(error: Exception) -> str:
    """What may be said about an error in a method: the message of another library may quote the data."""
    return str(error) if isinstance(error, WayveilError) else f"{type(error).__name__} in the method"


def run_limited(work: Callable[[], dict[str, Any]], limits: Limits) -> dict[str, Any]:
    """The result of `work` (which must be picklable) from a fresh process, with its peak memory as "peak_mb".

    Raises
    ------
    LimitError
        If it takes too long or too much memory; the process is ended.
    WayveilError
        If `work` fails, with the sentence that may be shown.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(there, work), daemon=True)
    process.start()
    there.close()
    begin = time.monotonic()
    try:
        while not here.poll(_LOOK_EVERY_S):
            if limits.seconds is not None and time.monotonic() - begin > limits.seconds:
                raise LimitError(f"took longer than {limits.seconds:g} s")
            if limits.memory_mb is not None and memory_mb(process.pid) > limits.memory_mb:
                raise LimitError(f"took more than {limits.memory_mb:g} MB of memory")
        try:
            ok, result = here.recv()
        except EOFError:
            raise WayveilError("the process ended without a result") from None
    finally:
        process.kill()
        process.join()
        here.close()
    if not ok:
        raise WayveilError(str(result))
    row: dict[str, Any] = result
    return row


def _child(pipe: Connection, work: Callable[[], dict[str, Any]]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # A warning may quote values; the command line shows none either.
    warnings.simplefilter("ignore")
    try:
        result = work()
        pipe.send((True, {**result, "peak_mb": round(memory_mb(None, "VmHWM"), 1)}))
    except Exception as error:
        pipe.send((False, reason_of(error)))


def _end_with_parent() -> None:
    """End this process when the one that watches its limits has ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def memory_mb(process: int | None, what: str = "VmRSS") -> float:
    """Memory of a process (None = this one) in MB, as Linux reports it; 0 on other systems."""
    try:
        text = Path(f"/proc/{process or 'self'}/status").read_text(encoding="ascii", errors="replace")
        line = next(line for line in text.splitlines() if line.startswith(what))
        return float(line.split()[1]) / _MB
    except (OSError, StopIteration, ValueError):
        return 0.0

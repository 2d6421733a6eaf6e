"""Defer the signals that end a program (SIGINT, SIGTERM, SIGHUP) while a step must not be interrupted."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

INTERRUPTIONS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a program: Ctrl-C, a request to terminate, and a closed terminal."""


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Deliver signals that arrive inside the block at its end.

    Python runs signal handlers in the main thread only, so in other threads there is nothing to defer. A signal mask
    would not work: the kernel delivers to any thread that does not block the signal, and Python then still runs the
    handler in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    deferral = _Deferral()
    try:
        deferral.begin()
        yield
    finally:
        deferral.end()


class _Deferral:
    """Handlers that record a signal while the deferral is active, and pass it on otherwise."""

    def __init__(self) -> None:
        self._active = True
        self._arrived: list[int] = []
        self._before: dict[int, Any] = {}

    def begin(self) -> None:
        for number in INTERRUPTIONS:
            handler = signal.getsignal(number)
            # None: installed outside Python, so it could not be restored. Ignored signals stay ignored.
            if handler is not None and handler != signal.SIG_IGN:
                self._before[number] = handler
                signal.signal(number, self._handle)

    def end(self) -> None:
        # Set first: if a signal interrupts the lines below, a handler that is not restored yet passes it on.
        self._active = False
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(self._arrived):
            signal.raise_signal(number)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._active:
            self._arrived.append(number)
            return
        signal.signal(number, self._before[number])
        signal.raise_signal(number)

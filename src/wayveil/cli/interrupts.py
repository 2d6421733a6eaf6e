"""Ctrl-C and SIGTERM as exceptions that unwind the stack, so that temporary files are removed.

Each raises KeyboardInterrupt (SIGTERM: its subclass `Terminated`). A library with a bare `except:` may swallow it, so
the signal is also remembered, and `stop_if_any` raises it again at the next progress report.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from wayveil.core.signals import INTERRUPTIONS

_arrived: list[int] = []


class Terminated(KeyboardInterrupt):
    """The process must terminate: it received SIGTERM, or its terminal was closed."""


@contextmanager
def remembered() -> Iterator[None]:
    """Inside the block, a signal is remembered as well as raised."""
    _arrived.clear()
    if threading.current_thread() is not threading.main_thread():  # Only the main thread may install handlers.
        yield
        return
    before = {}
    try:
        for number in INTERRUPTIONS:
            # Keep ignoring SIGHUP under `nohup`. None stands for a handler that Python could not restore.
            ignored = number == getattr(signal, "SIGHUP", None) and signal.getsignal(number) == signal.SIG_IGN
            if not ignored and signal.getsignal(number) is not None:
                before[number] = signal.signal(number, _interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_if_any() -> None:
    """Raise the interruption again if it was swallowed."""
    if _arrived:
        raise _exception(_arrived[-1])


def exit_code() -> int:
    """128 + the number of the last signal, as shells report it: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + (_arrived[-1] if _arrived else signal.SIGINT)


def _exception(number: int) -> KeyboardInterrupt:
    return KeyboardInterrupt() if number == signal.SIGINT else Terminated()


def _interrupt(number: int, frame: FrameType | None) -> None:
    _arrived.append(number)
    raise _exception(number)

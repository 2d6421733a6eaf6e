"""Ctrl-C that nobody swallows: a bare `except:` in a library catches everything, the interruption with it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_seen = threading.Event()


@contextmanager
def remembered() -> Iterator[None]:
    """Inside, an interruption is remembered as well as raised."""
    _seen.clear()
    if threading.current_thread() is not threading.main_thread():  # only the main one may be told of signals
        yield
        return
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def stop_if_any() -> None:
    """Raise the interruption again if it was lost on its way up."""
    if _seen.is_set():
        raise KeyboardInterrupt


def _interrupt(number: int, frame: FrameType | None) -> None:
    _seen.set()
    raise KeyboardInterrupt

"""Events that cannot be undone and that every later error message must mention.

Code that charges a ledger or completes a release calls `record`. `collect` returns the records of one block in one
thread, so that the code that turns an error into a message can add them.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from wayveil.errors import WayveilError


class _Collectors(threading.local):
    def __init__(self) -> None:
        self.active: list[list[str]] = []


_here = _Collectors()


def record(sentence: str) -> None:
    """Add a sentence to every collection that is active in this thread."""
    for collected in _here.active:
        if sentence not in collected:
            collected.append(sentence)


@contextmanager
def collect() -> Iterator[list[str]]:
    """A list that grows with every `record` inside the block."""
    collected: list[str] = []
    _here.active.append(collected)
    try:
        yield collected
    finally:
        _here.active[:] = [other for other in _here.active if other is not collected]


@contextmanager
def stated_in_errors() -> Iterator[None]:
    """Add what was recorded inside the block to any error that leaves it: to its message, or as a note."""
    with collect() as facts:
        try:
            yield
        except WayveilError as error:
            missing = [fact for fact in facts if fact not in str(error)]
            if not missing:
                raise
            raise type(error)(" ".join((error.args[0], *missing)), error.remedy) from None
        except BaseException as error:
            for fact in facts:
                if fact not in getattr(error, "__notes__", ()):
                    error.add_note(fact)
            raise

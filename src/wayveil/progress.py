"""How long-running functions say how far they are, without knowing who listens."""

from typing import Protocol


class Progress(Protocol):
    """Called with the name of a stage and the share of it that is done, from 0 to 1."""

    def __call__(self, stage: str, done: float) -> None: ...


def quiet(stage: str, done: float) -> None:
    """The default listener: nobody."""

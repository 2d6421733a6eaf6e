"""One process, one batch at a time; also the definition of what every other engine must equal."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wayveil.engine.parts import Part
from wayveil.prepare import Prepared, prepare
from wayveil.progress import Progress, quiet
from wayveil.questions.question import Query, exact_sums
from wayveil.scope import Scope
from wayveil.source import Source
from wayveil.trajectories import Trajectories, select

Piece = TypeVar("Piece")
Result = TypeVar("Result")

Kept = NDArray[np.bool_] | None
"""Which trajectories of the source take part, in its order; None means all."""


class Engine(Protocol):
    """Two methods. Integer sums are exact, so every engine gives the same answer to the first one."""

    def sums(
        self, source: Source, scope: Scope, views: Sequence[Query], kept: Kept, progress: Progress = quiet
    ) -> list[NDArray[np.int64]]: ...

    def map(self, function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]: ...


class Serial:
    """Everything here, in order."""

    def sums(
        self, source: Source, scope: Scope, views: Sequence[Query], kept: Kept, progress: Progress = quiet
    ) -> list[NDArray[np.int64]]:
        """Σ φ(T) over the source, for each view.

        Privacy: not private (trusted side only).
        """
        return exact_sums(views, prepared_batches(source, scope, kept, progress))

    def map(self, function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]:
        """function(piece) for each piece, in order."""
        return (function(piece) for piece in pieces)


def prepared_batches(source: Source, scope: Scope, kept: Kept, progress: Progress = quiet) -> Iterator[Prepared]:
    """The source's trajectories that take part, prepared, batch by batch."""
    position = 0
    for batch in source.batches(progress):
        taking_part: Trajectories = batch
        if kept is not None:
            taking_part = select(batch, kept[position : position + len(batch)])
        position += len(batch)
        if len(taking_part):
            yield prepare(taking_part, scope)


def part_batches(part: Part, scope: Scope, progress: Progress = quiet) -> Iterator[Prepared]:
    """The same for one part of a source."""
    position = 0
    for source in part.sources:
        for batch in source.batches(progress):
            mask = slice(position, position + len(batch))
            position += len(batch)
            taking_part = batch if part.kept is None else select(batch, part.kept[mask])
            if len(taking_part):
                yield prepare(taking_part, scope)


def gather(engine: Engine, function: Callable[[Any], Any], pieces: Sequence[Any]) -> list[Any]:
    """All results of `engine.map`, in order."""
    return list(engine.map(function, pieces))

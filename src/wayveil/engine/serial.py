"""The serial engine: one process, one batch at a time; other engines must reproduce its results."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.prepare import Prepared, prepare
from wayveil.core.scope import Scope
from wayveil.core.trajectories import select
from wayveil.engine.parts import Part
from wayveil.io.source import Source
from wayveil.progress import Progress, quiet
from wayveil.questions.question import Query, exact_sums

Piece = TypeVar("Piece")
Result = TypeVar("Result")

Kept = NDArray[np.bool_] | None
"""A mask that selects trajectories, in the order of the source; None selects all."""


class Engine(Protocol):
    """Two methods. Integer sums are exact, so `sums` gives the same result with every engine."""

    def sums(
        self, source: Source, scope: Scope, queries: Sequence[Query], kept: Kept, progress: Progress = quiet
    ) -> list[NDArray[np.int64]]: ...

    def map(self, function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]: ...


class Serial:
    """Runs everything in this process, in order."""

    def sums(
        self, source: Source, scope: Scope, queries: Sequence[Query], kept: Kept, progress: Progress = quiet
    ) -> list[NDArray[np.int64]]:
        """Σ φ(T) over the source, for each query.

        Privacy: not private (trusted side only).
        """
        return exact_sums(queries, prepared_batches(source, scope, kept, progress))

    def map(self, function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]:
        """function(piece) for each piece, in order."""
        return (function(piece) for piece in pieces)


def prepared_batches(source: Source, scope: Scope, kept: Kept, progress: Progress = quiet) -> Iterator[Prepared]:
    """The selected trajectories of the source, prepared, batch by batch."""
    return part_batches(Part((source,), kept), scope, progress)


def part_batches(part: Part, scope: Scope, progress: Progress = quiet) -> Iterator[Prepared]:
    """`prepared_batches` for one part of a source."""
    position = 0
    for source in part.sources:
        for batch in source.batches(progress):
            mask = slice(position, position + len(batch))
            position += len(batch)
            selected = batch if part.kept is None else select(batch, part.kept[mask])
            if len(selected):
                yield prepare(selected, scope)

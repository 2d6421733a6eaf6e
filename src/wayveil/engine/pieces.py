"""The part of an engine that synthesis may use: map a function over pieces. It reads no data."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")


class Pieces(Protocol):
    """function(piece) for each piece, results in the order of the pieces."""

    def map(self, function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]: ...

"""Parts of a source: the partitions that one worker reads at a time, and which of their trajectories are selected."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError
from wayveil.io.source import Source

MOST_PARTS = 4096
"""Each part returns a few megabytes of sums; more parts would overload the process that adds them."""

Map = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]
"""The `map` of an engine."""


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive partitions of the source, and a mask that selects trajectories (None: all of them).

    Privacy: not private (trusted side only).
    """

    sources: tuple[Source, ...]
    kept: NDArray[np.bool_] | None = None


def parts_of(source: Source, kept: NDArray[np.bool_] | None, run: Map) -> list[Part]:
    """Parts in the order of the source, with each trajectory in exactly one, and with their slices of `kept`."""
    partitions = source.partitions()
    together = -(-len(partitions) // MOST_PARTS)
    parts = [Part(tuple(partitions[k : k + together])) for k in range(0, len(partitions), together or 1)]
    if kept is None:
        return parts
    sizes = list(run(_size, parts))
    if sum(sizes) != len(kept):
        raise InputError("The data changed while it was read; try again.")
    return [Part(part.sources, mask) for part, mask in zip(parts, np.split(kept, np.cumsum(sizes)[:-1]))]


def _size(part: Part) -> int:
    return sum(len(batch) for source in part.sources for batch in source.batches())

"""Parts of a source: what one worker reads at a time, and which of its trajectories take part."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.errors import InputError
from wayveil.source import Source

MOST_PARTS = 4096
"""Each part sends back a few megabytes of sums; more parts than this would only flood whoever adds them up."""

Map = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]
"""The `map` of an engine."""


@dataclass(frozen=True, eq=False)
class Part:
    """Partitions that follow each other in the source, and a mask over their trajectories (None: all take part).

    Privacy: not private (trusted side only).
    """

    sources: tuple[Source, ...]
    kept: NDArray[np.bool_] | None = None


def parts_of(source: Source, kept: NDArray[np.bool_] | None, run: Map) -> list[Part]:
    """Every trajectory in exactly one part, in the order of the source; `kept` is cut to fit."""
    partitions = source.partitions()
    together = -(-len(partitions) // MOST_PARTS)
    parts = [Part(tuple(partitions[k : k + together])) for k in range(0, len(partitions), together or 1)]
    if kept is None:
        return parts
    sizes = list(run(_size, parts))
    if sum(sizes) != len(kept):
        raise InputError("The data changed while it was read; start again.")
    return [Part(part.sources, mask) for part, mask in zip(parts, np.split(kept, np.cumsum(sizes)[:-1]))]


def _size(part: Part) -> int:
    return sum(len(batch) for source in part.sources for batch in source.batches())

"""Several passes over one source that must all read the same content.

At user level the first pass selects the trajectories of each user, and the second one measures them. If the file is
replaced in between, the selection applies to other trajectories, and the cap per user no longer holds. So a digest of
every pass is computed, and a pass that differs from the first one is refused.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wayveil.core.trajectories import Trajectories
from wayveil.engine.parts import Part, parts_of
from wayveil.engine.serial import Engine, Kept, Serial
from wayveil.errors import InputError
from wayveil.io.source import Source
from wayveil.privacy.digest import PassDigest
from wayveil.progress import Progress, quiet

if TYPE_CHECKING:
    from wayveil.io.readers.points import Points

CHANGED = "The data changed while it was read; measure a copy that no other program writes to."

PartWork = Callable[[tuple[Any, ...], Part, Progress], Any]
"""What a pass does with one part: function(shared, part, progress)."""


class Watcher(Protocol):
    """An object that receives every batch that is read."""

    def add(self, trajectories: Trajectories) -> None: ...


@dataclass(frozen=True)
class _Found:
    """Digest and number of trajectories of one part, as a pass read it."""

    digest: bytes
    size: int


class Passes:
    """Passes over one source by one engine; all later passes must read the same data as the first.

    Privacy: not private (trusted side only).
    """

    def __init__(self, source: Source, engine: Engine) -> None:
        self._engine = engine
        self._key = secrets.token_bytes(32)
        self._source = source
        self._parts: list[Part] | None = None
        self._first: list[_Found] | None = None

    @property
    def serial(self) -> bool:
        """Whether this process reads the data, and not workers."""
        return isinstance(self._engine, Serial)

    def run(
        self,
        work: PartWork,
        shared: tuple[Any, ...] = (),
        *,
        kept: Kept = None,
        watchers: Sequence[Watcher] = (),
        progress: Progress = quiet,
    ) -> Iterator[Any]:
        """The result of `work` for each part, in the order of the source.

        Raises InputError after the last one if the data differs from what the first pass read. `watchers` receive each
        batch if this process reads the data.
        """
        if self._parts is None:
            self._parts = [Part((self._source,))] if self.serial else parts_of(self._source, None, self._engine.map)
        found = []
        pieces = [(work, shared, self._key, part) for part in self._with_kept(self._parts, kept)]
        results: Iterator[tuple[Any, _Found]]
        if self.serial:
            results = (_read_part(piece, watchers, progress) for piece in pieces)
        else:
            results = self._engine.map(_read_part, pieces)
        for done, (result, part) in enumerate(results, 1):
            found.append(part)
            if not self.serial:
                progress("reading", done / len(pieces))
            yield result
        if self._first is None:
            self._first = found
        elif found != self._first:
            raise InputError(CHANGED)

    def _with_kept(self, parts: list[Part], kept: Kept) -> list[Part]:
        """The parts, each with its slice of the mask over all trajectories."""
        if kept is None:
            return parts
        if len(parts) == 1:
            return [replace(parts[0], kept=kept)]
        if self._first is None:
            return parts_of(self._source, kept, self._engine.map)
        sizes = [found.size for found in self._first]
        return [replace(part, kept=mask) for part, mask in zip(parts, np.split(kept, np.cumsum(sizes)[:-1]))]


def _read_part(
    piece: tuple[PartWork, tuple[Any, ...], bytes, Part], watchers: Sequence[Watcher] = (), progress: Progress = quiet
) -> tuple[Any, _Found]:
    work, shared, key, part = piece
    digest, counter = PassDigest(key), _Counter()
    every: list[Watcher] = [counter, digest, *watchers]
    sources = tuple(_Watched(source, every) for source in part.sources)
    result = work(shared, replace(part, sources=sources), progress)
    return result, _Found(digest.digest(), counter.size)


@dataclass
class _Counter:
    size: int = field(default=0)

    def add(self, trajectories: Trajectories) -> None:
        self.size += len(trajectories)


@dataclass(frozen=True, eq=False)
class _Watched:
    """A source that passes each batch to watchers as it is read."""

    source: Source
    watchers: Sequence[Watcher]

    @property
    def description(self) -> str:
        return self.source.description

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        for batch in self.source.batches(progress):
            for watcher in self.watchers:
                watcher.add(batch)
            yield batch

    def partitions(self) -> list[Source]:
        return [replace(self, source=part) for part in self.source.partitions()]

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        return self.source.points(progress)

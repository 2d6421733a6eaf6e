"""The trusted side of `measure`: which trajectories take part, and their exact sums, before any noise.

One pass over the data gives everything: the sums of the views that need no earlier answer, the cells of each
trajectory's first and last point and its part of the week (for the views whose regions are known only after noise has
been drawn; nine bytes a trajectory spare a second reading after the ledger was charged), and the content's digest.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil.engine.parts import Part, parts_of
from wayveil.engine.serial import Engine, Kept, Serial, part_batches, prepared_batches
from wayveil.errors import InputError
from wayveil.grid import base_grid
from wayveil.privacy.digest import ContentDigest
from wayveil.privacy.fixedpoint import exact_bincount
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet
from wayveil.questions.catalogue import finest_questions
from wayveil.questions.flow import Ends, Flow
from wayveil.questions.question import Query, Question, batch_sums, size_of
from wayveil.scope import Scope
from wayveil.source import Source, open_source
from wayveil.trajectories import Trajectories

if TYPE_CHECKING:
    from wayveil.formats.points import Points

MOST_REMEMBERED = 1 << 25
"""Trajectories whose ends are kept in memory (300 MB); a larger source is read again instead, for each view of them."""


@dataclass(frozen=True, eq=False)
class Exact:
    """What one pass over the data found.

    Privacy: not private (trusted side only).
    """

    source: Source
    scope: Scope
    kept: Kept
    engine: Engine
    sums: dict[Question, NDArray[np.int64]]
    """Σ φ(T) of each question at its finest size, and of those asked since about remembered ends."""
    ends: Ends | None
    """Of every trajectory; None where they were not kept."""
    digest: str | None
    """For the ledger alone; None where the engine's workers read the data."""

    def sums_of(self, question: Question, progress: Progress = quiet) -> NDArray[np.int64]:
        """The exact sums of a question: added up already, or from remembered ends, or by reading the data again."""
        if question not in self.sums:
            self.sums[question] = self._sums_of_ends(question, progress)
        return self.sums[question]

    def _sums_of_ends(self, question: Question, progress: Progress) -> NDArray[np.int64]:
        if self.ends is None or not isinstance(question, Flow):
            return self.engine.sums(self.source, self.scope, [question], self.kept, progress)[0]
        features = question.of_ends(self.ends)
        return exact_bincount(features.column, features.weight, size_of(question))


def exact_answers(
    data: object, scope: Scope, queries: Sequence[Query], *, kept: Kept = None, engine: Engine | None = None
) -> list[NDArray[np.int64]]:
    """Σ φ(T) of each query before noise: what tests compare between partitions, orders and engines.

    Privacy: not private (trusted side only).
    """
    return (engine or Serial()).sums(open_source(data), scope, queries, kept)


def read_exact(
    source: Source, scope: Scope, kept: Kept, engine: Engine, secret: bytes | None, progress: Progress = quiet
) -> Exact:
    """Go through the data once; `secret` is the ledger's, for the digest.

    Privacy: not private (trusted side only); nothing is spent yet.
    """
    questions = finest_questions(scope)
    if not isinstance(engine, Serial):
        return _read_parts(source, scope, kept, engine, questions, progress)
    digest = None if secret is None else ContentDigest(secret)
    watched = source if digest is None else _Watched(source, digest)
    totals = [np.zeros(size_of(question), np.int64) for question in questions]
    ends = _Remembered()
    grid = base_grid(scope)
    for batch in prepared_batches(watched, scope, kept, progress):
        for total, part in zip(totals, batch_sums(questions, batch)):
            total += part
        ends.add(Ends.of(batch, grid, scope))
    known = None if digest is None else digest.hexdigest()
    return Exact(source, scope, kept, engine, dict(zip(questions, totals)), ends.found(), known)


def _read_parts(
    source: Source, scope: Scope, kept: Kept, engine: Engine, questions: list[Question], progress: Progress
) -> Exact:
    """The same from parts that an engine's workers read.

    Their digests could be merged, but warning of a copy is not worth a protocol.
    """
    totals = [np.zeros(size_of(question), np.int64) for question in questions]
    ends = _Remembered()
    parts = parts_of(source, kept, engine.map)
    work = [(scope, questions, part) for part in parts]
    for done, (sums, some) in enumerate(engine.map(_sums_and_ends, work), 1):
        for total, part_sum in zip(totals, sums):
            total += part_sum
        ends.add(some)
        progress("reading", done / len(parts))
    return Exact(source, scope, kept, engine, dict(zip(questions, totals)), ends.found(), None)


def _sums_and_ends(piece: tuple[Scope, list[Question], Part]) -> tuple[list[NDArray[np.int64]], Ends]:
    scope, questions, part = piece
    grid = base_grid(scope)
    totals = [np.zeros(size_of(question), np.int64) for question in questions]
    ends = []
    for batch in part_batches(part, scope):
        for total, part_sum in zip(totals, batch_sums(questions, batch)):
            total += part_sum
        ends.append(Ends.of(batch, grid, scope))
    return totals, Ends.joined(ends)


def kept_trajectories(source: Source, unit: Unit) -> Kept:
    """At most c trajectories of each user, drawn at random and independently of everybody else's.

    Privacy: not private (trusted side only). A user's draw looks at that user's own trajectories alone, so adding or
    removing a user moves nobody else's.
    """
    if unit.kind == "trajectory":
        return None
    codes: dict[object, int] = {}
    parts = []
    for batch in source.batches():
        if len(batch) == 0:
            continue
        if batch.user is None:
            raise InputError("--unit user needs a user column; name it with --user-column, or use --unit trajectory.")
        names, index = np.unique(batch.user, return_inverse=True)
        parts.append(np.array([codes.setdefault(name, len(codes)) for name in names.tolist()], np.int64)[index])
    users = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    random = np.random.default_rng(secrets.randbits(256))
    order = np.lexsort((random.random(len(users)), users))
    first = np.flatnonzero(np.r_[True, users[order][1:] != users[order][:-1]])[: len(users)]
    rank = np.arange(len(users)) - np.repeat(first, np.diff(np.r_[first, len(users)]))
    kept = np.zeros(len(users), bool)
    kept[order[rank < unit.max_per_user]] = True
    return kept


class _Remembered:
    """Ends, as long as there are not too many."""

    def __init__(self) -> None:
        self._parts: list[Ends] = []
        self._count = 0

    def add(self, ends: Ends) -> None:
        self._count += len(ends)
        if self._count > MOST_REMEMBERED:
            self._parts = []
        else:
            self._parts.append(ends)

    def found(self) -> Ends | None:
        return None if self._count > MOST_REMEMBERED else Ends.joined(self._parts)


@dataclass(frozen=True, eq=False)
class _Watched:
    """A source whose content is digested as it goes by."""

    source: Source
    digest: ContentDigest

    @property
    def description(self) -> str:
        return self.source.description

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        for batch in self.source.batches(progress):
            self.digest.add(batch)
            yield batch

    def partitions(self) -> list[Source]:
        return [replace(self, source=part) for part in self.source.partitions()]

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        return self.source.points(progress)

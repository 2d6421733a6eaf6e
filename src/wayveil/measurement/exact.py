"""The trusted side of `measure`: which trajectories take part, and their exact sums, before any noise.

One pass over the data computes the sums of the questions that need no earlier answer, the content's digest, and for
each trajectory the cells of its first and last point and its hour. The questions whose regions are known only after
noise has been drawn use these nine bytes per trajectory instead of another pass after the ledger was charged.
At user level an earlier pass finds the users. All passes must read the same content (`wayveil.engine.passes`).
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import base_grid
from wayveil.core.scope import Scope
from wayveil.core.trajectories import user_codes
from wayveil.engine.parts import Part
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Engine, Kept, Serial, part_batches
from wayveil.engine.units import UserUnits
from wayveil.errors import InputError
from wayveil.io.source import open_source
from wayveil.privacy.digest import ContentDigest
from wayveil.privacy.fixedpoint import exact_bincount
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet
from wayveil.questions.catalogue import finest_questions
from wayveil.questions.flow import Ends, Flow
from wayveil.questions.norms import NormBins, UnitQuery, clipped_resolution
from wayveil.questions.people import PersonQuestion
from wayveil.questions.question import Query, Question, batch_sums, exact_sums, size_of
from wayveil.questions.shares import LEAST_PER_PERSON

MOST_REMEMBERED = 1 << 25
"""Trajectories whose ends are kept in memory (300 MB); a larger source is read again for each question about them."""
_TOO_MANY = 1 << 62
"""A count that stands for "more than MOST_REMEMBERED"."""


@dataclass(frozen=True, eq=False)
class Exact:
    """What one pass over the data found.

    Privacy: not private (trusted side only).
    """

    passes: Passes
    scope: Scope
    kept: Kept
    sums: dict[Question, NDArray[np.int64]]
    """Σ φ(T) of each question at its finest size, and of those asked since about remembered ends."""
    ends: Ends | None
    """Ends of every trajectory; None if they were not kept."""
    digest: str | None
    """For the ledger alone; None where the engine's workers read the data."""
    people: UserUnits | None = None
    """First and last points of each user's trajectories; None where nothing is asked about people."""

    def sums_of(self, question: Question, progress: Progress = quiet) -> NDArray[np.int64]:
        """The exact sums of a question: added up already, or from remembered ends, or by reading the data again."""
        if question not in self.sums:
            self.sums[question] = self._sums_of_ends(question, progress)
        return self.sums[question]

    def _sums_of_ends(self, question: Question, progress: Progress) -> NDArray[np.int64]:
        if isinstance(question, PersonQuestion):
            assert self.people is not None
            query = UnitQuery(question, NormBins(1), clipped_resolution(question))  # nobody is above this bound
            (sums,) = self.people.sums([query], progress)
            return sums
        if self.ends is None or not isinstance(question, Flow):
            parts = self.passes.run(_sums, (self.scope, [question]), kept=self.kept, progress=progress)
            result: NDArray[np.int64] = np.sum(
                [np.zeros(size_of(question), np.int64), *(sums for (sums,) in parts)], axis=0
            )
            return result
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
    passes: Passes, scope: Scope, kept: Kept = None, secret: bytes | None = None, progress: Progress = quiet
) -> Exact:
    """Read the data once for everything; `secret` is the ledger's, for the digest.

    Privacy: not private (trusted side only); nothing is spent yet.
    """
    questions = finest_questions(scope)
    # The digests of workers' parts could be merged, but noticing the same content twice is not worth the extra code.
    content = None if secret is None or not passes.serial else ContentDigest(secret)
    watchers = () if content is None else (content,)
    totals = [np.zeros(size_of(question), np.int64) for question in questions]
    ends = _Remembered()
    shared = (scope, questions)
    for sums, some in passes.run(_sums_and_ends, shared, kept=kept, watchers=watchers, progress=progress):
        for total, part_sum in zip(totals, sums):
            total += part_sum
        ends.add(some)
    known = None if content is None else content.hexdigest()
    return Exact(passes, scope, kept, dict(zip(questions, totals)), ends.found(), known)


@contextmanager
def read_people(exact: Exact, unit: Unit, progress: Progress = quiet) -> Iterator[Exact]:
    """Read the data again for the questions about people, if they may be asked.

    Privacy: not private (trusted side only); nothing is spent yet.
    """
    if unit.kind != "user" or unit.max_per_user < LEAST_PER_PERSON:
        yield exact
        return
    with UserUnits(exact.passes, exact.scope, None, progress=progress, ends_only=True) as people:
        yield replace(exact, people=people)


def _sums_and_ends(
    shared: tuple[Scope, list[Question]], part: Part, progress: Progress
) -> tuple[list[NDArray[np.int64]], Ends | None]:
    scope, questions = shared
    grid = base_grid(scope)
    totals = [np.zeros(size_of(question), np.int64) for question in questions]
    ends = _Remembered()
    for batch in part_batches(part, scope, progress):
        for total, part_sum in zip(totals, batch_sums(questions, batch)):
            total += part_sum
        ends.add(Ends.of(batch, grid, scope))
    return totals, ends.found()


def _sums(shared: tuple[Scope, list[Question]], part: Part, progress: Progress) -> list[NDArray[np.int64]]:
    scope, questions = shared
    return exact_sums(questions, part_batches(part, scope, progress))


def draw_kept(passes: Passes, unit: Unit, times: int = 1) -> Kept:
    """At most `times` · c trajectories of each user, drawn at random and independently of everybody else's.

    At user level this reads the data once; the next pass must find the same content.

    Privacy: not private (trusted side only). A user's draw depends on that user's trajectories alone, so adding or
    removing a user does not change the draws of others.
    """
    if unit.kind == "trajectory":
        return None
    codes: dict[int | str, int] = {}
    parts = []
    for labels in passes.run(_users):
        parts += [user_codes(user, codes) for user in labels]
    users = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    random = np.random.default_rng(secrets.randbits(256))
    order = np.lexsort((random.random(len(users)), users))
    first = np.flatnonzero(np.r_[True, users[order][1:] != users[order][:-1]])[: len(users)]
    rank = np.arange(len(users)) - np.repeat(first, np.diff(np.r_[first, len(users)]))
    kept = np.zeros(len(users), bool)
    kept[order[rank < times * unit.max_per_user]] = True
    kept[users < 0] = False  # without a user, no cap would limit these trajectories
    return kept


def _users(shared: tuple[()], part: Part, progress: Progress) -> list[NDArray[np.generic]]:
    """The user of each trajectory, batch by batch."""
    labels = []
    for source in part.sources:
        for batch in source.batches(progress):
            if len(batch) == 0:
                continue
            if batch.user is None:
                raise InputError("unit='user' needs a user column; name it with user=, or use unit='trajectory'.")
            labels.append(batch.user)
    return labels


class _Remembered:
    """Ends, as long as there are not too many."""

    def __init__(self) -> None:
        self._parts: list[Ends] = []
        self._count = 0

    def add(self, ends: Ends | None) -> None:
        self._count = _TOO_MANY if ends is None else self._count + len(ends)
        if ends is None or self._count > MOST_REMEMBERED:
            self._parts = []
        else:
            self._parts.append(ends)

    def found(self) -> Ends | None:
        return None if self._count > MOST_REMEMBERED else Ends.joined(self._parts)

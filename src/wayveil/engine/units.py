"""Sums over units: each unit's whole contribution is clipped before it is added.

A unit is a trajectory, or a user with all trajectories that take part. Trajectories are complete in every batch, so
their sums need nothing but a pass over the source. The trajectories of a user may lie anywhere, so they are first
regrouped into buckets of complete users. The buckets are in memory while they are small, and otherwise in a temporary
file without a name, which the operating system removes whenever the process ends.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wayveil.core.prepare import Prepared, inside_scope, prepare
from wayveil.core.scope import Scope
from wayveil.core.trajectories import EMPTY, Trajectories, select, user_codes
from wayveil.engine.parts import Part
from wayveil.engine.passes import Passes, Watcher
from wayveil.engine.serial import Kept, part_batches
from wayveil.errors import InputError
from wayveil.privacy.clipping import UnitVectors
from wayveil.progress import Progress, quiet
from wayveil.questions.norms import UnitQuery, clipped_resolution
from wayveil.questions.people import PersonQuestion
from wayveil.questions.question import Question, size_of

Sums = list[NDArray[np.int64]]
Segments = list[list[tuple[int, int, int]]]
"""For each bucket: (position in the file, trajectories, points) of what was stored."""

POINTS_TOGETHER = 1 << 17
"""Least number of points in buckets that are added up together; with fewer, calls take most of the time."""
BUCKETS = 256
"""Number of buckets into which users are regrouped; one is in memory at a time."""
MOST_IN_MEMORY = 1 << 28
"""Bytes of regrouped trajectories above which they are written to a temporary file."""


class Units(Protocol):
    """The units of one dataset; sums over them can be computed several times.

    Privacy: not private (trusted side only).
    """

    def sums(self, queries: Sequence[UnitQuery], progress: Progress = quiet) -> Sums:
        """The exact sum over all units, for each query."""
        ...


class TripUnits:
    """Each trajectory is a unit; every call is a pass over the source by the engine.

    Privacy: not private (trusted side only).
    """

    def __init__(self, passes: Passes, scope: Scope, watchers: Sequence[Watcher] = ()) -> None:
        self._passes, self._scope, self._watchers = passes, scope, watchers

    def sums(self, queries: Sequence[UnitQuery], progress: Progress = quiet) -> Sums:
        """The exact sum over all trajectories, for each query."""
        totals = [np.zeros(query.size, np.int64) for query in queries]
        shared = (self._scope, tuple(queries))
        for found in self._passes.run(_trip_sums, shared, watchers=self._watchers, progress=progress):
            for total, part in zip(totals, found):
                total += part
        self._watchers = ()  # watchers see the first pass only; later ones must read the same content
        return totals


class UserUnits:
    """Each user is a unit; the trajectories are read once and regrouped by user.

    Questions about people concern all trajectories of a user, but use only their first and last points. All other
    questions concern the trajectories that are `kept`; with `ends_only`, none are stored for them.

    Privacy: not private (trusted side only).
    """

    def __init__(
        self,
        passes: Passes,
        scope: Scope,
        kept: Kept,
        watchers: Sequence[Watcher] = (),
        progress: Progress = quiet,
        ends_only: bool = False,
    ) -> None:
        self._scope = scope
        self._file = tempfile.SpooledTemporaryFile(max_size=MOST_IN_MEMORY)  # noqa: SIM115 (`__exit__` closes it)
        self._whole: Segments = [[] for _ in range(BUCKETS)]
        self._ends: Segments = [[] for _ in range(BUCKETS)]
        self._codes: dict[int | str, int] = {}
        # Where the data is read here, each batch is stored at once, so that no more than one is in memory.
        shared = (scope, self._store if passes.serial else None, ends_only)
        for found in passes.run(_kept_and_ends, shared, kept=kept, watchers=watchers, progress=progress):
            for whole, ends in found:
                self._store(whole, ends)

    def __enter__(self) -> "UserUnits":
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()

    def sums(self, queries: Sequence[UnitQuery], progress: Progress = quiet) -> Sums:
        """The exact sum over all users, for each query."""
        totals = [np.zeros(query.size, np.int64) for query in queries]
        for segments, about_people in ((self._whole, False), (self._ends, True)):
            chosen = [k for k, query in enumerate(queries) if query.question.about_people == about_people]
            if not chosen:
                continue
            for share, batch, unit in self._buckets(segments):
                for k, part in zip(chosen, unit_sums([queries[k] for k in chosen], batch, unit)):
                    totals[k] += part
                progress("adding up", share)
        return totals

    def _store(self, whole: Trajectories, ends: Trajectories) -> None:
        for batch, segments in ((whole, self._whole), (ends, self._ends)):
            if len(batch):
                self._store_in(segments, batch)

    def _store_in(self, segments: Segments, batch: Trajectories) -> None:
        assert batch.user is not None
        code = user_codes(batch.user, self._codes)
        bucket = np.where(code < 0, -1, code % BUCKETS)  # a trajectory without a user belongs to nobody
        for number in np.unique(bucket[bucket >= 0]):
            members = np.flatnonzero(bucket == number)
            some = select(batch, members)
            columns = (code[members], np.diff(some.offsets), some.lon, some.lat, some.t_utc)
            with _spool_errors():
                at = self._file.seek(0, 2)
                for column in columns:
                    self._file.write(np.ascontiguousarray(column).tobytes())
            segments[number].append((at, len(some), len(some.lon)))

    def _buckets(self, segments: Segments) -> Iterator[tuple[float, Prepared, NDArray[np.int64]]]:
        """Groups of complete users: the share of buckets read so far, the trajectories, and each one's user number.

        Small buckets are put together; the sums are exact, so this changes nothing but the time.
        """
        together: list[tuple[int, int, int]] = []
        for number, some in enumerate(segments, 1):
            together += some
            enough = sum(points for *_, points in together) >= POINTS_TOGETHER
            if not together or not (enough or number == BUCKETS):
                continue
            parts = [self._read(*segment) for segment in together]
            code, points, lon, lat, t_utc = (np.concatenate(column) for column in zip(*parts))
            yield (
                number / BUCKETS,
                prepare(Trajectories(np.r_[0, np.cumsum(points)], lon, lat, t_utc), self._scope),
                np.unique(code, return_inverse=True)[1],
            )
            together = []

    def _read(self, at: int, trajectories: int, points: int) -> list[NDArray[Any]]:
        lengths = ((np.int64, trajectories), (np.int64, trajectories), *((np.float64, points),) * 3)
        with _spool_errors():
            self._file.seek(at)
            return [np.frombuffer(self._file.read(8 * size), kind) for kind, size in lengths]


@contextmanager
def _spool_errors() -> Iterator[None]:
    """Turn a full or broken temporary folder into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"The temporary folder cannot hold the data regrouped by user ({error.strerror}); set the environment "
            "variable TMPDIR to a folder on a larger disk."
        ) from None


def unit_sums(queries: Sequence[UnitQuery], batch: Prepared, unit: NDArray[np.int64]) -> Sums:
    """The exact sums over the units of a batch, which contains each completely; `unit` is each trajectory's unit."""
    units = int(unit.max()) + 1 if len(unit) else 0
    trajectories = np.bincount(unit, minlength=units).astype(np.int64)
    vectors: dict[Question, UnitVectors] = {}
    sums = []
    for query in queries:
        if query.question not in vectors:
            vectors[query.question] = unit_vectors(query.question, batch, unit, units)
        sums.append(query.of(vectors[query.question], trajectories))
    return sums


def unit_vectors(question: Question, batch: Prepared, unit: NDArray[np.int64], units: int) -> UnitVectors:
    """Σ φ(T) over the trajectories of each unit, at the resolution of clipped sums."""
    if isinstance(question, PersonQuestion):
        features = question.person_features(batch, unit, units)
        return UnitVectors.added_up(units, size_of(question), features.row, features.column, features.weight)
    features = question.features(batch)
    weight = features.weight * (clipped_resolution(question) // question.resolution)
    return UnitVectors.added_up(units, size_of(question), unit[features.row], features.column, weight)


def _trip_sums(shared: tuple[Scope, Sequence[UnitQuery]], part: Part, progress: Progress) -> Sums:
    scope, queries = shared
    totals = [np.zeros(query.size, np.int64) for query in queries]
    for batch in part_batches(part, scope, progress):
        for total, found in zip(totals, unit_sums(queries, batch, np.arange(len(batch)))):
            total += found
    return totals


def _kept_and_ends(
    shared: tuple[Scope, Callable[[Trajectories, Trajectories], None] | None, bool], part: Part, progress: Progress
) -> list[tuple[Trajectories, Trajectories]]:
    """For each batch, the kept trajectories and the ends of all, without those that have no point inside the scope.

    Each pair is given to the store if there is one (then the result is empty), and returned otherwise.
    """
    scope, store, ends_only = shared
    found: list[tuple[Trajectories, Trajectories]] = []
    position = 0
    for source in part.sources:
        for batch in source.batches(progress):
            mask = slice(position, position + len(batch))
            position += len(batch)
            kept = EMPTY if ends_only else batch if part.kept is None else select(batch, part.kept[mask])
            pair = _with_points(kept, scope), _ends_inside(_with_points(batch, scope), scope)
            if store is None:
                found.append(pair)
            else:
                store(*pair)
    return found


def _ends_inside(batch: Trajectories, scope: Scope) -> Trajectories:
    """The first and the last point inside the scope of each trajectory; every trajectory must have such a point."""
    if not len(batch):
        return batch
    with np.errstate(invalid="ignore"):
        inside = np.flatnonzero(inside_scope(*scope.to_metres(batch.lon, batch.lat), batch.t_utc, scope))
    first = np.searchsorted(inside, batch.offsets[:-1])
    last = np.searchsorted(inside, batch.offsets[1:]) - 1
    index = np.column_stack([inside[first], inside[last]]).ravel()
    offsets = 2 * np.arange(len(batch) + 1)
    return Trajectories(offsets, batch.lon[index], batch.lat[index], batch.t_utc[index], batch.user)


def _with_points(batch: Trajectories, scope: Scope) -> Trajectories:
    """The trajectories with a point inside the scope; `prepare` would drop the others."""
    if not len(batch):
        return batch
    with np.errstate(invalid="ignore"):
        inside = inside_scope(*scope.to_metres(batch.lon, batch.lat), batch.t_utc, scope)
    some = np.add.reduceat(inside.astype(np.int64), batch.offsets[:-1]) > 0
    return batch if some.all() else select(batch, some)

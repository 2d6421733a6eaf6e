"""Source: private trajectories that can be read any number of times, in batches of bounded size.

If a trajectory occurred in two batches, it would be counted twice, and the noise would be too small.
So a file is streamed in its own order only if its trajectory ids are strictly increasing or strictly decreasing. Any
other file is sorted in memory if it is small, and otherwise read in several passes, each for some of the trajectories.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from wayveil.core.trajectories import Trajectories, batches, pieces
from wayveil.errors import InputError
from wayveil.io.options import DEFAULT, NO_USERS, ReadOptions, Roles
from wayveil.io.parquet_files import opened
from wayveil.io.readers.dispatch import no_rows, origin_of, read_points, read_trajectories, reading_format
from wayveil.io.readers.parquet import PartFiles, in_degrees, part_files, roles_of
from wayveil.io.readers.parquet_stream import find_cuts, fits_memory, raw_points, read_cuts, row_group_starts_by_file
from wayveil.io.readers.parquet_unsorted import BucketRange, plan_buckets, read_buckets
from wayveil.io.readers.points import Points, points_of
from wayveil.io.readers.tables import is_geo, is_pandas, needed_columns, table_of_frame
from wayveil.progress import Progress, quiet

BATCH_POINTS = 1 << 19
"""Points per batch: about 20 MB of columns."""
SORT_IN_MEMORY_BYTES = 1 << 30
"""Larger unsorted files are read in several passes."""


@runtime_checkable
class Source(Protocol):
    """Whole trajectories in batches; can be read any number of times and pickled.

    Privacy: not private (trusted side only).
    """

    @property
    def description(self) -> str:
        """A name for messages, without any value of the data."""
        ...

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        """Every trajectory exactly once."""
        ...

    def partitions(self) -> list["Source"]:
        """Sources that together contain every trajectory exactly once."""
        ...

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        """Rows in the order of the file, before cleaning; for `check` only."""
        ...


@dataclass(frozen=True, eq=False)
class MemorySource:
    """Trajectories that are in memory."""

    trajectories: Trajectories
    description: str = "trajectories in memory"

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        """Runs of about BATCH_POINTS points."""
        done = 0
        for part in pieces(self.trajectories, BATCH_POINTS) if len(self.trajectories) else ():
            yield part
            done += len(part.lon)
            progress("reading", done / len(self.trajectories.lon))

    def partitions(self) -> list[Source]:
        """One partition per batch."""
        return [MemorySource(part, self.description) for part in self.batches()]

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        """Rows labelled from 0 on."""
        yield from (points_of(part) for part in batches(self.trajectories, max(len(self.trajectories), 1)))


@dataclass(frozen=True, eq=False)
class WholeSource:
    """A file or frame that is read as a whole, when it is first needed."""

    origin: Any
    options: ReadOptions

    @property
    def description(self) -> str:
        """The name of the file."""
        return origin_of(self.origin)

    @cached_property
    def _memory(self) -> MemorySource:
        return MemorySource(read_trajectories(self.origin, self.options), self.description)

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        """Runs of about BATCH_POINTS points, sorted by trajectory id and time."""
        return self._memory.batches(progress)

    def partitions(self) -> list[Source]:
        """One partition per batch."""
        return self._memory.partitions()

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        """All rows at once."""
        yield read_points(self.origin, self.options, progress)

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, eq=False)
class ParquetSource:
    """Parquet files, read in slices of row groups, never whole.

    `cuts` are rows at which a trajectory begins; a batch consists of the rows between two of them.
    """

    files: tuple[str, ...]
    options: ReadOptions
    description: str
    cuts: tuple[int, ...] | None = field(default=None)

    @cached_property
    def _plan(self) -> "tuple[int, ...] | WholeSource | UnsortedSource":
        """Rows at which to cut; if the ids are not in order, another source for the same files."""
        if self.cuts is not None:
            return self.cuts
        cuts = find_cuts(self.files, self.options, self.description, BATCH_POINTS)
        if cuts is not None:
            return cuts
        if fits_memory(self.files, self.description, SORT_IN_MEMORY_BYTES):
            return WholeSource(PartFiles(self.files, self.description), self.options)
        buckets = plan_buckets(self.files, self.options, self.description, SORT_IN_MEMORY_BYTES)
        return UnsortedSource(self.files, self.options, self.description, buckets)

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        """Whole trajectories, each in one batch; the order of ids is checked again."""
        plan = self._plan
        if not isinstance(plan, tuple):
            yield from plan.batches(progress)
            return
        empty = True
        for part in read_cuts(self.files, self.options, self.description, plan, progress):
            yield part
            empty = False
        # A single partition may be empty, and in a measurement a count of zero is private.
        if empty and self.cuts is None and self.options.measured_unit is None:
            raise InputError(no_rows(self.description))

    def partitions(self) -> list[Source]:
        """About one partition per row group, split where a trajectory begins."""
        plan = self._plan
        if not isinstance(plan, tuple):
            return plan.partitions()
        if len(plan) <= 2:
            return [replace(self, cuts=plan)]
        starts = row_group_starts_by_file(self.files, self.description)
        places = np.unique(np.searchsorted(plan, np.concatenate(starts)))
        edges = [0, *(int(p) for p in places if 0 < p < len(plan) - 1), len(plan) - 1]
        file_starts = [int(groups[0]) for groups in starts]
        return [self._narrowed(plan[a : b + 1], file_starts) for a, b in pairwise(edges)]

    def _narrowed(self, cuts: tuple[int, ...], file_starts: Sequence[int]) -> "ParquetSource":
        """The source with only the files that hold the rows between the cuts, so that workers skip the others."""
        first = max(0, int(np.searchsorted(file_starts, cuts[0], side="right")) - 1)
        after = max(first + 1, int(np.searchsorted(file_starts, cuts[-1], side="left")))
        begin = int(file_starts[first])
        return replace(self, files=self.files[first:after], cuts=tuple(cut - begin for cut in cuts))

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        """Rows slice by slice."""
        return raw_points(self.files, self.options, self.description, progress)

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, eq=False)
class UnsortedSource:
    """Unsorted Parquet files that are too large to sort in memory, read in one pass per range of buckets."""

    files: tuple[str, ...]
    options: ReadOptions
    description: str
    buckets: "tuple[BucketRange, ...]"

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        """Runs of about BATCH_POINTS points, range after range."""
        for done, buckets in enumerate(self.buckets, 1):
            yield from MemorySource(read_buckets(self.files, self.options, self.description, buckets)).batches()
            progress("reading", done / len(self.buckets))

    def partitions(self) -> list[Source]:
        """One partition per range of buckets."""
        return [replace(self, buckets=(buckets,)) for buckets in self.buckets]

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        """Rows slice by slice."""
        return ParquetSource(self.files, self.options, self.description).points(progress)


def open_source(
    data: "str | os.PathLike[str] | Trajectories | Source | Any",
    options: ReadOptions = DEFAULT,
) -> Source:
    """A source from a path, trajectories or a frame; read as `options` say.

    Privacy: not private (trusted side only); nothing is read before it is needed, except a Parquet file's schema.
    """
    if isinstance(data, Trajectories):
        return MemorySource(data)
    if isinstance(data, MemorySource | WholeSource | ParquetSource):
        return data
    if isinstance(data, str | os.PathLike):
        if reading_format(data, options.format) not in ("parquet", "geoparquet"):
            return WholeSource(data, options)
        files = tuple(part_files(os.fspath(data)))
        with opened(files[0]) as parquet:
            roles = roles_of(parquet, options, origin_of(data))
            streamed = isinstance(roles, Roles) and in_degrees(parquet, roles)
        return ParquetSource(files, options, origin_of(data)) if streamed else WholeSource(data, options)
    if isinstance(data, Source):
        return data
    if is_geo(data):
        return WholeSource(data, options)
    return WholeSource(needed_columns(data, options) if is_pandas(data) else table_of_frame(data, options), options)


def measured_source(data: Any, unit: Literal["trajectory", "user"], options: ReadOptions = DEFAULT) -> Source:
    """The source for a measurement: like `open_source`, but never fails because of the contents.

    Only the structure of a file is refused (an unreadable file, a missing column, a column of a wrong type). Single
    rows, trajectories or users that cannot be used contribute nothing, and `on_bad_rows` has no effect.

    Privacy: not private (trusted side only); nothing is read before it is needed, except a Parquet file's schema.
    """
    source = open_source(data, options)
    if isinstance(source, WholeSource | ParquetSource):
        return replace(source, options=replace(source.options, measured_unit=unit))
    if isinstance(source, MemorySource) and unit == "user" and source.trajectories.user is None:
        raise InputError(NO_USERS)
    return source

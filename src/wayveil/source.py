"""Source: private trajectories that can be gone through again and again, a bounded batch at a time.

A trajectory that came twice would be counted twice, and the sensitivity that the noise is made for would be wrong.
So a file is streamed in its own order only if its trajectory ids strictly rise or strictly fall. Anything else is
sorted in memory if it is small, and otherwise read in several passes, each for some of the trajectories.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from wayveil.errors import InputError
from wayveil.formats.options import NO_USERS, OnBadRows, ReadOptions
from wayveil.progress import Progress, quiet
from wayveil.trajectories import Trajectories, batches

if TYPE_CHECKING:
    from wayveil.formats.points import Points
    from wayveil.formats.scattered import Cells

BATCH_POINTS = 1 << 19
SORT_IN_MEMORY_BYTES = 1 << 30


@runtime_checkable
class Source(Protocol):
    """Whole trajectories in batches; may be gone through any number of times; can be pickled.

    Privacy: not private (trusted side only).
    """

    @property
    def description(self) -> str:
        """What it is, without any value of the data."""
        ...

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        """Every trajectory exactly once."""
        ...

    def partitions(self) -> list["Source"]:
        """Sources that together hold every trajectory exactly once."""
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
        offsets, start = self.trajectories.offsets, 0
        while start < len(self.trajectories):
            stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + BATCH_POINTS, side="right")) - 1)
            yield _run(self.trajectories, start, stop)
            progress("reading", offsets[stop] / offsets[-1])
            start = stop

    def partitions(self) -> list[Source]:
        """One partition a batch."""
        return [MemorySource(part, self.description) for part in self.batches()]

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        """Rows labelled 0, 1, 2, …"""
        from wayveil.formats.points import points_of

        yield from (points_of(part) for part in batches(self.trajectories, max(len(self.trajectories), 1)))


def _run(trajectories: Trajectories, start: int, stop: int) -> Trajectories:
    first, last = trajectories.offsets[start], trajectories.offsets[stop]
    user = None if trajectories.user is None else trajectories.user[start:stop]
    lon, lat, t_utc = (column[first:last] for column in (trajectories.lon, trajectories.lat, trajectories.t_utc))
    return Trajectories(trajectories.offsets[start : stop + 1] - first, lon, lat, t_utc, user)


@dataclass(frozen=True, eq=False)
class WholeSource:
    """A file or frame of a kind that is read at once; read when first needed."""

    origin: Any
    options: ReadOptions

    @property
    def description(self) -> str:
        """The name of the file."""
        from wayveil.formats.reading import origin_of

        return origin_of(self.origin)

    @cached_property
    def _memory(self) -> MemorySource:
        from wayveil.formats.reading import read_trajectories

        return MemorySource(read_trajectories(self.origin, self.options), self.description)

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        """Runs of about BATCH_POINTS points, sorted by trajectory id and time."""
        return self._memory.batches(progress)

    def partitions(self) -> list[Source]:
        """One partition a batch."""
        return self._memory.partitions()

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        """All rows at once."""
        from wayveil.formats.reading import read_points

        yield read_points(self.origin, self.options, progress)

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, eq=False)
class ParquetSource:
    """Parquet files, read in slices of row groups, never whole.

    `cuts` are rows at which a trajectory begins; a batch is what stands between two of them.
    """

    files: tuple[str, ...]
    options: ReadOptions
    description: str
    cuts: tuple[int, ...] | None = field(default=None)

    @cached_property
    def _plan(self) -> "tuple[int, ...] | WholeSource | ScatteredSource":
        """Where to cut; or, if the ids are not in order, another way to read the same files."""
        from wayveil.formats.parquet import PartFiles
        from wayveil.formats.scattered import plan_cells
        from wayveil.formats.stream import find_cuts, fits_memory

        if self.cuts is not None:
            return self.cuts
        cuts = find_cuts(self.files, self.options, self.description, BATCH_POINTS)
        if cuts is not None:
            return cuts
        if fits_memory(self.files, self.description, SORT_IN_MEMORY_BYTES):
            return WholeSource(PartFiles(self.files, self.description), self.options)
        cells = plan_cells(self.files, self.options, self.description, SORT_IN_MEMORY_BYTES)
        return ScatteredSource(self.files, self.options, self.description, cells)

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        """Whole trajectories, each in one batch; ids are checked again on the way."""
        from wayveil.formats.reading import no_rows
        from wayveil.formats.stream import read_cuts

        plan = self._plan
        if not isinstance(plan, tuple):
            yield from plan.batches(progress)
            return
        empty = True
        for part in read_cuts(self.files, self.options, self.description, plan, progress):
            yield part
            empty = False
        # A single partition may well be empty, and in a measurement a count of zero is private, too.
        if empty and self.cuts is None and self.options.measured_unit is None:
            raise InputError(no_rows(self.description))

    def partitions(self) -> list[Source]:
        """About one partition a row group, cut where a trajectory begins."""
        from wayveil.formats.stream import row_group_starts_by_file

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
        """Only the files that hold the rows between the cuts: a worker need not open all the others on its way."""
        first = max(0, int(np.searchsorted(file_starts, cuts[0], side="right")) - 1)
        after = max(first + 1, int(np.searchsorted(file_starts, cuts[-1], side="left")))
        begin = int(file_starts[first])
        return replace(self, files=self.files[first:after], cuts=tuple(cut - begin for cut in cuts))

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        """Rows slice by slice."""
        from wayveil.formats.stream import raw_points

        return raw_points(self.files, self.options, self.description, progress)

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, eq=False)
class ScatteredSource:
    """Parquet files that are too large to sort in memory, read in one pass for each range of cells."""

    files: tuple[str, ...]
    options: ReadOptions
    description: str
    cells: "tuple[Cells, ...]"

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        """Runs of about BATCH_POINTS points, range after range."""
        from wayveil.formats.scattered import read_cells

        for done, cells in enumerate(self.cells, 1):
            yield from MemorySource(read_cells(self.files, self.options, self.description, cells)).batches()
            progress("reading", done / len(self.cells))

    def partitions(self) -> list[Source]:
        """One partition per range of cells."""
        return [replace(self, cells=(cells,)) for cells in self.cells]

    def points(self, progress: Progress = quiet) -> Iterator["Points"]:
        """Rows slice by slice."""
        return ParquetSource(self.files, self.options, self.description).points(progress)


def open_source(
    data: "str | os.PathLike[str] | Trajectories | Source | Any",
    *,
    format: str | None = None,
    traj_id: str | None = None,
    user: str | None = None,
    lon: str | None = None,
    lat: str | None = None,
    time: str | None = None,
    timezone: str | None = None,
    on_bad_rows: OnBadRows = "error",
) -> Source:
    """A source from a path, trajectories or a frame; the options are those of `wayveil.formats.read`.

    Privacy: not private (trusted side only); nothing is read before it is needed, except a Parquet file's columns.
    """
    if isinstance(data, Trajectories):
        return MemorySource(data)
    if isinstance(data, MemorySource | WholeSource | ParquetSource):
        return data
    options = ReadOptions(format, traj_id, user, lon, lat, time, timezone, on_bad_rows)
    if isinstance(data, str | os.PathLike):
        from wayveil.formats.parquet import opened, part_files, roles_of
        from wayveil.formats.reading import origin_of, reading_format

        if reading_format(data, format) not in ("parquet", "geoparquet"):
            return WholeSource(data, options)
        files = tuple(part_files(os.fspath(data)))
        with opened(files[0]) as parquet:
            roles_of(parquet, options, origin_of(data))
        return ParquetSource(files, options, origin_of(data))
    if isinstance(data, Source):
        return data
    from wayveil.formats.tables import is_pandas, needed_columns, table_of_frame

    return WholeSource(needed_columns(data, options) if is_pandas(data) else table_of_frame(data, options), options)


def measured_source(data: Any, unit: Literal["trajectory", "user"], **options: Any) -> Source:
    """The source for a measurement: `open_source`, but total over the contents.

    Only the structure of a file is refused (an unreadable file, a missing column, a column of a wrong type). Whatever
    concerns single rows, trajectories or users contributes nothing, and `on_bad_rows` has no effect.

    Privacy: not private (trusted side only); nothing is read before it is needed, except a Parquet file's columns.
    """
    source = open_source(data, **options)
    if isinstance(source, WholeSource | ParquetSource):
        return replace(source, options=replace(source.options, measured_unit=unit))
    if isinstance(source, MemorySource) and unit == "user" and source.trajectories.user is None:
        raise InputError(NO_USERS)
    return source

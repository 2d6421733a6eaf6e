"""Source: private trajectories that can be gone through again and again, a bounded batch at a time.

A trajectory that came twice would be counted twice, and the sensitivity that the noise is made for would be wrong.
So a stream is trusted only if its trajectory ids strictly rise or strictly fall; anything else is sorted in memory
while it is small, and refused while it is not.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from wayveil.errors import InputError
from wayveil.formats.options import OnBadRows, ReadOptions
from wayveil.progress import Progress, quiet
from wayveil.trajectories import Trajectories, batches

if TYPE_CHECKING:
    from wayveil.formats.points import Points

BATCH_POINTS = 1 << 19
MAX_TRAJECTORY_POINTS = 20_000_000
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
    def _plan(self) -> "tuple[int, ...] | WholeSource":
        """Where to cut; or, if the ids are not in order, the file read at once and sorted."""
        from wayveil.formats.parquet import PartFiles
        from wayveil.formats.stream import find_cuts, fits_memory

        if self.cuts is not None:
            return self.cuts
        cuts = find_cuts(self.files, self.options, self.description, BATCH_POINTS, MAX_TRAJECTORY_POINTS)
        if cuts is not None:
            return cuts
        if not fits_memory(self.files, self.description, SORT_IN_MEMORY_BYTES):
            raise InputError(
                f"The trajectory ids of '{self.description}' are not in order and it is too large to sort in memory; "
                "sort it by trajectory id and time first (smaller files are sorted by `wayveil convert`)."
            )
        return WholeSource(PartFiles(self.files, self.description), self.options)

    def batches(self, progress: Progress = quiet) -> Iterator[Trajectories]:
        """Whole trajectories in the order of the file; ids are checked again on the way."""
        from wayveil.formats.stream import read_cuts

        plan = self._plan
        if isinstance(plan, WholeSource):
            yield from plan.batches(progress)
            return
        empty = True
        for part in read_cuts(self.files, self.options, self.description, plan, progress):
            yield part
            empty = False
        if empty and self.cuts is None:  # one partition of many may well be empty
            raise InputError(f"'{self.description}' holds no usable rows.")

    def partitions(self) -> list[Source]:
        """About one partition a row group, cut where a trajectory begins."""
        from wayveil.formats.stream import row_group_starts_by_file

        plan = self._plan
        if isinstance(plan, WholeSource):
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
    from wayveil.formats.tables import table_of_frame

    return WholeSource(table_of_frame(data, options), options)

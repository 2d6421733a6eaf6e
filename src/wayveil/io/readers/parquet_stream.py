"""Stream whole trajectories from Parquet files: first find where to cut, then read the pieces."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.options import ReadOptions, Roles
from wayveil.io.parquet_files import groups_of, opened
from wayveil.io.readers import grouping
from wayveil.io.readers.grouping import KeyOrder, assemble
from wayveil.io.readers.labels import Labels, labels_of
from wayveil.io.readers.parquet import different_parts, narrowed, point_roles_of, refuse_bombs, slices
from wayveil.io.readers.points import Points, usable
from wayveil.io.readers.tables import points_of_table
from wayveil.progress import Progress, quiet

_BYTES_PER_ROW = 40
"""Memory of a row after reading: an id, a user, two coordinates and a time of 8 bytes each."""


def find_cuts(files: Sequence[str], options: ReadOptions, origin: str, batch_points: int) -> tuple[int, ...] | None:
    """Rows, about `batch_points` apart, at which a trajectory begins.

    The last entry is the number of rows. None if the ids are not in order, or if one id has more rows than a trajectory
    may have points. Only the column of the trajectory ids is read.
    """
    order, cuts, row, run_start = KeyOrder(), [0], 0, 0
    for file in files:
        with opened(file) as parquet:
            roles = point_roles_of(parquet, options, origin)
            refuse_bombs(file, parquet, roles, origin)
            name = parquet.schema_arrow.names[roles.traj_id]
            for table in slices(parquet, [name], range(parquet.metadata.num_row_groups)):
                labels = _labels(table, origin)
                rows = None if labels.valid is None else np.flatnonzero(labels.valid)
                starts = order.starts(labels if rows is None else labels.take(rows))
                if starts is None:
                    return None
                starts = (starts if rows is None else rows[starts]) + row
                while (place := int(np.searchsorted(starts, cuts[-1] + batch_points))) < len(starts):
                    cuts.append(int(starts[place]))
                row += len(table)
                edges = np.r_[run_start, starts, row]
                if np.diff(edges).max() > grouping.MAX_TRAJECTORY_POINTS:
                    return None
                run_start = int(starts[-1]) if len(starts) else run_start
    return (*cuts, row)


def _labels(table: pa.Table, origin: str) -> Labels:
    try:
        return labels_of(table.column(0), "traj_id", origin)
    except (pa.ArrowException, UnicodeDecodeError, OverflowError):
        raise InputError(f"The trajectory ids of '{origin}' cannot be read; check traj_id=.") from None


def fits_memory(files: Sequence[str], origin: str, limit_bytes: int) -> bool:
    """Whether the decompressed files stay below a limit (even if few bytes encode many rows)."""
    return max(size_of(files, origin)) < limit_bytes


def size_of(files: Sequence[str], origin: str) -> tuple[int, int]:
    """The decompressed size that the files claim, and the least memory that their rows need, in bytes."""
    groups = [group for file in files for group in groups_of(file, origin)]
    return sum(group.unpacked_bytes for group in groups), sum(group.rows for group in groups) * _BYTES_PER_ROW


def row_group_starts_by_file(files: Sequence[str], origin: str) -> list[NDArray[np.int64]]:
    """For each file, the numbers of its first row and of the first rows of its row groups, counted over all files."""
    row, starts = 0, []
    for file in files:
        edges = row + np.cumsum([0] + [group.rows for group in groups_of(file, origin)])
        starts.append(edges[:-1] if len(edges) > 1 else edges)
        row = int(edges[-1])
    return starts


def needed_tables(
    files: Sequence[str], options: ReadOptions, origin: str, start: int, stop: int, *, keys_only: bool = False
) -> Iterator[tuple[pa.Table, Roles]]:
    """The needed columns of the rows `start:stop`, slice by slice; with `keys_only` only the id and the user."""
    row, known = 0, None
    for file in files:
        with opened(file) as parquet:
            facts = parquet.metadata
            if row >= stop or row + facts.num_rows <= start:
                row += facts.num_rows
                continue
            names, roles = narrowed(parquet, point_roles_of(parquet, options, origin))
            if keys_only:
                names = [names[roles.traj_id], *([] if roles.user is None else [names[roles.user]])]
                roles = Roles(0, 0, None, None, None if roles.user is None else 1)
            if known is not None and known != roles:
                raise InputError(different_parts(origin))
            known = roles
            sizes = [group.rows for group in groups_of(file, origin)]
            if len(sizes) != facts.num_row_groups or sum(sizes) != facts.num_rows:
                raise InputError(f"'{origin}' is a damaged Parquet file; write it again.")
            edges = row + np.cumsum([0, *sizes])
            groups = [i for i in range(facts.num_row_groups) if edges[i] < stop and edges[i + 1] > start]
            at = int(edges[groups[0]]) if groups else row
            for table in slices(parquet, names, groups):
                first, last = max(start - at, 0), min(stop - at, len(table))
                at += len(table)
                if first < last:
                    renamed = table.rename_columns([str(i) for i in range(table.num_columns)])
                    yield renamed.slice(first, last - first), roles
            row += facts.num_rows


def read_cuts(
    files: Sequence[str], options: ReadOptions, origin: str, cuts: Sequence[int], progress: Progress = quiet
) -> Iterator[Trajectories]:
    """The trajectories between successive cuts.

    Privacy: not private (trusted side only). The order of ids is checked again here: a file that changed since the
    cuts were found must not yield a trajectory twice.
    """
    changed = InputError(f"'{origin}' changed while it was read; try again when no other program writes to it.")
    order, waiting, rows, place = KeyOrder(), [], 0, 1
    for table, roles in needed_tables(files, options, origin, cuts[0], cuts[-1]):
        waiting.append(table)
        rows += len(table)
        while place < len(cuts) and rows >= cuts[place] - cuts[place - 1]:
            size = cuts[place] - cuts[place - 1]
            try:
                joint = pa.concat_tables(waiting)
            except (pa.ArrowException, ValueError):
                raise InputError(different_parts(origin)) from None
            waiting, rows, place = [joint.slice(size)], rows - size, place + 1
            points = usable(points_of_table(joint.slice(0, size), roles, options, origin), options, origin)
            if order.starts(points.label) is None:
                raise changed
            whole = assemble(points, options, origin)
            if len(whole):
                yield whole
            progress("reading", (cuts[place - 1] - cuts[0]) / max(cuts[-1] - cuts[0], 1))
    if place != len(cuts) and cuts[-1] > cuts[0]:
        raise changed


def raw_points(files: Sequence[str], options: ReadOptions, origin: str, progress: Progress = quiet) -> Iterator[Points]:
    """All rows slice by slice, uncleaned."""
    total, row = 0, 0
    for file in files:
        with opened(file) as parquet:
            refuse_bombs(file, parquet, point_roles_of(parquet, options, origin), origin)
            total += parquet.metadata.num_rows
    for table, roles in needed_tables(files, options, origin, 0, 1 << 62):
        yield points_of_table(table, roles, options, origin)
        row += len(table)
        progress("reading", row / total)

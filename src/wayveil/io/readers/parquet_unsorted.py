"""Large Parquet files whose rows are not sorted by trajectory: read in several passes, each within bounded memory.

A hash of the key puts every row into one of BUCKETS buckets. The key is the trajectory id or, in a measurement of
users, the trajectory id with the user. All rows of a key are in one bucket. A first pass counts the rows of each
bucket. Each later pass reads the files again and keeps the rows of as many buckets as fit into memory. Nothing is
written to disk, so no private data can be left there.
"""

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.core.trajectories import EMPTY, Trajectories
from wayveil.errors import InputError
from wayveil.io.options import ReadOptions, Roles
from wayveil.io.parquet_files import opened
from wayveil.io.readers import grouping
from wayveil.io.readers.labels import Labels, labels_of
from wayveil.io.readers.parquet import point_roles_of, refuse_bombs
from wayveil.io.readers.parquet_stream import needed_tables, size_of
from wayveil.io.readers.points import Points, usable
from wayveil.io.readers.tables import points_of_table

BUCKETS = 1 << 16
"""Number of buckets."""
_EVERYTHING = 1 << 62
"""A row number beyond the end of every file."""
_Key = tuple[int | str, ...]
_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
"""Odd 64-bit multipliers of the hashes of trajectory and user: those of splitmix64 and xxHash."""


@dataclass(frozen=True)
class BucketRange:
    """The buckets from `first` up to, but not including, `stop`, and the number of rows in them."""

    first: int
    stop: int
    rows: int


def plan_buckets(files: Sequence[str], options: ReadOptions, origin: str, limit_bytes: int) -> tuple[BucketRange, ...]:
    """Ranges of buckets whose rows fit into `limit_bytes`; a larger bucket gets a range of its own."""
    count = np.zeros(BUCKETS, np.int64)
    for file in files:
        with opened(file) as parquet:
            refuse_bombs(file, parquet, point_roles_of(parquet, options, origin), origin)
    for table, roles in needed_tables(files, options, origin, 0, _EVERYTHING, keys_only=True):
        count += np.bincount(_bucket_of_rows(table, roles, options, origin), minlength=BUCKETS)
    rows = int(count.sum())
    limit = max(1, limit_bytes * rows // max(*size_of(files, origin), 1))
    ranges, begin, held = [], 0, 0
    for bucket, more in enumerate(count.tolist()):
        if held and more and held + more > limit:
            ranges.append(BucketRange(begin, bucket, held))
            begin, held = bucket, 0
        held += more
    return (*ranges, BucketRange(begin, BUCKETS, held))


def read_buckets(files: Sequence[str], options: ReadOptions, origin: str, buckets: BucketRange) -> Trajectories:
    """All trajectories of a range of buckets.

    A trajectory with too many points is never held in memory: if there may be one, points are counted first.

    Privacy: not private (trusted side only).
    """
    sizes = Counter[_Key]()
    if buckets.rows > grouping.MAX_TRAJECTORY_POINTS:
        sizes = _sizes(files, options, origin, buckets)
    giants = {key for key, size in sizes.items() if size > grouping.MAX_TRAJECTORY_POINTS}
    if giants and not options.leaves_out:
        raise InputError(grouping.too_many_points(origin))
    if giants and len(giants) == len(sizes):
        return EMPTY
    tables, known = [], None
    for table, roles in _tables_of(files, options, origin, buckets):
        if giants:
            keys, which = _keys(points_of_table(table, roles, options, origin), options)
            table = table.filter(pa.array(np.array([key not in giants for key in keys], bool)[which]))
        tables.append(table)
        known = roles
    if known is None:
        return EMPTY
    return grouping.assemble(points_of_table(pa.concat_tables(tables), known, options, origin), options, origin)


def _sizes(files: Sequence[str], options: ReadOptions, origin: str, buckets: BucketRange) -> "Counter[_Key]":
    """How many points each trajectory has."""
    sizes = Counter[_Key]()
    for table, roles in _tables_of(files, options, origin, buckets):
        points = usable(points_of_table(table, roles, options, origin), options, origin)
        keys, which = _keys(points, options)
        sizes.update(dict(zip(keys, np.bincount(which, minlength=len(keys)).tolist())))
    return sizes


def _tables_of(
    files: Sequence[str], options: ReadOptions, origin: str, buckets: BucketRange
) -> Iterator[tuple[pa.Table, Roles]]:
    for table, roles in needed_tables(files, options, origin, 0, _EVERYTHING):
        if (buckets.first, buckets.stop) != (0, BUCKETS):
            bucket = _bucket_of_rows(table, roles, options, origin)
            table = table.filter(pa.array((bucket >= buckets.first) & (bucket < buckets.stop)))
        if len(table):
            yield table, roles


def _keys(points: Points, options: ReadOptions) -> tuple[list[_Key], NDArray[np.int64]]:
    """The distinct keys of some points, and which one each point has."""
    _, first, which = np.unique(points.label.code, return_index=True, return_inverse=True)
    if options.measured_unit == "user" and points.user is not None:
        _, owner = np.unique(points.user.code, return_inverse=True)
        pair = which * (int(owner.max(initial=0)) + 1) + owner
        _, first, which = np.unique(pair, return_index=True, return_inverse=True)
        user = points.user
        return [(points.label.value(row), user.value(row)) for row in first.tolist()], which
    return [(points.label.value(row),) for row in first.tolist()], which


def _bucket_of_rows(table: pa.Table, roles: Roles, options: ReadOptions, origin: str) -> NDArray[np.int64]:
    """The bucket of each row; a row without a usable key may be in any bucket."""
    mixed = _hash(labels_of(table.column(roles.traj_id), "traj_id", origin), _MULTIPLIERS[0])
    if options.measured_unit == "user" and roles.user is not None:
        mixed ^= _hash(labels_of(table.column(roles.user), "user", origin), _MULTIPLIERS[1])
    return (mixed % np.uint64(BUCKETS)).astype(np.int64)


def _hash(labels: Labels, multiplier: int) -> NDArray[np.uint64]:
    """A hash of each label, the same in every process; two labels may share one."""
    if labels.names is None:
        value = labels.code.view(np.uint64).copy()
    else:
        sums = [zlib.crc32(name.encode()) for name in labels.names.tolist()]
        value = np.array(sums, np.uint64)[labels.code]
    value ^= value >> np.uint64(32)
    value *= np.uint64(multiplier)
    value ^= value >> np.uint64(29)
    return value

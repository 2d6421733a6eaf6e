"""The trusted side of `measure`: which trajectories take part, and their exact sums, before any noise.

One pass over the data gives everything: the sums of the views that need no earlier answer, the cells of each
trajectory's first and last point (for the origin–destination view, whose regions are known only after noise has been
drawn; eight bytes a trajectory spare a second reading after the ledger was charged), and the content's keyed digest.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wayveil import plan
from wayveil.engine.parts import Part, parts_of
from wayveil.engine.serial import Engine, Kept, Serial, part_batches, prepared_batches
from wayveil.errors import InputError
from wayveil.grid import Grid, base_grid
from wayveil.prepare import Prepared
from wayveil.privacy.digest import ContentDigest
from wayveil.privacy.fixedpoint import exact_bincount
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet
from wayveil.scope import Scope
from wayveil.source import Source, open_source
from wayveil.trajectories import Trajectories
from wayveil.views import (
    Count,
    DepartureHour,
    DepartureWeek,
    Displacement,
    DisplacementLength,
    Duration,
    EndPoints,
    GapRatio,
    Length,
    LengthDuration,
    MeanInterval,
    MeanSpeed,
    Occupancy,
    OriginDestination,
    StartMinusEnd,
    TopSpeed,
    View,
)
from wayveil.views.base import batch_sums, size_of

if TYPE_CHECKING:
    from wayveil.formats.points import Points

MOST_REMEMBERED = 1 << 25
"""Trajectories whose end cells are kept in memory (256 MB); a larger source is read once more instead."""


@dataclass(frozen=True, eq=False)
class Exact:
    """What one pass over the data found.

    Privacy: not private (trusted side only).
    """

    source: Source
    scope: Scope
    kept: Kept
    engine: Engine
    views: dict[str, View]
    sums: dict[str, NDArray[np.int64]]
    ends: NDArray[np.int32] | None
    """(n, 2) base cells of each trajectory's first and last point; None where they were not kept."""
    digest: str | None
    """For the ledger alone; None where the engine's workers read the data."""

    def origin_destination(self, view: OriginDestination, progress: Progress = quiet) -> NDArray[np.int64]:
        """The exact sums of the view, from the remembered cells or by reading the data again."""
        if self.ends is None:
            return self.engine.sums(self.source, self.scope, [view], self.kept, progress)[0]
        start, end = (view.region_of_cell[self.ends[:, k]] for k in (0, 1))
        return exact_bincount(start * view.regions + end, np.ones(len(start), np.int64), size_of(view))


def first_views(scope: Scope) -> dict[str, View]:
    """The views that need no earlier answer, at their finest public size; `measure` pools them to the plan's size."""
    grid = base_grid(scope)
    return {
        "count": Count(),
        "occupancy": Occupancy(grid),
        "end_points": EndPoints(grid),
        "start_minus_end": StartMinusEnd(grid),
        "length": Length(plan.length_bins(scope)),
        "displacement": Displacement(plan.displacement_bins(scope)),
        "displacement_length": DisplacementLength(plan.displacement_bins(scope), plan.coarse_length_bins(scope)),
        "length_duration": LengthDuration(plan.coarse_length_bins(scope), plan.coarse_duration_bins(scope)),
        "duration": Duration(plan.duration_bins(scope)),
        "mean_speed": MeanSpeed(plan.speed_bins(scope)),
        "top_speed": TopSpeed(plan.top_speed_bins(scope)),
        "mean_interval": MeanInterval(plan.interval_bins(scope)),
        "gap_ratio": GapRatio(plan.gap_ratio_bins()),
        "departure_hour": DepartureHour(scope),
        "departure_week": DepartureWeek(scope),
    }


def exact_answers(
    data: object, scope: Scope, views: Sequence[View], *, kept: Kept = None, engine: Engine | None = None
) -> list[NDArray[np.int64]]:
    """Σ φ(T) of each view before noise: what tests compare between partitions, orders and engines.

    Privacy: not private (trusted side only).
    """
    return (engine or Serial()).sums(open_source(data), scope, views, kept)


def read_exact(
    source: Source, scope: Scope, kept: Kept, engine: Engine, secret: bytes | None, progress: Progress = quiet
) -> Exact:
    """Go through the data once; `secret` is the ledger's, for the digest.

    Privacy: not private (trusted side only); nothing is spent yet.
    """
    views = first_views(scope)
    if not isinstance(engine, Serial):
        return _read_parts(source, scope, kept, engine, views, progress)
    digest = None if secret is None else ContentDigest(secret)
    watched = source if digest is None else _Watched(source, digest)
    totals = [np.zeros(size_of(view), np.int64) for view in views.values()]
    ends = _Ends(base_grid(scope))
    for batch in prepared_batches(watched, scope, kept, progress):
        for total, part in zip(totals, batch_sums(list(views.values()), batch)):
            total += part
        ends.add(batch)
    known = None if digest is None else digest.hexdigest()
    return Exact(source, scope, kept, engine, views, dict(zip(views, totals)), ends.found(), known)


def _read_parts(
    source: Source, scope: Scope, kept: Kept, engine: Engine, views: dict[str, View], progress: Progress
) -> Exact:
    """The same from parts that an engine's workers read.

    Their digests could be merged, but warning of a copy is not worth a protocol.
    """
    totals = [np.zeros(size_of(view), np.int64) for view in views.values()]
    ends = _Ends(base_grid(scope))
    parts = parts_of(source, kept, engine.map)
    work = [(scope, list(views.values()), part) for part in parts]
    for done, (sums, cells) in enumerate(engine.map(_sums_and_ends, work), 1):
        for total, part_sum in zip(totals, sums):
            total += part_sum
        ends.add_cells(cells)
        progress("reading", done / len(parts))
    return Exact(source, scope, kept, engine, views, dict(zip(views, totals)), ends.found(), None)


def _sums_and_ends(piece: tuple[Scope, list[View], Part]) -> tuple[list[NDArray[np.int64]], NDArray[np.int32]]:
    scope, views, part = piece
    grid = base_grid(scope)
    totals = [np.zeros(size_of(view), np.int64) for view in views]
    cells = [np.zeros((0, 2), np.int32)]
    for batch in part_batches(part, scope):
        for total, part_sum in zip(totals, batch_sums(views, batch)):
            total += part_sum
        cells.append(_end_cells(grid, batch))
    return totals, np.concatenate(cells)


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


class _Ends:
    """Cells of first and last points, as long as there are not too many."""

    def __init__(self, grid: Grid) -> None:
        self._grid, self._parts, self._count = grid, [], 0  # type: Grid, list[NDArray[np.int32]], int

    def add(self, batch: Prepared) -> None:
        self.add_cells(_end_cells(self._grid, batch))

    def add_cells(self, cells: NDArray[np.int32]) -> None:
        self._count += len(cells)
        if self._count > MOST_REMEMBERED:
            self._parts = []
        else:
            self._parts.append(cells)

    def found(self) -> NDArray[np.int32] | None:
        if self._count > MOST_REMEMBERED:
            return None
        return np.concatenate(self._parts) if self._parts else np.zeros((0, 2), np.int32)


def _end_cells(grid: Grid, batch: Prepared) -> NDArray[np.int32]:
    cells = [grid.index(batch.x_m[at], batch.y_m[at]) for at in (batch.first, batch.last)]
    return np.stack(cells, axis=1).astype(np.int32)


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

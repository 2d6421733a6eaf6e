"""measure: trajectories + scope + budget → release. The only step that touches the data, and the only one that spends.

The order matters. All exact sums that need no earlier answer are added up first; nothing has been spent yet, and an
interruption costs nothing. Then the ledger refuses or commits the whole budget. Only then is noise drawn: first the
count, which sets the sizes of the other views; then the fields, whose noisy end points set the regions of the
origin–destination view, for which the data is read once more.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from wayveil.source import Source, open_source

from wayveil import plan
from wayveil.bins import Bins
from wayveil.engine.serial import Engine, Kept, Serial
from wayveil.errors import BudgetError, InputError, WayveilError
from wayveil.grid import Grid, base_grid
from wayveil.privacy.budget import Budget, Number, exact_delta, exact_epsilon
from wayveil.privacy.fixedpoint import check_overflow
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.noise import NoiseSource, OpenDPNoise
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet
from wayveil.release import Answer, Release
from wayveil.scope import Scope
from wayveil.synthesis.pyramid import pool
from wayveil.synthesis.regions import cut_regions, cuts_to_json, label_regions
from wayveil.views import (
    Count,
    DepartureHour,
    DepartureWeek,
    DisplacementLength,
    Duration,
    EndPoints,
    GapRatio,
    Length,
    LengthDuration,
    MeanInterval,
    Occupancy,
    OriginDestination,
    StartMinusEnd,
    View,
)


def measure(
    data: Any,
    scope: Scope,
    *,
    epsilon: Number,
    unit: Unit,
    dataset: str | None = None,
    ledger: Ledger | None = None,
    delta: Number = 0,
    engine: Engine | None = None,
    noise: NoiseSource | None = None,
    progress: Progress = quiet,
) -> Release:
    """Σ φ(T) + Lap(c/ε_v) for every view of the plan, Σ ε_v = ε.

    Parameters
    ----------
    data
        Trajectories, a frame, a path, or an open source.
    scope
        The public frame; nothing else about the world is known.
    epsilon, unit
        The promise. Neither has a default, on purpose.
    dataset, ledger
        The account that pays. Without a ledger nothing is recorded, and the caller answers for composition.
    delta
        Above 0: Gaussian noise with zCDP accounting instead of pure ε.

    Privacy: spends ε (and δ) of the dataset's budget, once, for everything that is ever made from the release.
    """
    budget = Budget.split(exact_epsilon(epsilon), plan.SHARES)
    exact_delta(delta)
    source = open_source(data)
    engine = engine or Serial()
    kept = kept_trajectories(source, unit)
    views = first_views(scope)
    check_overflow(_MOST_TRAJECTORIES, max(view.resolution for view in views.values()) * unit.sensitivity)
    sums = dict(zip(views, engine.sums(source, scope, list(views.values()), kept, progress)))
    if sums["count"][0] == 0:
        raise InputError("No trajectory has a point inside the scope; check its box, its days and the column names.")
    if ledger is not None:
        _pay(ledger, dataset, budget, unit, source)
    door = _Door(scope, budget, unit, noise or OpenDPNoise(), float(delta))
    try:
        return _draw(door, views, sums, engine, source, kept, progress)
    except Exception as error:
        if ledger is None:
            raise
        if isinstance(error, WayveilError):
            raise type(error)(f"{error} The ledger was charged before this happened and stays charged.") from None
        raise


_MOST_TRAJECTORIES = 1 << 40


def first_views(scope: Scope) -> dict[str, View]:
    """The views that need no earlier answer, at their finest public size; `measure` pools them to the plan's size."""
    grid = base_grid(scope)
    return {
        "count": Count(),
        "occupancy": Occupancy(grid),
        "end_points": EndPoints(grid),
        "start_minus_end": StartMinusEnd(grid),
        "length": Length(plan.length_bins(scope)),
        "displacement_length": DisplacementLength(plan.displacement_bins(scope), plan.coarse_length_bins(scope)),
        "length_duration": LengthDuration(plan.coarse_length_bins(scope), plan.coarse_duration_bins(scope)),
        "duration": Duration(plan.duration_bins(scope)),
        "mean_interval": MeanInterval(plan.interval_bins(scope)),
        "gap_ratio": GapRatio(plan.gap_ratio_bins()),
        "departure_hour": DepartureHour(scope),
        "departure_week": DepartureWeek(scope),
    }


def kept_trajectories(source: Source, unit: Unit) -> Kept:
    """At most c trajectories of each user, drawn at random and independently of everybody else's.

    Privacy: not private (trusted side only). A user's draw looks at that user's own trajectories alone, so adding or
    removing a user moves nobody else's.
    """
    if unit.kind == "trajectory":
        return None
    labels = [batch.user for batch in source.batches() if len(batch)]
    if any(label is None for label in labels):
        raise InputError("--unit user needs a user column; name it with --user-column, or use --unit trajectory.")
    users = np.concatenate(labels) if labels else np.zeros(0, np.int64)
    random = np.random.default_rng(secrets.randbits(256))
    order = np.lexsort((random.random(len(users)), users))
    first = np.flatnonzero(np.r_[True, users[order][1:] != users[order][:-1]])
    rank = np.arange(len(users)) - np.repeat(first, np.diff(np.r_[first, len(users)]))
    kept = np.zeros(len(users), bool)
    kept[order[rank < unit.max_per_user]] = True
    return kept


@dataclass(frozen=True)
class _Door:
    """What every answer needs on its way out."""

    scope: Scope
    budget: Budget
    unit: Unit
    noise: NoiseSource
    delta: float

    def answer(
        self, name: str, sums: NDArray[np.int64], resolution: int, shape: tuple[int, ...], **parameters: Any
    ) -> Answer:
        """Exact sums in, noisy answer out."""
        share = self.budget[name]
        sensitivity = resolution * self.unit.sensitivity
        noisy = self.noise.laplace(np.ascontiguousarray(sums, np.int64).ravel(), sensitivity, share)
        if noisy.epsilon_spent > share:
            raise BudgetError(f"'{name}' would cost more than its share; nothing was released.")
        return Answer(name, parameters, shape, resolution, "laplace", noisy.scale, share, noisy.values)

    def signal(self, name: str, count: float) -> float:
        """m̃·ε_v / c: how many noise units one view's whole answer is worth."""
        return max(count, 1.0) * float(self.budget[name]) / self.unit.sensitivity


def _draw(
    door: _Door,
    views: Mapping[str, View],
    sums: Mapping[str, NDArray[np.int64]],
    engine: Engine,
    source: Source,
    kept: Kept,
    progress: Progress,
) -> Release:
    """Noise, in the order in which answers may depend on each other."""
    grid = base_grid(door.scope)
    count = door.answer("count", sums["count"], 1, (1,))
    noisy_count = float(count.counts[0])
    answers = [count]
    fields: dict[str, list[Answer]] = {}
    for name in ("occupancy", "end_points"):
        fields[name] = list(_field_answers(door, name, views[name], sums[name], grid, noisy_count))
        answers += fields[name]
        progress("drawing noise", 0.4 if name == "occupancy" else 0.8)
    answers.append(_asymmetry(door, views["start_minus_end"], sums["start_minus_end"], grid, noisy_count))
    answers += _histograms(door, views, sums, noisy_count)
    answers += _origin_destination(door, fields["end_points"], grid, noisy_count, engine, source, kept, progress)
    progress("drawing noise", 1.0)
    return Release(
        scope=door.scope,
        answers=tuple(answers),
        epsilon=door.budget.epsilon,
        delta=door.delta,
        unit=door.unit.kind,
        max_per_user=door.unit.max_per_user,
        neighbours=door.unit.describe(),
        private=door.noise.private,
        software=_software(),
    )


def _field_answers(
    door: _Door, name: str, view: View, sums: NDArray[np.int64], grid: Grid, count: float
) -> Iterator[Answer]:
    """The three levels of a field. Pooling adds cells up, so a trajectory's L1 norm cannot grow."""
    signal = sum(door.signal(f"{name}/{level}", count) for level in ("coarse", "middle", "fine"))
    levels = plan.field_levels(grid, signal)
    exact = sums.reshape(grid.rows, grid.columns)
    for level in ("coarse", "middle", "fine"):
        side = getattr(levels, level)
        pooled = pool(exact, side)
        yield door.answer(f"{name}/{level}", pooled, view.resolution, pooled.shape, side=side, cell_m=grid.cell_m)


def _asymmetry(door: _Door, view: View, sums: NDArray[np.int64], grid: Grid, count: float) -> Answer:
    side = plan.asymmetry_side(grid, door.signal(view.name, count))
    pooled = pool(sums.reshape(grid.rows, grid.columns), side)
    return door.answer(view.name, pooled, view.resolution, pooled.shape, side=side, cell_m=grid.cell_m)


def _histograms(
    door: _Door, views: Mapping[str, View], sums: Mapping[str, NDArray[np.int64]], count: float
) -> list[Answer]:
    answers = []
    for name in ("length", "duration", "mean_interval", "gap_ratio"):
        view = views[name]
        bins = plan.histogram_bins(view.bins, door.signal(name, count))  # type: ignore[attr-defined]
        merged = _merge(sums[name], view.bins, bins)  # type: ignore[attr-defined]
        answers.append(door.answer(name, merged, view.resolution, merged.shape, edges=list(bins.edges)))
    for name, edges in (
        ("displacement_length", ("displacement", "length")),
        ("length_duration", ("length", "duration")),
    ):
        view = views[name]
        both = {f"{edge}_edges": list(getattr(view, edge).edges) for edge in edges}
        answers.append(door.answer(name, sums[name], view.resolution, view.shape, **both))
    for name in ("departure_hour", "departure_week"):
        answers.append(door.answer(name, sums[name], 1, views[name].shape))
    return answers


def _merge(sums: NDArray[np.int64], fine: Bins, coarse: Bins) -> NDArray[np.int64]:
    starts = np.searchsorted(np.asarray(fine.edges), np.asarray(coarse.edges[:-1]))
    return np.add.reduceat(sums, starts)


def _origin_destination(
    door: _Door,
    end_points: Sequence[Answer],
    grid: Grid,
    count: float,
    engine: Engine,
    source: Source,
    kept: Kept,
    progress: Progress,
) -> list[Answer]:
    """Both levels of the origin–destination view, on regions cut from the noisy end points."""
    names = ("origin_destination/coarse", "origin_destination/fine")
    depth = plan.region_depth(sum(door.signal(name, count) for name in names))
    cuts = cut_regions(rough_field(end_points, grid, max(count, 1.0)), depth)
    view = OriginDestination(grid, label_regions(grid, cuts).ravel(), 2**depth)
    (exact,) = engine.sums(source, door.scope, [view], kept, progress)
    exact = exact.reshape(view.shape)
    coarse = pool(exact, 4)
    return [
        door.answer(names[0], coarse, 1, coarse.shape, merged=4),
        door.answer(names[1], exact, 1, exact.shape, cuts=cuts_to_json(cuts)),
    ]


def rough_field(levels: Sequence[Answer], grid: Grid, count: float) -> NDArray[np.float64]:
    """A quick density from the two coarser noisy levels: good enough to cut regions of about equal mass."""
    from wayveil.synthesis.field import NoisyLevel, estimate_field

    noisy = [NoisyLevel(answer.counts, int(answer.parameters["side"]), answer.noise) for answer in levels[:2]]
    return estimate_field(noisy, count, np.ones((grid.rows, grid.columns)), neighbours=False)


def _pay(ledger: Ledger, dataset: str | None, budget: Budget, unit: Unit, source: Source) -> None:
    if not dataset:
        raise InputError("Name the dataset whose budget pays: --dataset NAME.")
    lines = [Spend(name, share, f"measure, {unit.kind} level") for name, share in budget.shares.items()]
    ledger.spend(dataset, lines, total_if_new=budget.epsilon)


def _software() -> str:
    from importlib.metadata import version

    return f"wayveil {version('wayveil')}"

"""questions: all answers of a release, in the order in which they may depend on each other.

First the count, which sets the sizes of the other views and how the fields are divided; then the end points, coarse
blocks before their detail, and the occupancy, with small cells where end points lie close; then the histograms; then
origin and destination, and of many trajectories the hours of their ends, on regions cut from the noisy end points.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wayveil import plan
from wayveil.bins import Bins
from wayveil.door import Door
from wayveil.exact import Exact
from wayveil.grid import Grid, base_grid
from wayveil.progress import Progress
from wayveil.pyramid import pool
from wayveil.questions.detail_weights import PARTS, Parts, concentration, fine_parts, weigh
from wayveil.regions import cut_regions, cuts_to_json, label_regions
from wayveil.release import Answer, Release
from wayveil.views import EndPointHours, OriginDestination, View


def draw_release(door: Door, exact: Exact, progress: Progress) -> Release:
    """Noise, in the order in which answers may depend on each other."""
    grid, views, sums = base_grid(door.scope), exact.views, exact.sums
    count = door.answer("count", sums["count"], 1, (1,))
    noisy_count = float(count.counts[0])
    signals = {name: _field_signal(door, name, noisy_count) for name in plan.FIELDS}
    # In between only the noisy count has been seen, so what it decides is post-processing; the sum stays the same.
    door = replace(door, cost=replace(door.cost, budget=plan.focused(door.cost.budget, signals, grid)))
    answers = [count]
    usual = plan.field_levels(grid, signals["end_points"])
    ends = _field_answers(door, "end_points", views["end_points"], sums["end_points"], grid, usual)
    progress("drawing noise", 0.4)
    # Points lie about as close together as ends do, and how close those lie has been heard.
    levels = plan.field_levels(grid, signals["occupancy"], concentration(ends[0].counts, usual.coarse, ends[0].noise))
    answers += ends
    answers += _field_answers(door, "occupancy", views["occupancy"], sums["occupancy"], grid, levels)
    progress("drawing noise", 0.8)
    answers.append(_asymmetry(door, views["start_minus_end"], sums["start_minus_end"], grid, noisy_count))
    answers += _histograms(door, views, sums, noisy_count)
    mass = rough_field(*ends, grid, max(noisy_count, 1.0))
    answers += _origin_destination(door, mass, grid, noisy_count, exact, progress)
    if plan.HOURS in door.cost.budget.shares:
        answers.append(_hours(door, mass, grid, noisy_count, exact, progress))
    progress("drawing noise", 1.0)
    return Release(
        scope=door.scope,
        answers=tuple(answers),
        epsilon=door.cost.budget.epsilon,
        delta=float(door.cost.delta),
        unit=door.unit.kind,
        max_per_user=door.unit.max_per_user,
        neighbours=door.unit.describe(),
        private=door.noise.private,
        software=_software(),
    )


def _field_signal(door: Door, name: str, count: float) -> float:
    return door.signal(f"{name}/coarse", count) + door.signal(f"{name}/detail", count)


def _field_answers(
    door: Door, name: str, view: View, sums: NDArray[np.int64], grid: Grid, levels: plan.Levels
) -> tuple[Answer, Answer]:
    """Coarse blocks, then middle and fine cells together. Pooling adds cells up: a trajectory's L1 norm cannot grow."""
    detail = f"{name}/detail"
    exact = sums.reshape(grid.rows, grid.columns)
    pooled = _pooled(exact, levels.coarse)
    resolution, cell_m = view.resolution, grid.cell_m
    coarse = door.answer(f"{name}/coarse", pooled, resolution, pooled.shape, side=levels.coarse, cell_m=cell_m)
    # From the noisy blocks, never from the exact ones: how a block is looked at is part of the release.
    parts = fine_parts(coarse.counts, (levels.coarse // levels.fine) ** 2, door.cost.noise(detail, door.unit))
    weighed = detail_sums(exact, levels, parts)
    known = {"sides": [levels.middle, levels.fine], "cell_m": cell_m, "parts": parts.tolist()}
    return coarse, door.answer(detail, weighed, PARTS * resolution, weighed.shape, **known)


def detail_sums(exact: NDArray[np.int64], levels: plan.Levels, parts: Parts) -> NDArray[np.int64]:
    """Middle and fine sums of a field, weighed block by block: PARTS times the norm of a trajectory, wherever it lies.

    Privacy: not private (trusted side only).
    """
    ratios = levels.coarse // levels.middle, levels.coarse // levels.fine
    return weigh(_pooled(exact, levels.middle), _pooled(exact, levels.fine), parts, ratios)


def _asymmetry(door: Door, view: View, sums: NDArray[np.int64], grid: Grid, count: float) -> Answer:
    side = plan.asymmetry_side(grid, door.signal(view.name, count))
    pooled = _pooled(sums.reshape(grid.rows, grid.columns), side)
    return door.answer(view.name, pooled, view.resolution, pooled.shape, side=side, cell_m=grid.cell_m)


def _histograms(
    door: Door, views: Mapping[str, View], sums: Mapping[str, NDArray[np.int64]], count: float
) -> list[Answer]:
    answers = []
    names = ("length", "displacement", "duration", "mean_speed", "top_speed", "mean_interval", "beat", "gap_ratio")
    for name in names:
        view = views[name]
        fine = view.bins  # type: ignore[attr-defined]
        bins = plan.histogram_bins(fine, door.signal(name, count), plan.MERGING.get(name))
        merged = _merge(sums[name], fine, bins)
        answers.append(door.answer(name, merged, view.resolution, merged.shape, edges=list(bins.edges)))
    # Once more unmerged: recordings that are all cut at the hour are one narrow spike.
    duration = views["duration"]
    edges = list(duration.bins.edges)  # type: ignore[attr-defined]
    answers.append(door.answer("duration/spikes", sums["duration"], duration.resolution, duration.shape, edges=edges))
    for name, axes in (
        ("displacement_length", ("displacement", "length")),
        ("length_duration", ("length", "duration")),
    ):
        view = views[name]
        both = {f"{axis}_edges": list(getattr(view, axis).edges) for axis in axes}
        answers.append(door.answer(name, sums[name], view.resolution, view.shape, **both))
    answers.append(door.answer("departure_hour", sums["departure_hour"], 1, views["departure_hour"].shape))
    parts = plan.week_parts(door.signal("departure_week", count))
    week = sums["departure_week"].reshape(7, parts, -1).sum(axis=2)
    answers.append(door.answer("departure_week", week, 1, week.shape))
    return answers


def _pooled(sums: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    return pool(sums, side)


def _merge(sums: NDArray[np.int64], fine: Bins, coarse: Bins) -> NDArray[np.int64]:
    starts = np.searchsorted(np.asarray(fine.edges), np.asarray(coarse.edges[:-1]))
    return np.add.reduceat(sums, starts)


def _origin_destination(
    door: Door, mass: NDArray[np.float64], grid: Grid, count: float, exact: Exact, progress: Progress
) -> list[Answer]:
    """Both levels of the origin–destination view, on regions of about equal noisy mass."""
    names = ("origin_destination/coarse", "origin_destination/fine")
    depth = plan.region_depth(sum(door.signal(name, count) for name in names))
    cuts = cut_regions(mass, depth)
    view = OriginDestination(grid, label_regions(grid, cuts).ravel(), 2**depth)
    fine = exact.later(view, progress).reshape(view.shape)
    coarse = _pooled(fine, 4)
    return [
        door.answer(names[0], coarse, 1, coarse.shape, merged=4),
        door.answer(names[1], fine, 1, fine.shape, cuts=cuts_to_json(cuts)),
    ]


def _hours(door: Door, mass: NDArray[np.float64], grid: Grid, count: float, exact: Exact, progress: Progress) -> Answer:
    """Where trips start and end at which time of day, on regions of about equal noisy mass."""
    depth = plan.region_depth(door.signal(plan.HOURS, count))
    cuts = cut_regions(mass, depth)
    view = EndPointHours(door.scope, grid, label_regions(grid, cuts).ravel(), 2**depth)
    sums = exact.later(view, progress)
    return door.answer(view.name, sums, view.resolution, view.shape, cuts=cuts_to_json(cuts))


def rough_field(coarse: Answer, detail: Answer, grid: Grid, count: float) -> NDArray[np.float64]:
    """A quick density from the two coarser noisy levels: good enough to cut regions of about equal mass."""
    from wayveil.density import estimate_field
    from wayveil.synthesis.fields import focused_levels

    noisy = focused_levels(coarse, detail, grid)[:2]
    return estimate_field(noisy, count, np.ones((grid.rows, grid.columns)), neighbours=False)


def _software() -> str:
    from importlib.metadata import version

    return f"wayveil {version('wayveil')}"

"""estimate: noisy answers → smooth non-negative distributions that candidates can be drawn from.

Privacy: free (post-processing of the release).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil import plan
from wayveil.bins import Bins
from wayveil.grid import Grid, base_grid
from wayveil.release import Answer, Release
from wayveil.scope import Scope
from wayveil.synthesis.field import NoisyLevel, estimate_field
from wayveil.synthesis.histogram import estimate_histogram, estimate_table, spread_bins, with_spikes
from wayveil.synthesis.mapped import estimate_mapped_field
from wayveil.synthesis.posterior import posterior_mean
from wayveil.synthesis.pyramid import Field, pool, spread
from wayveil.synthesis.regions import cuts_from_json, label_regions

_END_POINT_POWER = 1.5
_SPEED_SPREAD = 1.5
_KEPT, _KEPT_ON_A_MAP = 0.0, 0.5
"""How far the network's block sums go back to the Bayesian ones (`towards_blocks`), without and with a map."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Everything that the release says, as distributions."""

    scope: Scope
    grid: Grid
    count: float
    occupancy: Field
    starts: Field
    ends: Field
    regions: NDArray[np.int64]
    """(rows, columns) region of each base cell."""
    flows: NDArray[np.float64]
    """(regions, regions) share of trips from one region to another."""
    length: NDArray[np.float64]
    length_bins: Bins
    displacement: NDArray[np.float64]
    """Share of each bin of the distance from start to end."""
    displacement_length: NDArray[np.float64]
    displacement_bins: Bins
    coarse_length_bins: Bins
    length_duration: NDArray[np.float64]
    coarse_duration_bins: Bins
    duration: NDArray[np.float64]
    duration_bins: Bins
    speed: NDArray[np.float64]
    """Share of each bin of the mean speed, length / duration in km/h."""
    speed_bins: Bins
    interval: NDArray[np.float64]
    interval_bins: Bins
    gap_ratio: NDArray[np.float64]
    gap_ratio_bins: Bins
    departure: NDArray[np.float64]
    """(7, 24) share of departures by weekday, Monday first, and hour."""
    noise: dict[str, float]
    """Scale of the noise of each answer, in trajectories."""


def estimate(release: Release, road_features: Sequence[Field] = (), learned: bool = False) -> Estimates:
    """Posterior means of all views, made consistent where they speak of the same thing."""
    scope = release.scope
    grid = base_grid(scope)
    count = max(float(release["count"].counts[0]), 1.0)
    occupancy, both_ends = _fields(release, count, cell_area(grid), road_features, learned)
    starts, ends = _split_ends(release["start_minus_end"], both_ends)

    length_bins = plan.length_bins(scope)
    length = _fine_histogram(release["length"], length_bins)
    duration_bins = plan.duration_bins(scope)
    duration = _duration(release, duration_bins, count)
    coarse_length, coarse_duration = plan.coarse_length_bins(scope), plan.coarse_duration_bins(scope)
    displacement_bins = plan.displacement_bins(scope)
    apart = release["displacement"]
    displacement = estimate_histogram(apart.counts, apart.noise, _middles(displacement_bins))
    length_margin = _coarsen(length, length_bins, coarse_length)
    displacement_length = _displacement_length(
        release["displacement_length"], displacement, displacement_bins, coarse_length, length_margin, count
    )
    duration_margin = _coarsen(duration, duration_bins, coarse_duration)
    length_duration = estimate_table(
        release["length_duration"].counts,
        release["length_duration"].noise,
        length_margin,
        duration_margin,
        count,
        affinity=_same_speed(coarse_length, coarse_duration, length_margin, duration_margin),
    )
    cuts = cuts_from_json(release["origin_destination/fine"].parameters["cuts"])
    regions = label_regions(grid, cuts)
    flows = _flows(release, grid, regions, starts, ends, displacement_bins, displacement, count)
    return Estimates(
        scope=scope,
        grid=grid,
        count=count,
        occupancy=occupancy,
        starts=starts,
        ends=ends,
        regions=regions,
        flows=flows,
        length=length,
        length_bins=length_bins,
        displacement=displacement,
        displacement_length=displacement_length,
        displacement_bins=displacement_bins,
        coarse_length_bins=coarse_length,
        length_duration=length_duration,
        coarse_duration_bins=coarse_duration,
        duration=duration,
        duration_bins=duration_bins,
        speed=_fine_histogram(release["mean_speed"], plan.speed_bins(scope)),
        speed_bins=plan.speed_bins(scope),
        interval=_fine_histogram(release["mean_interval"], plan.interval_bins(scope)),
        interval_bins=plan.interval_bins(scope),
        gap_ratio=_fine_histogram(release["gap_ratio"], plan.gap_ratio_bins()),
        gap_ratio_bins=plan.gap_ratio_bins(),
        departure=_departure(release),
        noise={answer.name: answer.noise for answer in release.answers},
    )


def _fields(
    release: Release, count: float, area: Field, road_features: Sequence[Field], learned: bool
) -> tuple[Field, Field]:
    """Occupancy and end points: Bayes, and on top of it the network where it was asked for."""
    points, ends = noisy_levels(release, "occupancy"), noisy_levels(release, "end_points")
    occupancy = _occupancy(points, count, area, road_features)
    # Ends lie where points lie; within a block they keep to its busiest cells.
    sharp = (occupancy / max(float(occupancy.max()), 1e-300)) ** _END_POINT_POWER
    both_ends = estimate_field(ends, count, area, base=sharp, coarse_base=occupancy, neighbours=False)
    if not learned:
        return occupancy, both_ends
    from wayveil.synthesis.learned.refine import refine_field

    roads = road_features or None
    seen = refine_field(points, count, area, occupancy, kind="occupancy", road_features=roads)
    seen_ends = refine_field(ends, count, area, both_ends, kind="end_points", occupancy=seen, road_features=roads)
    share = _KEPT_ON_A_MAP if roads else _KEPT
    return (
        towards_blocks(seen, occupancy, points[0].side, share),
        towards_blocks(seen_ends, both_ends, ends[0].side, share),
    )


def towards_blocks(field: Field, sums_of: Field, side: int, share: float) -> Field:
    """The field with its block sums moved towards another's: a share of the way on the log scale, 1 for all of it.

    The Bayesian sums are noisier than the network's and drawn nowhere. Until its fourth stage the network was taught to
    score well cell by cell, which drew mass to the centre, and all block sums were taken back without a map. Since it
    is scored by large blocks too (docs/model-card.md), its own are better there.
    """
    mine, theirs = pool(field, side), pool(sums_of, side)
    factor = np.divide(theirs, mine, out=np.ones_like(mine), where=(mine > 0) & (theirs > 0)) ** share
    moved = field * spread(factor, side, field.shape)
    return moved * (sums_of.sum() / max(moved.sum(), 1e-300))


def _occupancy(levels: Sequence[NoisyLevel], count: float, area: Field, road_features: Sequence[Field]) -> Field:
    if road_features:
        return estimate_mapped_field(levels, count, area, road_features)
    return estimate_field(levels, count, area)


def cell_area(grid: Grid) -> Field:
    """Share of each base cell that lies inside the scope."""
    columns = np.clip(grid.width_m / grid.cell_m - np.arange(grid.columns), 0.0, 1.0)
    rows = np.clip(grid.height_m / grid.cell_m - np.arange(grid.rows), 0.0, 1.0)
    return np.outer(rows, columns)


def noisy_levels(release: Release, name: str) -> list[NoisyLevel]:
    """The three noisy grids of a field, from coarse to fine."""
    answers = [release[f"{name}/{level}"] for level in ("coarse", "middle", "fine")]
    return [NoisyLevel(answer.counts, int(answer.parameters["side"]), answer.noise) for answer in answers]


def _split_ends(answer: Answer, both: Field) -> tuple[Field, Field]:
    """Starts and ends from their sum and from the noisy difference on blocks, shrunk by its known noise."""
    side = int(answer.parameters["side"])
    difference = answer.counts
    kept = np.maximum(0.0, 1 - 2 * answer.noise**2 / np.maximum(difference**2, 1e-9))
    blocks = pool(both, side)
    limited = np.clip(difference * kept, -0.9 * blocks, 0.9 * blocks)
    tilt = np.divide(limited, blocks, out=np.zeros_like(blocks), where=blocks > 0)
    fine_tilt = spread(tilt, side, both.shape)
    return both * (1 + fine_tilt), both * (1 - fine_tilt)


def _fine_histogram(answer: Answer, fine: Bins) -> NDArray[np.float64]:
    edges = np.asarray(answer.parameters["edges"], float)
    shares = estimate_histogram(answer.counts, answer.noise, (edges[1:] + edges[:-1]) / 2)
    return spread_bins(shares, edges, np.asarray(fine.edges))


def _duration(release: Release, bins: Bins, count: float) -> NDArray[np.float64]:
    """Durations on the finest bins: smooth from the merged answer, spikes from the unmerged one."""
    merged, spikes = release["duration"], release["duration/spikes"]
    edges = np.asarray(bins.edges)
    group = np.searchsorted(np.asarray(merged.parameters["edges"], float), edges[:-1] + 1e-9, side="right") - 1
    return with_spikes(_fine_histogram(merged, bins), spikes.counts, spikes.noise, count, group)


def _coarsen(shares: NDArray[np.float64], fine: Bins, coarse: Bins) -> NDArray[np.float64]:
    edges = np.asarray(fine.edges)
    index = coarse.index((edges[1:] + edges[:-1]) / 2)
    return np.bincount(index, shares, minlength=len(coarse))


def _displacement_length(
    answer: Answer,
    margin: NDArray[np.float64],
    displacement: Bins,
    length: Bins,
    length_margin: NDArray[np.float64],
    count: float,
) -> NDArray[np.float64]:
    """Shares of (displacement, length); no trajectory is shorter than the distance between its ends."""
    possible = np.asarray(length.edges)[None, 1:] >= np.asarray(displacement.edges)[:-1, None]
    possible[:, -1] = True
    table = estimate_table(answer.counts, answer.noise, margin, length_margin, count, possible)
    for _ in range(5):  # the length margin was measured with more budget: it has the last word
        table *= (length_margin / np.maximum(table.sum(axis=0), 1e-12))[None, :]
    return table / table.sum()


def _same_speed(
    length: Bins, duration: Bins, length_share: NDArray[np.float64], duration_share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Long trips last long: a lognormal preference for the typical speed, the ratio of the two medians."""
    middle_km, middle_s = _middles(length), _middles(duration)
    typical = np.log(_median(middle_km, length_share) / _median(middle_s, duration_share))
    speed = np.log(middle_km[:, None] / middle_s[None, :])
    return np.exp(-0.5 * ((speed - typical) / _SPEED_SPREAD) ** 2) + 1e-4


def _middles(bins: Bins) -> NDArray[np.float64]:
    edges = np.asarray(bins.edges)
    return np.r_[edges[1] / 2, np.sqrt(edges[1:-1] * edges[2:])]


def _median(value: NDArray[np.float64], share: NDArray[np.float64]) -> float:
    return float(value[np.searchsorted(np.cumsum(share), 0.5 * share.sum())])


def _flows(
    release: Release,
    grid: Grid,
    regions: NDArray[np.int64],
    starts: Field,
    ends: Field,
    displacement: Bins,
    displacement_share: NDArray[np.float64],
    count: float,
) -> NDArray[np.float64]:
    """Trips between regions: start × end × a factor of distance, scaled to the margins; posterior at both levels."""
    fine, coarse = release["origin_destination/fine"], release["origin_destination/coarse"]
    size = fine.shape[0]
    out = np.bincount(regions.ravel(), starts.ravel(), minlength=size)
    into = np.bincount(regions.ravel(), ends.ravel(), minlength=size)
    mean = _gravity(grid, regions, size, starts, ends, displacement, displacement_share)
    mean = mean / mean.sum() + 0.02 * np.outer(out, into) / (out.sum() * into.sum())
    for _ in range(30):
        mean *= (out / np.maximum(mean.sum(axis=1), 1e-12))[:, None]
        mean *= (into / np.maximum(mean.sum(axis=0), 1e-12))[None, :]
    merged = int(coarse.parameters["merged"])
    mean_coarse = pool(mean, merged)
    better = posterior_mean(coarse.counts, mean_coarse, coarse.noise, groups=3)
    mean = mean * spread(better / np.maximum(mean_coarse, 1e-9), merged, mean.shape)
    flows = posterior_mean(fine.counts, mean, fine.noise)
    for _ in range(10):
        flows *= (((out + 1e-9) / np.maximum(flows.sum(axis=1), 1e-9)) ** 0.5)[:, None]
        flows *= (((into + 1e-9) / np.maximum(flows.sum(axis=0), 1e-9)) ** 0.5)[None, :]
    return flows / flows.sum()


def _gravity(
    grid: Grid,
    regions: NDArray[np.int64],
    size: int,
    starts: Field,
    ends: Field,
    displacement: Bins,
    displacement_share: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Expected flows if only distance mattered: independent pairs of ends, weighted to the displacement's shares."""
    random = np.random.default_rng(0)  # a fixed rule for integration, not noise: any seed gives nearly the same
    pairs = 60_000
    origin = _systematic_cells(starts, pairs, random)
    destination = random.permutation(_systematic_cells(ends, pairs, random))
    dx = (origin % grid.columns - destination % grid.columns) * grid.cell_m
    dy = (origin // grid.columns - destination // grid.columns) * grid.cell_m
    bin_of_pair = displacement.index(np.hypot(dx, dy) / 1000)
    expected = np.bincount(bin_of_pair, minlength=len(displacement)) / pairs
    factor = np.divide(displacement_share, expected, out=np.ones(len(displacement)), where=expected > 1e-4)
    weight = np.clip(factor, 0.05, 20.0)[bin_of_pair]
    labels = regions.ravel()
    return np.bincount(labels[origin] * size + labels[destination], weight, minlength=size * size).reshape(size, size)


def _systematic_cells(field: Field, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    from wayveil.synthesis.draw import systematic

    return systematic(field.ravel(), count, random)


def _departure(release: Release) -> NDArray[np.float64]:
    """(weekday, hour): the hours of the day, well measured, times the weekdays, with the joint's posterior on top."""
    hour, week = release["departure_hour"], release["departure_week"]
    hours = estimate_histogram(hour.counts, hour.noise)
    # If every day had these hours, hours² would weigh a day's counts with least noise: empty hours have none to tell.
    sharpness = float((hours**2).sum())
    days = estimate_histogram(week.counts @ hours / sharpness, week.noise / np.sqrt(sharpness))
    total = max(float(release["count"].counts[0]), 1.0)
    return estimate_table(week.counts, week.noise, days, hours, total)

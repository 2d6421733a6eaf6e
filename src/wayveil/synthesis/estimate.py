"""estimate: noisy answers → smooth non-negative distributions that candidates can be drawn from.

Privacy: free (post-processing of the release).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wayveil import plan
from wayveil.bins import Bins
from wayveil.grid import Grid, base_grid
from wayveil.posterior import posterior_mean
from wayveil.progress import nobody
from wayveil.pyramid import Field, pool, spread
from wayveil.regions import cuts_from_json, label_regions
from wayveil.release import Answer, Release
from wayveil.scope import Scope
from wayveil.synthesis.beats import is_steady, roundness, whole_seconds_in
from wayveil.synthesis.curves import Kind, Total, also_by_ratios, from_bin_to_bin
from wayveil.synthesis.durations import estimate_durations
from wayveil.synthesis.fields import cell_area, estimate_fields, split_ends
from wayveil.synthesis.gap_ratios import estimate_gap_ratio
from wayveil.synthesis.histogram import estimate_histogram, estimate_table, spread_bins
from wayveil.synthesis.place_hours import PlaceHours, estimate_place_hours
from wayveil.synthesis.speeds import estimate_speeds
from wayveil.synthesis.spikes import with_spikes
from wayveil.synthesis.weekly import estimate_week

_SPEED_SPREAD = 1.5
_SAME_EDGE = 1e-4
_UNUSUAL = 0.03
"""Share of the beats that may be anything, whatever the mean gaps are."""


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
    top_speed: NDArray[np.float64] | None
    """Share of each bin of the fastest step's speed in km/h; None in a release that was made before it was asked."""
    top_speed_bins: Bins
    interval: NDArray[np.float64]
    interval_bins: Bins
    beat: NDArray[np.float64] | None
    """Share of each bin of a trajectory's median gap in seconds; None in a release made before it was asked."""
    beat_bins: Bins
    gap_ratio: NDArray[np.float64]
    """Share of each bin of gap / beat; where no beat was asked, of gap / mean gap."""
    gap_ratio_bins: Bins
    departure: NDArray[np.float64]
    """(7, 24) share of departures by weekday, Monday first, and hour."""
    place_hours: PlaceHours | None
    """Hours of each region; None where nobody asked."""
    noise: dict[str, float]
    """Scale of the noise of each answer, in trajectories."""

    @property
    def steady(self) -> bool:
        """Whether devices keep their beat nearly always."""
        return self.beat is not None and is_steady(self.gap_ratio, self.gap_ratio_bins)


def estimate(
    release: Release,
    road_features: Sequence[Field] = (),
    learned: bool = False,
    told: Callable[[float], None] = nobody,
) -> Estimates:
    """Posterior means of all views, made consistent where they speak of the same thing; `told` hears how far it is."""
    scope = release.scope
    grid = base_grid(scope)
    count = max(float(release["count"].counts[0]), 1.0)
    total = Total(count, release["count"].noise)
    occupancy, both_ends = estimate_fields(release, count, cell_area(grid), road_features, learned, told)
    starts, ends = split_ends(release["start_minus_end"], both_ends)

    length_bins = plan.length_bins(scope)
    length = _fine_histogram(release["length"], length_bins, total, also_by_ratios)
    duration_bins = plan.duration_bins(scope)
    duration = _duration(release, duration_bins, total)
    coarse_length, coarse_duration = plan.coarse_length_bins(scope), plan.coarse_duration_bins(scope)
    displacement_bins = plan.displacement_bins(scope)
    apart = release["displacement"]
    displacement = estimate_histogram(apart.counts, apart.noise, _middles(displacement_bins), total)
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
    hour, week = release["departure_hour"], release["departure_week"]
    cuts = cuts_from_json(release["origin_destination/fine"].parameters["cuts"])
    regions = label_regions(grid, cuts)
    flows = _flows(release, grid, regions, starts, ends, displacement_bins, displacement, count)
    departure = estimate_week(hour.counts, hour.noise, week.counts, week.noise, total)
    place_hours = None
    if plan.HOURS in release:
        place_hours = estimate_place_hours(release[plan.HOURS], grid, starts, ends, departure, count)
    interval = _fine_histogram(release["mean_interval"], plan.interval_bins(scope), total, from_somewhere=True)
    gap_ratio, gap_ratio_bins = _gap_ratio(release, total), plan.gap_ratio_bins()
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
        # Of mean speeds one answer far off is noise; top speeds pile up at the cap, and a pile is believed sooner.
        speed=_speeds(release["mean_speed"], plan.speed_bins(scope), total, long_tails=True),
        speed_bins=plan.speed_bins(scope),
        top_speed=_speeds(release["top_speed"], plan.top_speed_bins(scope), total) if "top_speed" in release else None,
        top_speed_bins=plan.top_speed_bins(scope),
        interval=interval,
        interval_bins=plan.interval_bins(scope),
        beat=_beat(release, interval, is_steady(gap_ratio, gap_ratio_bins), total),
        beat_bins=plan.beat_bins(),
        gap_ratio=gap_ratio,
        gap_ratio_bins=gap_ratio_bins,
        departure=departure,
        place_hours=place_hours,
        noise={answer.name: answer.noise for answer in release.answers},
    )


def _fine_histogram(
    answer: Answer, fine: Bins, total: Total, kind: Kind = from_bin_to_bin, from_somewhere: bool = False
) -> NDArray[np.float64]:
    edges = np.asarray(answer.parameters["edges"], float)
    shares = estimate_histogram(answer.counts, answer.noise, (edges[1:] + edges[:-1]) / 2, total, kind, from_somewhere)
    return spread_bins(shares, edges, np.asarray(fine.edges))


def _duration(release: Release, bins: Bins, total: Total) -> NDArray[np.float64]:
    """Durations on the finest bins: smooth from the merged answer, spikes from the unmerged one."""
    merged, spikes = release["duration"], release["duration/spikes"]
    edges = np.asarray(bins.edges)
    known = np.asarray(merged.parameters["edges"], float)
    group = np.searchsorted(known, edges[:-1] + 1e-9, side="right") - 1
    smooth = spread_bins(estimate_durations(merged.counts, merged.noise, known, total), known, edges)
    return with_spikes(smooth, spikes.counts, spikes.noise, total.count, group)


def _speeds(answer: Answer, bins: Bins, total: Total, long_tails: bool = False) -> NDArray[np.float64]:
    edges = np.asarray(answer.parameters["edges"], float)
    shares = estimate_speeds(answer.counts, answer.noise, edges, total, long_tails)
    return spread_bins(shares, edges, np.asarray(bins.edges))


def _gap_ratio(release: Release, total: Total) -> NDArray[np.float64]:
    answer, bins = release["gap_ratio"], plan.gap_ratio_bins()
    # Releases of earlier versions tell gaps in mean gaps, or in other bins: there is no beat to expect a spike at.
    if "beat" not in release or tuple(answer.parameters["edges"]) != bins.edges:
        return _fine_histogram(answer, bins, total)
    return estimate_gap_ratio(answer.counts, answer.noise, bins, total)


def _beat(release: Release, interval: NDArray[np.float64], steady: bool, total: Total) -> NDArray[np.float64] | None:
    """Beats on the finest bins: as mean gaps are, and round, until the answer says otherwise."""
    if "beat" not in release:
        return None
    answer, bins = release["beat"], plan.beat_bins()
    edges, merged = np.asarray(bins.edges), np.asarray(answer.parameters["edges"], float)
    running = np.interp(edges, np.asarray(plan.interval_bins(release.scope).edges), np.r_[0.0, np.cumsum(interval)])
    usual = np.diff(running) + _UNUSUAL / len(bins)
    usual *= [roundness(whole_seconds_in(low, high), steady).max() for low, high in pairwise(edges)]
    usual /= usual.sum()
    first = np.searchsorted(edges, merged[:-1] - _SAME_EDGE)
    expected = np.add.reduceat(usual, first)
    found = posterior_mean(answer.counts, total.count * expected, answer.noise, groups=1)
    shares = usual * np.repeat(found / expected, np.diff(np.r_[first, len(usual)]))
    return shares / shares.sum()


def _coarsen(shares: NDArray[np.float64], fine: Bins, coarse: Bins) -> NDArray[np.float64]:
    edges = np.asarray(fine.edges)
    index = coarse.index((edges[1:] + edges[:-1]) / 2)
    return np.asarray(np.bincount(index, shares, minlength=len(coarse)), np.float64)


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
    flows = np.bincount(labels[origin] * size + labels[destination], weight, minlength=size * size)
    return np.asarray(flows, np.float64).reshape(size, size)


def _systematic_cells(field: Field, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    from wayveil.synthesis.draw import systematic

    return systematic(field.ravel(), count, random)

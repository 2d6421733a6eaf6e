"""One shard: candidates drawn from the model, fitted, resampled, placed in space and time, refined under the rules.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import Grid
from wayveil.rules.motion import motion_from_metres
from wayveil.rules.rule import Rule, violating_trajectories
from wayveil.synthesis.candidates import Router, Trips, draw_trips, route_trips, take_trips
from wayveil.synthesis.draw import systematic
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.fit import Fit, HardView, SoftView, fit_weights
from wayveil.synthesis.placing import fit_slowness, gap_fractions, histogram, scatter_sparse, slowness_weight
from wayveil.synthesis.polylines import Polylines, lengths, place, take
from wayveil.synthesis.prior import Prior
from wayveil.synthesis.pyramid import Field, pool
from wayveil.synthesis.timing import departures, physical_times
from wayveil.trajectories import Trajectories

_POOL = 2.0
_FEWEST = 64
_POOL_POINTS = 32
_BLOCK_M = 1_600.0
_FURTHEST_M = 250.0
_FURTHEST_ON_ROADS_M = 60.0


@dataclass(frozen=True, eq=False)
class Shard:
    """Some of the synthetic trajectories, with what is known about them."""

    trajectories: Trajectories
    loss: dict[str, float]
    effective_sample_share: float
    realised_density_jsd: float
    """Of the points' density against the estimated one, in nats: the realisation gap."""
    violations_before: dict[str, dict[str, int]]
    violations_after: dict[str, dict[str, int]]


@dataclass(frozen=True, eq=False)
class _Pool:
    """Candidates: trips, their routes, their departures."""

    trips: Trips
    lines: Polylines
    departure_utc: NDArray[np.float64]


def draw_shard(
    estimates: Estimates,
    prior: Prior,
    router: Router,
    rules: Sequence[Rule],
    count: int,
    random: np.random.Generator,
) -> Shard:
    """`count` trajectories."""
    pool_of = _draw_pool(estimates, prior, router, count, random)
    points = np.minimum(pool_of.trips.points, _POOL_POINTS)
    offsets, elapsed = _gaps(estimates, points, random)
    slowness = fit_slowness(pool_of.lines, offsets, elapsed, estimates.occupancy, estimates.grid)
    placed = _placed(estimates, prior, pool_of.lines, slowness, offsets, elapsed, random)
    forbidden = _forbidden(estimates, rules, placed, elapsed, pool_of)
    fit = fit_weights(_views(estimates, pool_of.trips, placed), estimates.count, len(pool_of.trips), forbidden)
    chosen = _resample(fit, pool_of.trips, count, random)
    return _finish(estimates, prior, rules, pool_of, slowness, fit, chosen, random)


def _draw_pool(
    estimates: Estimates, prior: Prior, router: Router, count: int, random: np.random.Generator
) -> _Pool:
    trips = draw_trips(estimates, max(round(_POOL * count), _FEWEST), random, prior.place_in_cells)
    lines = route_trips(estimates, router, trips, random)
    return _Pool(trips, lines, departures(estimates, len(trips), random))


def _gaps(
    estimates: Estimates, points: NDArray[np.int64], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return gap_fractions(points, estimates.gap_ratio, np.asarray(estimates.gap_ratio_bins.edges), random)


def _placed(
    estimates: Estimates,
    prior: Prior,
    lines: Polylines,
    slowness: Field,
    offsets: NDArray[np.int64],
    elapsed: NDArray[np.float64],
    random: np.random.Generator,
) -> Polylines:
    """Points on the routes, sparse ones drawn to the busy places around."""
    grid = estimates.grid
    placed = place(lines, slowness_weight(lines, slowness, grid), offsets, elapsed)
    furthest = _FURTHEST_ON_ROADS_M if prior.on_roads else _FURTHEST_M
    return scatter_sparse(placed, estimates.occupancy, grid, furthest, random)


def _forbidden(
    estimates: Estimates, rules: Sequence[Rule], placed: Polylines, elapsed: NDArray[np.float64], pool_of: _Pool
) -> NDArray[np.bool_] | None:
    """Candidates on which some rule's penalty is positive."""
    if not rules:
        return None
    owner = np.repeat(np.arange(len(placed)), np.diff(placed.offsets))
    t_utc = pool_of.departure_utc[owner] + elapsed * pool_of.trips.duration_s[owner]
    motion = motion_from_metres(placed.x_m, placed.y_m, t_utc, placed.offsets, estimates.scope)
    return violating_trajectories(rules, motion)


def _views(estimates: Estimates, trips: Trips, placed: Polylines) -> list[HardView | SoftView]:
    """What weights are fitted to: lengths of the final polylines, flows, displacements, durations, coarse places."""
    straight_km = np.hypot(trips.start[0] - trips.end[0], trips.start[1] - trips.end[1]) / 1000
    noise = estimates.noise
    return [
        HardView("length", estimates.length_bins.index(lengths(placed) / 1000), estimates.length, noise["length"], 0.7),
        HardView("origin_destination", trips.flow, estimates.flows.ravel(), noise["origin_destination/fine"], 0.5),
        HardView(
            "displacement",
            estimates.displacement_bins.index(straight_km),
            estimates.displacement_length.sum(axis=1),
            noise["displacement_length"],
            0.3,
        ),
        HardView(
            "duration", estimates.duration_bins.index(trips.duration_s), estimates.duration, noise["duration"], 0.5
        ),
        _coarse_occupancy(estimates, placed),
    ]


def _coarse_occupancy(estimates: Estimates, placed: Polylines) -> SoftView:
    """Share of each candidate's points in blocks of 1.6 km: which routes to take, where several fit the ends."""
    from scipy.sparse import csr_matrix

    grid = estimates.grid
    side = max(1, round(_BLOCK_M / grid.cell_m))
    target = pool(estimates.occupancy, side)
    blocks = Grid(grid.cell_m * side, target.shape[1], target.shape[0], grid.width_m, grid.height_m)
    points = np.diff(placed.offsets)
    features = csr_matrix(
        (np.repeat(1.0 / points, points), blocks.index(placed.x_m, placed.y_m), placed.offsets),
        shape=(len(placed), target.size),
    )
    return SoftView("occupancy", features, target.ravel() / target.sum(), estimates.noise["occupancy/coarse"], 0.3)


def _resample(fit: Fit, trips: Trips, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Systematic in the order of flow and start, so that the sample keeps the ends as well as it can."""
    order = np.lexsort((random.random(len(trips)), trips.origin, trips.flow))
    return random.permutation(order[systematic(fit.weight[order], count, random)])


def _finish(
    estimates: Estimates,
    prior: Prior,
    rules: Sequence[Rule],
    pool_of: _Pool,
    slowness: Field,
    fit: Fit,
    chosen: NDArray[np.int64],
    random: np.random.Generator,
) -> Shard:
    """The chosen candidates with all their points, their times, and the rules."""
    trips, scope, grid = take_trips(pool_of.trips, chosen), estimates.scope, estimates.grid
    offsets, elapsed = _gaps(estimates, trips.points, random)
    placed = _placed(estimates, prior, take(pool_of.lines, chosen), slowness, offsets, elapsed, random)
    owner = np.repeat(np.arange(len(trips)), trips.points)
    t_utc = np.rint(pool_of.departure_utc[chosen])[owner] + elapsed * trips.duration_s[owner]
    t_utc = physical_times(offsets, placed.x_m, placed.y_m, t_utc, scope.caps.speed_kmh / 3.6)
    lon, lat = scope.to_degrees(np.clip(placed.x_m, 0, grid.width_m), np.clip(placed.y_m, 0, grid.height_m))
    return Shard(
        trajectories=Trajectories(offsets, np.round(lon, 7), np.round(lat, 7), t_utc),
        loss=fit.loss,
        effective_sample_share=fit.effective_sample_share,
        realised_density_jsd=_jsd(histogram(placed, grid), estimates.occupancy),
        violations_before={},
        violations_after={},
    )


def _jsd(one: Field, other: Field) -> float:
    """Jensen–Shannon divergence in nats."""
    p, q = one.ravel() / one.sum(), other.ravel() / other.sum()
    middle = (p + q) / 2

    def half(a: NDArray[np.float64]) -> float:
        there = a > 0
        return float((a[there] * np.log(a[there] / middle[there])).sum())

    return 0.5 * half(p) + 0.5 * half(q)

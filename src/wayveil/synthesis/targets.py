"""targets: what the candidates' weights are fitted to, as views of the candidates.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.grid import blocks_of
from wayveil.polylines import Polylines, lengths
from wayveil.pyramid import pool
from wayveil.questions.displacement import Displacement
from wayveil.questions.duration import Duration
from wayveil.questions.length import Length
from wayveil.questions.mean_speed import MeanSpeed
from wayveil.synthesis.candidates import Trips, ends_by_district
from wayveil.synthesis.estimate import Estimates
from wayveil.synthesis.fit import HardView, SoftView
from wayveil.synthesis.placing import Course

_BLOCK_M = 1_600.0
_DISTRICT_DEPTH = 9
"""512 districts of about the same number of ends."""


def fit_views(estimates: Estimates, trips: Trips, course: Course, placed: Polylines) -> list[HardView | SoftView]:
    """What weights are fitted to: lengths of the final polylines, flows, displacements, durations, places."""
    straight_km = np.hypot(trips.start[0] - trips.end[0], trips.start[1] - trips.end[1]) / 1000
    length_km = final_lengths(trips, course, placed) / 1000
    noise, flows = estimates.noise, estimates.flows.shares
    displacement, duration, speed, length = (
        estimates.distribution(question) for question in (Displacement, Duration, MeanSpeed, Length)
    )
    # Each round ends with what is known best: a later view undoes a little of what an earlier one did.
    return [
        _coarse_occupancy(estimates, placed),
        HardView(
            "displacement",
            displacement.bins.index(straight_km),
            displacement.shares,
            noise["displacement"],
            0.3,
        ),
        HardView("duration", duration.bins.index(trips.duration_s), duration.shares, noise["duration"], 0.5),
        HardView(
            "speed",
            speed.bins.index(length_km * 3600 / trips.duration_s),
            speed.shares,
            noise["mean_speed"],
            0.5,
        ),
        *_district_ends(estimates, trips),
        HardView("origin_destination", trips.flow, flows.ravel(), noise["origin_destination/fine"], 0.7),
        _pairs_of_zones(trips),
        HardView("length", length.bins.index(length_km), length.shares, noise["length"], 0.7),
    ]


def _district_ends(estimates: Estimates, trips: Trips) -> list[HardView | SoftView]:
    """Starts and ends by district: weights for everything else would move them away from their fields."""
    district, starts, ends = ends_by_district(estimates, _DISTRICT_DEPTH)
    # Without noise of their own: the fields are smooth estimates already.
    return [
        HardView("starts", district[trips.origin], starts, 0.0, 0.7),
        HardView("ends", district[trips.destination], ends, 0.0, 0.7),
    ]


def _pairs_of_zones(trips: Trips) -> HardView:
    """As the pool was drawn: each pair of zones has its whole number of trips, which weights would make odd again."""
    drawn = np.bincount(trips.pair)
    return HardView("zone_pairs", trips.pair, drawn / drawn.sum(), 0.0, 0.5)


def final_lengths(trips: Trips, course: Course, placed: Polylines) -> NDArray[np.float64]:
    """Lengths with all points: what chords cut off the route shrinks with their length."""
    few, tried = np.diff(placed.offsets) - 1, lengths(placed)
    route = np.add.reduceat(course.step_m, course.lines.offsets[:-1])
    return route + (tried - route) * few / (trips.points - 1)


def _coarse_occupancy(estimates: Estimates, placed: Polylines) -> SoftView:
    """Share of each candidate's points in blocks of 1.6 km: which routes to take, where several fit the ends."""
    from scipy.sparse import csr_matrix

    grid = estimates.grid
    side = max(1, round(_BLOCK_M / grid.cell_m))
    target = pool(estimates.occupancy, side)
    block = blocks_of(grid, side).index(placed.x_m, placed.y_m)
    entered = np.r_[True, block[1:] != block[:-1]]
    entered[placed.offsets[:-1]] = True
    # One number for points that follow each other in a block.
    first = np.flatnonzero(entered)
    offsets = np.searchsorted(first, placed.offsets)
    share = np.diff(np.r_[first, len(block)]) / np.repeat(np.diff(placed.offsets), np.diff(offsets))
    features = csr_matrix((share, block[first], offsets), shape=(len(placed), target.size))
    return SoftView("occupancy", features, target.ravel() / target.sum(), estimates.noise["occupancy/coarse"], 0.5)

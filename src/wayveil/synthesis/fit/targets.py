"""Targets of the fit of candidate weights: one view of the candidates for each answer.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.grid import blocks_of
from wayveil.core.polylines import Polylines, lengths
from wayveil.core.pyramid import pool
from wayveil.questions.displacement import Displacement
from wayveil.questions.duration import Duration
from wayveil.questions.length import Length
from wayveil.questions.mean_speed import MeanSpeed
from wayveil.synthesis.estimate.estimates import Distribution, Estimates
from wayveil.synthesis.fit.settings import FIT
from wayveil.synthesis.fit.weights import HardView, SoftView
from wayveil.synthesis.place.points import Course
from wayveil.synthesis.trips.candidates import Trips, ends_by_district


def fit_views(estimates: Estimates, trips: Trips, course: Course, placed: Polylines) -> list[HardView | SoftView]:
    """The views that weights are fitted to: lengths of the final polylines, flows, displacements, durations, places."""
    straight_km = np.hypot(trips.start[0] - trips.end[0], trips.start[1] - trips.end[1]) / 1000
    length_km = final_lengths(trips, course, placed) / 1000
    noise, flows = estimates.noise, estimates.flows.shares
    displacement, duration, speed, length = (
        estimates.distribution(question) for question in (Displacement, Duration, MeanSpeed, Length)
    )
    # Each round ends with the views of least noise, because a later view disturbs the fit of earlier ones a little.
    return [
        _coarse_occupancy(estimates, placed),
        HardView(
            "displacement",
            displacement.bins.index(straight_km),
            displacement.shares,
            _known_noise(noise["displacement"], estimates.count, displacement),
            FIT.step["displacement"],
        ),
        HardView(
            "duration", duration.bins.index(trips.duration_s), duration.shares, noise["duration"], FIT.step["duration"]
        ),
        HardView(
            "speed",
            speed.bins.index(length_km * 3600 / trips.duration_s),
            speed.shares,
            noise["mean_speed"],
            FIT.step["speed"],
        ),
        *_district_ends(estimates, trips),
        HardView(
            "origin_destination",
            trips.flow,
            flows.ravel(),
            noise["origin_destination/fine"],
            FIT.step["origin_destination"],
        ),
        _pairs_of_zones(trips),
        HardView(
            "length",
            length.bins.index(length_km),
            length.shares,
            _known_noise(noise["length"], estimates.count, length),
            FIT.step["length"],
        ),
    ]


def _known_noise(noise: float, count: float, distribution: Distribution) -> float:
    """The noise, but at most the mean of a bin: prior knowledge about lengths limits their error."""
    return min(noise, count / len(distribution.bins))


def _district_ends(estimates: Estimates, trips: Trips) -> list[HardView | SoftView]:
    """Starts and ends by district; otherwise the fit of the other views would move them away from their fields."""
    district, starts, ends = ends_by_district(estimates, FIT.district_depth)
    # Their noise is zero here, because the fields are smoothed estimates.
    return [
        HardView("starts", district[trips.origin], starts, 0.0, FIT.step["starts"]),
        HardView("ends", district[trips.destination], ends, 0.0, FIT.step["ends"]),
    ]


def _pairs_of_zones(trips: Trips) -> HardView:
    """Keep the pairs of zones as drawn: each has a whole number of trips, which other views would change."""
    drawn = np.bincount(trips.pair)
    return HardView("zone_pairs", trips.pair, drawn / drawn.sum(), 0.0, FIT.step["zone_pairs"])


def final_lengths(trips: Trips, course: Course, placed: Polylines) -> NDArray[np.float64]:
    """Lengths of the trips as recorded with all their points; `placed` has only some of them.

    Chords between points are shorter than the route, by an amount that is proportional to their length.
    """
    chords, placed_m = np.diff(placed.offsets) - 1, lengths(placed)
    route = ragged.sums(course.step_m, course.lines.offsets)
    result: NDArray[np.float64] = route + (placed_m - route) * chords / (trips.points - 1)
    return result


def _coarse_occupancy(estimates: Estimates, placed: Polylines) -> SoftView:
    """Share of each candidate's points in blocks of 1.6 km; it selects among routes between the same ends."""
    from scipy.sparse import csr_matrix

    grid = estimates.grid
    side = max(1, round(FIT.block_m / grid.cell_m))
    target = pool(estimates.occupancy, side)
    block = blocks_of(grid, side).index(placed.x_m, placed.y_m)
    entered = np.r_[True, block[1:] != block[:-1]]
    entered[placed.offsets[:-1]] = True
    # One entry for each run of consecutive points in a block.
    first = np.flatnonzero(entered)
    offsets = np.searchsorted(first, placed.offsets)
    share = np.diff(np.r_[first, len(block)]) / np.repeat(np.diff(placed.offsets), np.diff(offsets))
    features = csr_matrix((share, block[first], offsets), shape=(len(placed), target.size))
    return SoftView(
        "occupancy", features, target.ravel() / target.sum(), estimates.noise["occupancy/coarse"], FIT.step["occupancy"]
    )

"""What weights are fitted to."""

import numpy as np
import pytest

from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, lengths
from wayveil.synthesis.fit.targets import final_lengths, fit_views
from wayveil.synthesis.fit.weights import fit_weights
from wayveil.synthesis.place.points import course_of
from wayveil.synthesis.trips.candidates import Trips, draw_trips

GRID = Grid(100.0, 40, 30, 4000.0, 3000.0)


def zigzag(steps, offset=0.0):
    """A path of 100 m steps that turns at each vertex."""
    return np.arange(steps + 1) * 80.0 + offset, np.arange(steps + 1) % 2 * 60.0 + 500


def trips_with(points):
    nothing = np.zeros(len(points))
    index = np.zeros(len(points), np.int64)
    return Trips(
        (nothing, nothing), (nothing, nothing), *[index] * 4, nothing, nothing + 60, np.array(points), nothing + 1
    )


def test_a_trip_with_all_its_points_placed_has_their_length():
    x, y = zigzag(20)
    course = course_of(Polylines(np.array([0, 21]), x, y), GRID)
    tried = Polylines(np.array([0, 5]), x[::5], y[::5])
    assert final_lengths(trips_with([5]), course, tried) == pytest.approx(lengths(tried))


def test_a_trip_with_many_points_is_as_long_as_its_route():
    x, y = zigzag(20)
    course = course_of(Polylines(np.array([0, 21]), x, y), GRID)
    tried = Polylines(np.array([0, 5]), x[::5], y[::5])
    found = [final_lengths(trips_with([points]), course, tried)[0] for points in (5, 9, 50, 5000)]
    assert found == sorted(found)
    assert lengths(tried)[0] < 1700 and found[-1] == pytest.approx(2000, rel=0.001)


def test_the_fit_keeps_starts_and_ends_near_their_fields(small_estimates):
    trips = draw_trips(small_estimates, 4000, np.random.default_rng(1))
    ends = [np.stack(pair, axis=1).ravel() for pair in zip(trips.start, trips.end)]
    lines = Polylines(np.arange(len(trips) + 1) * 2, *ends)
    views = fit_views(small_estimates, trips, course_of(lines, small_estimates.grid), lines)
    by_name = {view.name: view for view in views}
    kept, free = (
        fit_weights([view for view in views if view.name not in without], small_estimates.count, len(trips))
        for without in ((), ("starts", "ends"))
    )
    for name in ("starts", "ends"):
        view = by_name[name]
        assert view.target.sum() == pytest.approx(1) and len(view.target) == 512
        apart = [np.abs(view.shares(fit.weight) - view.target).sum() for fit in (kept, free)]
        assert apart[0] < 0.8 * apart[1]
    assert set(kept.loss) - set(free.loss) == {"starts", "ends"}

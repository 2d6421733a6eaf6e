"""What weights are fitted to."""

import numpy as np
import pytest

from wayveil.grid import Grid
from wayveil.synthesis.candidates import Trips
from wayveil.synthesis.placing import course_of
from wayveil.synthesis.polylines import Polylines, lengths
from wayveil.synthesis.targets import _final_lengths

GRID = Grid(100.0, 40, 30, 4000.0, 3000.0)


def zigzag(steps, offset=0.0):
    """A way of 100 m steps that turns at every one of them."""
    return np.arange(steps + 1) * 80.0 + offset, np.arange(steps + 1) % 2 * 60.0 + 500


def trips_with(points):
    nothing = np.zeros(len(points))
    index = np.zeros(len(points), np.int64)
    return Trips((nothing, nothing), (nothing, nothing), index, index, index, nothing, nothing + 60, np.array(points))


def test_a_route_seen_by_all_its_points_keeps_the_length_that_was_tried():
    x, y = zigzag(20)
    course = course_of(Polylines(np.array([0, 21]), x, y), GRID)
    tried = Polylines(np.array([0, 5]), x[::5], y[::5])
    assert _final_lengths(trips_with([5]), course, tried) == pytest.approx(lengths(tried))


def test_many_points_bring_a_route_back_to_its_own_length():
    x, y = zigzag(20)
    course = course_of(Polylines(np.array([0, 21]), x, y), GRID)
    tried = Polylines(np.array([0, 5]), x[::5], y[::5])
    found = [_final_lengths(trips_with([points]), course, tried)[0] for points in (5, 9, 50, 5000)]
    assert found == sorted(found)
    assert lengths(tried)[0] < 1700 and found[-1] == pytest.approx(2000, rel=0.001)

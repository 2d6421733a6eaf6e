"""Routes that leave the roads where the roads do not lead to the estimated density."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, place, steps
from wayveil.synthesis.place.points import course_of, fit_slowness, histogram, slowness_weight
from wayveil.synthesis.routes.offroad import leave_roads
from wayveil.synthesis.routes.road_shapes import with_short_steps

GRID = Grid(100.0, 48, 24, 4800.0, 2400.0)
ROAD_M = 450.0


def rng(seed=0):
    return np.random.default_rng(seed)


def along_the_road(count=200):
    """Routes of 49 vertices from west to east, all on one road."""
    x, y = np.tile(np.linspace(0, 4800, 49), count), np.full(49 * count, ROAD_M)
    return Polylines(np.arange(count + 1) * 49, x, y)


def road():
    field = np.zeros((GRID.rows, GRID.columns))
    field[int(ROAD_M // GRID.cell_m)] = 1.0
    return field


def with_a_campus():
    """Half of the time on the road, half of it in a square beside it, in the same block."""
    field = road()
    field[6:8, 16:24] = field.sum() / 16
    return field


def jsd(p, q):
    p, q = p.ravel() / p.sum(), q.ravel() / q.sum()
    middle = (p + q) / 2
    return 0.5 * sum(np.sum(a[a > 0] * np.log(a[a > 0] / middle[a > 0])) for a in (p, q))


def realised(lines, target, points=40):
    course, count = course_of(lines, GRID), np.full(len(lines), points)
    offsets, fraction = np.arange(len(lines) + 1) * points, np.tile(np.linspace(0, 1, points), len(lines))
    slowness = fit_slowness(course, count, offsets, fraction, target, GRID, rounds=6)
    return histogram(place(lines, slowness_weight(course, slowness), offsets, fraction), GRID)


def test_a_campus_that_no_road_leads_to_is_visited():
    lines, target = along_the_road(), with_a_campus()
    left = leave_roads(lines, np.full(len(lines), 40), target, GRID, rng())
    before, after = realised(lines, target), realised(left, target)
    assert before[6:8].sum() == 0
    assert after[6:8, 16:24].sum() > 0.3 * after.sum()
    assert jsd(after, target) < 0.4 * jsd(before, target)


def test_a_road_that_leads_everywhere_is_not_left():
    lines = along_the_road()
    assert leave_roads(lines, np.full(len(lines), 40), road(), GRID, rng()) is lines


def test_routes_in_other_blocks_and_ends_are_unchanged():
    lines = along_the_road()
    left = leave_roads(lines, np.full(len(lines), 40), with_a_campus(), GRID, rng())
    assert len(left) == len(lines)
    beside = np.abs(left.y_m - ROAD_M) > 1e-6
    # Off-road points lie between the last vertex before the block and the first one after it.
    assert left.x_m[beside].min() > 1600 - 101 and left.x_m[beside].max() < 2400 + 101
    for old, new in ((lines.offsets[:-1], left.offsets[:-1]), (lines.offsets[1:] - 1, left.offsets[1:] - 1)):
        np.testing.assert_array_equal(left.x_m[new], lines.x_m[old])
        np.testing.assert_array_equal(left.y_m[new], lines.y_m[old])
    assert steps(left).max() <= 1.2 * GRID.cell_m + 1e-9


def test_the_share_that_leaves_the_road_follows_the_missing_time():
    """At least three quarters of the block's time cannot be spent on the road, but some routes still stay on it."""
    lines = along_the_road(400)
    left = leave_roads(lines, np.full(len(lines), 40), with_a_campus(), GRID, rng())
    away = np.maximum.reduceat(np.abs(left.y_m - ROAD_M), left.offsets[:-1]) > 1e-6
    assert 0.3 < away.mean() < 0.95


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_any_routes_and_any_field_stay_inside_the_scope(seed, count):
    random = rng(seed)
    sizes = random.integers(2, 9, count)
    offsets = np.r_[0, np.cumsum(sizes)]
    lines = Polylines(offsets, random.uniform(0, 4800, offsets[-1]), random.uniform(0, 2400, offsets[-1]))
    target = random.gamma(0.1, size=(GRID.rows, GRID.columns)) * (random.random((GRID.rows, GRID.columns)) < 0.3)
    left = leave_roads(lines, random.integers(2, 50, count), target, GRID, random)
    assert len(left) == count and (np.diff(left.offsets) >= 2).all()
    assert np.isfinite(left.x_m).all() and np.isfinite(left.y_m).all()
    assert left.x_m.min() >= 0 and left.x_m.max() <= 4800 and left.y_m.min() >= 0 and left.y_m.max() <= 2400
    np.testing.assert_array_equal(left.x_m[left.offsets[:-1]], lines.x_m[offsets[:-1]])


def test_empty_places_and_zero_times_do_not_fail():
    lines = along_the_road(3)
    nowhere = np.zeros((GRID.rows, GRID.columns))
    assert leave_roads(lines, np.full(3, 2), nowhere, GRID, rng()) is lines
    standing = Polylines(np.array([0, 2]), np.array([50.0, 50.0]), np.array([50.0, 50.0]))
    assert len(leave_roads(standing, np.array([2]), road(), GRID, rng())) == 1


def test_long_steps_are_divided_and_short_ones_stay():
    lines = Polylines(np.array([0, 3, 5]), np.array([0.0, 50, 500, 7, 7]), np.array([0.0, 0, 0, 0, 1000]))
    short = with_short_steps(lines, 200.0)
    assert short.offsets.tolist() == [0, 5, 11]
    assert short.x_m[:5].tolist() == [0, 50, 200, 350, 500]
    assert short.y_m[5:] == pytest.approx([0, 200, 400, 600, 800, 1000])
    assert len(with_short_steps(Polylines(np.zeros(1, np.int64), np.empty(0), np.empty(0)), 10.0)) == 0

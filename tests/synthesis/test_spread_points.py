"""Sparse fixes that move a little along their routes so that the counts of cells match the density."""

from dataclasses import replace

import numpy as np
import pytest

from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines, place, steps
from wayveil.synthesis.place.points import histogram
from wayveil.synthesis.place.settings import SPREAD
from wayveil.synthesis.place.spread_points import places_along, spread_points

GRID = Grid(100.0, 40, 30, 4000.0, 3000.0)


def rng(seed):
    return np.random.default_rng(seed)


def corners(n, seed=7):
    """Routes that go 2 km east and then 1 km north, each from its own start."""
    x, y = rng(seed).uniform(0, 1900, n), rng(seed + 1).uniform(0, 1900, n)
    return Polylines(np.arange(n + 1) * 3, np.c_[x, x + 2000, x + 2000].ravel(), np.c_[y, y, y + 1000].ravel())


def recorded(route, share):
    """Fixes at the same shares of the length of each route: (shares of all fixes, fixes)."""
    offsets, flat = np.arange(len(route) + 1) * len(share), np.tile(share, len(route))
    return flat, place(route, steps(route), offsets, flat)


def moved_along(route, share, density, reserve=1.0, seed=8):
    flat, fixes = recorded(route, share)
    choices = places_along(route, steps(route), flat, fixes, np.full(len(flat), reserve), rng(seed))
    return fixes, choices, spread_points(fixes, [choices], density, GRID, rng(seed))


def test_fixes_stay_on_their_route_in_their_order_and_ends_do_not_move():
    n, route = 200, corners(200)
    before, _, after = moved_along(route, np.linspace(0, 1, 9), rng(1).gamma(0.1, 1.0, (30, 40)))
    x, y = (column.reshape(n, 9) for column in (after.x_m, after.y_m))
    start_x, start_y = (column[::3, None] for column in (route.x_m, route.y_m))
    on_first, on_second = np.abs(y - start_y) < 0.01, np.abs(x - start_x - 2000) < 0.01
    assert (on_first | on_second).all()
    along = np.where(on_first, x - start_x, 2000 + y - start_y)
    assert (np.diff(along, axis=1) > 0).all()
    assert (after.x_m != before.x_m).mean() > 0.3
    for end in (0, 8):
        assert (x[:, end] == before.x_m.reshape(n, 9)[:, end]).all()


def test_counts_come_closer_to_the_density():
    route = corners(400)
    density = rng(2).gamma(2.0, 1.0, (30, 40))
    _, fixes = recorded(route, np.linspace(0, 1, 400))
    density *= histogram(fixes, GRID) + 1e-3  # only where routes pass
    before, _, after = moved_along(route, np.linspace(0, 1, 9), density)
    target = density * (len(before.x_m) / density.sum())

    def misfit(lines):
        return float(((histogram(lines, GRID, np.full(400, 9)) - target) ** 2 / (target + 0.01)).sum())

    assert misfit(after) < 0.6 * misfit(before)


def test_fixes_of_dense_tracks_and_fixes_beside_a_rest_stay():
    route, busy = corners(50), rng(1).gamma(0.5, 1.0, (30, 40))
    before, choices, after = moved_along(route, np.linspace(0, 1, 400), busy)
    assert len(choices.fix) == 0 and after is before
    resting = np.array([0.0, 0.2, 0.4, 0.4, 0.4, 0.6, 0.8, 1.0])
    _, choices, _ = moved_along(route, resting, busy)
    assert set(choices.fix % 8) == {1, 5, 6}


@pytest.mark.parametrize("reserve", [0.0, 0.2, 0.6])
def test_no_step_grows_by_more_than_its_reserve(reserve):
    before, _, after = moved_along(corners(200), np.linspace(0, 1, 9), rng(1).gamma(0.1, 1.0, (30, 40)), reserve)
    # Along the route a step grows by at most its reserve; across the corner chords can only be shorter.
    assert steps(after).max() <= 375 * (1 + min(reserve, 2 * SPREAD.reach)) + 0.1
    assert (after is before) == (reserve == 0.0)


def test_the_same_seed_gives_the_same_moves_for_choices_in_two_parts():
    route, busy = corners(60), rng(1).gamma(0.5, 1.0, (30, 40))
    fixes, choices, one = moved_along(route, np.linspace(0, 1, 9), busy)
    half = len(choices.fix) // 2
    parts = [
        replace(choices, fix=choices.fix[part], x_m=choices.x_m[:, part], y_m=choices.y_m[:, part])
        for part in (slice(0, half), slice(half, None))
    ]
    other = spread_points(fixes, parts, busy, GRID, rng(8))
    again = spread_points(fixes, parts, busy, GRID, rng(8))
    assert (other.x_m == again.x_m).all() and (other.y_m == again.y_m).all()
    assert len(one) == len(other)

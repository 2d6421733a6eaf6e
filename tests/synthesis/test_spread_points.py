"""Sparse fixes that move a little so that cells have as many as they should."""

import numpy as np

from wayveil.core.grid import Grid
from wayveil.core.polylines import Polylines
from wayveil.synthesis.place.points import histogram
from wayveil.synthesis.place.spread_points import spread_points

GRID = Grid(100.0, 40, 30, 4000.0, 3000.0)
N = 400


def rng(seed):
    return np.random.default_rng(seed)


def sparse(seed=7):
    """Five fixes a kilometre apart on each of many lines from west to east."""
    y = np.repeat(rng(seed).uniform(0, 3000, N), 5)
    return Polylines(np.arange(N + 1) * 5, np.tile(np.linspace(0, 4000, 5), N), y)


def ends_of(lines):
    return np.r_[lines.offsets[:-1], lines.offsets[1:] - 1]


def test_fixes_move_to_where_they_are_wanted_and_no_further_than_they_may():
    lines, busy = sparse(), np.full((30, 40), 0.001)
    busy[::3] = 1.0
    moved = spread_points(lines, busy, GRID, 250.0, rng(8))
    for before, after, most in ((lines.x_m, moved.x_m, 4000), (lines.y_m, moved.y_m, 3000)):
        assert np.abs(after - before).max() <= 250.1 and after.min() >= 0 and after.max() <= most
        assert (after[ends_of(lines)] == before[ends_of(lines)]).all()
    inner = np.setdiff1d(np.arange(5 * N), ends_of(lines))

    def busy_share(tracks):
        return (busy.ravel()[GRID.index(tracks.x_m[inner], tracks.y_m[inner])] == 1).mean()

    assert busy_share(lines) < 0.5 < 0.95 < busy_share(moved)


def test_counts_come_closer_to_the_density_than_chance_would_bring_them():
    """Fixes drawn from the density itself scatter like dice; evened out they do not."""
    random = rng(3)
    density = random.gamma(2.0, 1.0, (30, 40))
    density[:, [0, 39]] = 1e-9
    cell = random.choice(density.size, 9000, p=density.ravel() / density.sum())
    x, y = (cell % 40 + random.random(9000)) * 100, (cell // 40 + random.random(9000)) * 100
    order = np.argsort(random.random((300, 30)), axis=1).ravel() + np.repeat(np.arange(300) * 30, 30)
    lines = Polylines(np.arange(301) * 30, x[order], y[order])
    moved = spread_points(lines, density, GRID, 250.0, rng(8))
    wanted = density * 9000 / density.sum()

    def misfit(tracks):
        count = histogram(tracks, GRID, np.full(300, 30))
        return float((((count - wanted) ** 2) / (wanted + 0.01)).sum())

    assert misfit(lines) > 900, "about one for each cell"
    assert misfit(moved) < 0.3 * misfit(lines)


def test_dense_tracks_stay_and_the_same_seed_moves_the_same():
    busy = rng(1).gamma(0.5, 1.0, (30, 40))
    dense = Polylines(np.array([0, 400]), np.linspace(0, 4000, 400), np.full(400, 150.0))
    assert spread_points(dense, busy, GRID, 250.0, rng(8)) is dense
    one, other = (spread_points(sparse(), busy, GRID, 250.0, rng(8)) for _ in range(2))
    assert (one.x_m == other.x_m).all() and (one.y_m == other.y_m).all()


def test_fixes_keep_their_order_along_the_route():
    """Where points gather, steps are short: a move by a share of the mean step would turn back and forth there."""
    n, random = 60, rng(11)
    x = np.sort(
        np.where(random.random((n, 30)) < 0.7, random.uniform(1900, 2100, (n, 30)), random.uniform(0, 4000, (n, 30)))
    )
    lines = Polylines(np.arange(n + 1) * 30, x.ravel(), np.repeat(random.uniform(100, 2900, n), 30))
    moved = spread_points(lines, random.gamma(0.1, 1.0, (30, 40)), GRID, 250.0, rng(8))
    assert (moved.x_m != lines.x_m).mean() > 0.05
    assert (np.diff(moved.x_m.reshape(n, 30), axis=1) >= 0).all()


def test_no_step_grows_by_more_than_there_is_room():
    lines, random = sparse(), rng(5)
    room = np.where(random.random(5 * N) < 0.5, 40.0, 200.0)
    moved = spread_points(lines, random.gamma(0.1, 1.0, (30, 40)), GRID, 400.0, rng(8), room_m=room)
    before, after = (np.hypot(np.diff(one.x_m), np.diff(one.y_m)) for one in (lines, moved))
    assert (moved.x_m != lines.x_m).mean() > 0.3
    # Each end moves by at most `room` in both directions, that is √2 of it.
    assert (after - before <= 2 * np.sqrt(2) * room[1:] + 0.1)[np.arange(1, 5 * N) % 5 > 0].all()

"""Trips between zones in whole numbers."""

import numpy as np
import pytest
from zones import GRID, zone_of

from wayveil.core.grid import Grid
from wayveil.synthesis.trips.draw import apportioned
from wayveil.synthesis.trips.pairs import integer_trips, zone_pairs
from wayveil.synthesis.trips.settings import TRIPS


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture
def trips():
    """4,000 trips, most of them between few places."""
    heat = rng(1).gamma(0.05, size=GRID.cells)
    return [rng(seed).choice(GRID.cells, 4000, p=heat / heat.sum()) for seed in (2, 3)]


def test_a_pair_is_two_zones_and_its_direction(trips):
    pair = zone_pairs(*trips, GRID)
    both = zone_of(trips[0]) * 100 + zone_of(trips[1])
    assert len(np.unique(pair)) == len(np.unique(both)) == len(np.unique(np.c_[pair, both], axis=0)) == pair.max() + 1
    assert len(np.unique(zone_pairs(np.array([0, 95]), np.array([95, 0]), GRID))) == 2


def test_close_indices_have_close_starts_and_close_ends(trips):
    pair = zone_pairs(*trips, GRID)
    order = np.argsort(pair, kind="stable")

    def apart(cells):
        return np.abs(np.diff(zone_of(cells) // 10)) + np.abs(np.diff(zone_of(cells) % 10))

    for cells in trips:
        assert apart(cells[order]).mean() < 0.4 * apart(cells).mean()


def test_whole_numbers_are_near_the_shares_and_keep_the_sum_of_neighbours(trips):
    pair, weight = zone_pairs(*trips, GRID), rng(4).gamma(1.0, size=4000)
    whole = integer_trips(pair, weight, 1500, rng())
    share = np.bincount(pair, weight) / weight.sum() * 1500
    assert whole.sum() == 1500
    assert np.abs(whole - share).max() < 1 + share.max() / TRIPS.run_trips
    assert np.abs(np.cumsum(whole) - np.cumsum(share)).max() < TRIPS.run_trips + share.max()
    drawn = np.bincount(rng(5).choice(pair, 1500, p=weight / weight.sum()), minlength=len(whole))
    assert np.abs(whole - share).sum() < 0.6 * np.abs(drawn - share).sum()


def test_of_unlikely_neighbours_the_likeliest_get_the_trips():
    wanted = np.tile([0.1, 0.4, 0.2, 0.3], 160)
    whole = integer_trips(np.arange(640), wanted, 160, rng())
    assert whole.reshape(-1, 4).sum(axis=0).tolist() == [0, 160, 0, 0]


def test_rounding_keeps_the_mean_displacement_of_trips_that_are_spread_over_a_city():
    """With many more pairs than trips, pairs with short displacements are likelier, but must not get all the trips."""
    side, count = 400, 4_000
    grid = Grid(GRID.cell_m, side, side, side * GRID.cell_m, side * GRID.cell_m)
    spots = [rng(seed).normal(side / 2, side / 6, (2, 16 * count)) for seed in (2, 3)]
    places = [np.clip(spot, 0, side - 1).astype(int) for spot in spots]
    apart = np.hypot(*(places[0] - places[1]))
    weight = np.exp(-apart / 60)
    pair = zone_pairs(*(down * side + right for down, right in places), grid)
    whole = integer_trips(pair, weight, count, rng())
    rounded = np.average(apart, weights=weight * (whole / np.bincount(pair, weight))[pair])
    assert rounded == pytest.approx(np.average(apart, weights=weight), rel=0.06)


def test_a_pair_with_most_of_the_trips_gets_them():
    weight = np.r_[np.full(50, 0.001), 1.0, np.full(50, 0.001)]
    whole = integer_trips(np.arange(101), weight, 1000, rng())
    assert whole.sum() == 1000 and whole[50] == pytest.approx(1000 / 1.1, abs=16)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_few_trips(count):
    assert integer_trips(np.zeros(1, np.int64), np.ones(1), count, rng()).tolist() == [count]
    assert integer_trips(np.arange(30), np.ones(30), count, rng()).sum() == count


def test_each_group_gets_its_total_by_largest_remainders():
    weight, group = np.array([5.0, 3.0, 2.0, 1.0, 1.0, 0.0]), np.array([0, 0, 0, 1, 1, 1])
    assert apportioned(weight, group, np.array([4, 0]), rng()).tolist() == [2, 1, 1, 0, 0, 0]
    assert apportioned(weight, group, np.array([10, 7]), rng())[:3].tolist() == [5, 3, 2]
    tied = {tuple(apportioned(weight, group, np.array([0, 1]), rng(seed))[3:]) for seed in range(20)}
    assert tied == {(1, 0, 0), (0, 1, 0)}

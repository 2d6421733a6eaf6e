"""Raking: margins that can hold do hold, limits are kept."""

import numpy as np
import pytest

from wayveil.core.raking import Limits, rake


def shares(random, bins):
    return random.dirichlet(np.ones(bins))


def test_a_table_gets_both_margins_and_keeps_its_odds_ratios():
    random = np.random.default_rng(0)
    table, rows, columns = random.random((4, 5)) + 0.1, shares(random, 4), shares(random, 5)
    raked = rake(table.copy(), ((0, rows), (1, columns)), 200)
    assert raked.sum(axis=1) == pytest.approx(rows) and raked.sum(axis=0) == pytest.approx(columns)
    odds = [t[0, 0] * t[1, 1] / (t[0, 1] * t[1, 0]) for t in (table, raked)]
    assert odds[0] == pytest.approx(odds[1])


def test_groups_get_their_shares_of_any_sum():
    random = np.random.default_rng(1)
    group = [random.integers(4, size=1000), random.integers(3, size=1000)]
    wanted = [shares(random, 4), shares(random, 3)]
    weight = rake(np.ones(1000), list(zip(group, wanted)), 100, total=None)
    for of, share in zip(group, wanted):
        assert np.bincount(of, weight) / weight.sum() == pytest.approx(share)


def test_an_empty_group_changes_nothing():
    weight = rake(np.ones(10), [(np.zeros(10, np.int64), np.array([0.5, 0.5]))], 5, total=None, limits=Limits(5.0))
    assert np.isfinite(weight).all() and weight.min() == weight.max()


def test_limits_hold():
    group, wanted = np.r_[np.zeros(99, np.int64), 1], np.array([0.01, 0.99])
    assert rake(np.ones(100), [(group, wanted)], 1, total=None, limits=Limits(5.0))[-1] == 5.0
    bounded = rake(np.ones(100), [(group, wanted)], 9, total=None, limits=Limits(bounds=(0.5, 2.0)))
    assert bounded.min() >= 0.5 and bounded.max() <= 2.0


def test_rows_add_to_one_after_every_margin():
    group = np.array([[0, 1], [0, 1], [1, 1]])
    limits = Limits(rows_add_to_one=True)
    weight = rake(np.full((3, 2), 0.5), [(group, np.array([0.5, 0.5]))], 50, total=3, limits=limits)
    assert weight.sum(axis=1) == pytest.approx(np.ones(3))
    assert np.bincount(group.ravel(), weight.ravel()) / 3 == pytest.approx([0.5, 0.5], abs=1e-6)


def test_half_the_power_goes_half_of_the_way_on_the_log_scale():
    table = rake(np.ones((2, 2)), [(0, np.array([8.0, 2.0]))], 1, power=0.5)
    assert table.sum(axis=1) == pytest.approx([4.0, 2.0])

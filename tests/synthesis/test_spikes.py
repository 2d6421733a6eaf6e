"""Durations that were cut: spikes and slopes from a finer answer, and none where nothing was cut."""

import numpy as np
import pytest

from wayveil.synthesis.estimate.spikes import with_spikes

EVEN, GROUP = np.full(40, 1 / 40), np.repeat(np.arange(5), 8)


def jsd(p, q):
    p, q = p / p.sum(), q / q.sum()
    middle = (p + q) / 2
    return 0.5 * sum(np.sum(a[a > 0] * np.log(a[a > 0] / middle[a > 0])) for a in (p, q))


def test_a_spike_takes_its_mass_from_its_own_group():
    counts = np.where(GROUP == 1, 20 / 7, 25.0)
    counts[11] = 180.0
    found = with_spikes(EVEN, counts, 5.0, 1000.0, GROUP)
    assert found[11] == pytest.approx(0.18, abs=0.01)
    assert found[8:16].sum() == pytest.approx(0.2)
    assert found[GROUP != 1] == pytest.approx(1 / 40, rel=0.1)


def test_groups_beside_a_cut_get_a_slope():
    """The merged answer determines a group's sum; only the finer one shows that most of it is next to the cut."""
    counts = np.full(40, 5.0)
    counts[15] = 600.0
    counts[16:24] = 200 * 0.5 ** np.arange(8) / 1.992
    shares = np.array([40, 635, 200, 40, 40])[GROUP] / 8
    shares = shares / shares.sum()
    noise = np.random.default_rng(5).laplace(0, 12.0, (40, 40))
    found = [with_spikes(shares, counts + each, 12.0, counts.sum(), GROUP) for each in noise]
    before, after = jsd(shares, counts), np.mean([jsd(each, counts) for each in found])
    assert after < 0.1 * before
    assert np.median([each[16] > 2 * each[18] > 4 * each[20] for each in found])


def test_noise_is_not_a_spike():
    noise = np.random.default_rng(3).laplace(0, 20.0, (200, 40))
    found = [with_spikes(EVEN, 1000 * EVEN + each, 20.0, 1000.0, GROUP) for each in noise]
    assert np.mean([jsd(each, EVEN) for each in found]) < 2e-3
    assert np.mean([each.max() > 0.1 for each in found]) <= 0.02


def test_a_slope_alone_is_not_a_cut():
    """Without a spike, gentle slopes inside the groups explain too little to outweigh the low prior of a cut."""
    truth = np.exp(-np.arange(40) / 20)
    truth /= truth.sum()
    smooth = np.repeat([truth[g == GROUP].mean() for g in range(5)], 8)
    noise = np.random.default_rng(6).laplace(0, 20.0, (50, 40))
    found = [with_spikes(smooth, 1000 * truth + each, 20.0, 1000.0, GROUP) for each in noise]
    assert np.mean([jsd(each, truth) for each in found]) < jsd(smooth, truth) + 2e-3


def test_a_spike_of_ten_units_of_noise_is_found():
    counts = np.where(np.arange(40) == 11, 187.0, np.where(GROUP == 1, 1000 * 0.013 / 7, 25.0))
    noise = np.random.default_rng(4).laplace(0, 16.0, (50, 40))
    found = np.array([with_spikes(EVEN, counts + each, 16.0, 1000.0, GROUP) for each in noise])
    assert np.median(found[:, 11]) > 0.15


def test_a_spike_never_empties_its_group_nor_fills_more_than_it():
    shares, group = np.full(6, 1 / 6), np.array([0, 0, 1, 1, 2, 3])
    found = with_spikes(shares, np.array([900.0, 0, 0, 0, 800.0, 0]), 10.0, 1000.0, group)
    assert found[:2].sum() == pytest.approx(1 / 3) and found[1] > 0
    assert found[4] == pytest.approx(1 / 6)
    assert found.sum() == pytest.approx(1)


def test_unexpected_answers_give_finite_numbers():
    for size in (1e-3, 1e6):
        found = with_spikes(EVEN, np.full(40, -size), 1e-3 * size, 1.0, GROUP)
        assert np.isfinite(found).all() and found.sum() == pytest.approx(1) and found.min() > 0

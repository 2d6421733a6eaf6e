"""Departures under strong noise: the estimate is like a typical day, and noise does not put all trips into one hour."""

import numpy as np
import pytest

from wayveil.core.posterior import Noisy
from wayveil.synthesis.estimate.curves import Total
from wayveil.synthesis.estimate.day_shapes import day_shapes
from wayveil.synthesis.estimate.weekly import estimate_hours

RUSH = np.array([1, 1, 1, 1, 1, 2, 5, 9, 8, 5, 4, 4, 5, 5, 5, 6, 8, 9, 8, 6, 4, 3, 2, 1], float)
RUSH /= RUSH.sum()


def divergence(p, q):
    middle = (p + q) / 2
    return sum(0.5 * float((a[a > 0] * np.log(a[a > 0] / middle[a > 0])).sum()) for a in (p, q))


def estimated(truth, units, seed):
    noise = 1000 / units
    counts = 1000 * truth + np.random.default_rng(seed).laplace(0, noise, 24)
    return estimate_hours(Noisy(counts, noise), Total(1000.0, noise))


def test_day_shapes_are_distributions():
    shapes = day_shapes()
    np.testing.assert_allclose(shapes.sum(axis=1), 1)
    assert (shapes > 0).all() and shapes.max() < 0.25
    assert {int(k) // 4 for k in shapes.argmax(axis=1)} == set(range(6)), "any part of the day may be the busiest"


@pytest.mark.parametrize("units", [1, 3, 10])
def test_under_strong_noise_estimates_are_no_worse_than_uniform_hours(units):
    found = [estimated(RUSH, units, seed) for seed in range(25)]
    alike = divergence(RUSH, np.full(24, 1 / 24))
    assert np.mean([divergence(RUSH, one) for one in found]) < 1.1 * alike
    assert np.mean([one.max() > 0.3 for one in found]) < 0.1


def test_with_more_data_unusual_hours_are_recovered_too():
    by_night = np.roll(RUSH, 11)
    for truth in (RUSH, by_night):
        assert np.mean([divergence(truth, estimated(truth, 1000, seed)) for seed in range(5)]) < 0.002


def test_recordings_that_all_begin_in_one_hour_are_estimated_so():
    truth = np.where(np.arange(24) == 13, 0.95, 0.05 / 23)
    assert np.mean([estimated(truth, 30, seed)[13] for seed in range(10)]) > 0.85

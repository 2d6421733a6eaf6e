"""Weights of the values of a second draw: usual norms stay, noise falls where little is expected, and bounds hold."""

from dataclasses import replace

import numpy as np
import pytest

from wayveil.privacy.clipping import UnitVectors, clip_l2, squared_norms
from wayveil.questions.norms import CENTRE_PARTS, WEIGHT_PARTS, Centre
from wayveil.questions.value_weights import value_weights

SHARES = np.array([0.6, 0.3, 0.09, 0.01, 0.0])


def test_usual_norms_stay_and_rare_values_weigh_more():
    weights = value_weights(SHARES)
    assert (np.diff(weights) > 0).all() and weights[-1] < 32
    assert SHARES @ weights**2 == pytest.approx(1.0)
    assert weights[3] / weights[0] == pytest.approx(60**0.25, rel=0.01)
    np.testing.assert_allclose(value_weights(np.full(7, 1 / 7)), 1.0)


def random_vectors(units=30, size=5, seed=0):
    random = np.random.default_rng(seed)
    values = random.integers(0, 2**30, (units, size)) * (random.random((units, size)) < 0.6)
    unit, column = np.nonzero(values)
    return UnitVectors(units, unit, column, values[unit, column]), values


def test_weighted_differences_are_exact_and_within_the_bound():
    vectors, values = random_vectors()
    centre = Centre(np.arange(5) * 1000, np.array([4, 16, 40, 7, 256]))
    trajectories = np.arange(30)
    found = centre.difference(vectors, trajectories)
    wanted = [
        [int(centre.weights[k]) * (int(row[k]) - CENTRE_PARTS * int(count) * int(centre.values[k])) for k in range(5)]
        for row, count in zip(values, trajectories, strict=True)
    ]
    assert squared_norms(found).tolist() == [sum(v * v for v in row) for row in wanted]
    assert found.sums(5).tolist() == [sum(column) for column in zip(*wanted, strict=True)]
    bound = 2**33
    assert (squared_norms(clip_l2(found, bound)) <= bound**2).all()


def test_without_weights_nothing_changes():
    vectors, _ = random_vectors()
    plain, ones = Centre(np.arange(5)), Centre(np.arange(5), np.full(5, WEIGHT_PARTS))
    times = np.full(30, 3)
    sums = plain.difference(vectors, times).sums(5)
    np.testing.assert_array_equal(ones.difference(vectors, times).sums(5), WEIGHT_PARTS * sums)


def test_weights_after_clipping_are_caught():
    """Clipping first and weighting afterwards would exceed the bound."""
    vectors, _ = random_vectors()
    weights, bound = np.array([4, 16, 40, 7, 256]), 2**31
    broken = clip_l2(vectors, bound).times(weights)
    assert (squared_norms(broken) > bound**2).any()
    assert (squared_norms(clip_l2(vectors.times(weights), bound)) <= bound**2).all()


def test_weights_that_do_not_fit_are_refused():
    vectors, _ = random_vectors()
    with pytest.raises(OverflowError):
        replace(vectors, value=vectors.value << 30).times(np.full(5, 1 << 12))

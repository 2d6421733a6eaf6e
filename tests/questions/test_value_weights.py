"""Weights of the values of a second draw: usual norms stay, noise falls where little is expected, and bounds hold."""

from dataclasses import replace

import numpy as np
import pytest

from wayveil.core.grid import Grid
from wayveil.privacy.clipping import UnitVectors, clip_l2, squared_norms
from wayveil.privacy.unit import MOST_PER_USER, Unit
from wayveil.questions.end_points import EndPoints
from wayveil.questions.norms import (
    CENTRE_PARTS,
    LARGEST_WEIGHT,
    WEIGHT_PARTS,
    Centre,
    can_be_weighted,
    clipped_resolution,
)
from wayveil.questions.occupancy import Occupancy
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


@pytest.mark.parametrize("question", [Occupancy, EndPoints])
def test_no_unit_can_cause_an_overflow(question):
    """A user with as many trips as are used, all in the block with the largest weight."""
    blocks = question(Grid(100.0, 20, 20, 2000.0, 2000.0), 10)
    most = max(c for c in 2 ** np.arange(20) if can_be_weighted(blocks, Unit.user(int(c))))
    assert most >= 10_000 and not can_be_weighted(blocks, Unit.user(MOST_PER_USER))
    value = np.array([most * clipped_resolution(blocks)])
    one = UnitVectors(1, np.zeros(1, np.int64), np.array([2]), value)
    values = np.full(4, clipped_resolution(blocks) // CENTRE_PARTS // 32)
    centre = Centre(values, np.array([1, 1, LARGEST_WEIGHT, 1]))
    found = centre.difference(one, np.array([most]))
    assert squared_norms(clip_l2(found, 1 << 20))[0] <= 1 << 40


def test_weights_that_do_not_fit_are_refused():
    vectors, _ = random_vectors()
    with pytest.raises(OverflowError):
        replace(vectors, value=vectors.value << 30).times(np.full(5, 1 << 12))

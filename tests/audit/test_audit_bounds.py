"""The bound holds for right mechanisms, bites for wrong ones, and is never fitted to the runs that it counts."""

import math
from fractions import Fraction

import numpy as np
import pytest

from stats import ALPHA
from wayveil.audit import epsilon_bound, rate
from wayveil.audit.attacks import advantage
from wayveil.audit.bounds import lower, upper
from wayveil.privacy.noise import SeededNoise

SURE = 1 - ALPHA


def test_clopper_pearson_against_the_binomial_distribution():
    from scipy.special import bdtr, bdtrc

    for k, n, alpha in ((0, 10, 0.01), (1, 10, 0.01), (37, 100, 1e-4), (100, 100, 0.05)):
        low, high = float(lower(k, n, alpha)), float(upper(k, n, alpha))
        assert low <= k / n <= high
        if k > 0:
            assert bdtrc(k - 1, n, low) == pytest.approx(alpha)
        if k < n:
            assert bdtr(k, n, high) == pytest.approx(alpha)
    assert float(lower(0, 5, 0.1)) == 0.0 and float(upper(5, 5, 0.1)) == 1.0
    assert rate(3, 4).value == 0.75


@pytest.mark.parametrize("epsilon", [0.3, 1, 2])
def test_laplace_is_acquitted_and_half_of_it_convicted(epsilon):
    share = Fraction(str(epsilon))
    noise, runs = SeededNoise(5), 40_000
    right, half = (
        [noise.laplace(np.full(runs, value * 1000), 1000, share * factor).values for value in (10, 11)]
        for factor in (1, 2)
    )
    assert epsilon_bound(*right, confidence=SURE).epsilon <= epsilon
    assert epsilon_bound(*half, confidence=SURE).epsilon > epsilon
    assert epsilon_bound(*half, confidence=SURE).epsilon <= 2 * epsilon


def test_the_bound_finds_either_direction_and_the_informative_statistic():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(2, 400, 3))
    noise[1, :, 2] -= 50  # lower with the canary
    bound = epsilon_bound(noise[0], noise[1], names=["a", "b", "c"])
    assert bound.event.startswith("c ") and bound.epsilon > 2.5
    assert bound.likely.value == 1.0 and bound.unlikely.value == 0.0


def test_choosing_among_many_useless_statistics_does_not_convict():
    rng = np.random.default_rng(2)
    zero, one = rng.normal(size=(2, 300, 150))
    chosen = epsilon_bound(zero, one)
    assert chosen.epsilon == 0.0
    # The same search without held-out runs would have "found" something: the split is what protects.
    best = max(
        math.log(((one[:, k] > t).mean() + 1e-9) / ((zero[:, k] > t).mean() + 1e-3))
        for k in range(150)
        for t in (1.5, 2.0)
    )
    assert best > 0.5


def test_a_separation_that_is_small_against_rounding_survives():
    rng = np.random.default_rng(3)
    zero, one = 1e4 + rng.normal(scale=1e-7, size=200), 1e4 + 1 + rng.normal(scale=1e-7, size=200)
    assert epsilon_bound(zero, one).epsilon > 2


def test_constant_statistics_prove_nothing():
    assert epsilon_bound(np.ones(50), np.ones(50)).epsilon == 0.0


@pytest.mark.parametrize("bad", [(np.ones(3), np.ones(3)), (np.ones(9), np.full(9, np.nan)),
                                 (np.ones((9, 2)), np.ones((9, 1)))])  # fmt: skip
def test_bad_statistics_are_refused(bad):
    with pytest.raises(ValueError, match=r"audit"):
        epsilon_bound(*bad)


def test_advantage_of_a_known_test():
    rng = np.random.default_rng(4)
    inside, outside = rng.normal(0, 1, 20_000), rng.normal(1, 1, 20_000)
    found = advantage(inside, outside, SURE)
    true = 2 * 0.6914625 - 1  # normals one apart: Phi(1/2) right
    assert found.low <= true <= found.high and found.high - found.low < 0.1
    assert advantage(inside, rng.normal(0, 1, 20_000), SURE).low <= 0

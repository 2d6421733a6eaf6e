"""One small city, measured once with seeded noise, which the tests of whole steps share."""

import pytest

from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.synthesis.estimate.estimate import estimate


@pytest.fixture(scope="session")
def small_city():
    return simulate_city(0, size_km=(4, 4))


@pytest.fixture(scope="session")
def small_release(small_city):
    data = simulate_trajectories(small_city, 500, seed=3)
    return measure(data, small_city.scope, epsilon=2, unit="trajectory", noise=SeededNoise(5))


@pytest.fixture(scope="session")
def small_estimates(small_release):
    return estimate(small_release)

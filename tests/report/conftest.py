"""A small release, made by hand, and synthetic data for it."""

from fractions import Fraction

import numpy as np
import pytest

from wayveil.release import Answer, Release
from wayveil.simulate import simulate_city, simulate_trajectories


@pytest.fixture(scope="session")
def small_city():
    return simulate_city(0, size_km=(4, 4))


@pytest.fixture(scope="session")
def small_synthetic(small_city):
    return simulate_trajectories(small_city, 400, seed=1)


@pytest.fixture(scope="session")
def small_real(small_city):
    return simulate_trajectories(small_city, 500, seed=2)


@pytest.fixture(scope="session")
def small_rules(small_city):
    from wayveil.rules import read_rules

    return read_rules(small_city.rules_geojson, small_city.scope, small_city.roadmap)


def release_of(scope, *, private=True, unit="trajectory", epsilon=Fraction(1), delta=0.0, names=("count", "length")):
    share = epsilon / len(names)
    noisy = np.arange(4, dtype=np.int64)
    answers = tuple(Answer(name, {}, (4,), 1024, "laplace", 1024 / float(share), share, noisy) for name in names)
    words = "Two datasets are neighbours if one is the other with one trajectory added or removed."
    return Release(scope, answers, epsilon, delta, unit, 10 if unit == "user" else 1, words, private, "wayveil 9.9")


@pytest.fixture
def make_release():
    return release_of


@pytest.fixture(scope="session")
def small_release(small_city):
    return release_of(small_city.scope)

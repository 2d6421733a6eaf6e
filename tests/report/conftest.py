"""A small release, made by hand, and synthetic data for it."""

from fractions import Fraction

import numpy as np
import pytest

from wayveil.questions.answer import Answer
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.count import Count
from wayveil.release import Release
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
    answers = []
    for name in names:
        question = QUESTIONS[name].example(scope) if name in QUESTIONS else type("Odd", (Count,), {"name": name})()
        noisy = np.arange(np.prod(question.shape), dtype=np.int64)
        answers.append(Answer(question, "laplace", question.resolution / float(share), share, noisy))
    words = "Two datasets are neighbours if one is the other with one trajectory added or removed."
    most = 10 if unit == "user" else 1
    return Release(scope, tuple(answers), epsilon, delta, unit, most, words, private, "wayveil 9.9")


@pytest.fixture(scope="session")
def make_release():
    return release_of


@pytest.fixture(scope="session")
def small_release(small_city):
    return release_of(small_city.scope)

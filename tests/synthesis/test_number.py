"""The number of trajectories from all answers of a release, and the number that is made from it."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, truncnorm

from stats import ALPHA
from wayveil.core.positive import positive_mean
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.questions.answer import Answer
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.question import size_of
from wayveil.release.number import ROUNDED_OFF, estimate_number
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.synthesis.arguments import default_count


@given(st.floats(-1e4, 1e6), st.floats(1e-3, 1e4))
def test_the_mean_of_a_positive_number_is_that_of_a_truncated_normal(value, sd):
    found = positive_mean(value, sd)
    assert found > 0 and found >= value
    if -25 < value / sd < 25:
        assert found == pytest.approx(truncnorm.mean(-value / sd, np.inf, value, sd), rel=1e-6)
    if value / sd > 40:
        assert found == value


def release_with(small_release, number, epsilon, random):
    """A release of this many trajectories whose sums are exact apart from fresh Laplace noise."""
    answers = []
    for answer in small_release.answers:
        size = size_of(answer.question)
        exact = np.zeros(size)
        if answer.question.adds_up:
            exact = random.multinomial(number, np.full(size, 1 / size)) * float(answer.question.resolution)
        scale = answer.question.resolution / (float(answer.epsilon) / float(small_release.epsilon) * epsilon)
        noisy = np.rint(exact + random.laplace(0, scale, size)).astype(np.int64)
        answers.append(Answer(answer.question, "laplace", scale, Fraction(1), noisy))
    return replace(small_release, answers=tuple(answers), epsilon=Fraction(1))


def test_the_error_has_the_stated_size_and_is_smaller_than_that_of_the_count(small_release):
    random, number, epsilon, draws = np.random.default_rng(7), 2000, 0.5, 400
    found = [estimate_number(release_with(small_release, number, epsilon, random)) for _ in range(draws)]
    scaled = np.array([(one.value - number) / one.sd for one in found])
    # The occupancy is exact here, so the actual error lacks its part of the stated variance.
    bound = norm.isf(ALPHA / 2)
    assert abs(scaled.mean()) < bound / math.sqrt(draws)
    assert scaled.std() < 1 + bound / math.sqrt(2 * draws)
    count_sd = math.sqrt(2) * 100 / epsilon
    assert np.std([one.value for one in found]) < count_sd / 3
    assert all(one.sd < count_sd / 3 for one in found)


def test_a_broken_estimator_that_trusts_signed_differences_would_be_caught(small_release, monkeypatch):
    random, number = np.random.default_rng(8), 5000
    monkeypatch.setattr(QUESTIONS["start_minus_end"], "adds_up", True)
    values = []
    for _ in range(100):
        release = release_with(small_release, number, 5.0, random)
        zero = replace(release["start_minus_end"], noisy=np.zeros_like(release["start_minus_end"].noisy))
        answers = [zero if answer.name == "start_minus_end" else answer for answer in release.answers]
        values.append(estimate_number(replace(release, answers=tuple(answers))))
    scaled = np.array([(one.value - number) / one.sd for one in values])
    assert abs(scaled.mean()) > norm.isf(ALPHA / 2) / math.sqrt(len(values))


def test_rounding_of_weights_does_not_bias_a_large_number(small_release):
    release = release_with(small_release, 10**6, 100.0, np.random.default_rng(9))
    less = [
        replace(answer, noisy=(answer.noisy * (1 - ROUNDED_OFF)).astype(np.int64))
        if answer.name.startswith("occupancy")
        else answer
        for answer in release.answers
    ]
    assert estimate_number(replace(release, answers=tuple(less))).value == pytest.approx(10**6, rel=1e-3)


@pytest.mark.parametrize("size_km", [(4, 4), (10, 10)])
def test_small_data_is_neither_halved_nor_doubled(size_km):
    """N·ε = 100: the count alone would be outside in one of three releases."""
    city = simulate_city(3, size_km=size_km)
    data = simulate_trajectories(city, 400, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        releases = [
            measure(data, city.scope, epsilon="0.25", unit="trajectory", noise=SeededNoise(seed)) for seed in range(40)
        ]
    made = np.array([default_count(release) for release in releases])
    assert made.min() >= 200 and made.max() <= 800
    alone = np.array([float(release["count"].counts[0]) for release in releases])
    assert ((alone < 200) | (alone > 800)).sum() >= 5


def test_an_empty_dataset_is_estimated_as_a_few_trajectories(small_release):
    release = release_with(small_release, 0, 0.5, np.random.default_rng(10))
    assert default_count(release) > 1

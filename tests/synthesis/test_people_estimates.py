"""Estimates about people: noise alone changes nothing, a clear answer is followed, and ends exchange positions."""

import numpy as np
import pytest

from wayveil.questions.people.trips_of_people import PLACE_M
from wayveil.synthesis.people.ends import NEAR_M, exchanged
from wayveil.synthesis.people.numbers import draw_numbers
from wayveil.synthesis.people.posterior import Models, models_around, projected, shapes

DEALT = np.array([5.0, 40.0, 120.0, 90.0, 30.0, 10.0, 5.0])


def error(estimate, truth):
    return np.abs(estimate - truth).sum()


@pytest.mark.parametrize("ordered", [False, True])
def test_an_answer_of_noise_leaves_the_expected_table_nearly_as_it_is(ordered):
    rng = np.random.default_rng(0)
    models, sd = models_around(DEALT, ordered), 60.0
    noisy = DEALT + rng.normal(0, sd, (40, len(DEALT)))
    errors = [error(models.estimate(one, sd, DEALT.sum()), DEALT) for one in noisy]
    assert np.mean(errors) < 0.35 * np.mean([error(one, DEALT) for one in noisy])


@pytest.mark.parametrize("ordered", [False, True])
def test_a_clear_answer_is_followed(ordered):
    rng = np.random.default_rng(0)
    truth, sd = DEALT[::-1], 3.0
    noisy = truth + rng.normal(0, sd, len(DEALT))
    counts = models_around(DEALT, ordered).estimate(noisy, sd, truth.sum())
    assert error(counts, truth) < error(noisy, truth) + 6 < error(DEALT, truth) / 10
    assert counts.min() >= 0 and counts.sum() == pytest.approx(truth.sum())


def test_models_may_have_different_totals():
    models = Models(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.5, 0.5]), spreads=(0.1,), smooth=True)
    counts, log_probability = models.estimate(np.array([50.0, 50.0]), 1.0, np.array([100.0, 1000.0]))
    assert counts == pytest.approx([50, 50])
    assert log_probability[0] > log_probability[1] + 10


def test_shapes_are_distributions_and_projections_keep_the_total():
    bank = shapes(np.arange(8.0), np.arange(0.0, 7.0), (0.2, 2.0))
    assert bank.min() >= 0 and np.allclose(bank.sum(axis=1), 1)
    assert projected(np.array([5.0, -3.0, 1.0]), 4.0) == pytest.approx([4, 0, 0])
    assert projected(np.array([5.0, 1.0]), 0.0) == pytest.approx([0, 0])


def test_numbers_of_trips_add_up():
    shares = np.array([0.5, 0.3, 0.2])
    for count, people in ((200, 100), (100, 100), (700, 100), (7, 7), (9, 1)):
        drawn = draw_numbers(shares, count, people, np.random.default_rng(0))
        assert len(drawn) == people and drawn.sum() == count and drawn.min() >= 1


def test_ends_are_near_their_place_and_positions_are_used_once():
    rng = np.random.default_rng(0)
    place, before = rng.uniform(0, 5_000, (2, 3_000, 2))
    after = exchanged(place, before)
    assert (np.hypot(*(after - place).T) <= NEAR_M).all()
    assert (after // PLACE_M == place // PLACE_M).all()
    kept = {tuple(row) for row in before.tolist()}
    taken = [tuple(row) for row in after.tolist() if tuple(row) in kept]
    assert len(taken) == len(set(taken)) > 0.8 * len(before)


def test_an_end_that_is_near_its_place_stays():
    place = np.array([[250.0, 250.0], [1250.0, 250.0]])
    before = place + np.array([[100.0, 0.0], [0.0, -140.0]])
    assert np.array_equal(exchanged(place, before), before)
    assert exchanged(np.zeros((0, 2)), np.zeros((0, 2))).shape == (0, 2)

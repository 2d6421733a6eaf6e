"""One user with all trips is protected by the questions about people; noise that is too small is convicted."""

from fractions import Fraction

import numpy as np
import pytest

from stats import ALPHA
from wayveil.audit.bounds import epsilon_bound
from wayveil.audit.mechanism_audit import HalfNoise, Neighbours
from wayveil.audit.user_audit import user_scores
from wayveil.core.trajectories import Trajectories, select
from wayveil.privacy.noise import OpenDPNoise, SeededNoise
from wayveil.questions.catalogue import PEOPLE_QUESTIONS
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.simulate.generate import Behaviour

RUNS = 1500


@pytest.fixture(scope="module")
def neighbours():
    """Forty trips of one user: with c = 40 each of them alone would have to hide among forty times the noise."""
    city = simulate_city(0, size_km=(4, 4))
    data = simulate_trajectories(city, 200, seed=1, behaviour=Behaviour(diaries=True))
    user = np.where(np.arange(200) < 40, -1, np.asarray(data.user, np.int64))
    data = Trajectories(data.offsets, data.lon, data.lat, data.t_utc, user)
    return Neighbours(select(data, np.flatnonzero(user >= 0)), data, city.scope)


@pytest.mark.parametrize(("noise", "sound"), [(OpenDPNoise(), True), (HalfNoise(SeededNoise(1)), False)])
def test_membership_of_a_user_is_bounded_by_epsilon(neighbours, noise, sound):
    scores = user_scores(neighbours, epsilon=Fraction(2), runs=RUNS, noise=noise)
    assert set(scores) == {question.name for question, _ in PEOPLE_QUESTIONS}
    ratios = np.concatenate([side for pair in scores.values() for side in pair])
    assert (np.abs(ratios).max() <= 2 + 1e-6) == sound  # exact: no output may tell more
    bounds = [epsilon_bound(*pair, confidence=1 - ALPHA).epsilon for pair in scores.values()]
    assert (max(bounds) <= 2) == sound

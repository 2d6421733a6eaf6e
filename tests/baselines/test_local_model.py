"""The randomiser of the local model keeps its promise exactly, and the server's estimates are unbiased."""

import math
from fractions import Fraction

import numpy as np
import pytest

from wayveil.baselines import load
from wayveil.baselines.conformance import SCOPE, walks
from wayveil.baselines.first_order import Walks
from wayveil.baselines.local import Reporter, other_bit, reports
from wayveil.baselines.mechanism import SoundMechanism
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.privacy.budget import Budget
from wayveil.privacy.noise import OpenDPNoise, SeededNoise

EPSILONS = [Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(5), Fraction(40)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_report_says_more_than_epsilon(epsilon):
    """The worst ratio of two items and of an item against none, from the exact probabilities."""
    p, q = Fraction(1, 2), other_bit(epsilon)
    two_items = p * (1 - q) / ((1 - p) * q)
    against_none = max(p / q, (1 - q) / (1 - p))
    assert math.log(two_items) <= epsilon and math.log(against_none) <= epsilon
    if epsilon <= 10:
        assert math.log(two_items) >= float(epsilon) * (1 - 1e-4) - 1e-7  # no budget is wasted


def test_reports_follow_the_stated_probabilities():
    """Every word from 0 to 2³² − 1 on an even grid: the share of ones is p and q, to the grid's resolution."""
    q = other_bit(Fraction(1))
    words = np.linspace(0, 2**32 - 1, 100_000).astype(np.uint32)
    own = reports(np.zeros(len(words), np.int64), 1, q, words)
    none = reports(np.full(len(words), -1), 1, q, words)
    assert own.mean() == pytest.approx(0.5, abs=1e-4) and none.mean() == pytest.approx(float(q), abs=1e-4)


def test_a_report_depends_on_the_device_alone():
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**32, (50, 7), np.uint32)
    item = rng.integers(-1, 7, 50)
    q = other_bit(Fraction(1))
    together = reports(item, 7, q, words.ravel())
    alone = np.concatenate([reports(item[i : i + 1], 7, q, words[i]) for i in range(50)])
    assert np.array_equal(together, alone)


def test_estimates_are_unbiased():
    item = np.repeat(np.arange(4), [4_000, 3_000, 2_000, 1_000])
    mechanism = SoundMechanism(Budget.split(2, {"a": 1, "b": 1}), SeededNoise(0), np.random.default_rng(1))
    reporter = Reporter.of(mechanism, 12_000)  # 2,000 devices have no item
    one = reporter.estimate("a", np.arange(10_000), item, 6)
    twice = reporter.estimate_many("b", [(np.arange(10_000), item)] * 2, 6)
    truth = np.array([4_000, 3_000, 2_000, 1_000, 0, 0])
    assert one == pytest.approx(truth, abs=5 * math.sqrt(12_000) * mechanism.lines[0].scale + 5 * 60)
    assert twice == pytest.approx(2 * truth, abs=10 * math.sqrt(12_000) * mechanism.lines[1].scale + 600)


def test_the_default_bits_come_from_the_system():
    assert Reporter.of(SoundMechanism(Budget.split(1, {"a": 1}), OpenDPNoise()), 5).rng is None
    assert Reporter.of(SoundMechanism(Budget.split(1, {"a": 1}), SeededNoise(0)), 5).rng is not None


def test_a_device_outside_the_scope_sends_reports_like_any_other():
    """Replacing a trajectory by one outside the scope keeps the number of reports and of trajectories."""
    data = walks(40)
    far = Trajectories(np.array([0, 2]), np.array([50.0, 50.1]), np.array([40.0, 40.1]), np.array([0.0, 1.0]))
    replaced = concatenate([select(data, np.arange(39)), far])
    assert [len(load("ldptrace")(each, SCOPE, 1, seed=0).trajectories) for each in (data, replaced)] == [40, 40]


def test_walks_have_the_reported_lengths_and_end_where_many_end():
    """Two thirds of the walks have three cells, others five; more walks end early in the upper half of the cells."""
    across = 4
    move = np.ones((across**2, 9))
    start = np.ones(across**2)
    end = np.repeat([0.2, 1.0], across**2 // 2)
    lengths = np.array([0.0, 0.0, 2.0, 0.0, 1.0])
    path = Walks(across, start, move, end).draw(30_000, np.random.default_rng(0), lengths)
    size = (path >= 0).sum(1)
    assert set(size) == {3, 5} and (size == 3).mean() == pytest.approx(2 / 3, abs=0.02)
    third = path[:, 2]
    early = [(size[(third >= 8) == upper] == 3).mean() for upper in (False, True)]
    assert early[1] > early[0] + 0.2


def test_walks_without_a_known_end_have_the_reported_lengths():
    cells = Walks(3, np.ones(9), np.ones((9, 9)), np.zeros(9)).draw(500, np.random.default_rng(0), np.array([0.0, 1.0]))
    assert set((cells >= 0).sum(1)) == {2}

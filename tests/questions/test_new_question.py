"""A measured quantity is one class and one line of the catalogue: nothing else has to know its name."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import wayveil
from wayveil.core.bins import Bins
from wayveil.privacy.noise import SeededNoise
from wayveil.questions import catalogue, shares
from wayveil.questions.histogram import NEVER, Histogram, Merging
from wayveil.release import release_from_json, release_to_json
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.synthesis.estimate.estimate import estimate
from wayveil.synthesis.estimate.estimates import Distribution


@dataclass(frozen=True)
class LongestGap(Histogram):
    """φ(T) = 1 at the bin of the longest time between two points (s)."""

    name: ClassVar[str] = "longest_gap"
    meaning: ClassVar[str] = "how long they go without a position"
    merging: ClassVar[Merging] = NEVER

    @classmethod
    def finest_bins(cls, scope):
        return Bins((0.0, 15.0, 30.0, 60.0, 120.0, 300.0, 3600.0))

    def values(self, batch):
        longest = np.zeros(len(batch))
        np.maximum.at(longest, *batch.gaps)
        return longest


@pytest.fixture
def asked(monkeypatch):
    """The catalogue with one more line."""
    entries = (*catalogue.CATALOGUE, catalogue.Entry(LongestGap, 10, 5))
    monkeypatch.setattr(shares, "CATALOGUE", entries)
    monkeypatch.setitem(catalogue.QUESTIONS, LongestGap.name, LongestGap)
    for name, share in catalogue.shares_of(entries).items():
        monkeypatch.setitem(catalogue.SHARES, name, share)


def test_the_share_of_a_new_question_comes_from_all_others_in_proportion():
    before, line = catalogue.shares_of(catalogue.CATALOGUE), catalogue.Entry(LongestGap, 10, 5)
    after = catalogue.shares_of((*catalogue.CATALOGUE, line))
    assert sum(after.values()) == 1
    assert {after[name] / share for name, share in before.items()} == {1 - after[LongestGap.name]}


def test_a_new_question_is_measured_written_described_and_estimated(asked):
    city = simulate_city(0, size_km=(3, 3))
    data = simulate_trajectories(city, 300, seed=3)
    release = wayveil.measure(data, city.scope, epsilon=300, unit="trajectory", noise=SeededNoise(2))
    answer = release[LongestGap.name]
    assert isinstance(answer.question, LongestGap) and answer.counts.sum() == pytest.approx(len(data), abs=2)
    again = release_from_json(release_to_json(release), "again")
    assert np.array_equal(again[LongestGap.name].noisy, answer.noisy)
    assert LongestGap.meaning in wayveil.describe(again)
    found = estimate(again, learned=False)[LongestGap.name]
    assert isinstance(found, Distribution)
    assert found.shares == pytest.approx(answer.counts / answer.counts.sum(), abs=0.03)

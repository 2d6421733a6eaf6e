"""What is said about releases that are mostly noise."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from wayveil.release.statements import low_count_text


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (
            -300.0,
            "The number of trajectories, estimated from all answers, is near zero: with ε = 0.01, its noise is about "
            "± 10,000, so the release contains hardly any information about the data.",
        ),
        (9_000.0, "The number of trajectories, estimated from all answers, is near zero"),
        (80_000.0, "About 80,000 trajectories are few for ε = 0.01"),
    ],
)
def test_a_count_that_is_mostly_noise_is_not_stated_as_a_number(release_of, count, said):
    words = low_count_text(release_of(0.01, count), advice=True)
    assert words is not None and words.startswith(said)
    assert "larger ε" in words and "wayveil.check(data, scope)" in words


def test_large_counts_cause_no_warning(release_of):
    assert low_count_text(release_of(0.01, 200_000.0)) is None


@pytest.fixture
def release_of(small_release):
    """A release with another ε and another noisy count."""

    def make(epsilon, count):
        scale, noisy = 100 / epsilon, np.array([count], np.int64)
        answers = (replace(small_release["count"], scale=scale, noisy=noisy),)
        return replace(small_release, epsilon=Fraction(str(epsilon)), answers=answers)

    return make

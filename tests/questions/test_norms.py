"""Bounds without looking: what a noisy histogram of norms says, and what takes its place where it says nothing."""

import numpy as np
import pytest

from wayveil.privacy.clipping import UnitVectors
from wayveil.privacy.unit import Unit
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.count import Count
from wayveil.questions.length import Length
from wayveil.questions.norm_estimates import Noisy, estimate_norms, one_trajectory_each, trajectories_per_unit
from wayveil.questions.norms import NormBins, guessed_norm, norms_part, public_bound
from wayveil.simulate import simulate_city

SCOPE = simulate_city(0, size_km=(3, 3)).scope
USER = Unit.user(50)


def histogram(bins, norms):
    index = np.searchsorted(bins.edges * (1 + 1e-9), norms) - 1
    return np.bincount(index, minlength=len(bins)).astype(np.int64)


def per_unit(numbers, sd=1.0):
    bins = NormBins.of(Count, USER)
    return trajectories_per_unit(bins, Noisy(histogram(bins, numbers), sd))


@pytest.mark.parametrize("most", [1, 2, 7, 50, 1000])
def test_bins_reach_from_a_small_part_of_a_trajectory_to_the_most_that_a_unit_has(most):
    for whole in (False, True):
        edges = NormBins(most, whole).edges
        assert (np.diff(edges) > 0).all() and edges[-1] == most and edges[0] < 1


def test_each_unit_is_counted_once_and_edges_belong_to_the_bin_below():
    values = np.array([1, 2, 2, 100, 7])
    vectors = UnitVectors(5, np.arange(5), np.zeros(5, np.int64), values * 1000)
    found = NormBins(50, whole=True).histogram(vectors, 1000)
    assert found.sum() == 5 and found[0] == 1 and found[1] == 2 and found[-1] == 1


def test_public_bounds_are_for_single_trajectories_that_count_once():
    assert public_bound(Length, Unit.trajectory()) == 1.0 and norms_part(Length, Unit.trajectory()) == 0
    assert public_bound(Length, USER) is None and 0 < norms_part(Length, USER) < norms_part(Count, USER) < 1


def test_a_clear_histogram_is_believed():
    numbers = np.repeat([1, 3, 20], [500, 300, 200])
    found = per_unit(numbers)
    assert found.units.sum() == pytest.approx(1000, rel=0.1) and found.mass.sum() == pytest.approx(5400, rel=0.15)
    bins, question = NormBins.of(Length, USER), Length.example(SCOPE)
    truth = np.repeat([1.0, 1.9, 9.0], [500, 300, 200])
    norms = estimate_norms(question, bins, Noisy(histogram(bins, truth), 1.0), found)
    assert norms.quantile(0.9) == pytest.approx(9.5, rel=0.1) and norms.kept(9.6) == pytest.approx(1, abs=0.02)
    assert norms.kept(4.5) == pytest.approx((500 + 900 + 4000 / 2) / 5400, abs=0.08)


def test_where_noise_hides_the_histogram_the_prior_remains():
    found = per_unit(np.full(400, 50))
    bins, question = NormBins.of(Length, USER), Length.example(SCOPE)
    guess = guessed_norm(question, 50)
    random = np.random.default_rng(0)
    for _ in range(20):
        noise = np.rint(random.normal(0, 5000, len(bins))).astype(np.int64)
        assert guess / 2 < estimate_norms(question, bins, Noisy(noise, 5000.0), found).quantile(0.5) < 2 * guess


def test_bounds_shrink_with_noise_and_never_exceed_the_largest_norm():
    norms = per_unit(np.repeat([1, 4, 16, 45], [500, 300, 200, 50]))
    bounds = [norms.best_bound(noise, 0.3) for noise in (1e-6, 1e-3, 1e-2, 0.1, 1.0)]
    assert bounds == sorted(bounds, reverse=True) and bounds[0] >= 45 and bounds[-1] < 16


def test_clipping_costs_less_than_the_noise_that_it_saves():
    """Few heavy users set the noise of all others: mean error of a histogram with and without clipping."""
    random = np.random.default_rng(2)
    counts = np.repeat([1, 2, 5, 50], [3000, 1500, 600, 40])
    shares = random.dirichlet(np.full(24, 2.0), len(counts)) * 0.3 + 0.7 * random.dirichlet(np.full(24, 2.0))
    vectors = shares * counts[:, None]
    exact = vectors.sum(axis=0)
    norms = np.linalg.norm(vectors, axis=1)
    noise = 60.0  # σ for a bound of one
    found = per_unit(counts)
    bound = found.best_bound(noise * np.sqrt(24) / counts.sum(), 0.3)
    errors = {}
    for limit in (bound, norms.max()):
        clipped = (vectors * np.minimum(limit / norms, 1)[:, None]).sum(axis=0)
        noisy = clipped + random.normal(0, noise * limit, (200, 24))
        shape = noisy / noisy.sum(axis=1, keepdims=True)
        errors[limit] = np.abs(shape - exact / exact.sum()).sum(axis=1).mean()
    assert errors[bound] < 0.6 * errors[norms.max()]


def test_guesses_lie_between_what_is_possible():
    for question in QUESTIONS.values():
        for k in (1, 2, 50):
            assert 0 < guessed_norm(question, k) <= k
        assert guessed_norm(question, 50) < 50 or question is Count


def test_one_trajectory_each():
    known = one_trajectory_each(700.0)
    assert known.units.sum() == known.mass.sum() == 700 and known.kept(1.0) == 1

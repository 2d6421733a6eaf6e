"""From noisy counts to distributions, one module after the other, against closed forms and known truths."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wayveil.core import density, posterior
from wayveil.core.density import NoisyLevel, estimate_field, posterior_rates, reconcile
from wayveil.core.grid import Grid
from wayveil.core.nonnegative import nonnegative_fit
from wayveil.core.posterior import Noisy, posterior_mean
from wayveil.core.pyramid import interpolate, pool, shifted, spread
from wayveil.core.regions import cut_regions, label_regions
from wayveil.questions.answer import Answer
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.displacement_length import DisplacementLength
from wayveil.questions.histogram import Histogram
from wayveil.questions.length import Length
from wayveil.questions.levels import noisy_levels
from wayveil.questions.start_minus_end import StartMinusEnd
from wayveil.questions.table import Table
from wayveil.release.number import estimate_number
from wayveil.synthesis.estimate import mapped_density as mapped
from wayveil.synthesis.estimate import weekly
from wayveil.synthesis.estimate.curves import Total
from wayveil.synthesis.estimate.estimate import estimate
from wayveil.synthesis.estimate.estimates import Distribution, JointDistribution
from wayveil.synthesis.estimate.fields import (
    OCCUPANCY,
    cell_area,
    on_a_map,
    pool_estimates,
    split_ends,
    with_blocks_of,
)
from wayveil.synthesis.estimate.histogram import estimate_histogram, estimate_table, spread_bins
from wayveil.synthesis.estimate.mapped_density import estimate_mapped_field
from wayveil.synthesis.estimate.settings import MAPPED_DENSITY
from wayveil.synthesis.estimate.weekly import estimate_hours, estimate_weekdays

few = settings(max_examples=25, deadline=None)
fields = arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.floats(0, 100))
sides = st.integers(1, 5)


def jsd(p, q):
    p, q = p.ravel() / p.sum(), q.ravel() / q.sum()
    middle = (p + q) / 2
    return 0.5 * sum(np.sum(a[a > 0] * np.log(a[a > 0] / middle[a > 0])) for a in (p, q))


# posterior -----------------------------------------------------------------------------------------------------------


def test_without_noise_the_count_decides_and_with_much_noise_the_prior():
    prior = np.full(40, 50.0)
    seen = np.linspace(20, 120, 40)
    np.testing.assert_allclose(posterior_mean(Noisy(seen, 0.5), prior), seen, rtol=0.1)
    np.testing.assert_allclose(posterior_mean(Noisy(seen, 1e6), prior), prior, rtol=0.01)


def test_the_posterior_mean_errs_less_than_the_count_and_less_than_the_prior():
    random = np.random.default_rng(0)
    truth = 20 * np.exp(random.normal(0, 1.0, 3000) - 0.5)
    seen = truth + random.laplace(0, 10, 3000)
    found = posterior_mean(Noisy(seen, 10.0), np.full(3000, 20.0))
    error = np.mean((found - truth) ** 2)
    assert error < 0.75 * np.mean((np.maximum(seen, 0) - truth) ** 2)
    assert error < 0.75 * np.mean((20 - truth) ** 2)
    assert found.mean() == pytest.approx(truth.mean(), rel=0.05)


def test_a_weak_signal_of_few_cells_does_not_make_the_estimate_worse_than_its_prior():
    random = np.random.default_rng(1)
    grid = np.full((2, 2), 250.0)
    own = averaged = 0.0
    for _ in range(100):
        truth = grid * np.exp(random.normal(0, 0.3, grid.shape))
        level = NoisyLevel(truth + random.laplace(0, 95, grid.shape), 16, 95.0)
        own += np.abs(posterior_mean(level, grid) - truth).sum()
        averaged += np.abs(posterior_rates(level, grid, unclear=True) - truth).sum()
    prior = 100 * np.abs(250 * np.exp(random.normal(0, 0.3, 100_000)) - 250).mean() * grid.size
    assert averaged < 0.8 * own and averaged < 1.1 * prior


@pytest.mark.parametrize(("trips", "clear"), [(1_000, False), (100_000, True)])
def test_a_clear_signal_decides_the_spread_by_itself(monkeypatch, trips, clear):
    random = np.random.default_rng(2)
    counts = np.full((8, 8), trips / 64) * np.exp(random.normal(0, 0.5, (8, 8)))
    asked = []
    monkeypatch.setattr(density, "posterior_mean", lambda seen, mean, *_, **how: asked.append(how) or mean)
    estimate_field([NoisyLevel(counts, 16, 50.0)], trips, np.ones((128, 128)))
    assert asked and all(how.get("averaged", False) != clear for how in asked)


@few
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30), st.floats(0.01, 1e6), st.floats(1e-6, 1e6))
def test_a_posterior_is_finite_ordered_and_zero_where_the_prior_is(seen, noise, prior):
    seen = np.sort(np.array([0.0, *seen]))
    means = np.full(len(seen), prior)
    for averaged in (False, True):
        found = posterior_mean(Noisy(seen, noise), means, groups=1, averaged=averaged)
        assert np.isfinite(found).all() and (found > 0).all()
        assert (np.diff(found) >= -1e-4 * found[1:]).all()
    means[::2] = 0.0
    assert (posterior_mean(Noisy(seen, noise), means)[::2] == 0).all()


def test_each_cell_may_have_its_own_noise(monkeypatch):
    random = np.random.default_rng(3)
    prior = 20 * np.exp(random.normal(0, 1, (30, 20)))
    seen = prior * np.exp(random.normal(0, 0.6, prior.shape)) + random.laplace(0, 8, prior.shape)
    for noise in (0.5, 8.0):
        np.testing.assert_array_equal(
            posterior_mean(Noisy(seen, np.full(prior.shape, noise)), prior), posterior_mean(Noisy(seen, noise), prior)
        )
    # The cells determine the spread together. Given the spread, an estimate depends on its own cell's noise only.
    scores = np.where(np.array(posterior._SPREADS) == 0.8, 0.0, -np.inf)
    monkeypatch.setattr(posterior, "_spread_scores", lambda *_: scores)
    noises = np.where(random.random(prior.shape) < 0.5, 2.0, 30.0)
    mixed = posterior_mean(Noisy(seen, noises), prior)
    alone = {noise: posterior_mean(Noisy(seen, noise), prior) for noise in (2.0, 30.0)}
    np.testing.assert_allclose(mixed, np.where(noises == 2.0, alone[2.0], alone[30.0]), rtol=1e-5)
    assert not np.allclose(alone[2.0], alone[30.0], rtol=0.1)


# pyramid -------------------------------------------------------------------------------------------------------------


@few
@given(fields, sides)
def test_pool_adds_blocks_and_spread_repeats_them(field, side):
    pooled = pool(field, side)
    for (i, j), block in np.ndenumerate(pooled):
        assert block == pytest.approx(field[i * side : (i + 1) * side, j * side : (j + 1) * side].sum())
    wide = spread(pooled, side, field.shape)
    assert wide.shape == field.shape
    for (i, j), value in np.ndenumerate(wide):
        assert value == pooled[i // side, j // side]


@few
@given(fields, st.integers(-3, 3), st.integers(-3, 3))
def test_shifted_is_its_definition(field, down, right):
    rows, columns = field.shape
    if abs(down) > rows or abs(right) > columns:
        return  # the callers never shift by more than two cells of large fields
    for (i, j), value in np.ndenumerate(shifted(field, down, right)):
        inside = 0 <= i - down < rows and 0 <= j - right < columns
        assert value == (field[i - down, j - right] if inside else 0.0)


def test_interpolation_keeps_slopes_and_stays_constant_beyond_the_last_centre():
    ramp = np.add.outer(3.0 * np.arange(6), 2.0 * np.arange(5))
    fine = interpolate(ramp, 4, (24, 20))
    position = (np.arange(24) + 0.5) / 4 - 0.5
    expected = np.add.outer(3 * np.clip(position, 0, 5), 2 * np.clip(position[:20], 0, 4))
    np.testing.assert_allclose(fine, expected, atol=1e-12)


# fields --------------------------------------------------------------------------------------------------------------


def town(shape=(48, 40), total=4000.0):
    field = np.full(shape, 0.02)
    field[::8] += 1.0
    field[:, 17] += 3.0
    return field * total / field.sum()


def noisy(truth, noises, seed=1, level_sides=(16, 4, 1)):
    random = np.random.default_rng(seed)
    pooled = [pool(truth, side) for side in level_sides]
    return [
        NoisyLevel(counts + random.laplace(0, noise, counts.shape), side, noise)
        for counts, side, noise in zip(pooled, level_sides, noises)
    ]


def test_a_field_keeps_its_total_stays_inside_and_is_nearer_to_the_truth_than_the_counts():
    truth = town()
    area = np.ones(truth.shape)
    area[:, -1] = 0.0
    truth[:, -1] = 0.0
    truth *= 4000 / truth.sum()
    levels = noisy(truth, (3.0, 3.0, 3.0))
    found = estimate_field(levels, 4000.0, area)
    assert found.sum() == pytest.approx(4000) and (found >= 0).all() and (found[:, -1] == 0).all()
    assert jsd(truth, found) < 0.55 * jsd(truth, np.maximum(levels[-1].counts, 0))
    # If the fine level is all noise, the coarser levels and a known base are still informative.
    blind = noisy(truth, (3.0, 3.0, 1e4))
    assert jsd(truth, estimate_field(blind, 4000.0, area, base=truth)) < 0.5 * jsd(
        truth, estimate_field(blind, 4000.0, area)
    )


def test_without_noise_a_field_is_what_was_counted():
    truth = town()
    found = estimate_field(noisy(truth, (0.01, 0.01, 0.01)), 4000.0, np.ones(truth.shape))
    assert jsd(truth, found) < 0.002


def test_reconciled_blocks_add_up_to_the_coarse_counts():
    truth = town()
    tilted = truth * np.linspace(0.5, 1.5, truth.shape[0])[:, None]
    coarse = noisy(truth, (0.1,), level_sides=(16,))
    found = reconcile(coarse, tilted, truth.sum())
    assert found.sum() == pytest.approx(truth.sum())
    wrong, right = (np.abs(pool(field, 16) / pool(truth, 16) - 1).max() for field in (tilted, found))
    assert wrong > 0.3 and right < 0.05


def test_with_a_map_counts_correct_the_rates_of_its_road_classes(monkeypatch):
    shape, nothing, area = (32, 32), np.zeros((32, 32)), np.ones((32, 32))
    wide, narrow = np.zeros(shape), np.zeros(shape)
    wide[5::8], narrow[1::8] = 1.0, 1.0
    features = [wide, nothing, nothing, nothing, narrow, nothing, nothing]
    # A town in which the small streets are the busy ones.
    truth = 0.01 + 1.0 * wide + 3.0 * narrow
    truth *= 3000 / truth.sum()
    found = estimate_mapped_field(noisy(truth, (0.5, 0.5, 0.5)), 3000.0, area, features)
    assert found.sum() == pytest.approx(3000) and (found >= 0).all()
    assert found[wide > 0].sum() / found[narrow > 0].sum() == pytest.approx(1 / 3, rel=0.2)
    # Under noise, the corrected rates of the classes apply to every street; uncorrected rates have a larger error.
    levels = noisy(truth, (20.0, 20.0, 20.0))
    found = estimate_mapped_field(levels, 3000.0, area, features)
    with monkeypatch.context() as without:
        without.setattr(mapped, "_corrections", lambda level, means: np.ones(len(means)))
        assert jsd(truth, found) < 0.6 * jsd(truth, estimate_mapped_field(levels, 3000.0, area, features))
    # An ordinary town, under noise that hides single cells.
    truth = sum(rate * feature for rate, feature in zip(MAPPED_DENSITY.road_rates, features)) + 0.05
    truth *= 3000 / truth.sum()
    levels = noisy(truth, (20.0, 20.0, 20.0))
    found = estimate_mapped_field(levels, 3000.0, area, features)
    assert found.sum() == pytest.approx(3000) and (found >= 0).all()
    assert jsd(truth, found) < 0.25 * jsd(truth, estimate_field(levels, 3000.0, area))
    # Only the ratios of rates matter.
    doubled = estimate_mapped_field(
        levels, 3000.0, area, [2 * f for f in features], [r / 2 for r in MAPPED_DENSITY.road_rates]
    )
    np.testing.assert_allclose(doubled, found)


# histograms ----------------------------------------------------------------------------------------------------------


def test_a_histogram_is_kept_without_noise_and_smoothed_with_noise():
    middles = (np.arange(120) + 0.5) * 100
    truth = 3000 * (middles / 1000) * np.exp(-middles / 1000)
    truth *= 2000 / truth.sum()
    assert jsd(truth, estimate_histogram(Noisy(truth, 0.05), middles)) < 1e-3
    seen = truth + np.random.default_rng(2).laplace(0, 10, 120)
    found = estimate_histogram(Noisy(seen, 10.0), middles)
    assert found.sum() == pytest.approx(1) and (found > 0).all()
    clipped = np.maximum(seen, 0)
    assert jsd(truth, found) < 0.3 * jsd(truth, clipped)
    # Sixty empty bins must not add up to a tail of clipped noise.
    assert found[60:].sum() < 0.25 * clipped[60:].sum() / clipped.sum()


def test_a_spike_is_restored_and_two_bins_are_not_smoothed():
    truth = np.full(40, 5.0)
    truth[17] = 2000.0
    middles = np.arange(40) + 0.5
    found = estimate_histogram(Noisy(truth + np.random.default_rng(3).laplace(0, 4, 40), 4.0), middles)
    assert found[17] == pytest.approx(2000 / truth.sum(), rel=0.1)
    two = estimate_histogram(Noisy(np.array([300.0, 100.0]), 20.0), middles[:2])
    assert two.sum() == pytest.approx(1) and two[0] > 2 * two[1] > 0


@settings(max_examples=8, deadline=None)
@given(arrays(float, 30, elements=st.floats(-1e6, 1e6)), st.floats(0.1, 1e5))
def test_estimates_from_any_counts_are_distributions(counts, noise):
    for found in (
        estimate_histogram(Noisy(counts, noise), np.arange(1.0, 31)),
        estimate_hours(Noisy(counts[:24], noise), Total(max(counts.sum(), 1.0), noise)),
    ):
        assert np.isfinite(found).all() and (found > 0).all() and found.sum() == pytest.approx(1)


def test_a_table_keeps_its_margins_its_dependence_and_what_is_impossible():
    rows, columns = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    joint = np.array([[0.35, 0.1, 0.05], [0.05, 0.2, 0.05], [0.0, 0.1, 0.1]])
    possible = joint > 0
    found = estimate_table(Noisy(1000 * joint, 1.0), rows, columns, 1000.0, possible)
    np.testing.assert_allclose(found, joint, atol=0.01)
    assert found[2, 0] == 0
    np.testing.assert_allclose(found.sum(axis=0), columns, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), rows, atol=1e-3)
    # With strong noise, the result is the product of the margins, changed by the affinity if there is one.
    random = np.random.default_rng(0)
    counts = random.laplace(0, 1e5, (3, 3))
    noisy = Noisy(counts, 1e5)
    np.testing.assert_allclose(estimate_table(noisy, rows, columns, 1000.0), np.outer(rows, columns), atol=0.02)
    changed = estimate_table(noisy, rows, columns, 1000.0, affinities=(np.eye(3) * 50 + 1,))
    assert (np.diag(changed) > np.diag(np.outer(rows, columns)) + 0.05).all()


def test_bins_are_spread_by_width():
    edges, fine = np.array([0.0, 2.0, 4.0, 10.0]), np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0])
    np.testing.assert_allclose(
        spread_bins(np.array([0.2, 0.2, 0.6]), edges, fine), [0.1, 0.1, 0.1, 0.1, 0.2, 0.4], atol=1e-12
    )


def test_finer_bins_follow_a_curve_that_keeps_the_coarse_shares():
    edges = np.array([0.0, 1, 2, 4, 8, 16])
    shares = np.array([0.1, 0.4, 0.3, 0.15, 0.05])
    fine = np.unique(np.r_[edges, np.linspace(0, 16, 161)])
    found = spread_bins(shares, edges, fine)
    np.testing.assert_allclose(np.add.reduceat(found, np.searchsorted(fine, edges[:-1])), shares, atol=1e-12)
    density = found / np.diff(fine)
    # Steps become slopes: no jump between neighbours is nearly as large as the one between two coarse bins.
    assert np.abs(np.diff(density)).max() < 0.5 * np.abs(np.diff(shares / np.diff(edges))).max()
    assert (found > 0).all()


# non-negative least squares ------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.floats(-4, 4), st.sampled_from([0.0, 3.0, 30.0]))
def test_nonnegative_fit_agrees_with_scipy(size, seed, shift, alike):
    """With similar columns, a coefficient that is positive at first may have to become zero again."""
    from scipy.optimize import nnls

    random = np.random.default_rng(seed)
    design = random.normal(size=(20, size)) + alike * random.normal(size=(20, 1))
    design *= 10.0 ** random.uniform(-3, 3, size)
    right = design @ (random.normal(size=size) + shift) + random.normal(size=20)
    found = nonnegative_fit(design.T @ design, design.T @ right)
    expected, misfit = nnls(design, right)
    assert (found >= 0).all()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9 * max(expected.max(), 1))
    assert np.linalg.norm(design @ found - right) <= misfit * (1 + 1e-9) + 1e-9


def test_nonnegative_fit_may_drop_what_it_chose_first():
    """The third column fits best alone, but gets no weight together with the other two."""
    design, right = np.array([[1.0, 0, 1], [0, 1, 1], [0, 0, 0.5]]), np.array([1.0, 1.0, -0.1])
    np.testing.assert_allclose(nonnegative_fit(design.T @ design, design.T @ right), [1, 1, 0], atol=1e-12)


def test_nonnegative_fit_is_zero_if_no_column_helps():
    assert (nonnegative_fit(np.eye(3), np.array([-1.0, 0.0, -2.0])) == 0).all()


# regions -------------------------------------------------------------------------------------------------------------


def test_regions_divide_the_mass_evenly_and_are_nested():
    random = np.random.default_rng(4)
    mass = np.exp(random.normal(0, 1, (64, 48)))
    grid = Grid(100.0, 48, 64, 4800.0, 6400.0)
    cuts = cut_regions(mass, 4)
    assert len(cuts) == 15
    labels = label_regions(grid, cuts)
    sums = np.bincount(labels.ravel(), mass.ravel(), minlength=16)
    assert len(np.unique(labels)) == 16
    assert sums.max() < 1.3 * mass.sum() / 16 and sums.min() > 0.7 * mass.sum() / 16
    # Siblings have consecutive labels: merging labels in pairs gives the regions of one depth less.
    assert (labels // 2 == label_regions(grid, cuts[:7])).all()


def test_regions_are_rectangles_even_if_all_mass_is_in_one_cell():
    mass = np.zeros((9, 7))
    mass[4, 3] = 1.0
    labels = label_regions(Grid(50.0, 7, 9, 350.0, 450.0), cut_regions(mass, 5))
    assert labels.min() >= 0 and labels.max() < 32
    for label in np.unique(labels):
        rows, columns = np.nonzero(labels == label)
        assert len(rows) == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)


# estimate ------------------------------------------------------------------------------------------------------------


def test_blocks_get_the_sums_and_cells_keep_their_shares():
    random = np.random.default_rng(5)
    mine = random.random((12, 10))
    theirs = random.random((12, 10)) * np.where(np.arange(12) < 4, 3.0, 1.0)[:, None]
    mine, theirs = mine / mine.sum() * 900, theirs / theirs.sum() * 900
    found = with_blocks_of(mine, theirs, 4)
    np.testing.assert_allclose(pool(found, 4), pool(theirs, 4))
    inside = found / spread(pool(found, 4), 4, found.shape)
    np.testing.assert_allclose(inside, mine / spread(pool(mine, 4), 4, mine.shape))
    np.testing.assert_allclose(with_blocks_of(mine, mine, 4), mine)
    empty = mine.copy()
    empty[:4, :4] = 0.0
    moved = with_blocks_of(empty, theirs, 4)
    assert np.isfinite(moved).all() and (moved[:4, :4] == 0).all()
    assert moved.sum() == pytest.approx(900)


def differences(difference, seed=0):
    """A noisy answer about starts minus ends in 64 blocks with 1,000 ends each, and starts − ends as estimated."""
    grid = Grid(100.0, 64, 64, 6400.0, 6400.0)
    question = StartMinusEnd(grid, 8)
    noisy = np.rint((difference + np.random.default_rng(seed).laplace(0, 30, (8, 8))) * question.resolution)
    answer = Answer(question, "laplace", 30.0 * question.resolution, Fraction(1), noisy.astype(np.int64).ravel())
    starts, ends = split_ends(answer, np.full((64, 64), 1000 / 64))
    return pool(starts - ends, 8) / 2


def test_where_starts_and_ends_differ_nowhere_most_of_the_noise_is_removed():
    found = [differences(np.zeros((8, 8)), seed) for seed in range(8)]
    assert np.sqrt(np.mean(np.square(found))) < 0.5 * 30 * np.sqrt(2)


def test_a_clear_difference_in_one_block_stays_and_the_others_remain_even():
    truth = np.zeros((8, 8))
    truth[2, 5] = 400
    found = np.mean([differences(truth, seed) for seed in range(8)], axis=0)
    assert found[2, 5] == pytest.approx(400, rel=0.1)
    assert np.abs(np.delete(found.ravel(), 21)).max() < 30


def test_without_a_clear_difference_in_a_block_many_small_ones_are_shrunk_by_their_spread():
    truth = np.random.default_rng(1).normal(0, 60, (8, 8))
    found = differences(truth)
    noisy = truth + np.random.default_rng(0).laplace(0, 30, (8, 8))
    assert np.square(found - truth).mean() < 0.85 * np.square(noisy - truth).mean()


def test_pooled_estimates_are_a_geometric_mean_with_the_sum_of_the_first():
    random = np.random.default_rng(6)
    own, other, third = (random.random((5, 4)) + 0.1 for _ in range(3))
    found = pool_estimates(own, [(other, 0.25), (third, 0.25)])
    assert found.sum() == pytest.approx(own.sum())
    ratio = found / (own**0.5 * other**0.25 * third**0.25)
    np.testing.assert_allclose(ratio, ratio[0, 0])
    np.testing.assert_allclose(pool_estimates(own, [(other, 0.0)]), own)
    own[0, 0] = 0.0
    assert pool_estimates(own, [(other, 0.25)])[0, 0] == 0.0


def test_pooling_equal_estimates_changes_nothing():
    field = np.random.default_rng(7).random((6, 6)) * 40
    np.testing.assert_allclose(pool_estimates(field, [(field * 3, 0.2), (field, 0.3)]), field)


def test_block_sums_are_those_of_the_network_without_the_map_if_it_is_used():
    own, bayes, unmapped = (np.random.default_rng(seed).gamma(1.0, size=(8, 8)) for seed in (5, 6, 7))
    three, two = on_a_map(own, bayes, unmapped, 4, OCCUPANCY), on_a_map(own, bayes, None, 4, OCCUPANCY)
    shares = [pool(field, 4) / field.sum() for field in (three, unmapped, two)]
    np.testing.assert_allclose(shares[0], shares[1])
    assert np.abs(shares[2] - shares[1]).max() > 0.01
    np.testing.assert_allclose(two, pool_estimates(own, [(bayes, OCCUPANCY.bayes)]))


def test_cells_at_the_border_count_by_their_share_inside():
    area = cell_area(Grid(100.0, 3, 2, 250.0, 200.0))
    np.testing.assert_allclose(area, [[1, 1, 0.5], [1, 1, 0.5]])


def test_levels_go_from_coarse_to_fine(small_release):
    levels = noisy_levels([small_release[f"occupancy/{part}"] for part in ("coarse", "detail")])
    assert [level.side for level in levels] == sorted((level.side for level in levels), reverse=True)
    assert levels[-1].counts.size > levels[0].counts.size and isinstance(levels[0].noise, float)
    detail = small_release["occupancy/detail"]
    for level in levels[1:]:
        assert level.noise.shape == level.counts.shape and level.noise.min() > detail.noise
    # Fine and middle cells divide the budget of a block, so their 1/noise add up to that of the whole answer.
    middle, fine = levels[1:]
    both = 1 / fine.noise + 1 / spread(middle.noise, middle.side // fine.side, fine.noise.shape)
    np.testing.assert_allclose(both, 1 / detail.noise)


def test_estimates_are_distributions_and_agree_with_each_other(small_release, small_estimates):
    found = small_estimates
    assert found.count == estimate_number(small_release).value
    shape = (found.grid.rows, found.grid.columns)
    for field in (found.occupancy, found.starts, found.ends):
        assert field.shape == shape and (field >= 0).all() and field.sum() == pytest.approx(found.count, rel=0.5)
    assert (found.starts + found.ends).sum() == pytest.approx(2 * found.count)
    shared = [found.flows, *(value for value in found.values() if isinstance(value, Distribution | JointDistribution))]
    assert len(shared) == 1 + sum(issubclass(question, Histogram | Table) for question in QUESTIONS.values()) - 1
    for value in shared:  # all but the spikes of the durations have an estimate of their own
        assert (value.shares >= 0).all() and value.shares.sum() == pytest.approx(1)
    length, table = found.distribution(Length), found.joint(DisplacementLength)
    assert found.departure.shape == (7, 24) and len(length.shares) == len(length.bins)
    # Two questions are about lengths: the joint one follows the one with more budget.
    edges = np.asarray(length.bins.edges)
    coarse = np.bincount(table.columns.index((edges[1:] + edges[:-1]) / 2), length.shares, len(table.columns))
    np.testing.assert_allclose(table.shares.sum(axis=0), coarse, atol=0.01)
    # No trajectory is shorter than the distance between its ends.
    shortest = np.asarray(table.rows.edges)[:-1, None]
    too_short = np.asarray(table.columns.edges)[None, 1:] < shortest
    too_short[:, -1] = False
    assert too_short.any() and (table.shares[too_short] == 0).all()
    # Flows follow the ends of their regions.
    flows = found.flows
    out = np.bincount(flows.regions.ravel(), found.starts.ravel(), minlength=len(flows.shares)) / found.starts.sum()
    assert np.abs(flows.shares.sum(axis=1) - out).sum() < 0.1


def test_the_network_keeps_totals_and_coarse_blocks_and_lengths(small_release, small_estimates):
    learned = estimate(small_release, learned=True)
    assert learned.occupancy.sum() == pytest.approx(small_estimates.occupancy.sum())
    assert not np.allclose(learned.occupancy, small_estimates.occupancy)
    assert jsd(pool(learned.occupancy, 16), pool(small_estimates.occupancy, 16)) < 0.02
    lengths = [found.distribution(Length).shares for found in (learned, small_estimates)]
    np.testing.assert_array_equal(*lengths)


def test_no_hour_is_empty_beside_a_sharp_peak():
    hours = np.full(24, 10.0)
    hours[16] = 5000.0
    noise = np.random.default_rng(8).laplace(0, 50.0, (20, 24))
    found = np.array([estimate_hours(Noisy(hours + each, 50.0), Total(5230.0, 100.0)) for each in noise])
    elsewhere = found.sum(axis=1) - found[:, 16]
    assert np.mean([jsd(each, hours) for each in found]) < 0.007  # with curves alone it was .01
    assert elsewhere.min() > 0.01


def test_a_rush_hour_is_not_a_single_peak():
    """If no hour holds most departures, the estimate is that of the smooth curves alone."""
    hours = np.arange(24.0)
    truth = 200 + 2500 * np.exp(-0.5 * ((hours - 8) / 1.2) ** 2) + 1500 * np.exp(-0.5 * ((hours - 18) / 2) ** 2)
    total = Total(truth.sum(), 100.0)
    for each in np.random.default_rng(12).laplace(0, 110.0, (10, 24)):
        with pytest.MonkeyPatch.context() as patch:
            found = estimate_hours(Noisy(truth + each, 110.0), total)
            patch.setattr(weekly, "HOURS", replace(weekly.HOURS, peak_chance=1e-300))
            np.testing.assert_allclose(found, estimate_hours(Noisy(truth + each, 110.0), total), rtol=1e-6)


def test_strong_noise_is_not_a_single_peak():
    """Ten thousand departures over a day at ε = .1: once in thirty releases an hour looks like a third of all."""
    truth = np.full(24, 10_000 / 24)
    seen = truth + np.where(np.arange(24) == 5, 3500.0, 0.0)
    found = estimate_hours(Noisy(seen, 555.0), Total(10_000.0, 1000.0))
    assert found[5] < 0.45


def test_days_that_noise_hides_are_even_and_a_single_busy_day_is_found():
    random = np.random.default_rng(10)
    even = [estimate_weekdays(43 + random.laplace(0, 370.0, 7), 370.0, 300.0) for _ in range(60)]
    assert np.mean([each.max() > 0.5 for each in even]) < 0.1
    busy = np.array([150.0, 10, 10, 10, 10, 4900, 130])
    found = [estimate_weekdays(busy + random.laplace(0, 90.0, 7), 90.0, 5220.0) for _ in range(20)]
    assert np.mean([jsd(each, busy) for each in found]) < 0.02


def test_hours_that_noise_hides_are_even():
    random = np.random.default_rng(11)
    found = [estimate_hours(Noisy(12.5 + random.laplace(0, 55.0, 24), 55.0), Total(300.0, 100.0)) for _ in range(60)]
    assert np.mean([jsd(each, np.ones(24)) for each in found]) < 0.05


def test_the_count_overrules_a_curve_that_adds_up_to_zero():
    """With noise as large as the counts, a curve near zero explains the bins nearly as well, but not the total."""
    middles = np.geomspace(0.05, 40, 15)
    truth = 5000 * np.array([1, 1, 2, 3, 6, 11, 13, 19, 30, 35, 28, 22, 11, 3, 1]) / 186
    noise = np.random.default_rng(9).laplace(0, 250.0, (80, 15))
    plain, counted = (
        [jsd(estimate_histogram(Noisy(truth + each, 250.0), middles, total), truth) for each in noise]
        for total in (None, Total(5000.0, 500.0))
    )
    assert np.mean(counted) < 0.9 * np.mean(plain)
    assert max(counted) < 0.2 < max(plain)

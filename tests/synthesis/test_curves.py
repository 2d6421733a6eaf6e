import numpy as np
import pytest

from wayveil.core.posterior import Noisy
from wayveil.synthesis.estimate.curves import (
    Total,
    about_lognormal,
    also_by_log,
    curves_with_unknown_start,
    from_bin_to_bin,
    smooth_curves,
    without_decay,
)
from wayveil.synthesis.estimate.histogram import estimate_histogram

KINDS = (without_decay, from_bin_to_bin, also_by_log, about_lognormal)


def durations(random, edges, count=4000):
    """Lognormal durations like those of trips: mostly minutes, rarely hours."""
    return np.histogram(np.minimum(random.lognormal(np.log(700), 0.5, count), edges[-1] - 1), edges)[0].astype(float)


def error_of(kind, noise, edges):
    found = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        true = durations(random, edges)
        noisy = true + random.laplace(0, noise, len(true))
        middles = (edges[1:] + edges[:-1]) / 2
        shares = estimate_histogram(Noisy(noisy, noise), middles, Total(true.sum(), noise / 3), kind)
        assert shares.sum() == pytest.approx(1) and (shares > 0).all()
        found.append(np.abs(shares - true / true.sum()).sum())
    return np.mean(found)


def test_curves_that_are_smooth_in_ratios_are_recovered_better_from_noise():
    edges = np.r_[0, np.arange(80, 2400, 80), np.geomspace(2400, 40_000, 20)]
    plain, by_ratio, lognormal = (
        error_of(kind, 60.0, edges) for kind in (from_bin_to_bin, also_by_log, about_lognormal)
    )
    assert by_ratio < 0.97 * plain and lognormal < 0.85 * plain


@pytest.mark.parametrize("kind", KINDS)
def test_exact_counts_are_followed(kind):
    edges = np.r_[0, np.arange(80, 2400, 80), np.geomspace(2400, 40_000, 20)]
    true = durations(np.random.default_rng(0), edges, 200_000)
    middles = (edges[1:] + edges[:-1]) / 2
    found = estimate_histogram(Noisy(true, 0.5), middles, Total(true.sum(), 0.5), kind)
    assert np.abs(found - true / true.sum()).sum() < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_noise_alone_does_not_fail(kind):
    noisy = np.random.default_rng(1).laplace(0, 100.0, 30)
    curves, evidence = smooth_curves(noisy, 100.0, kind(np.arange(1.0, 31.0)), Total(1.0, 100.0))
    assert np.isfinite(evidence).all() and np.isfinite(curves).all() and (curves >= 0).all()


def test_the_unit_of_the_values_does_not_matter():
    noisy = durations(np.random.default_rng(2), np.arange(0, 6000, 200.0)) + 5
    middles = np.arange(100.0, 5900, 200)
    for kind in KINDS:
        (one, likely), (other, as_likely) = (smooth_curves(noisy, 5.0, kind(middles * unit)) for unit in (1.0, 1 / 60))
        assert np.allclose(one, other, rtol=1e-4, atol=1e-6) and np.allclose(likely, as_likely, atol=1e-4)


def test_curves_may_begin_at_a_later_bin():
    counts = np.r_[np.zeros(10), 100, 80, 60, 40, 30, 20, 10, 5, 2, 1]
    curves, evidence = curves_with_unknown_start(counts, 3.0, np.arange(1.0, 21.0), from_bin_to_bin)
    assert curves[evidence.argmax()][:10].max() < 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bins", [1, 2, 3])
def test_one_or_two_bins_print_no_library_messages(kind, bins, capfd, recwarn):
    """A speed cap of 1 km/h leaves one bin; LAPACK printed a line for each step of each curve."""
    counts, middles = np.full(bins, 30.0), np.arange(1.0, bins + 1)
    curves, evidence = smooth_curves(counts, 2.0, kind(middles), Total(30.0 * bins, 2.0))
    assert np.isfinite(curves).all() and np.isfinite(evidence).all() and curves.shape[1] == bins
    shares = estimate_histogram(Noisy(counts, 2.0), middles, Total(30.0 * bins, 2.0), kind)
    assert shares.sum() == pytest.approx(1.0) and (shares > 0).all()
    assert capfd.readouterr() == ("", "") and not recwarn.list

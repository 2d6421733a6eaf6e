"""Ratios of gaps to the sampling interval: that the interval is the median gap helps where noise hides the rest."""

import numpy as np
import pytest

from wayveil.core.posterior import Noisy
from wayveil.questions.gap_ratio import GapRatio
from wayveil.synthesis.estimate.curves import Total
from wayveil.synthesis.estimate.gap_ratios import _shapes, estimate_gap_ratio
from wayveil.synthesis.estimate.histogram import estimate_histogram

BINS = GapRatio.finest_bins(None)
EDGES = np.asarray(BINS.edges)
SHORTER, LONGER = EDGES[1:] < 1, EDGES[:-1] > 1
AT_INTERVAL = ~SHORTER & ~LONGER

EXACT = np.where(AT_INTERVAL, 1.0, 0.0)
LOOSE = np.array([0.02, 0.03, 0.05, 0.08, 0.1, 0.1, 0.05, 0.14, 0.05, 0.16, 0.12, 0.06, 0.03, 0.01])
"""A smooth distribution around the interval, without a spike."""


def divergence(p, q):
    middle = (p + q) / 2
    return sum(0.5 * float((a[a > 0] * np.log(a[a > 0] / middle[a > 0])).sum()) for a in (p, q))


def test_shapes_are_compatible_with_a_median():
    shapes = _shapes(BINS)
    np.testing.assert_allclose(shapes.sum(axis=1), 1.0)
    assert (shapes > 0).all()
    assert shapes[:, SHORTER].sum(axis=1).max() < 0.51 and shapes[:, LONGER].sum(axis=1).max() < 0.51
    assert shapes[:, AT_INTERVAL].sum(axis=1).min() < 0.02 and shapes[:, AT_INTERVAL].sum(axis=1).max() > 0.96


@pytest.mark.parametrize(
    ("truth", "units", "gain"), [(EXACT, 1.0, 1.6), (EXACT, 5.0, 3), (EXACT, 20.0, 2), (LOOSE, 5.0, 1.5)]
)
def test_weak_signals_improve_on_a_smooth_curve(truth, units, gain):
    random, plain, known = np.random.default_rng(4), [], []
    total = Total(1000.0, 1000 / units)
    for _ in range(12):
        noisy = 1000 * truth + random.laplace(0, 1000 / units, len(truth))
        answer = Noisy(noisy, 1000 / units)
        plain.append(divergence(truth, estimate_histogram(answer, (EDGES[1:] + EDGES[:-1]) / 2, total)))
        known.append(divergence(truth, estimate_gap_ratio(answer, BINS, total)))
    assert gain * np.mean(known) < np.mean(plain)


@pytest.mark.parametrize("truth", [EXACT, LOOSE, LOOSE[::-1] / LOOSE.sum()])
def test_a_clear_signal_is_kept(truth):
    noisy = 1e6 * truth + np.random.default_rng(1).laplace(0, 10, len(truth))
    found = estimate_gap_ratio(Noisy(noisy, 10.0), BINS, Total(1e6, 10.0))
    assert found.sum() == pytest.approx(1) and (found > 0).all()
    assert divergence(truth, found) < 1e-3


def test_noise_alone_gives_a_distribution():
    for seed in range(5):
        noisy = np.random.default_rng(seed).laplace(0, 1e4, len(BINS))
        found = estimate_gap_ratio(Noisy(noisy, 1e4), BINS, Total(1.0, 100.0))
        assert np.isfinite(found).all() and found.sum() == pytest.approx(1)

"""Speeds are about lognormal: this prior helps under strong noise, and a clear answer overrules it."""

import numpy as np
import pytest

from wayveil.core.posterior import Noisy
from wayveil.synthesis.estimate.curves import Total
from wayveil.synthesis.estimate.histogram import estimate_histogram
from wayveil.synthesis.estimate.speeds import estimate_speeds, lognormal_shapes

EDGES = np.r_[np.arange(0.0, 30, 2.0), np.geomspace(30, 150, 12)]
MIDDLES = (EDGES[1:] + EDGES[:-1]) / 2


def divergence(p, q):
    middle = (p + q) / 2
    return sum(0.5 * float((a[a > 0] * np.log(a[a > 0] / middle[a > 0])).sum()) for a in (p, q))


def around(middle, width=0.4):
    share = np.exp(-0.5 * (np.log(MIDDLES / middle) / width) ** 2) / MIDDLES * np.diff(EDGES)
    return share / share.sum()


def test_shapes_are_distributions_around_many_medians():
    shapes = lognormal_shapes(EDGES)
    np.testing.assert_allclose(shapes.sum(axis=1), 1)
    assert (shapes > 0).all() and len(shapes) > 50
    assert {5, 20, 60} <= {int(round(float(MIDDLES[k]) / 5) * 5) for k in shapes.argmax(axis=1)}


def test_speeds_are_estimated_from_weak_signals():
    random, noise = np.random.default_rng(7), 60.0
    plain, known = [], []
    for middle in np.repeat([5.0, 25.0, 70.0], 15):
        truth = around(middle)
        noisy = 1000 * truth + random.laplace(0, noise, len(truth))
        plain.append(divergence(truth, estimate_histogram(Noisy(noisy, noise), MIDDLES, Total(1000.0, noise))))
        known.append(divergence(truth, estimate_speeds(Noisy(noisy, noise), EDGES, Total(1000.0, noise))))
    assert np.mean(known) < 0.9 * np.mean(plain)


def test_a_clear_signal_is_kept_although_it_is_not_lognormal():
    truth = 0.5 * around(4, 0.2) + 0.5 * around(60, 0.15)  # on foot and by train
    noisy = 1e5 * truth + np.random.default_rng(2).laplace(0, 20, len(truth))
    assert divergence(truth, estimate_speeds(Noisy(noisy, 20.0), EDGES, Total(1e5, 20.0))) < 2e-3


def test_noise_alone_gives_a_distribution():
    for seed in range(4):
        noisy = np.random.default_rng(seed).laplace(0, 1e5, len(MIDDLES))
        found = estimate_speeds(Noisy(noisy, 1e5), EDGES, Total(1.0, 1e3))
        assert np.isfinite(found).all() and (found >= 0).all() and found.sum() == pytest.approx(1)

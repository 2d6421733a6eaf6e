import numpy as np
import pytest

from wayveil.core.divergence import jsd
from wayveil.core.posterior import Noisy
from wayveil.synthesis.estimate.curves import Total
from wayveil.synthesis.estimate.durations import estimate_durations
from wayveil.synthesis.estimate.histogram import estimate_histogram

EDGES = np.r_[0, np.arange(160, 2400, 160), np.geomspace(2400, 43_200, 10)]
MIDDLES = (EDGES[1:] + EDGES[:-1]) / 2


def simulated_counts(count, noise, seed, middle_s=700.0):
    random = np.random.default_rng(seed)
    true = np.histogram(np.minimum(random.lognormal(np.log(middle_s), 0.6, count), 43_000), EDGES)[0].astype(float)
    return true, true + random.laplace(0, noise, len(true)), Total(float(count), 3 * noise)


def test_noise_does_not_make_the_durations_of_few_trips_long():
    plain, ours, longest = [], [], []
    for seed in range(20):
        true, noisy, total = simulated_counts(300, 33.0, seed)
        found = estimate_durations(noisy, 33.0, EDGES, total)
        plain.append(jsd(true, estimate_histogram(Noisy(noisy, 33.0), MIDDLES, total)))
        ours.append(jsd(true, found))
        longest.append(found[MIDDLES > 3600].sum())
    assert np.mean(ours) < 0.75 * np.mean(plain) and np.mean(longest) < 0.2


@pytest.mark.parametrize("middle_s", [120.0, 700.0, 15_000.0])
def test_a_clear_answer_outweighs_the_prior(middle_s):
    true, noisy, total = simulated_counts(20_000, 33.0, 1, middle_s)
    assert jsd(true, estimate_durations(noisy, 33.0, EDGES, total)) < 0.02


@pytest.mark.parametrize("bins", [1, 2, 3, 4, 30])
def test_noise_alone_and_few_bins_do_not_fail(bins):
    noisy = np.random.default_rng(0).laplace(0, 1e4, bins)
    found = estimate_durations(noisy, 1e4, np.linspace(0, 3600, bins + 1), Total(1.0, 1e4))
    assert found.sum() == pytest.approx(1) and (found > 0).all()

"""The learned estimator: pinned weights, a golden output, the guard, fallbacks to the Bayesian estimate, imports."""

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wayveil.core.density import NoisyLevel, estimate_field
from wayveil.core.pyramid import pool
from wayveil.synthesis.estimate.learned import features, guard, refine, weights
from wayveil.synthesis.estimate.learned.refine import LearnedFallback
from wayveil.synthesis.estimate.learned.support import data_share

SHA256 = "4972323d9ad7259c9dfbc44b96c7614e63ab0e1aa40404a3ba12613ce3603808"
GAUSSIAN_SHA256 = "cc6233a1af6e482e1d09c6ac4575d9deafb082873852db6c74bbf005efbcc0e4"


def streets(shape=(56, 48), total=6000.0):
    """A town of a few streets with one busy crossing."""
    field = np.full(shape, 0.01)
    field[::7] += 1.0
    field[:, 20] += 4.0
    field[28] += 4.0
    field[26:31, 18:23] += 6.0
    return field * total / field.sum()


def noisy(field, epsilon_v, seed=3, sides=(16, 4, 1)):
    random = np.random.default_rng(seed)
    levels = []
    for side, share in zip(sides, (0.25, 0.35, 0.40)):
        scale = 1 / (epsilon_v * share)
        pooled = pool(field, side)
        levels.append(NoisyLevel(pooled + random.laplace(0, scale, pooled.shape), side, scale))
    return levels


def refine_field(levels, total, area, bayes, road_features=None, **options):
    observed = refine.Observed(levels, total, area, road_features)
    return refine.with_warning(refine.refine(observed, bayes, **options)).field


def inputs_from_ends(field, area, epsilon_v=0.1):
    """Inputs for the occupancy from end points that are distributed like the field."""
    levels = noisy(field, epsilon_v, seed=8)
    return features.inputs_for_occupancy(levels, estimate_field(levels, field.sum(), area), area)


def jsd(p, q):
    p, q = p / p.sum(), q / q.sum()
    middle = (p + q) / 2
    return 0.5 * sum(np.sum(a[a > 0] * np.log(a[a > 0] / middle[a > 0])) for a in (p, q))


@pytest.fixture(scope="module")
def case():
    truth = streets()
    area = np.ones(truth.shape)
    levels = noisy(truth, 0.2)
    return truth, area, levels, estimate_field(levels, 6000.0, area), inputs_from_ends(truth, area)


def test_weights_are_the_shipped_ones_and_small():
    content = weights.WEIGHTS_FILE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == weights.WEIGHTS_SHA256 == SHA256
    assert len(content) < 5_000_000
    content = weights.GAUSSIAN_FILE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == weights.GAUSSIAN_SHA256 == GAUSSIAN_SHA256
    assert len(content) < 5_000_000


def gaussian(field, noise, seed=3, sides=(16, 4, 1)):
    random = np.random.default_rng(seed)
    levels = []
    for side, factor in zip(sides, (6.0, 2.0, 1.0)):
        pooled = pool(field, side)
        scale = noise * factor
        levels.append(NoisyLevel(pooled + random.normal(0, 2**0.5 * scale, pooled.shape), side, scale, gaussian=True))
    return levels


@pytest.mark.parametrize("precise", [1.0, 4.0])
def test_the_network_for_gaussian_noise_comes_nearer_to_the_truth(precise):
    """Also where coarse blocks differ in precision, and where the signal is weaker than the other network's limit."""
    truth = streets()
    area = np.ones(truth.shape)
    levels = gaussian(truth, 30.0)
    coarse = np.full(levels[0].counts.shape, levels[0].noise)
    coarse[::2] /= precise
    levels[0] = NoisyLevel(levels[0].counts, 16, coarse, gaussian=True)
    bayes = estimate_field(levels, 6000.0, area)
    learned = refine_field(
        levels, 6000.0, area, bayes, kind="occupancy", other_field=features.inputs_for_occupancy(levels, bayes, area)
    )
    assert learned.sum() == pytest.approx(bayes.sum())
    assert jsd(truth, learned) < 0.95 * jsd(truth, bayes)
    ends = refine_field(
        levels, 6000.0, area, bayes, kind="end_points", other_field=features.inputs_for_end_points(learned, area)
    )
    assert jsd(truth, ends) < jsd(truth, bayes)



def test_golden_output(case):
    _, area, levels, bayes, ends = case
    learned = refine_field(levels, 6000.0, area, bayes, kind="occupancy", other_field=ends)
    ends = refine_field(
        levels, 6000.0, area, bayes, kind="end_points", other_field=features.inputs_for_end_points(learned, area)
    )
    found = [learned[28, 20], learned[28, 40], learned[7, 3], learned[3, 3], ends[28, 20], ends[28, 40], ends[3, 3]]
    golden = [131.6520, 25.8047, 0.4207, 0.5967, 113.1016, 24.0197, 0.8692]
    np.testing.assert_allclose(found, golden, rtol=0.01)


def test_the_network_keeps_the_total_and_comes_nearer_to_the_truth(case):
    truth, area, levels, bayes, ends = case
    learned = refine_field(levels, 6000.0, area, bayes, kind="occupancy", other_field=ends)
    assert learned.sum() == pytest.approx(bayes.sum())
    assert (learned >= 0).all()
    assert jsd(truth, learned) < 0.85 * jsd(truth, bayes)


def test_the_ends_inform_the_estimate_of_the_points(case):
    truth, area, levels, bayes, ends = case
    informed, elsewhere = (
        refine_field(levels, 6000.0, area, bayes, kind="occupancy", other_field=inputs)
        for inputs in (ends, inputs_from_ends(np.full_like(truth, truth.mean()), area))
    )
    assert jsd(truth, informed) < 0.97 * jsd(truth, elsewhere)


def test_nothing_outside_the_scope():
    truth = streets((40, 35))
    area = np.ones(truth.shape)
    area[-1] = 0.3
    area[:, -1] = 0.0
    truth = truth * area
    levels = noisy(truth, 0.3)
    bayes = estimate_field(levels, 6000.0, area)
    ends = inputs_from_ends(truth, area)
    assert (refine_field(levels, 6000.0, area, bayes, kind="occupancy", other_field=ends)[:, -1] == 0).all()


def test_a_map_changes_the_estimate(case):
    truth, area, levels, bayes, ends = case
    on_street = (truth > truth.mean() / 2).astype(float)
    nothing = np.zeros(area.shape)
    roads = [nothing, on_street, nothing, nothing, nothing, nothing, nothing]
    mapped = refine_field(levels, 6000.0, area, bayes, kind="occupancy", other_field=ends, road_features=roads)
    unmapped = refine_field(levels, 6000.0, area, bayes, kind="occupancy", other_field=ends)
    assert jsd(truth, mapped) < jsd(truth, unmapped)


@pytest.mark.parametrize("fault", ["missing", "altered"])
def test_without_weights_bayes_is_used_with_a_message(case, fault, tmp_path, monkeypatch):
    _, area, levels, bayes, ends = case
    path = tmp_path / "weights.npz"
    if fault == "altered":
        content = bytearray(weights.WEIGHTS_FILE.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    monkeypatch.setattr(refine, "load_weights", lambda kind, gaussian: weights.load_weights(kind, path=path))
    with pytest.warns(LearnedFallback, match=fault):
        assert refine_field(levels, 6000.0, area, bayes, kind="occupancy", other_field=ends) is bayes


def test_bayes_is_used_if_memory_is_too_small(case, monkeypatch):
    _, area, levels, bayes, ends = case
    monkeypatch.setattr(refine, "available_bytes", lambda: 1000.0)
    with pytest.warns(LearnedFallback, match="too large"):
        assert refine_field(levels, 6000.0, area, bayes, kind="occupancy", other_field=ends) is bayes


@pytest.mark.parametrize("epsilon_v", [1e-6, 1e4])
def test_bayes_is_used_outside_the_trained_range(case, epsilon_v):
    truth, area, _, bayes, ends = case
    with pytest.warns(LearnedFallback, match="training data"):
        assert refine_field(noisy(truth, epsilon_v), 6000.0, area, bayes, kind="occupancy", other_field=ends) is bayes


def test_the_guard_refuses_what_the_release_contradicts(case):
    truth, _, levels, bayes, _ = case
    assert guard.trusted_share(levels, bayes, truth) == 1.0
    assert guard.trusted_share(levels, bayes, truth[::-1, ::-1].copy()) < 0.5


def test_the_coarse_level_pulls_blocks_halfway(case):
    truth, _, levels, _, _ = case
    lopsided = truth.copy()
    lopsided[:16] *= 3
    lopsided *= truth.sum() / lopsided.sum()
    better = guard.towards_coarse(levels, lopsided)
    assert better.sum() == pytest.approx(lopsided.sum())
    assert jsd(pool(truth, 16), pool(better, 16)) < 0.6 * jsd(pool(truth, 16), pool(lopsided, 16))


def test_busy_cells_rely_on_data_and_empty_ones_on_the_prior(case):
    _, _, levels, bayes, _ = case
    share = data_share(levels, bayes)
    assert share.shape == bayes.shape and ((share >= 0) & (share <= 1)).all()
    assert share[28, 20] > 0.8 and share[3, 3] < 0.2


def test_road_classes_are_summed_in_threes():
    shape = (4, 5)
    classes = [np.full(shape, float(k)) for k in range(6)]
    uncovered = np.zeros(shape)
    uncovered[0] = 1
    channels = features.road_channels([*classes, uncovered], shape)
    np.testing.assert_allclose(channels[1, 0], [np.log1p(1), np.log1p(5), np.log1p(9), 1], rtol=1e-6)
    assert (channels[0] == 0).all()
    assert (features.road_channels(None, shape) == 0).all()


def test_the_estimator_imports_nothing_that_reads_private_data():
    code = (
        "import sys, wayveil.synthesis.estimate.learned.refine as r; "
        "bad = [m for m in sys.modules if m.startswith('wayveil.') and m.split('.')[1] not in "
        "{'core', 'errors', 'synthesis'}]; "
        "assert not bad, bad; assert not {'jax', 'wayveil.core.prepare'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for file in Path(refine.__file__).parent.glob("*.py"):
        assert "torch" not in file.read_text()


def test_the_warning_names_the_file_of_the_caller():
    import warnings

    from wayveil.synthesis.estimate.learned import refine

    refused = refine.Refined(np.ones((2, 2)), 0.0, "No network today.")
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        refine.with_warning(refused)
    assert [warning.filename for warning in shown] == [__file__]

"""The fourth stage: what it scores, the rule that it practises, the cities that it adds, how it is judged."""

from pathlib import Path

import numpy as np
import pytest

from wayveil.synthesis.estimate.fields import with_blocks_of

FOLDER = Path(__file__).resolve().parents[2] / "research" / "training"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture
def compiled():
    import jax

    return jax.jit


def field(seed, shape=(64, 64)):
    values = np.random.default_rng(seed).gamma(0.3, size=shape)
    return values / values.sum()


def logs(*fields):
    return np.log(np.stack(fields)).astype(np.float32)


def test_training_and_judging_use_the_rule_of_the_product(compiled):
    import lessons
    from judge import keep_blocks

    settle = compiled(lessons.settle)

    mine, bayes = field(1, (128, 128)), field(2, (128, 128))
    for share, mapped in ((1.0, 0.0), (0.5, 1.0)):
        for fine, side in ((1, 16), (2, 32), (4, 64), (8, 64)):
            judged = keep_blocks(mine, bayes, side, share)
            if share == 1.0:
                np.testing.assert_allclose(judged, with_blocks_of(mine, bayes, side))
            constants = np.array([[0, 0, 0, np.log2(fine) / 4, 0, mapped]], np.float32)
            settled = np.exp(settle(logs(mine), logs(bayes), constants)[0])
            np.testing.assert_allclose(settled, judged, rtol=2e-3)


def test_moving_mass_far_costs_more_than_moving_it_near(compiled):
    from judge_blocks import far
    from lessons import energy

    truth = np.full((64, 64), 1e-6)
    truth[20:28, 20:28] = 1.0
    near, away = np.roll(truth, 8, axis=1), np.roll(truth, 32, axis=1)
    truth, near, away = (part / part.sum() for part in (truth, near, away))
    found = np.asarray(compiled(energy)(np.stack([truth] * 3), np.stack([truth, near, away])))
    assert found[0] < 1e-6 < found[1] < 0.5 * found[2]
    for other, value in zip((near, away), found[1:]):
        assert far(truth, other, side=16) ** 2 == pytest.approx(float(value), rel=1e-3)


def test_the_loss_over_scales_sees_what_the_loss_over_cells_hardly_sees(compiled):
    """A little mass moved from a wide thin country to the centre: few nats a cell, much in the blocks."""
    from lessons import LESSONS, score

    truth = np.full((128, 128), 0.002)
    truth[:64, :64] = 1.0
    drawn = truth.copy()
    drawn[64:, 64:] *= 0.5
    truth, drawn = truth / truth.sum(), drawn / drawn.sum()
    constants = np.zeros((1, 6), np.float32)
    scored = compiled(score, static_argnums=0)

    def loss(name, found):
        return float(scored(LESSONS[name], truth[None], logs(truth), logs(found), constants)[0])

    assert loss("cells", truth) == pytest.approx(0, abs=1e-5) and loss("scales", truth) < 3e-3
    assert loss("scales", drawn) > 3 * loss("cells", drawn) > 0
    assert loss("settled", drawn) < loss("scales", drawn)  # the Bayesian sums are right here


def test_the_gradient_of_a_lesson_brings_mass_back(compiled):
    import jax
    import jax.numpy as jnp
    from lessons import LESSONS, score

    truth, start = field(3)[None], logs(field(4))
    constants = np.zeros((1, 6), np.float32)

    def loss(raw):
        log_p = jax.nn.log_softmax(raw.reshape(1, -1)).reshape(raw.shape)
        return score(LESSONS["settled"], jnp.asarray(truth), start, log_p, constants).sum()

    both = compiled(jax.value_and_grad(loss))
    before, slope = both(jnp.asarray(start))
    assert np.isfinite(slope).all()
    assert float(both(start - 50 * slope)[0]) < float(before)


def test_outskirts_reach_further_and_roaming_scopes_leave_the_middle():
    import samples

    random = np.random.default_rng(6)
    city = samples.build_city("organic", random, trips=60)
    wide = samples._thinning_out(city.streets, random)
    reach = np.hypot(*city.streets.xy.T).max()
    assert np.hypot(*wide.xy.T).max() > 1.1 * reach
    assert np.median(np.hypot(*wide.xy.T)) < 0.8 * np.hypot(*wide.xy.T).max()
    heat = np.ones(len(wide.xy))
    drawn = samples._far_places(wide, heat, random)
    away = np.hypot(*wide.xy.T)
    outer = away >= np.quantile(away, 0.6)
    assert drawn[outer].sum() / drawn.sum() > heat[outer].sum() / heat.sum()

    def off_middle(roaming):
        found = []
        for seed in range(12):
            view = samples.look(city, np.random.default_rng(seed), count=200.0, side=96, roaming=roaming)
            if view.count:
                y, x = (np.arange(n) / n - 0.5 for n in view.occupancy.shape)
                share = view.occupancy / view.occupancy.sum()
                found.append(np.hypot(share.sum(axis=1) @ y, share.sum(axis=0) @ x))
        return np.mean(found)

    assert off_middle(True) > 1.2 * off_middle(False)


def test_the_score_measures_spread_and_blocks():
    from judge_blocks import MEASURES, measures, table

    truth = np.zeros((64, 96))
    truth[28:36, 40:56] = 1.0
    wide = np.zeros_like(truth)
    wide[24:40, 32:64] = 1.0
    same, other = (dict(zip(MEASURES, measures(truth, found))) for found in (truth, wide))
    assert same["jsd1"] == same["far"] == 0 and same["spread"] == 1
    assert other["spread"] == pytest.approx(2, rel=0.01) and other["jsd1"] > other["jsd64"] and other["far"] > 0
    row = {"family": "roaming", "field": "occupancy", "mapped": False, "hours": True, "epsilon": 0.5}
    text = table([row | {"variant": "bayes", "measures": measures(truth, wide)}])
    assert "bayes" in text and f"{other['jsd1']:.4f}" in text


def test_the_mean_of_two_weights_lies_between(tmp_path):
    from average import average

    for name, value in (("a", 1.0), ("b", 3.0)):
        np.savez(tmp_path / f"{name}.npz", kernel=np.full(4, value, np.float16))
    mixed = average(tmp_path / "a.npz", tmp_path / "b.npz", 0.25)
    assert mixed["kernel"].dtype == np.float16 and mixed["kernel"].tolist() == [1.5] * 4
    for only, found in (("kern", 3.0), ("other", 1.0)):
        assert average(tmp_path / "a.npz", tmp_path / "b.npz", 1.0, only)["kernel"].tolist() == [found] * 4
    np.savez(tmp_path / "c.npz", other=np.zeros(4))
    with pytest.raises(SystemExit, match="different arrays"):
        average(tmp_path / "a.npz", tmp_path / "c.npz", 0.5)

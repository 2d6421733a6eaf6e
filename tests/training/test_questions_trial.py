"""The trial of designs of the occupancy questions: each partition holds every cell once, no design spends too much."""

from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "research" / "training"
CELLS_OF_A_SUM = {"16": 256, "8": 64, "4": 16, "2": 4, "1": 1, "h8": 8, "v8": 8, "d8": 8, "e8": 8}
SIDE = 32


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def members(name):
    """(sums, rows, columns): one cell at a time is full, and the sums that it shows up in are written down."""
    from questions_trial import pooled

    cells = np.eye(SIDE * SIDE, dtype=np.float32).reshape(-1, SIDE, SIDE)
    sums = np.asarray(pooled(cells, name)[0])
    return sums.reshape(SIDE * SIDE, -1).T.reshape(-1, SIDE, SIDE)


@pytest.mark.parametrize("name", CELLS_OF_A_SUM)
def test_every_cell_is_in_exactly_one_sum_and_gets_it_back(name):
    from questions_trial import pooled

    inside = members(name)
    np.testing.assert_array_equal(np.unique(inside), [0, 1] if len(inside) > 1 else [1])
    np.testing.assert_array_equal(inside.sum(axis=0), 1)
    np.testing.assert_array_equal(inside.sum(axis=(1, 2)), CELLS_OF_A_SUM[name])

    field = np.random.default_rng(1).integers(0, 50, (1, SIDE, SIDE)).astype(np.float32)
    sums, back = pooled(field, name)
    assert np.asarray(sums).sum() == field.sum()
    expected = np.einsum("src,s->rc", inside, np.asarray(sums).ravel())
    np.testing.assert_array_equal(back(sums)[0], expected)
    assert np.asarray(back(sums / CELLS_OF_A_SUM[name])).sum() == pytest.approx(field.sum(), rel=1e-6)


@pytest.mark.parametrize(("name", "row_step", "column_step"), [("h8", 0, 1), ("v8", 1, 0), ("d8", 1, 1), ("e8", 1, -1)])
def test_strips_run_in_the_direction_of_their_name(name, row_step, column_step):
    inside = members(name)
    strip = inside[inside[:, 8, 8] == 1][0]
    found = {(int(row), int(column)) for row, column in np.argwhere(strip)}
    assert found == {(8 + k * row_step, 8 + k * column_step) for k in range(8)}


def test_every_design_asks_known_partitions_and_spends_the_share():
    from product import OCCUPANCY_SHARE
    from questions_trial import DESIGNS, FIRST_RUN, SHARE

    assert SHARE == OCCUPANCY_SHARE == 0.39
    assert set(FIRST_RUN) <= set(DESIGNS)
    for name, design in DESIGNS.items():
        assert set(design.partitions) <= set(CELLS_OF_A_SUM), name
        assert design.partitions[0] == "16", name
        if design.focus:
            assert set(design.shares) == {"16"}, name
        else:
            assert sum(design.shares.values()) == pytest.approx(0.39, abs=1e-12), name


@pytest.mark.parametrize("name", ["adaptive", "lesscoarse", "wide", "finer"])
def test_a_focused_design_spends_the_share_in_every_cell_and_more_in_busy_cells(name):
    from questions_trial import DESIGNS, focused

    design = DESIGNS[name]
    rest = 0.39 - design.shares["16"]
    # Halfway, in logs, between the two signals of the rule lies halfway between its two shares.
    middle = np.sqrt(design.focus.at * design.focus.until) / (2.0 * rest)
    coarse = np.array([-5.0, 0.0, middle / 2, middle, middle * 2, 1000.0])[None, :, None]
    divided = {key: np.asarray(value).ravel() for key, value in focused(coarse, 2.0, design).items()}
    np.testing.assert_allclose(divided["4"] + divided["1"], rest, rtol=1e-5)
    fine = divided["1"] / rest
    assert (np.diff(fine[1:]) > 0).all()
    low, high = design.focus.low, design.focus.high
    np.testing.assert_allclose(fine[[0, 1, 3, -1]], [low, low, (low + high) / 2, high], rtol=1e-4)


def test_the_network_sees_every_answer_in_units_of_its_noise(monkeypatch):
    import jax
    from questions_trial import DESIGNS, channel_count, focused, inputs, pooled

    monkeypatch.setattr(jax.random, "laplace", lambda key, shape: np.ones(shape, np.float32))
    design, worth = DESIGNS["adaptive"], 0.7
    truth = np.random.default_rng(2).gamma(0.5, size=(1, SIDE, SIDE)).astype(np.float32)
    area = np.ones_like(truth)
    seen = np.asarray(inputs(jax.random.key(1), truth, area, np.array([worth], np.float32), design))
    assert seen.shape == (1, SIDE, SIDE, channel_count(design))
    sums, back = pooled(truth, "16")
    coarse = np.asarray(back(sums) + 1 / (worth * design.shares["16"])) / 256
    np.testing.assert_allclose(np.exp(4 * seen[..., 0]), coarse, rtol=1e-4)
    shares = design.shares | focused(coarse, worth, design)
    for channel, (part, share) in zip((1, 3, 5), shares.items(), strict=True):
        sums, back = pooled(truth, part)
        expected = np.asarray(back(sums)) * worth * np.asarray(share) + 1
        np.testing.assert_allclose(np.sinh(3 * seen[..., channel]), expected, rtol=1e-4)

"""How a detail is weighed: never more than PARTS times a trajectory's norm, and taken apart again without loss."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wayveil.core.grid import Grid
from wayveil.core.pyramid import pool
from wayveil.privacy.budget import Budget
from wayveil.questions.catalogue import QUESTIONS, SHARES
from wayveil.questions.detail_weights import (
    FEWEST,
    MOST,
    PARTS,
    coarse_parts,
    concentration,
    fine_parts,
    parts_of_cells,
    unweigh,
    weigh,
)
from wayveil.questions.end_points import hours_part
from wayveil.questions.field import CLEAR_UNITS, USUALLY_CONCENTRATED, field_levels
from wayveil.questions.shares import by_group, divided, for_signal, ledger_lines

R = 1 << 16
many = settings(max_examples=150, deadline=None)
BLOCKS = arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.floats(-1e12, 1e12))
SIGNS = {"counts": [1], "differences": [1, -1]}


@st.composite
def looks(draw):
    """A small grid, three sides that divide each other, and any parts of its blocks."""
    shape = draw(st.integers(1, 17)), draw(st.integers(1, 17))
    fine = draw(st.sampled_from([1, 2]))
    middle = fine * draw(st.integers(1, 4))
    coarse = middle * draw(st.integers(1, 4))
    blocks = tuple(-(-cells // coarse) for cells in shape)
    parts = draw(arrays(np.int64, blocks, elements=st.integers(FEWEST, MOST)))
    return shape, (coarse, middle, fine), parts


@st.composite
def one_trajectory(draw, shape, signs):
    """Whole numbers on the grid whose sizes add up to R at most: in one cell, in several, here and there twice."""
    phi, left = np.zeros(shape, np.int64), draw(st.sampled_from([R, R, R - 1, 3]))
    for _ in range(draw(st.integers(1, 8))):
        size = draw(st.one_of(st.just(left), st.integers(0, left)))
        left -= size
        phi[draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))] += (
            draw(st.sampled_from(signs)) * size
        )
    return phi


def asked(sums, sides, parts):
    coarse, middle, fine = sides
    return weigh(pool(sums, middle), pool(sums, fine), parts, (coarse // middle, coarse // fine))


@pytest.mark.parametrize("signs", SIGNS.values(), ids=SIGNS.keys())
def test_a_trajectory_weighs_at_most_all_parts_of_its_norm(signs):
    reached = []

    @many
    @given(st.data())
    def each(data):
        shape, sides, parts = data.draw(looks())
        phi = data.draw(one_trajectory(shape, signs))
        weighed = asked(phi, sides, parts)
        assert weighed.dtype == np.int64 and np.abs(weighed).sum() <= PARTS * np.abs(phi).sum() <= PARTS * R
        reached.append(np.abs(weighed).sum())

    each()
    assert max(reached) == PARTS * R  # the bound is no larger than it has to be


@many
@given(looks(), st.data())
def test_neighbours_differ_by_at_most_all_parts_when_only_noisy_blocks_decide(look, data):
    shape, sides, _ = look
    others = data.draw(arrays(np.int64, shape, elements=st.integers(0, 1 << 40)))
    phi = data.draw(one_trajectory(shape, [1]))
    # Any noisy answer at all is a possible one; it is the same on both sides, and so are the parts.
    noisy = data.draw(arrays(float, pool(others, sides[0]).shape, elements=st.floats(-1e6, 1e9)))
    noise = data.draw(st.floats(1e-3, 1e6))
    vectors = []
    for sums in (others, others + phi):
        parts = fine_parts(noisy, (sides[0] // sides[2]) ** 2, noise)
        vectors.append(asked(sums, sides, parts))
    assert np.abs(vectors[1] - vectors[0]).sum() <= PARTS * R


def test_parts_from_exact_blocks_would_break_the_bound():
    """The test above can fail: blocks that know their exact sums weigh all of their other trajectories anew."""
    others, phi = np.full((16, 16), 100 * R), np.zeros((16, 16), np.int64)
    phi[3, 3] = R
    vectors = []
    for sums in (others, others + phi):
        # A noise for which the one trajectory decides between two parts.
        noise = 25_600.5 / 256 / (0.03 * (1 / 0.03) ** ((10.5 / PARTS - 0.2) / 0.75))
        vectors.append(asked(sums, (16, 4, 1), fine_parts(pool(sums, 16) / R, 256, noise)))
    assert np.abs(vectors[1] - vectors[0]).sum() > 100 * PARTS * R


@many
@given(looks(), st.data())
def test_unweighing_a_detail_reverses_weighing(look, data):
    shape, (coarse, middle, fine), parts = look
    sums = data.draw(arrays(np.int64, shape, elements=st.integers(-(1 << 40), 1 << 40)))
    levels, ratios = [pool(sums, side) for side in (middle, fine)], (coarse // middle, coarse // fine)
    weighed = weigh(*levels, parts, ratios)
    found = unweigh(weighed.astype(float), parts, ratios, tuple(level.shape for level in levels))
    for (counts, own), level in zip(found, levels, strict=True):
        assert np.array_equal(counts, level) and own.shape == level.shape
    assert np.array_equal(found[1][1], parts_of_cells(parts, ratios[1], levels[1].shape))
    # The parts of a fine cell and of the middle cell around it are all there are.
    around = np.repeat(np.repeat(found[0][1], middle // fine, 0), middle // fine, 1)
    assert (found[1][1] + around[: found[1][1].shape[0], : found[1][1].shape[1]] == PARTS).all()


@many
@given(BLOCKS, st.sampled_from([1, 16, 256]), st.floats(1e-6, 1e9))
def test_parts_are_always_possible_and_never_fewer_for_more(blocks, cells, noise):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = fine_parts(blocks, cells, noise)
    assert parts.dtype == np.int64 and parts.shape == blocks.shape
    assert parts.min() >= FEWEST and parts.max() <= MOST
    order = np.argsort(blocks, axis=None)
    assert (np.diff(parts.ravel()[order]) >= 0).all()
    assert (fine_parts(blocks, cells, 2 * noise) <= parts).all()


def test_parts_of_blocks_without_anybody_and_of_very_full_ones():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fine_parts(np.array([-1e300, -5.0, 0.0, 5e-324, 1e300]), 256, 3.0)
    assert found.tolist() == [FEWEST] * 4 + [MOST]
    assert 1 <= FEWEST < MOST <= PARTS - 1  # both levels contribute everywhere, so that they can be separated
    # Where a fine cell is worth one noise unit, nearly all of the share is its own; at three percent a fifth is.
    assert fine_parts(np.array([256 * 3.0, 0.03 * 256 * 3.0]), 256, 3.0).tolist() == [15, 3]


@pytest.mark.parametrize("cells", [400, 36_750, 1 << 20])
def test_more_trajectories_leave_less_to_the_coarse_blocks(cells):
    parts = [coarse_parts(signal, cells) for signal in (0.0, 1.0, 16.0, 1e12)]
    assert parts == [12, 12, 12, 2]
    if cells > 1e4:  # the whole field is worth more than 64 units
        assert [coarse_parts(cells / units, cells) for units in (500, 50, 5)] == [6, 4, 2]


def test_the_division_of_a_line_keeps_its_share_and_every_other_line():
    budget = Budget.split(Fraction(3, 10), SHARES)
    grid = Grid(100.0, 150, 245, 15_000.0, 24_500.0)
    groups = by_group(budget.shares)
    for signal in (1.0, 800.0, 2e4):
        signals = {**dict.fromkeys(groups, 1.0), "occupancy": signal, "end_points": signal / 2}
        found = divided(budget, signals, grid)
        assert found.epsilon == budget.epsilon == sum(found.shares.values())
        assert by_group(found.shares) == groups and ledger_lines(found.shares) == ledger_lines(budget.shares)
        for name in ("occupancy", "end_points"):
            both = [sum(each[f"{name}/{part}"] for part in ("coarse", "detail")) for each in (budget, found)]
            both[0] *= 1 - (hours_part(signals[name]) if name == "end_points" else 0)
            assert both[0] == both[1]
            assert found[f"{name}/coarse"] / both[0] == Fraction(coarse_parts(signals[name], grid.cells), PARTS)
        alone = [name for name in budget.shares if QUESTIONS[name].budget_group == name]
        assert len(alone) == len(groups) - 2 and all(found[name] == budget[name] for name in alone)


@many
@given(st.floats(0, 1e6), st.sampled_from(["0.01", "0.3", "1", "7"]))
def test_shares_for_any_signal_cost_the_same_and_leave_the_count_alone(signal, epsilon):
    budget = Budget.split(epsilon, SHARES)
    found = for_signal(budget, signal)
    assert sum(found.shares.values()) == budget.epsilon == found.epsilon
    assert found["count"] == budget["count"] and list(found.shares) == list(budget.shares)
    assert ledger_lines(found.shares) == ledger_lines(budget.shares)


def test_shares_change_only_for_a_weak_signal():
    budget = Budget.split(1, SHARES)
    assert for_signal(budget, 10.0) is budget and for_signal(budget, 1e9) is budget
    few, between = for_signal(budget, 1.0), for_signal(budget, 5.5)
    assert few["length"] > between["length"] > budget["length"]
    assert few["top_speed"] < between["top_speed"] < budget["top_speed"]


@many
@given(
    arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(-1e9, 1e9)), st.floats(1e-3, 1e9)
)
def test_concentration_is_finite_for_any_answer(blocks, noise):
    assert 1 <= concentration(blocks, 16, noise) <= blocks.size
    assert concentration(blocks, 32, noise) == pytest.approx(2**0.75 * concentration(blocks, 16, noise))


def test_concentration_is_one_for_even_data_and_ignores_noise():
    random = np.random.default_rng(1)
    even, few = np.full((20, 20), 50.0), np.zeros((20, 20))
    few[3:5, 7:9] = 5000.0
    assert concentration(even, 16, 1e-9) == pytest.approx(1)
    assert concentration(few, 16, 1e-9) == pytest.approx(100)
    heard = [
        [concentration(field + random.laplace(0, 40.0, (20, 20)), 16, 40.0) for _ in range(50)] for field in (even, few)
    ]
    assert np.mean(heard[0]) == pytest.approx(1, abs=0.2)
    assert np.mean(heard[1]) == pytest.approx(100, rel=0.1)


@many
@given(st.floats(1e-3, 1e9), st.floats(1, 1e4))
def test_fine_cells_are_clear_where_that_is_possible_and_no_larger_than_need_be(signal, close):
    grid = Grid(100.0, 160, 160, 16_000.0, 16_000.0)
    levels = field_levels(grid, signal, close)
    worth = signal / grid.cells * max(close, USUALLY_CONCENTRATED)
    assert levels.coarse % levels.middle == 0 and levels.middle % levels.fine == 0
    assert worth * levels.fine**2 >= CLEAR_UNITS * (1 - 1e-9) or levels.fine == 64
    assert levels.fine == 1 or worth * (levels.fine / 2) ** 2 < CLEAR_UNITS

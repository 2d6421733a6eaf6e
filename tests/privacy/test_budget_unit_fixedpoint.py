from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayveil.errors import InputError
from wayveil.privacy.budget import Budget, decimal_text, exact, exact_epsilon, read_fraction
from wayveil.privacy.fixedpoint import check_overflow, clip_l1, exact_bincount, quantise
from wayveil.privacy.unit import Unit, parse_unit

epsilons = st.decimals("0.0001", "1000", places=6)
weights = st.dictionaries(st.text("abcdef", min_size=1, max_size=4), st.integers(1, 10**6), min_size=1, max_size=30)


@pytest.mark.parametrize(
    "bad",
    [
        0,
        -1,
        "nan",
        float("nan"),
        "inf",
        float("inf"),
        1000.1,
        "1e-10",
        "1e999999999",
        "x",
        "",
        "1/3",
        True,
        "1e-999999999",
        "1" * 100,
    ],
)
def test_impossible_epsilons_are_refused_in_one_sentence(bad):
    with pytest.raises(InputError) as caught:
        exact_epsilon(bad)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_decimal_text_is_read_exactly():
    assert exact(0.1) == exact("0.1") == exact(Decimal("0.1")) == Fraction(1, 10)
    assert exact("1e-6") == Fraction(1, 10**6)


@given(epsilons, weights)
def test_shares_add_up_exactly_and_follow_the_weights(epsilon, weights):
    budget = Budget.split(str(epsilon), weights)
    assert sum(budget.shares.values()) == Fraction(epsilon) == budget.epsilon
    assert list(budget.shares) == list(weights)
    assert sum(Decimal(decimal_text(share)) for share in budget.shares.values()) == epsilon
    together = sum(weights.values())
    for name, weight in weights.items():
        assert budget[name] > 0
        assert abs(budget[name] / budget.epsilon - Fraction(weight, together)) < Fraction(len(weights) + 1, 4096)


@given(weights)
def test_at_epsilon_one_even_floats_add_up(weights):
    assert sum(float(share) for share in Budget.split(1, weights).shares.values()) == 1.0


@given(st.fractions())
def test_a_fraction_is_printed_exactly(value):
    assert read_fraction(decimal_text(value)) == value


def test_decimals_are_readable():
    cases = {Fraction(1, 8): "0.125", Fraction(3): "3", Fraction(-1, 20): "-0.05", Fraction(1, 3): "1/3"}
    assert {value: decimal_text(value) for value in cases} == cases


def test_a_budget_that_does_not_add_up_is_refused():
    with pytest.raises(InputError):
        Budget(Fraction(1), {"a": Fraction(1, 2)})
    with pytest.raises(InputError):
        Budget.split(1, {"a": 1, "b": 0})
    with pytest.raises(TypeError):
        Budget.split(1, {"a": 1}).shares["a"] = Fraction(2)


def test_units():
    assert Unit.trajectory().sensitivity == 1
    assert Unit.user(10).sensitivity == 10
    assert "one trajectory" in Unit.trajectory().describe()
    assert "one user" in Unit.user(10).describe() and "at most 10" in Unit.user(10).describe()
    assert "together count as at most 10" in Unit.user(10).describe(averaged=True)
    assert Unit.trajectory().describe(averaged=True) == Unit.trajectory().describe()
    assert parse_unit("user", 3) == Unit.user(3) and parse_unit("trajectory") == Unit.trajectory()
    for wrong in (
        lambda: parse_unit("user"),
        lambda: parse_unit("trajectory", 3),
        lambda: parse_unit("ride"),
        lambda: Unit.user(0),
        lambda: Unit.user(2.5),
        lambda: Unit("trajectory", 2),
    ):
        with pytest.raises(InputError):
            wrong()


@given(st.lists(st.floats(), max_size=50), st.sampled_from([1, 2**10, 2**20, 2**40]))
def test_quantising_never_enlarges(values, resolution):
    quantised = quantise(values, resolution)
    for value, integer in zip(values, quantised.tolist()):
        finite = 0.0 if np.isnan(value) else float(np.clip(value, -1, 1))
        assert abs(integer) <= Fraction(abs(finite)) * resolution
        assert abs(Fraction(finite) * resolution - integer) < 1


@pytest.mark.parametrize("resolution", [0, 3, 1000, -2, 2**41])
def test_only_powers_of_two(resolution):
    with pytest.raises(ValueError, match="power of two"):
        quantise([0.5], resolution)


rows_strategy = st.lists(st.tuples(st.integers(0, 4), st.integers(-(2**45), 2**45)), min_size=1, max_size=40)


@given(rows_strategy, st.sampled_from([1, 100, 2**20]))
def test_clipped_rows_obey_the_limit_and_others_are_untouched(entries, limit):
    row, values = (np.array(column, np.int64) for column in zip(*entries))
    clipped = clip_l1(values, row, 5, limit)
    for one in range(5):
        mine, before = clipped[row == one], values[row == one]
        assert np.abs(mine).sum() <= limit
        if np.abs(before).sum() <= limit:
            assert np.array_equal(mine, before)
        alone = clip_l1(before, np.zeros(len(before), np.int64), 1, limit)
        assert np.array_equal(alone, mine)  # Whoever else is in the batch changes nothing.
    dense = np.zeros((5, len(values)), np.int64)
    dense[row, np.arange(len(values))] = values
    assert np.array_equal(clip_l1(dense, None, 5, limit)[row, np.arange(len(values))], clipped)


def test_a_float_norm_slightly_above_one_is_brought_back():
    features = np.full((1, 4096), 1 / 4096 * (1 + 1e-8))
    quantised = quantise(features, 2**40)
    assert np.abs(quantised).sum() > 2**40
    assert np.abs(clip_l1(quantised, None, 1, 2**40)).sum() <= 2**40


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(-(2**56), 2**56)), max_size=40),
    st.randoms(use_true_random=False),
    st.integers(1, 7),
)
def test_sums_are_exact_under_any_order_and_partition(entries, random, parts):
    expected = [0] * 10
    for index, weight in entries:
        expected[index] += weight
    random.shuffle(entries)
    chunks = [entries[start::parts] for start in range(parts)]
    sums = sum(
        exact_bincount(np.array([i for i, _ in c], np.int64), np.array([w for _, w in c], np.int64), 10) for c in chunks
    )
    assert sums.tolist() == expected


def test_sums_that_do_not_fit_are_refused():
    with pytest.raises(OverflowError):
        exact_bincount(np.zeros(3, np.int64), np.full(3, 2**62, np.int64), 1)
    with pytest.raises(OverflowError):
        exact_bincount(np.zeros(1, np.int64), np.array([-(2**63)], np.int64), 1)
    with pytest.raises(IndexError):
        exact_bincount(np.array([10]), np.array([1], np.int64), 10)
    with pytest.raises(InputError):
        check_overflow(2**43, 2**20)
    check_overflow(2**41, 2**20)

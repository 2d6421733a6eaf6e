"""Trajectories: frozen columns that check themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayveil.core.trajectories import EMPTY, Trajectories, batches, concatenate, select
from wayveil.errors import InputError


def make(counts, users=None, seed=0):
    rng = np.random.default_rng(seed)
    n = sum(counts)
    user = None if users is None else np.array(users)
    return Trajectories(np.cumsum([0, *counts]), rng.uniform(0, 9, n), rng.uniform(0, 9, n), np.arange(n), user)


def test_columns_are_frozen_and_typed():
    x = make([2, 1], ["a", "b"])
    assert x.t_utc.dtype == np.float64 and x.offsets.dtype == np.int64
    for column in (x.offsets, x.lon, x.lat, x.t_utc, x.user):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = column[1]
    with pytest.raises(AttributeError):
        x.lon = x.lat


@pytest.mark.parametrize("offsets", [[], [0], [0, 2], [1, 3], [0, 3, 2], [0, 0, 3], [0, 2, 4]])
def test_offsets_must_fit(offsets):
    with pytest.raises(InputError, match="offsets"):
        Trajectories(offsets, [0.0] * 3, [0.0] * 3, [0.0] * 3)


def test_lengths_must_agree():
    with pytest.raises(InputError, match="same number"):
        Trajectories([0, 2], [0.0] * 2, [0.0] * 3, [0.0] * 2)
    with pytest.raises(InputError, match="user"):
        Trajectories([0, 2], [0.0] * 2, [0.0] * 2, [0.0] * 2, np.array([1, 2]))


def test_equality_compares_all_columns():
    x = make([2, 1], ["a", "b"])
    assert x == make([2, 1], ["a", "b"])
    assert x != make([2, 1], ["a", "c"])
    assert x != make([2, 1])
    assert x != make([1, 2], ["a", "b"])
    assert x != make([2, 1], ["a", "b"], seed=1)
    assert x != "x"
    with pytest.raises(TypeError):
        hash(x)


def test_the_representation_shows_no_number():
    assert not any(character.isdigit() for character in repr(make([20, 1], [1, 2])) + repr(EMPTY))


def test_select_by_index_and_mask():
    x = make([2, 1, 3], [7, 8, 9])
    assert select(x, np.array([True, False, True])) == select(x, np.array([0, 2]))
    backwards = select(x, np.array([2, 0]))
    assert backwards.user.tolist() == [9, 7] and backwards.t_utc.tolist() == [3, 4, 5, 0, 1]
    none = select(x, np.zeros(3, bool))
    assert len(none) == 0 and none.user is not None
    assert select(make([1]), np.array([], int)) == EMPTY


@settings(max_examples=50, deadline=None)
@given(counts=st.lists(st.integers(1, 5), max_size=12), size=st.integers(1, 15), users=st.booleans())
def test_batches_put_together_are_the_whole(counts, size, users):
    x = make(counts, list(range(len(counts))) if users else None)
    parts = list(batches(x, size))
    assert all(0 < len(part) <= size for part in parts)
    assert concatenate(parts) == (x if counts else EMPTY)


def test_concatenate_refuses_a_mix_with_and_without_users():
    with pytest.raises(InputError, match="users"):
        concatenate([make([1]), make([1], [1])])
    assert concatenate([]) == EMPTY
    assert concatenate([EMPTY, make([2]), EMPTY]) == make([2])

"""The largest amounts of each row are clipped to one cap."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from wayveil.synthesis.place.capping import capped_rows


def test_only_the_largest_amounts_are_clipped():
    offsets = np.array([0, 3, 5, 6])
    found = capped_rows(offsets, np.array([1.0, 5.0, 9.0, 2.0, 2.0, 7.0]), np.array([7.0, 10.0, 0.0]))
    np.testing.assert_allclose(found, [1, 3, 3, 2, 2, 0])


def test_empty_input():
    assert len(capped_rows(np.zeros(1, np.int64), np.zeros(0), np.zeros(0))) == 0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.floats(0, 1e5), min_size=1, max_size=30), min_size=1, max_size=5), st.floats(0, 2))
def test_each_row_has_at_most_its_sum_and_one_cap(parts, share):
    amounts = [np.array(part) for part in parts]
    offsets = np.cumsum([0, *map(len, amounts)])
    wanted = np.array([share * part.sum() for part in amounts])
    found = np.split(capped_rows(offsets, np.concatenate(amounts), wanted), offsets[1:-1])
    for before, after, most in zip(amounts, found, wanted, strict=True):
        assert (after <= before).all() and (after >= 0).all()
        assert after.sum() <= most * (1 + 1e-9) + 1e-6 or np.array_equal(after, before)
        assert after.sum() >= 0.99 * min(most, before.sum()) - 1e-6
        cut = after < before
        assert not cut.any() or after[~cut].max(initial=0.0) <= after[cut].min() + 1e-9

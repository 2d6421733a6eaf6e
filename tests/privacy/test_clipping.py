"""The L2 clip: within the bound in exact integers, towards zero, and each unit by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayveil.privacy.clipping import UnitVectors, clip_l2, squared_norms

LARGEST = 2**40 - 1
"""A million trajectories of the finest resolution in one cell."""
VALUE = st.one_of(st.integers(-20, 20), st.integers(-LARGEST, LARGEST), st.sampled_from([LARGEST, -LARGEST, 1, 2**20]))
VECTOR = st.dictionaries(st.integers(0, 11), VALUE.filter(bool), max_size=12)
BOUND = st.one_of(st.integers(1, 50), st.integers(1, 2**42))


def unit_vectors(vectors):
    entries = [(unit, column, value) for unit, vector in enumerate(vectors) for column, value in vector.items()]
    columns = np.array(entries, np.int64).reshape(-1, 3).T
    return UnitVectors.added_up(len(vectors), 12, *columns)


def as_dicts(vectors):
    found = [{} for _ in range(vectors.units)]
    for unit, column, value in zip(vectors.unit.tolist(), vectors.column.tolist(), vectors.value.tolist()):
        found[unit][column] = value
    return found


def exceeds(clip, vectors, bound):
    """Whether some unit is above the bound after clipping, in Python's own integers."""
    return any(sum(w * w for w in one.values()) > bound * bound for one in as_dicts(clip(unit_vectors(vectors), bound)))


@settings(max_examples=300, deadline=None)
@given(st.lists(VECTOR, min_size=1, max_size=5), BOUND)
def test_clipped_vectors_are_within_the_bound_and_towards_zero(vectors, bound):
    clipped = as_dicts(clip_l2(unit_vectors(vectors), bound))
    for before, after in zip(vectors, clipped, strict=True):
        assert sum(w * w for w in after.values()) <= bound * bound
        assert all(column in before and abs(w) <= abs(before[column]) for column, w in after.items())
        assert all((w > 0) == (before[column] > 0) for column, w in after.items())
        if sum(v * v for v in before.values()) <= bound * bound:
            assert after == before


@settings(max_examples=100, deadline=None)
@given(st.lists(VECTOR, min_size=2, max_size=5), BOUND)
def test_each_unit_is_clipped_by_itself(vectors, bound):
    together = as_dicts(clip_l2(unit_vectors(vectors), bound))
    alone = [as_dicts(clip_l2(unit_vectors([vector]), bound))[0] for vector in vectors]
    assert together == alone


@settings(max_examples=100, deadline=None)
@given(st.lists(VECTOR, min_size=1, max_size=5))
def test_squared_norms_are_exact(vectors):
    assert squared_norms(unit_vectors(vectors)).tolist() == [sum(v * v for v in one.values()) for one in vectors]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(VECTOR, st.integers(1, 2**23)), min_size=1, max_size=4), st.integers(1, 2**20))
def test_units_with_too_many_trajectories_count_as_the_most_that_count(units, most):
    numbers = np.array([number for _, number in units])
    vectors = unit_vectors([vector for vector, _ in units])
    found = as_dicts(vectors.counted_as(most, numbers))
    for (before, number), after in zip(units, found, strict=True):
        times = min(most, number)  # of `number`; towards zero
        wanted = {column: abs(v) * times // number * (1 if v > 0 else -1) for column, v in before.items()}
        assert after == {column: v for column, v in wanted.items() if v}


CENTRE = st.lists(st.integers(0, 2**20), min_size=12, max_size=12)
MULTIPLE = st.one_of(st.integers(0, 40), st.integers(0, 2**30))


def moved(vectors):
    """Each unit's whole vector in Python's own integers, with its multiple of the centre."""
    return [
        [one.get(column, 0) - int(times) * int(at) for column, at in enumerate(vectors.centre)]
        for one, times in zip(as_dicts(vectors), vectors.multiple, strict=True)
    ]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(VECTOR, MULTIPLE), min_size=1, max_size=4), CENTRE, BOUND)
def test_with_a_centre_the_difference_is_within_the_bound(units, centre, bound):
    centre, times = np.array(centre), np.array([one for _, one in units])
    vectors = unit_vectors([vector for vector, _ in units]).minus(centre, times)
    before = moved(vectors)
    assert squared_norms(vectors).tolist() == [sum(v * v for v in one) for one in before]
    clipped = clip_l2(vectors, bound)
    after = moved(clipped)
    for old, new in zip(before, after, strict=True):
        assert sum(w * w for w in new) <= bound * bound
        if sum(v * v for v in old) <= bound * bound:
            assert new == old
    assert clipped.sums(12).tolist() == [sum(column) for column in zip(*after)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(VECTOR, MULTIPLE), min_size=2, max_size=4), CENTRE, BOUND)
def test_with_a_centre_each_unit_is_clipped_by_itself(units, centre, bound):
    centre = np.array(centre)

    def clipped(some):
        vectors = unit_vectors([vector for vector, _ in some])
        return moved(clip_l2(vectors.minus(centre, np.array([one for _, one in some])), bound))

    assert clipped(units) == [clipped([unit])[0] for unit in units]


def test_little_is_lost_to_rounding_with_a_centre():
    random = np.random.default_rng(0)
    vectors = [dict(enumerate(random.integers(1, 2**20, 12).tolist())) for _ in range(50)]
    bound = 2**19
    centre = unit_vectors(vectors).minus(np.full(12, 2**12), np.full(50, 128))
    norms = squared_norms(clip_l2(centre, bound)).astype(float) ** 0.5
    assert (norms > bound * 0.94).all()


def clipped_before_the_centre(vectors, bound):
    """Clips the values alone and subtracts the whole centre from what is left."""
    clipped = clip_l2(UnitVectors(vectors.units, vectors.unit, vectors.column, vectors.value), bound)
    return clipped.minus(vectors.centre, vectors.multiple)


def only_the_values(vectors, bound):
    """Shrinks the values and not the multiple of the centre."""
    return UnitVectors(
        vectors.units, vectors.unit, vectors.column, clip_l2(vectors, bound).value, vectors.centre, vectors.multiple
    )


@pytest.mark.parametrize("broken", [clipped_before_the_centre, only_the_values])
def test_a_broken_clip_with_a_centre_is_caught(broken):
    def exceeds(clip):
        vectors = unit_vectors([dict.fromkeys(range(12), 1000), dict.fromkeys(range(12), 4000)])
        clipped = clip(vectors.minus(np.full(12, 100), np.array([16, 16])), 1500)
        return any(sum(w * w for w in one) > 1500**2 for one in moved(clipped))

    assert exceeds(broken) and not exceeds(clip_l2)


def test_a_centre_that_is_too_large_is_refused():
    with pytest.raises(OverflowError):
        unit_vectors([{0: 1}]).minus(np.full(12, 2**21), np.ones(1, np.int64))


@pytest.mark.parametrize(
    ("vector", "bound", "expected"),
    [
        ({0: 3, 1: 4}, 5, {0: 3, 1: 4}),  # on the bound
        ({0: 3, 1: 4, 2: 1}, 5, {0: 2, 1: 3}),  # one more than the bound
        ({0: LARGEST}, 4096, None),  # everything in one cell
        ({0: -7}, 3, {0: -3}),
        (dict.fromkeys(range(12), 1), 3, {}),  # every value is rounded to zero
        ({}, 1, {}),
    ],
)
def test_examples(vector, bound, expected):
    (found,) = as_dicts(clip_l2(unit_vectors([vector]), bound))
    if expected is None:
        assert bound - 1 <= found[0] <= bound
    else:
        assert found == expected


def test_little_is_lost_to_rounding():
    random = np.random.default_rng(0)
    vectors = [dict(enumerate(random.integers(-(2**20), 2**20, 12).tolist())) for _ in range(50)]
    bound = 2**19
    norms = squared_norms(clip_l2(unit_vectors(vectors), bound)).astype(float) ** 0.5
    assert (norms > bound * (1 - 1e-4)).all()


def rounding_up(vectors, bound):
    scale = np.minimum(bound / np.sqrt(squared_norms(vectors).astype(float)), 1.0)
    value = np.sign(vectors.value) * np.ceil(np.abs(vectors.value) * scale[vectors.unit])
    return UnitVectors(vectors.units, vectors.unit, vectors.column, value.astype(np.int64))


def each_value(vectors, bound):
    """Clips values instead of vectors."""
    return UnitVectors(vectors.units, vectors.unit, vectors.column, np.clip(vectors.value, -bound, bound))


def unchecked(vectors, bound):
    """Rounds to the nearest integer and trusts the float norm."""
    scale = np.minimum(bound / np.sqrt(squared_norms(vectors).astype(float)), 1.0)
    value = np.rint(vectors.value * scale[vectors.unit]).astype(np.int64)
    return UnitVectors(vectors.units, vectors.unit, vectors.column, value)


@pytest.mark.parametrize("broken", [rounding_up, each_value, unchecked])
def test_a_broken_clip_is_caught(broken):
    random = np.random.default_rng(1)
    cases = [
        ([dict(enumerate(random.integers(1, 40, 12).tolist())) for _ in range(4)], int(random.integers(5, 60)))
        for _ in range(50)
    ]
    assert any(exceeds(broken, *case) for case in cases)
    assert not any(exceeds(clip_l2, *case) for case in cases)


def test_bounds_and_sizes_that_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        clip_l2(unit_vectors([{0: 1}]), 0)
    with pytest.raises(OverflowError):
        squared_norms(unit_vectors([{0: 2**41}]))

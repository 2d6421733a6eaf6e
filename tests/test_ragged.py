"""Ragged arrays against lists of lists."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wayveil.core import ragged

lists = st.lists(st.lists(st.integers(-99, 99), max_size=5), max_size=6)


def flat(rows):
    return np.array([value for row in rows for value in row], np.int64)


@given(lists)
def test_offsets_owners_and_ranks_are_those_of_the_rows(rows):
    counts = np.array([len(row) for row in rows], np.int64)
    offsets = ragged.offsets_of(counts)
    assert [flat(rows)[a:b].tolist() for a, b in pairwise(offsets)] == rows
    assert ragged.owners(counts).tolist() == [i for i, row in enumerate(rows) for _ in row]
    assert ragged.ranks(counts).tolist() == [k for row in rows for k in range(len(row))]


@given(lists.filter(len), st.data())
def test_take_selects_rows_in_any_order_with_repeats(rows, data):
    index = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    offsets, position = ragged.take(ragged.offsets_of([len(row) for row in rows]), np.array(index, np.int64))
    taken = flat(rows)[position]
    assert [taken[a:b].tolist() for a, b in pairwise(offsets)] == [rows[i] for i in index]


@given(st.lists(lists, max_size=4))
def test_join_is_the_offsets_of_all_rows(parts):
    joined = ragged.join(ragged.offsets_of([len(row) for row in rows]) for rows in parts)
    assert joined.tolist() == ragged.offsets_of([len(row) for rows in parts for row in rows]).tolist()


@given(st.lists(st.lists(st.integers(-99, 99), min_size=1, max_size=5), max_size=6), st.integers(1, 9))
def test_sums_and_runs_cover_all_rows(rows, elements):
    offsets = ragged.offsets_of([len(row) for row in rows])
    assert ragged.sums(flat(rows), offsets).tolist() == [sum(row) for row in rows]
    runs = list(ragged.runs(offsets, elements))
    assert [i for first, last in runs for i in range(first, last)] == list(range(len(rows)))
    assert all(offsets[last] - offsets[first] <= elements or last == first + 1 for first, last in runs)

"""Cells and bins: the fast ways give what the definitions say, for few values and for many."""

import numpy as np
import pytest

from wayveil.core.bins import Bins
from wayveil.core.grid import Grid

GRID = Grid(100.0, 37, 21, 3_650.0, 2_100.0)


@pytest.mark.parametrize("count", [0, 1, 1000, 70_000])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_cell_is_row_times_columns_plus_column(count, kind):
    random = np.random.default_rng(1)
    x, y = random.uniform(-300, 4_000, count).astype(kind), random.uniform(-300, 2_400, count).astype(kind)
    column = np.clip(np.floor(x / kind(100)), 0, 36).astype(int)
    row = np.clip(np.floor(y / kind(100)), 0, 20).astype(int)
    assert (GRID.index(x, y) == row * 37 + column).all()


def test_cells_of_a_table_of_positions_keep_its_shape():
    x, y = np.array([[50.0, 150.0], [250.0, 9e9]]), np.array([[50.0, 50.0], [150.0, -1.0]])
    assert GRID.index(x, y).tolist() == [[0, 1], [39, 36]]


def test_cells_of_a_large_grid_are_exact_for_single_precision_too():
    grid = Grid(1.0, 10_000, 10_000, 1e4, 1e4)
    x, y = np.array([9_999.0, 3.0], np.float32), np.array([9_999.0, 9_998.0], np.float32)
    assert grid.index(x, y).tolist() == [99_999_999, 99_980_003]


@pytest.mark.parametrize("bins", [1, 2, 24, 40, 41, 300])
def test_many_values_are_binned_like_one(bins):
    random = np.random.default_rng(2)
    edges = tuple(np.cumsum(random.random(bins + 1)).tolist())
    values = np.r_[random.uniform(-1, edges[-1] + 1, 40_000), edges, np.inf, -np.inf, np.nan]
    one_by_one = np.concatenate([Bins(edges).index(values[k : k + 1000]) for k in range(0, len(values), 1000)])
    together = Bins(edges).index(values)
    assert together.dtype == one_by_one.dtype and (together == one_by_one).all()
    assert together.min() == 0 and together.max() == bins - 1

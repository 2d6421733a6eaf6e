"""Ends that are assigned to cells in proportion to a field instead of drawn."""

import numpy as np
import pytest
from zones import GRID, ZONES, zone_of

from wayveil.core.polylines import Polylines, steps
from wayveil.synthesis.place.end_points import assign_to_cells
from wayveil.synthesis.place.points import course_of, with_ends


def rng(seed=0):
    return np.random.default_rng(seed)


def counted(cell):
    return np.bincount(cell, minlength=GRID.cells)


@pytest.fixture
def field():
    return rng(1).gamma(0.3, size=(GRID.rows, GRID.columns))


def drawn(field, count=60_000, seed=2):
    return rng(seed).choice(GRID.cells, count, p=field.ravel() / field.sum())


def test_every_cell_holds_its_share_of_the_block_to_within_one(field):
    cell = drawn(field)
    assigned = assign_to_cells(cell, field, GRID, rng())
    blocks = zone_of(np.arange(GRID.cells))
    total = np.bincount(zone_of(cell), minlength=ZONES)
    share = field.ravel() / np.bincount(blocks, field.ravel())[blocks] * total[blocks]
    assert np.abs(counted(assigned) - share).max() < 1
    assert np.abs(counted(cell) - share).max() > 5  # the error of independent draws


def test_points_stay_in_their_block(field):
    cell = drawn(field)
    assert np.array_equal(zone_of(assign_to_cells(cell, field, GRID, rng())), zone_of(cell))


def test_the_fewest_possible_trips_move(field):
    cell = drawn(field)
    assigned = assign_to_cells(cell, field, GRID, rng())
    fewest = np.maximum(counted(cell) - counted(assigned), 0).sum()
    assert (assigned != cell).sum() == fewest > 0
    assert np.array_equal(assign_to_cells(assigned, field, GRID, rng(5)), assigned)


def test_points_move_to_the_nearest_block_with_a_free_place(field):
    """No end leaves a block of 5 × 5 cells while another end moves into it."""
    cell = drawn(field, 9000)
    assigned = assign_to_cells(cell, field, GRID, rng())
    moved = np.flatnonzero(assigned != cell)
    square = [where // GRID.columns // 5 * 99 + where % GRID.columns // 5 for where in (cell, assigned)]
    crossing = moved[square[0][moved] != square[1][moved]]
    assert 0 < len(crossing) < len(moved)
    assert not set(square[0][crossing]) & set(square[1][crossing])


def test_the_points_that_move_are_chosen_at_random(field):
    cell = np.zeros(200, np.int64)
    one, other = (assign_to_cells(cell, field, GRID, rng(seed)) for seed in (3, 4))
    assert not np.array_equal(one, other)
    assert np.array_equal(counted(one), counted(other))


@pytest.mark.parametrize("cell", [np.zeros(0, np.int64), np.array([7]), np.full(9, 6143)])
def test_few_trips_and_an_empty_field_do_not_fail(cell):
    assigned = assign_to_cells(cell, np.zeros((GRID.rows, GRID.columns)), GRID, rng())
    assert len(assigned) == len(cell)
    assert np.array_equal(zone_of(assigned), zone_of(cell))


def test_new_ends_change_only_the_first_and_the_last_step():
    lines = Polylines(np.array([0, 4, 6]), np.array([0.0, 100, 200, 300, 900, 1000]), np.array([50.0] * 6))
    moved = with_ends(course_of(lines, GRID), np.array([[30.0, 950], [450, 50], [310, 1090], [60, 150]]), GRID)
    assert moved.lines.x_m.tolist() == [30, 100, 200, 310, 950, 1090]
    assert moved.lines.y_m.tolist() == [450, 50, 50, 60, 50, 150]
    again = course_of(moved.lines, GRID)
    assert moved.step_m == pytest.approx(steps(moved.lines))
    inner = np.array([1, 2, 3, 5])
    assert np.array_equal(moved.cell[inner], again.cell[inner])
    assert lines.x_m[0] == 0  # the input does not change

"""The question about the way: places along it, and its estimate from blocks and from the time."""

import numpy as np
import pytest

from wayveil.core.density import NoisyLevel
from wayveil.core.prepare import Prepared
from wayveil.core.pyramid import pool
from wayveil.questions.passage import KNOWN_M, MOST_PLACES, PASSAGE_RESOLUTION, Passage, places_along
from wayveil.simulate import simulate_city
from wayveil.synthesis.estimate.ways import estimate_way, moving_time

PASSAGE = Passage.finest(simulate_city(0, size_km=(4, 4)).scope)


def batch_of(*tracks):
    """Tracks of (x, y) in metres, a minute between points."""
    x, y = np.array([point for track in tracks for point in track], float).T
    points = np.array([len(track) for track in tracks])
    offsets = np.r_[0, np.cumsum(points)]
    return Prepared(offsets, x, y, 60.0 * np.arange(len(x)), points, 60.0 * (points - 1), 1e6)


def shares_of(batch):
    found = PASSAGE.features(batch)
    return np.bincount(found.column, found.weight, minlength=PASSAGE.grid.cells) / PASSAGE_RESOLUTION


def test_it_counts_metres_and_not_minutes():
    """Nine of eleven points stand at the start, and all of the way is between the two places."""
    standing = [(50.0, 50.0)] * 9
    shares = shares_of(batch_of([*standing, (150.0, 50.0), (250.0, 50.0), (350.0, 50.0), (450.0, 50.0)]))
    cells = PASSAGE.grid.index(np.arange(50.0, 500.0, 100.0), np.full(5, 50.0))
    assert shares[cells].sum() == pytest.approx(1, abs=1e-3) and shares[cells[0]] <= 0.26


def test_a_trajectory_that_does_not_move_counts_once():
    batch = batch_of([(1000.0, 1000.0)], [(2000.0, 500.0)] * 4)
    row, x, y = places_along(batch, 100.0)
    assert row.tolist() == [0, 1] and x.tolist() == [1000.0, 2000.0] and y.tolist() == [1000.0, 500.0]


def test_between_points_far_apart_it_counts_close_to_the_points():
    _, x, _ = places_along(batch_of([(0.0, 50.0), (3000.0, 50.0), (3050.0, 50.0)]), 25.0)
    away = np.abs(x[:, None] - [0.0, 3000.0, 3050.0]).min(axis=1)
    assert away.max() <= KNOWN_M + 1e-6 and (x < 1500).mean() == pytest.approx(1500 / 3050, abs=0.02)


def test_the_number_of_places_is_bounded():
    there_and_back = [(0.0, 0.0), (3900.0, 3900.0)] * 100
    row, _, _ = places_along(batch_of(there_and_back), 50.0)
    assert len(row) == MOST_PLACES


def test_the_estimate_follows_clear_blocks_and_else_the_time():
    random = np.random.default_rng(0)
    time = random.gamma(2.0, 50.0, (32, 32))
    ends = np.zeros_like(time)
    ends[:, :16] = time[:, :16]
    moving = moving_time(time, ends)
    assert moving.sum() == pytest.approx(time.sum()) and moving[:, :16].sum() < time[:, :16].sum()
    pace = np.where(np.arange(32) < 16, 0.5, 1.5)[:, None]
    truth = pool(time * pace, 8)
    clear = estimate_way(NoisyLevel(truth + random.laplace(0, 5, truth.shape), 8, 5.0), time, time)
    assert clear.sum() == pytest.approx(time.sum())
    assert clear[:12].sum() / time[:12].sum() < 0.7 and clear[20:].sum() / time[20:].sum() > 1.3
    hidden = estimate_way(NoisyLevel(truth + random.laplace(0, 1e6, truth.shape), 8, 1e6), time, time)
    assert np.abs(hidden / time - 1).max() < 0.2

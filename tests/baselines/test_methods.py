"""What single methods do, as their papers describe it."""

from types import SimpleNamespace

import numpy as np
import pytest

from wayveil.baselines.conformance import NoNoise
from wayveil.baselines.mechanism import SoundMechanism
from wayveil.baselines.methods import dpt, n_gram, prefix_tree
from wayveil.baselines.prefix_trees import Taxonomy, grow, shares_of
from wayveil.baselines.resolutions import SYMBOLS, grid_of_step
from wayveil.baselines.sequences import padded
from wayveil.baselines.trees import make_level
from wayveil.privacy.budget import Budget


def without_noise(epsilon, shares):
    return SoundMechanism(Budget.split(epsilon, shares), NoNoise())


def test_n_grams_grow_from_the_longest_match():
    """1 2 3 and 4 2 5 only: what follows 2 depends on the cell before it."""
    rows = np.array([[1, 2, 3, n_gram.END], [4, 2, 5, n_gram.END]] * 500)
    rows = np.column_stack([rows, np.full((1000, n_gram.LONGEST - 4), -1)])
    shares = {name: share for name, share in n_gram.n_gram.shares.items() if name != "count"}
    levels = n_gram._grow(SimpleNamespace(mechanism=without_noise(100, shares), published=False), rows)
    written = n_gram._write(levels, 2_000, np.random.default_rng(0))
    longer = written[np.isin(written[:, 0], [1, 4]) & (written[:, 2] >= 0)]
    assert len(longer) > 500
    assert {tuple(row[:3]) for row in longer} == {(1, 2, 3), (4, 2, 5)}


@pytest.mark.parametrize(
    ("count", "depth", "height"), [(0.5, 1, 1), (60.0, 1, 1), (70.0, 1, 2), (1e9, 1, 2), (1e9, 2, 1)]
)
def test_n_grams_predict_the_height_below_a_node(count, depth, height):
    """A count divided among 65 symbols on each level, until the noise (here 1) is as large; n_max is 3."""
    assert n_gram._heights(np.array([count]), depth, np.ones(1)).tolist() == [height]


def test_a_node_of_the_prefix_tree_needs_twice_the_noise():
    """At ε = 1 a level's count must be above 2√2; what is left adds up to the parent."""
    taxonomy = Taxonomy(4, 4)
    symbols = np.repeat([0, 5, 9], [95, 3, 2])
    rows = padded(np.arange(101), symbols, 2, taxonomy.end)
    levels = grow(without_noise(4, shares_of(2)), rows, taxonomy, 100.0)
    assert levels[0].symbol.tolist() == [0, 5]
    assert levels[0].count.sum() == pytest.approx(100.0)
    assert levels[1].symbol.tolist() == [taxonomy.end, taxonomy.end]
    assert levels[1].count == pytest.approx(levels[0].count)


def test_the_levels_of_the_prefix_tree_share_epsilon_equally():
    shares = {name: float(share) for name, share in prefix_tree.prefix_tree.published_shares.items()}
    assert len(shares) == 2 * prefix_tree.HEIGHT and len(set(shares.values())) == 1


def test_steps_are_in_the_grid_of_their_speed():
    """The finest of 6, 12 and 24 cells a side whose cells are as wide as the step; the coarsest for the fastest."""
    every = np.ones(3, bool)
    assert grid_of_step(2_400.0, np.array([90.0, 150.0, 390.0, 5_000.0]), every).tolist() == [2, 1, 0, 0]
    assert grid_of_step(2_400.0, np.array([90.0]), np.array([True, True, False])).tolist() == [1]


def test_walks_of_dpt_prefer_the_direction_of_the_move_before():
    east, west, ways = 5, 3, np.array([0, 1, 2, 3, 5, 6, 7, 8])
    level = make_level(np.zeros(8, np.int64), ways, np.ones(8), np.array([8.0]), SYMBOLS)
    drawn = dpt._straight(level, np.zeros(40_000, np.int64), np.full(40_000, east), np.random.default_rng(0))
    times = np.bincount(drawn, minlength=9)
    assert times.argmax() == east
    assert times[east] / times[west] == pytest.approx(np.exp(2 * dpt.STRAIGHT), rel=0.1)
    fresh = np.bincount(dpt._straight(level, np.zeros(40_000, np.int64), np.full(40_000, 4), np.random.default_rng(0)))
    assert fresh[ways] == pytest.approx(5_000, rel=0.1)

"""What single methods do, as their papers describe it."""

from types import SimpleNamespace

import numpy as np
import pytest

from wayveil.baselines.conformance import NoNoise
from wayveil.baselines.mechanism import Features, SoundMechanism
from wayveil.baselines.methods import dpt, n_gram, prefix_tree
from wayveil.baselines.prefix_trees import Taxonomy, grow, inferred, shares_of
from wayveil.baselines.resolutions import END, SYMBOLS, grid_of_step
from wayveil.baselines.sequences import padded
from wayveil.baselines.trees import make_level
from wayveil.privacy.budget import Budget


def without_noise(epsilon, shares):
    return SoundMechanism(Budget.split(epsilon, shares), NoNoise())


def test_n_grams_grow_from_the_longest_match():
    """1 2 3 and 4 2 5 only: what follows 2 depends on the cell before it."""
    rows = np.array([[1, 2, 3, n_gram.END], [4, 2, 5, n_gram.END]] * 500)
    rows = np.column_stack([rows, np.full((1000, n_gram.LONGEST - 4), -1)])
    levels = n_gram._grow(SimpleNamespace(mechanism=without_noise(100, {"grams": 1})), rows)
    written = n_gram._draw_sequences(levels, 2_000, np.random.default_rng(0))
    longer = written[np.isin(written[:, 0], [1, 4]) & (written[:, 2] >= 0)]
    assert len(longer) > 500
    assert {tuple(row[:3]) for row in longer} == {(1, 2, 3), (4, 2, 5)}


@pytest.mark.parametrize(
    ("count", "likeliest", "most", "height"),
    [(0.5, 0.1, 2, 1), (9.0, 0.1, 2, 1), (11.0, 0.1, 2, 2), (11.0, 0.01, 2, 1), (1e9, 0.1, 2, 2), (1e9, 0.1, 0, 1)],
)
def test_n_grams_predict_the_height_below_a_node(count, likeliest, most, height):
    """A count in thresholds that keeps a tenth or a hundredth on each level, until it is below the threshold."""
    assert n_gram._heights(np.array([count]), likeliest, most).tolist() == [height]


def test_n_grams_spend_all_that_is_left_on_the_last_level_of_a_node():
    """Frequent 1 is worth two more levels, rare 40 one: its children get two thirds of ε, the frequent ones a third."""
    asked = []

    class Spy(SoundMechanism):
        def sums(self, name, features, size):
            asked.append(features)
            return super().sums(name, features, size)

    frequent, rare = [1, 2, 3, n_gram.END], [40, 41, 42, n_gram.END]
    rows = np.array([frequent] * 990 + [rare] * 10)
    rows = np.column_stack([rows, np.full((1000, n_gram.LONGEST - 4), -1)])
    epsilon = 2 * np.sqrt(2.0) * n_gram.LONGEST * 3 / 9.0  # a count of 9 is the threshold of the first level
    mechanism = Spy(Budget.split(epsilon, {"grams": 1}), NoNoise())
    n_gram._grow(SimpleNamespace(mechanism=mechanism), rows)
    parts = [{int(who >= 990): round(value * n_gram.LONGEST, 6) for who, value in zip(f.owner, f.value)} for f in asked]
    third = round(1 / 3, 6)
    assert parts == [{0: third, 1: third}, {0: third, 1: round(2 / 3, 6)}, {0: third}]


def test_a_share_that_is_asked_twice_keeps_to_a_norm_of_one():
    """The first trajectory has used .6 of its norm, so .6 more do not fit; the second has used .1."""
    mechanism = without_noise(1, {"a": 1})
    everyone = np.arange(2)
    first = mechanism.sums("a", Features(everyone, everyone, np.array([0.6, 0.1])), 2)
    second = mechanism.sums("a", Features(everyone, everyone, np.array([0.6, 0.6])), 2)
    assert first == pytest.approx([0.6, 0.1], abs=1e-5) and second == pytest.approx([0.0, 0.6], abs=1e-5)
    assert [line.name for line in mechanism.lines] == ["a"]


def test_constrained_inference_is_least_squares():
    """A group of 10 with members 4 and 3: the difference of 3 is shared by the group and its two members."""
    possible = np.array([[True, True, False]])
    counts = inferred(np.array([10.0]), np.array([[4.0, 3.0, 99.0]]), possible)
    assert counts.tolist() == [[5.0, 4.0, 0.0]]
    of = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # group, members
    assert counts[0, :2] == pytest.approx(np.linalg.lstsq(of, np.array([10.0, 4.0, 3.0]), rcond=None)[0])


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
    weight = dpt._table(level, 1)[np.zeros(40_000, np.int64)]
    drawn = dpt._draw_symbols(weight, np.full(40_000, east), np.random.default_rng(0))
    times = np.bincount(drawn, minlength=9)
    assert times.argmax() == east
    assert times[east] / times[west] == pytest.approx(np.exp(2 * dpt.STRAIGHT), rel=0.1)
    fresh = np.bincount(dpt._draw_symbols(weight, np.full(40_000, 4), np.random.default_rng(0)))
    assert fresh[ways] == pytest.approx(5_000, rel=0.1)
    assert dpt._draw_symbols(weight[:3] * 0.0, np.full(3, 4), np.random.default_rng(0)).tolist() == [END] * 3

"""The baselines on small random walks, and the pieces they are made of."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from wayveil.baselines import adatrace, load, names, register
from wayveil.baselines.conformance import CHECKS, SCOPE, NoNoise, check_method, walks
from wayveil.baselines.grid import Box, TwoLevelGrid, draw_rows, draw_systematic, norm_sub, trace, uniform_grid
from wayveil.baselines.markov import Edges, SecondOrder, make_chain, trip_distribution, walk
from wayveil.baselines.mechanism import Features, SoundMechanism, by_trajectory
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.errors import BudgetError, InputError
from wayveil.evaluation import METRICS
from wayveil.privacy.budget import Budget
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.noise import SeededNoise

METHODS = pytest.mark.parametrize("method", [load(name) for name in names()], ids=lambda method: method.name)
GRIDS = pytest.mark.parametrize("method", [load("adatrace"), load("privtrace")], ids=lambda method: method.name)


@METHODS
@pytest.mark.parametrize("check", CHECKS)
def test_conformance(method, check):
    CHECKS[check](method)


@GRIDS
def test_with_much_budget_the_output_looks_like_the_data(method):
    real = walks(1500)
    made, lost = (
        method(real, SCOPE, epsilon, seed=1, n=1500, noise=SeededNoise(0)).trajectories for epsilon in ("200", "0.001")
    )
    for name, far in (("relation", 0.05), ("density_1000", 0.1)):
        assert METRICS[name](real, made, SCOPE) < far < METRICS[name](real, lost, SCOPE)


@GRIDS
def test_the_published_box_follows_the_data(method):
    far = Trajectories(np.array([0, 2]), np.array([50.0, 50.1]), np.array([40.0, 40.1]), np.array([0.0, 1.0]))
    leaky = method(concatenate([walks(100), far]), SCOPE, 1, published=True, seed=0).trajectories
    assert leaky.lon.max() > 1.0


@METHODS
def test_the_ledger_is_charged_before_and_refuses(method, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_dataset("walks", Fraction(3, 2), unit="trajectory")
    method(walks(60), SCOPE, 1, ledger=ledger, dataset="walks", n=5)
    assert ledger.datasets()[0].spent == 1
    with pytest.raises(BudgetError):
        method(walks(60), SCOPE, 1, ledger=ledger, dataset="walks", n=5)
    assert ledger.datasets()[0].spent == 1
    with pytest.raises(InputError, match="not private"):
        method(walks(60), SCOPE, 1, ledger=ledger, dataset="walks", published=True)


def test_a_dishonest_method_does_not_conform():
    """A method that looks at the data behind the mechanism's back is found by three checks."""

    def peek(run):
        run.count()
        offsets, x_m, y_m = run.data
        return run.made(offsets, x_m, y_m)

    thief = replace(load("adatrace"), name="thief", shares={"count": 1}, published_shares={"count": 1}, make=peek)
    failed = {found.check for found in check_method(thief) if found.problem}
    assert {"seeds and n", "no data, no failure", "ledger adds up"} <= failed


def test_a_method_that_counts_twice_does_not_conform():
    def greedy(run):
        owner = np.repeat(np.arange(run.trajectories), 2)
        run.mechanism.sums("count", Features(owner[::2], owner[::2] * 0, np.ones(run.trajectories)), 1)
        run.mechanism.sums("rest", Features(owner % 1 + np.arange(len(owner)), owner * 0, np.ones(len(owner))), 1)
        n = run.size(10)
        return run.made(np.arange(0, 2 * n + 1, 2), *run.rng.random((2, 2 * n)))

    both = {"count": 1, "rest": 1}
    method = replace(load("adatrace"), name="greedy", shares=both, published_shares=both, make=greedy)
    failed = [found.problem for found in check_method(method) if found.check == "sums bounded by 1"]
    assert "of its sensitivity" in failed[0]


def test_a_seed_that_reveals_the_number_does_not_conform():
    """Drawing once for each private trajectory leaves its number in the state of the generator."""

    def careless(run):
        n = run.size(run.count())
        run.rng.random(run.trajectories)
        return run.made(np.arange(0, 2 * n + 1, 2), *run.rng.random((2, 2 * n)))

    method = replace(
        load("adatrace"), name="careless", shares={"count": 1}, published_shares={"count": 1}, make=careless
    )
    problems = {found.check: found.problem for found in check_method(method)}
    assert "more than the answers" in problems["sums bounded by 1"]


def test_names_are_checked():
    with pytest.raises(InputError, match="already"):
        register(load("adatrace"))
    with pytest.raises(InputError, match="lowercase letters"):
        register(replace(load("adatrace"), name="Mine!"))
    with pytest.raises(InputError, match="choose from"):
        load("magic")
    for wrong in ("no.such.module:method", "wayveil.baselines:names"):
        with pytest.raises(InputError):
            load(wrong)
    assert load("wayveil.baselines:adatrace") is adatrace


def test_features_of_one_trajectory_weigh_one():
    features = by_trajectory(np.array([0, 0, 0, 1]), np.array([2, 2, 5, 1]))
    assert np.bincount(features.owner, features.value) == pytest.approx([1.0, 1.0])


def test_the_mechanism_clips_larger_norms():
    mechanism = SoundMechanism(Budget.split(1, {"a": 1}), NoNoise())
    heavy = Features(np.zeros(4, np.int64), np.arange(4), np.ones(4))
    assert mechanism.sums("a", heavy, 4).sum() <= 1.0


def test_leaves_tile_the_box_and_know_their_neighbours():
    grid = TwoLevelGrid(Box(0, 0, 100, 100), 2, np.array([1, 2, 1, 3]))
    west, south, width, height = grid.rectangles
    assert (width * height).sum() == pytest.approx(100 * 100) and grid.leaves == 1 + 4 + 1 + 9
    assert np.array_equal(grid.locate(west + width / 2, south + height / 2), np.arange(grid.leaves))
    source, target = grid.neighbours
    pairs = set(zip(source.tolist(), target.tolist()))
    assert all((b, a) in pairs for a, b in pairs) and all(a != b for a, b in pairs)
    assert {b for a, b in pairs if a == 0} == {1, 3, 5, 6}  # two leaves east, one north, one at the corner


def test_trace_fills_in_the_cells_between_two_points():
    grid = uniform_grid(Box(0, 0, 100, 100), 10)
    routes = trace(np.array([0, 2, 4]), np.array([5.0, 45, 5, 5]), np.array([5.0, 5, 5, 6]), grid, 2.0)
    assert routes.leaf[: routes.size[0]].tolist() == [0, 1, 2, 3, 4] and routes.size.tolist() == [5, 1]
    leap = trace(np.array([0, 2]), np.array([5.0, 45]), np.array([5.0, 5]), grid, np.inf)
    assert leap.leaf.tolist() == [0, 4]


def test_norm_sub_is_the_nearest_with_that_sum():
    assert norm_sub(np.array([5.0, 1.0, -3.0]), 4.0) == pytest.approx([4.0, 0.0, 0.0])
    assert norm_sub(np.array([3.0, 2.0, -1.0]), 3.0) == pytest.approx([2.0, 1.0, 0.0])


def test_draws_follow_their_weights():
    rng = np.random.default_rng(0)
    rows = draw_rows(np.tile([0.0, 1.0, 3.0, 0.0], (8000, 1)), rng)
    assert np.bincount(rows, minlength=4) / 8000 == pytest.approx([0, 0.25, 0.75, 0], abs=0.03)
    assert np.bincount(draw_systematic(np.array([1.0, 0.0, 3.0]), 400, rng), minlength=3).tolist() == [100, 0, 300]


def test_walks_start_and_end_where_the_trips_say():
    states = 5  # a line 0 - 1 - 2 - 3 - 4
    source, target = np.r_[np.arange(4), np.arange(1, 5)], np.r_[np.arange(1, 5), np.arange(4)]
    edges = Edges.of(source, target, states)
    ends = np.ones(states)
    chain = make_chain(edges, ends, ends, np.full(8, 5.0))
    trips = np.zeros((states, states))
    trips[0, 4], trips[3, 1] = 1, 1
    second = SecondOrder.choose(chain, 1e9)
    offsets, leaf = walk(chain, second, trips, 400, np.random.default_rng(0))
    begin, end = leaf[offsets[:-1]], leaf[offsets[1:] - 1]
    assert set(zip(begin.tolist(), end.tolist())) == {(0, 4), (3, 1)}
    inside = np.setdiff1d(np.arange(1, len(leaf)), offsets)
    assert (np.abs(np.diff(leaf))[inside - 1] == 1).all()


def test_trips_fit_the_margins():
    edges = Edges.of(np.array([0, 1]), np.array([1, 0]), 2)
    chain = make_chain(edges, np.array([3.0, 1.0]), np.array([1.0, 3.0]), np.array([4.0, 2.0]))
    weight = trip_distribution(chain) / np.array([[2, 3], [3, 2]])  # states of the shortest route, and one
    assert weight.sum(1) / weight.sum() == pytest.approx([0.75, 0.25], abs=1e-3)
    assert weight.sum(0) / weight.sum() == pytest.approx([0.25, 0.75], abs=1e-3)


def test_second_order_remembers_where_a_walker_came_from():
    source, target = np.array([0, 1, 1, 2, 1, 3, 2, 3]), np.array([1, 0, 2, 1, 3, 1, 1, 1])
    edges = Edges.of(*np.unique(np.stack([source, target]), axis=1), 4)
    chain = make_chain(edges, np.ones(4), np.ones(4), np.full(len(edges.source), 50.0))
    second = SecondOrder.choose(chain, 0.01)
    code = second.code(np.array([0]), np.array([1]), np.array([3]))[0]
    counts = np.zeros(second.size)
    counts[code] = 1e6
    learnt = second.with_counts(counts, chain)
    assert learnt.step[code] == pytest.approx(1 - chain.stop[1], rel=1e-3)
    assert second.code(np.array([3]), np.array([1]), np.array([1]))[0] == -1


def test_select_keeps_working_on_the_output():
    made = adatrace(walks(50), SCOPE, 1, n=10, seed=0).trajectories
    assert len(select(made, np.array([0, 3]))) == 2

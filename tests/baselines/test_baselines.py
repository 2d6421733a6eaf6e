"""AdaTrace and PrivTrace end to end on small random walks, and the pieces they are made of."""

from fractions import Fraction

import numpy as np
import pytest

from wayveil.baselines import adatrace, privtrace
from wayveil.baselines.grid import Box, TwoLevelGrid, draw_rows, draw_systematic, norm_sub, trace, uniform_grid
from wayveil.baselines.markov import Edges, SecondOrder, make_chain, trip_distribution, walk
from wayveil.baselines.mechanism import Features, SoundMechanism, by_trajectory
from wayveil.core.scope import Scope
from wayveil.core.trajectories import EMPTY, Trajectories, concatenate, select
from wayveil.errors import BudgetError, InputError
from wayveil.evaluation import METRICS
from wayveil.privacy.budget import Budget
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.noise import Noisy, SeededNoise

SCOPE = Scope(name="square", south=0.0, west=0.0, north=0.2, east=0.2)
METHODS = pytest.mark.parametrize("method", [adatrace, privtrace])


def walks(n, seed=0, centre=9000.0, spread=2500.0):
    rng = np.random.default_rng(seed)
    x = np.clip(centre + rng.normal(0, spread, (n, 1)) + np.cumsum(rng.normal(150, 250, (n, 12)), 1), 1, 22000)
    y = np.clip(centre + rng.normal(0, spread, (n, 1)) + np.cumsum(rng.normal(0, 250, (n, 12)), 1), 1, 22000)
    lon, lat = SCOPE.to_degrees(x.ravel(), y.ravel())
    return Trajectories(np.arange(0, 12 * n + 1, 12), lon, lat, np.tile(np.arange(12) * 30.0, n))


class NoNoise:
    """A source that adds nothing and remembers what it was given."""

    private = False

    def __init__(self):
        self.sums = []

    def laplace(self, sums, sensitivity, epsilon):
        self.sums.append(sums / sensitivity)
        return Noisy(sums, 0.0, Fraction(0), False)

    def gaussian(self, sums, l2_sensitivity, rho):
        raise NotImplementedError


@METHODS
@pytest.mark.parametrize("published", [False, True])
def test_end_to_end(method, published):
    result = method(walks(300), SCOPE, 1, published=published, seed=1)
    made = result.trajectories
    assert result.private is not published
    assert sum(line.epsilon for line in result.ledger) == 1
    assert all(line.spent <= line.epsilon for line in result.ledger)
    assert abs(len(made) - 300) <= (0 if published else 500)
    assert np.diff(made.offsets).min() >= 2
    assert np.isfinite(made.t_utc).all() and any("no times" in note for note in result.notes)
    x, y = SCOPE.to_metres(made.lon, made.lat)
    assert x.min() >= 0 and y.min() >= 0 and x.max() <= SCOPE.width_m and y.max() <= SCOPE.height_m
    assert any("Not private" in note for note in result.notes) is published


@METHODS
def test_with_much_budget_the_output_looks_like_the_data(method):
    real = walks(1500)
    made, lost = (
        method(real, SCOPE, epsilon, seed=1, n=1500, noise=SeededNoise(0)).trajectories for epsilon in ("200", "0.001")
    )
    for name, far in (("relation", 0.05), ("density_1000", 0.1)):
        assert METRICS[name](real, made, SCOPE) < far < METRICS[name](real, lost, SCOPE)


@METHODS
def test_seed_governs_the_walks_and_n_the_number(method):
    real = walks(200)
    one, again, other = (method(real, SCOPE, 1, seed=s, n=77, noise=SeededNoise(4)).trajectories for s in (1, 1, 2))
    assert one == again and one != other and len(one) == 77


@METHODS
def test_the_sound_noise_ignores_the_seed(method):
    real = walks(200)
    # One pair may be equal by chance: on a small city the noisy sums often round to the same walk.
    first, *others = (method(real, SCOPE, 1, seed=1, n=50).trajectories for _ in range(6))
    assert any(other != first for other in others)


@METHODS
def test_a_seeded_source_is_stamped_not_private(method):
    assert method(walks(50), SCOPE, 1, noise=SeededNoise(0)).private is False


@METHODS
def test_every_sum_moves_by_at_most_one_when_a_trajectory_is_added(method):
    # With noise of none, all that the method learns is in the sums. Sums that depend on earlier answers are compared
    # only while those are equal: that is what sequential composition asks.
    base, extra = walks(120), walks(1, seed=9, centre=4000.0)
    for added in (extra, Trajectories(np.array([0, 1]), extra.lon[:1], extra.lat[:1], extra.t_utc[:1])):
        before, after = NoNoise(), NoNoise()
        method(base, SCOPE, 1, noise=before, n=5)
        method(concatenate([base, added]), SCOPE, 1, noise=after, n=5)
        compared = 0
        for one, other in zip(before.sums, after.sums):
            if one.shape != other.shape:
                break
            assert np.abs(one - other).sum() <= 1 + 1e-9
            compared += 1
        assert compared >= 2


@METHODS
def test_a_trajectory_far_outside_changes_nothing_about_the_box(method):
    far = Trajectories(np.array([0, 2]), np.array([50.0, 50.1]), np.array([40.0, 40.1]), np.array([0.0, 1.0]))
    real = walks(100)
    plain, with_far = NoNoise(), NoNoise()
    one = method(real, SCOPE, 1, noise=plain, seed=0).trajectories
    other = method(concatenate([real, far]), SCOPE, 1, noise=with_far, seed=0).trajectories
    assert one == other  # a trajectory without any point in the scope is not counted at all
    leaky = method(concatenate([real, far]), SCOPE, 1, published=True, seed=0).trajectories
    assert leaky.lon.max() > 1.0  # the published box follows the data


@METHODS
def test_no_data_is_no_reason_to_fail(method):
    result = method(EMPTY, SCOPE, 1, n=20, seed=0)
    assert result.private and len(result.trajectories) == 20
    with pytest.raises(InputError, match="box from the data"):
        method(EMPTY, SCOPE, 1, published=True)


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


@METHODS
def test_epsilon_and_n_are_checked(method):
    with pytest.raises(InputError):
        method(walks(20), SCOPE, 0)
    with pytest.raises(InputError):
        method(walks(20), SCOPE, 1, n=0)


def test_features_of_one_trajectory_weigh_one():
    features = by_trajectory(np.array([0, 0, 0, 1]), np.array([2, 2, 5, 1]))
    assert np.bincount(features.owner, features.value) == pytest.approx([1.0, 1.0])


def test_the_door_clips_what_weighs_more():
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

"""The parts that the methods share: trees, simplification, way-points, bridges, rejection, choices."""

import numpy as np
import pytest

from wayveil.baselines import load, names
from wayveil.baselines.bridges import Chain, bridge
from wayveil.baselines.conformance import SCOPE, NoNoise, walks
from wayveil.baselines.mechanism import PublishedMechanism, SoundMechanism
from wayveil.baselines.methods.generalised import GROUPS, PARTITIONS, _k_means
from wayveil.baselines.methods.rejection import STUCK_ROUNDS, regenerate, rejection_with
from wayveil.baselines.methods.safepath import _decode, _encode
from wayveil.baselines.records import waypoints
from wayveil.baselines.sequences import direction, neighbour_table, padded
from wayveil.baselines.simplify import _segment_bits, characteristic
from wayveil.baselines.trees import draw_paths, make_level
from wayveil.core.trajectories import concatenate, select
from wayveil.evaluation import METRICS
from wayveil.privacy.budget import Budget
from wayveil.privacy.noise import SeededNoise
from wayveil.rules import closed, motion_of, violating_trajectories

LEARNING = [name for name in names() if name not in ("coordinate-noise", "distance-direction", "nearest-candidate")]


@pytest.mark.parametrize("name", LEARNING)
def test_with_much_budget_the_density_is_near_the_data(name):
    """Methods whose noise does not grow with the map learn the density; with little budget they do not."""
    real = walks(1500)
    made, lost = (
        load(name)(real, SCOPE, epsilon, seed=1, n=1500, noise=SeededNoise(0)).trajectories
        for epsilon in ("500", "0.001")
    )
    # DPTraj-PM writes the centres of large cells, so that most cells of 1,000 m are empty.
    metric = METRICS["relation" if name == "dptraj-pm" else "density_1000"]
    near, far = (metric(real, each, SCOPE) for each in (made, lost))
    assert near < 0.25 and near < 0.8 * far


def test_levels_add_up_and_draw_in_proportion():
    top = make_level(np.array([0, 0, 0]), np.array([2, 0, 1]), np.array([30.0, 10.0, 20.0]), np.array([60.0]), 4)
    assert top.symbol.tolist() == [0, 1, 2] and top.count == pytest.approx([10, 20, 30])
    below = make_level(np.array([2, 2, 0]), np.array([1, 3, 3]), np.array([5.0, 15.0, 4.0]), top.count, 4)
    assert np.bincount(below.parent, below.count, minlength=3) == pytest.approx([10, 0, 30])
    assert below.find(np.array([2, 2, 1, -1]), np.array([3, 2, 3, 3])).tolist() == [2, -1, -1, -1]
    paths = draw_paths([top, below], 6_000, 3, np.random.default_rng(0))
    assert np.bincount(paths[:, 0], minlength=3) / 6_000 == pytest.approx([1 / 6, 1 / 3, 1 / 2], abs=0.03)
    assert set(paths[paths[:, 0] == 2, 1].tolist()) == {1, -1}  # 3 is the end
    assert (paths[paths[:, 0] == 1, 1] == -1).all()  # no child


def test_padded_rows_are_cut_and_ended():
    assert padded(np.array([0, 2, 6]), np.array([5, 6, 1, 2, 3, 4]), 3, 9).tolist() == [[5, 6, 9], [1, 2, 3]]


def test_characteristic_points_keep_corners_and_drop_straight_points():
    x, y = np.r_[np.arange(0, 1000, 100.0), np.full(9, 900.0)], np.r_[np.zeros(10), np.arange(100, 1000, 100.0)]
    offsets, kept_x, kept_y = characteristic(np.array([0, 19]), x, y)
    assert offsets[-1] < 8 and (kept_x[0], kept_y[0], kept_x[-1], kept_y[-1]) == (0.0, 0.0, 900.0, 900.0)
    corner = np.hypot(kept_x - 900, kept_y).min()
    assert corner <= 200.0


def test_each_polyline_is_simplified_on_its_own():
    data = walks(30)
    x, y = SCOPE.to_metres(data.lon, data.lat)
    together = characteristic(data.offsets, x, y)
    one = characteristic(np.array([0, 12]), x[84:96], y[84:96])
    part = slice(together[0][7], together[0][8])
    assert np.array_equal(together[1][part], one[1])


@pytest.mark.parametrize("last", [3, 7, 11])
def test_a_segment_costs_what_the_paper_says(last):
    """log2 of the segment, and for each step log2 of the perpendicular and of the angular distance to the segment."""
    x, y = np.random.default_rng(last).normal(0, 300, (2, 12))
    segment = np.array([x[last] - x[0], y[last] - y[0]])
    length = np.hypot(*segment)
    expected = np.log2(1 + length)
    for k in range(last):
        step = np.array([x[k + 1] - x[k], y[k + 1] - y[k]])
        one, other = (abs(np.linalg.det([[x[i] - x[0], y[i] - y[0]], segment])) / length for i in (k, k + 1))
        cosine = step @ segment / (np.hypot(*step) * length)
        angular = np.hypot(*step) * (np.sqrt(1 - cosine**2) if cosine >= 0 else 1.0)
        expected += np.log2(1 + (one**2 + other**2) / (one + other)) + np.log2(1 + angular)
    assert _segment_bits(x, y, np.array([0]), np.array([last])) == pytest.approx([expected])


def test_k_means_lowers_the_distance_to_the_centres():
    rng = np.random.default_rng(3)
    x, y = rng.normal(0, 1000, (2, 400))
    index = np.random.default_rng(5).integers(0, 400, (PARTITIONS, GROUPS))
    centre_x, centre_y = _k_means(x, y, np.random.default_rng(5))

    def error(some_x, some_y):
        return ((x[:, None] - some_x) ** 2 + (y[:, None] - some_y) ** 2).min(1).mean()

    before = np.array([error(x[some], y[some]) for some in index])
    after = np.array([error(*some) for some in zip(centre_x, centre_y)])
    assert (after < before).all() and after.mean() < 0.85 * before.mean()
    assert len(np.unique(np.round(after))) > PARTITIONS / 2  # the candidates differ


def test_waypoints_are_at_equal_arc_length():
    x, y = waypoints(np.array([0, 3, 4]), np.array([0.0, 30.0, 30.0, 7.0]), np.array([0.0, 0.0, 10.0, 8.0]), 5)
    assert x[0] == pytest.approx([0, 10, 20, 30, 30]) and y[0] == pytest.approx([0, 0, 0, 0, 10])
    assert x[1].tolist() == [7.0] * 5 and y[1].tolist() == [8.0] * 5


def test_neighbours_and_directions_agree():
    target, exists = neighbour_table(5)
    cell, way = np.nonzero(exists)
    assert np.array_equal(direction(cell, target[cell, way], 5), way)
    assert direction(np.array([0]), np.array([2]), 5).tolist() == [-1]


def test_bridges_end_where_they_should():
    target, exists = neighbour_table(6)
    rng = np.random.default_rng(0)
    start, end = rng.integers(0, 36, 200), rng.integers(0, 36, 200)
    cells = np.full(200, 9)
    visited = bridge(Chain(target, exists / exists.sum(1, keepdims=True)), start, end, cells, 12, rng)
    assert (visited[:, 8] == end).all() and (visited[:, 9:] == -1).all() and (visited[:, 0] == start).all()
    assert (direction(visited[:, :8].ravel(), visited[:, 1:9].ravel(), 6) >= 0).all()


def test_symbols_of_place_and_hour_go_there_and_back():
    cell, hour = (part.ravel() for part in np.meshgrid(np.arange(64), np.arange(24)))
    symbol = _encode(cell, hour)
    assert len(np.unique(symbol)) == 64 * 24 and symbol.max() == 64 * 24 - 1
    again = _decode(symbol)
    assert np.array_equal(again[0], cell) and np.array_equal(again[1], hour)


def test_choices_prefer_the_best_score():
    scores = np.tile(np.array([[0, 10, 0]]), (3_000, 1))
    for mechanism in (
        SoundMechanism(Budget.split(1, {"a": 1}), SeededNoise(0)),
        PublishedMechanism(Budget.split(1, {"a": 1}), np.random.default_rng(0)),
    ):
        share = np.bincount(mechanism.choose("a", scores, 1), minlength=3) / 3_000
        assert share[1] > 0.9 and mechanism.lines[0].epsilon == 1
    even = SoundMechanism(Budget.split(1, {"a": 1}), SeededNoise(0)).choose("a", scores, 1_000)
    assert np.bincount(even, minlength=3) / 3_000 == pytest.approx([1 / 3] * 3, abs=0.04)


def test_records_are_clipped_to_their_range():
    asked = []

    class Seen(NoNoise):
        def laplace(self, sums, sensitivity, epsilon):
            asked.append((sums, sensitivity))
            return super().laplace(sums, sensitivity, epsilon)

    mechanism = SoundMechanism(Budget.split(1, {"a": 1}), Seen())
    weights = np.array([0.5, 0.3, 0.2])
    out = mechanism.rows("a", np.array([[5.0, -3.0, np.nan], [0.0, 1.0, 1.0]]), weights)
    ((whole, sensitivity),) = asked
    assert np.abs(whole[0] - whole[1]).sum() <= sensitivity
    assert out == pytest.approx(np.array([[1, 0, 0], [0, 1, 1]]), abs=1e-5)


def test_one_trajectory_changes_the_scores_of_one_pair():
    asked = []

    class Seen(NoNoise):
        def laplace(self, sums, sensitivity, epsilon):
            if sums.ndim == 2:
                asked.append(sums)
            return super().laplace(sums, sensitivity, epsilon)

    base, extra = walks(80), walks(1, seed=5)
    for data in (base, concatenate([base, extra])):
        load("dp-star")(data, SCOPE, "0.1", noise=Seen(), seed=0, n=3)
    moved = np.abs(asked[0] - asked[1])
    assert moved.max() <= 1 and (moved > 0).any(1).sum() <= 1


def test_rejection_counts_its_rounds():
    data, seen = walks(400), []

    def draw(n):
        seen.append(n)
        return select(data, np.arange(sum(seen[:-1]), sum(seen)))

    found = regenerate(draw, lambda made: np.arange(len(made)) % 2 == 1, 100)
    assert found.left == 0 and found.rounds == len(seen) - 1 and found.drawn == sum(seen)
    assert len(found.trajectories) == 100
    stuck = regenerate(lambda n: select(data, np.arange(n)), lambda made: np.ones(len(made), bool), 10, most_rounds=3)
    assert (stuck.rounds, stuck.left, len(stuck.trajectories)) == (3, 10, 10)
    hopeless = regenerate(lambda n: select(data, np.arange(n)), lambda made: np.ones(len(made), bool), 2)
    assert hopeless.rounds == STUCK_ROUNDS and hopeless.left == 2


def test_rejection_obeys_the_rules():
    lon, lat = SCOPE.to_degrees(np.array([8_000.0, 10_000.0]), np.array([8_000.0, 10_000.0]))
    ring = [[lon[0], lat[0]], [lon[1], lat[0]], [lon[1], lat[1]], [lon[0], lat[1]], [lon[0], lat[0]]]
    rules = [closed({"type": "Polygon", "coordinates": [ring]}, SCOPE, name="square")]
    free, ruled = (
        method(walks(400), SCOPE, 50, seed=0, n=200).trajectories
        for method in (load("rejection"), rejection_with(rules))
    )
    broken = [violating_trajectories(rules, motion_of(made, SCOPE)).sum() for made in (free, ruled)]
    assert broken[0] > 0 and broken[1] == 0


def test_a_rejection_that_never_accepts_is_one_sentence():
    west, south, east, north = SCOPE.west, SCOPE.south, SCOPE.east, SCOPE.north
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    rules = [closed({"type": "Polygon", "coordinates": [ring]}, SCOPE, name="everything")]
    notes = rejection_with(rules, most_rounds=3)(walks(60), SCOPE, 5, seed=0, n=20).notes
    assert notes[-1].startswith("20 of 20 walks still break a rule") and "after 3 rounds" in notes[-1]
    assert not any("still break" in note for note in load("rejection")(walks(60), SCOPE, 5, seed=0, n=20).notes)

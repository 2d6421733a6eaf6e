"""Training in miniature: the plan's rules, the simulated cities, the network in jax, a few optimiser steps."""

from pathlib import Path

import numpy as np
import pytest

from wayveil.core.grid import Grid
from wayveil.measurement.gaussian import FINER
from wayveil.questions.catalogue import SHARES
from wayveil.questions.field import field_levels

FOLDER = Path(__file__).resolve().parents[2] / "research" / "training"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def test_shares_and_levels_are_the_plans():
    import product

    for name, share in (("occupancy", product.OCCUPANCY_SHARE), ("end_points", product.END_POINT_SHARE)):
        planned = sum(float(SHARES[f"{name}/{level}"]) for level in ("coarse", "detail"))
        # The plan may move a little without a new training; the network knows the noise of each release.
        assert planned == pytest.approx(share, rel=0.1)
    assert float(SHARES["count"]) == product.COUNT_SHARE
    assert product.FINER == FINER
    for columns, rows in ((40, 40), (150, 244), (384, 389)):
        grid = Grid(100.0, columns, rows, columns * 100.0, rows * 100.0)
        for signal in (0.5, 8.0, 100.0, 3000.0, 90_000.0):
            for close in (1.0, 16.0, 70.0):
                levels = field_levels(grid, signal, close)
                assert product.level_sides(grid.cells, signal, close) == (levels.coarse, levels.middle, levels.fine)


@pytest.mark.parametrize(
    "kind", ["grid", "rings", "organic", "mixed", "river", "coast", "rural", "highway", "island", "campus"]
)
def test_each_kind_of_city_gives_whole_views(kind):
    import samples

    def view():
        random = np.random.default_rng(11)
        return samples.look(samples.build_city(kind, random, trips=80), random, count=300.0, side=48)

    first, again = view(), view()
    assert first.count > 0
    assert first.occupancy.sum() == pytest.approx(first.count)
    assert first.end_points.sum() == pytest.approx(first.count)
    assert max(first.area.shape) <= 48
    assert len(first.roads) == 7 and all(field.shape == first.area.shape for field in first.roads)
    np.testing.assert_array_equal(first.occupancy, again.occupancy)


def test_hours_begin_and_end_anywhere_on_the_way():
    import samples
    from traffic import Trips, sample_hours, sample_points

    random = np.random.default_rng(3)
    trips = Trips(np.array([0, 2]), np.array([[0.0, 0.0], [1000.0, 0.0]]), np.array([0.0, 100.0]))
    chosen = np.zeros(400, np.int64)
    whole = sample_points(trips, chosen, 10.0, 1.0, random)
    pieces = sample_hours(trips, chosen, 400, 50.0, 10.0, 1.0, random)
    for points, spread in ((whole, (0.0, 30.0)), (pieces, (200.0, 400.0))):
        first = points.xy[np.r_[True, np.diff(points.trip) > 0], 0]
        assert spread[0] <= first.std() <= spread[1]
    city = samples.build_city("grid", random, trips=60)
    view = samples.look(city, random, count=200.0, side=48, hours=True)
    assert view.occupancy.sum() == pytest.approx(view.count) == view.end_points.sum()


def test_simulated_maps_are_the_products_features():
    import maps
    from streets import Streets

    streets = Streets("grid", 1000.0, np.array([[50.0, 250.0], [950.0, 250.0]]), np.array([[0, 1]]),
                      np.array([2]), np.zeros((1, 2)))  # fmt: skip
    for seed in range(30):  # some maps are cut off or have lost the road
        *classes, without = maps.road_map(streets, np.eye(2), np.zeros(2), 100.0, (40, 40), np.random.default_rng(seed))
        if sum(classes).sum() > 8.9:
            break
    total = sum(classes)
    assert total.sum() == pytest.approx(9.0, abs=0.02)  # 900 m in cell widths
    assert total[2].sum() > 0.9 * total.sum() and total[1].sum() > 0
    assert without[2, :12].max() == 0 and without[30, 30] == 1  # 400 m blocks, and their neighbours


def test_points_outside_the_scope_are_left_out_not_moved():
    import samples
    from traffic import Points

    xy = np.array([[0.5, 0.5], [9.0, 0.5], [1.5, 0.5], [-3.0, 2.0]])
    occupancy, ends, count = samples._add_up(Points(np.array([0, 0, 0, 1]), xy), 4, 4, np.array([4.0, 4.0]))
    assert count == 1
    assert occupancy[0, :2].tolist() == [0.5, 0.5] and occupancy.sum() == 1
    assert ends[0, :2].tolist() == [0.5, 0.5] and ends.sum() == 1


def test_jax_and_numpy_networks_agree_and_training_runs(monkeypatch):
    import denoiser
    import jax
    import jax.numpy as jnp
    import samples
    from product import network

    random = np.random.default_rng(5)
    fields, constants = random.normal(size=(20, 16, 9)).astype(np.float32), random.normal(size=6).astype(np.float32)
    forward = jax.jit(denoiser.log_correction, static_argnames="dtype")
    for patch, channels in ((1, (4, 6)), (2, (5,))):
        names = network.parameter_shapes(9, 6, channels, patch)
        weights = {name: (random.normal(size=shape) * 0.3).astype(np.float32) for name, shape in names.items()}
        here = network.log_correction(weights, fields, constants)
        there = forward(weights, fields[None], constants[None], dtype=jnp.float32)[0]
        np.testing.assert_allclose(here, there, rtol=1e-3, atol=1e-3)

    narrow = denoiser.initial_weights(3, (1, (4, 6)))
    narrow = {
        kind: {name: random.normal(size=part.shape) for name, part in parts.items()} for kind, parts in narrow.items()
    }
    wide = denoiser.initial_weights(4, (1, (7, 9)), narrow)
    for kind, inputs in denoiser.INPUTS.items():  # a wider network begins as the one it starts from
        shown = random.normal(size=(8, 8, inputs)).astype(np.float32)
        as_numpy = (
            {name: np.asarray(part, np.float32) for name, part in some[kind].items()} for some in (narrow, wide)
        )
        one, other = (network.log_correction(weights, shown, constants) for weights in as_numpy)
        assert wide[kind]["down1/conv1/w"].shape[3] == 9 and np.ptp(one) > 0
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)

    monkeypatch.setattr(network, "CHANNELS", (4,))  # compiling the gradient of more scales takes many seconds
    monkeypatch.setattr(denoiser, "DTYPE", jnp.float32)
    city = samples.build_city("campus", random, trips=80)
    view = samples.look(city, random, count=2000.0, side=32)
    packed = [samples.pack(samples.release(view, 0.5, False, random), 32)] * 2  # one sample: its loss must fall
    pool = tuple(jnp.asarray(np.stack(part)) for part in zip(*packed))
    state = denoiser.initial_state(1)
    before = jax.jit(denoiser.predict)(state[0], *pool)[0]
    log_bayes, inside = np.asarray(pool[0][..., 3], float), np.asarray(pool[0][..., 4]) > 0
    bayes = np.where(inside, np.exp(log_bayes), 0.0)
    bayes /= bayes.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(np.exp(before), bayes, atol=1e-5)  # training starts at the Bayesian estimate
    loss = jax.jit(denoiser.loss)
    for kind in ("occupancy", "end_points"):  # the same shares, nearer to the bound: only the offset costs
        head = state[0][kind] | {"head/b": jnp.full(1, 3.0)}
        offset = 6 * np.tanh(0.5)
        dearer = loss(state[0] | {kind: head}, *pool) - loss(state[0], *pool)
        assert float(dearer) == pytest.approx(denoiser._OFFSET_WEIGHT * offset**2, rel=0.02)
    state, first = denoiser.train_steps(state, pool, 2, 3e-3, 2, 10)
    state, second = denoiser.train_steps(state, pool, 2, 3e-3, 2, 10)
    assert float(second) < float(first)
    assert int(state[4]) == 20 and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state[1]))


def test_varied_sizes_are_some_that_a_release_could_have():
    import samples

    random = np.random.default_rng(8)
    exact = random.gamma(0.1, size=(90, 130))

    def sides(varied):
        levels = samples.noisy_levels(exact, 0.39, 0.5, exact.sum(), random, varied=varied)
        for level in levels:
            assert level.counts.shape == tuple(-(-length // level.side) for length in exact.shape)
        return tuple(level.side for level in levels)

    usual = sides(0.0)
    seen = {sides(1.0) for _ in range(60)}
    assert {sides(0.0) for _ in range(5)} == {usual} and usual in seen and len(seen) >= 6
    assert all(coarse % middle == middle % fine == 0 and 16 <= coarse <= 64 for coarse, middle, fine in seen)


def test_gaussian_levels_have_weights_in_half_of_the_releases():
    import samples

    random = np.random.default_rng(9)
    exact = random.gamma(0.1, size=(90, 130)) * 20
    weighted = 0
    for _ in range(40):
        coarse, middle, fine = samples.gaussian_levels(exact, "end_points", 5.0, exact.sum(), random)
        assert coarse.gaussian and coarse.side % middle.side == 0 and middle.side % fine.side == 0
        weighted += np.ndim(coarse.noise) > 0
    assert 10 <= weighted <= 30
    residual = (fine.counts - samples.pool(exact, fine.side)) / np.asarray(fine.noise)
    assert residual.std() == pytest.approx(2**0.5, rel=0.1)  # the variance of Laplace noise of the same scale


def test_untidy_ends_lie_beside_the_streets_at_shared_places():
    import samples
    from streets import Streets
    from traffic import _places, _way_to_a_place

    street = Streets("grid", 1000.0, np.array([[0.0, 0.0], [200.0, 0.0]]), np.array([[0, 1]]), np.array([2]),
                     np.zeros((1, 2)))  # fmt: skip
    random = np.random.default_rng(4)
    places = np.concatenate([_places(street, random) for _ in range(50)])
    aside = np.abs(places[:, 0, 1])
    assert aside.min() >= 10 and 60 < aside.max() <= 80
    assert places[:, 0, 0].min() >= 0 and places[:, 0, 0].max() <= 120
    way = _way_to_a_place(places[:3], np.zeros(300, int), street, random)
    nearest = np.hypot(*(way[:, None] - places[:3, 0]).transpose(2, 0, 1)).min(axis=1)
    assert np.median(nearest) < 40  # around one of the three, not anywhere
    view = samples.look(samples.build_city("organic", random, trips=60, untidy=True), random, count=200.0, side=48)
    assert view.end_points.sum() == pytest.approx(view.count)


def test_untidy_maps_have_other_classes_and_streets_that_nobody_uses():
    import maps
    from streets import Streets

    along = np.arange(0.0, 16_000.0, 200.0)
    xy = np.stack([along, np.full(len(along), 2000.0)], axis=1)
    edges = np.stack([np.arange(len(along) - 1), np.arange(1, len(along))], axis=1)
    street = Streets("grid", 10_000.0, xy, edges, np.full(len(edges), 2), np.zeros((1, 2)))

    def seen(untidy):
        made = [
            maps.road_map(street, np.eye(2), np.zeros(2), 100.0, (40, 160), np.random.default_rng(seed), untidy)[:-1]
            for seed in range(8)
        ]
        elsewhere = [sum(each)[[*range(17), *range(23, 40)]].sum() for each in made]  # the street is in rows 19 and 20
        classes = [sum(field.sum() > 1 for field in each) for each in made]
        return max(elsewhere), max(classes)

    assert seen(False)[0] < 1e-3 and seen(False)[1] <= 2
    assert seen(True)[0] > 5 and seen(True)[1] >= 4

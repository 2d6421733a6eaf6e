"""One-point trajectories come out as one-point trajectories, and noise alone makes none."""

import warnings

import numpy as np
import pytest

from wayveil.core.bins import Bins
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.measurement import exact_answers, measure
from wayveil.privacy.noise import SeededNoise
from wayveil.questions.count import Count
from wayveil.questions.duration import Duration
from wayveil.questions.histogram import NARROW_SPIKES, merged_bins, possible_bins
from wayveil.questions.length import Length
from wayveil.questions.mean_interval import MeanInterval
from wayveil.rules import Closed, read_rules
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.synthesis.arguments import default_count
from wayveil.synthesis.trips.one_point import one_point_share, without_one_point
from wayveil.workflow.synthesize import synthesize

SIZE = 1219


@pytest.fixture(scope="module")
def city():
    return simulate_city(0, size_km=(4, 4))


@pytest.fixture(scope="module")
def trips(city):
    return simulate_trajectories(city, SIZE, seed=3)


def first_points(data):
    """A trip table: one row per trip."""
    first = data.offsets[:-1]
    return Trajectories(np.arange(len(data) + 1), data.lon[first], data.lat[first], data.t_utc[first])


@pytest.fixture(scope="module")
def half(trips):
    plain = Trajectories(trips.offsets, trips.lon, trips.lat, trips.t_utc)
    return concatenate([first_points(select(trips, np.arange(0, SIZE, 2))), select(plain, np.arange(1, SIZE, 2))])


def release_of(data, city, seed, epsilon=1):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measure(data, city.scope, epsilon=epsilon, unit="trajectory", noise=SeededNoise(seed))


def sizes_of(release, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = synthesize(release, seed=1, **how)
    return np.diff(made.trajectories.offsets), made


def test_one_point_data_comes_out_as_one_point_data(city, trips):
    # Trips of several points are assumed from three standard deviations on, so noise creates some occasionally.
    assert sum(one_point_share(release_of(first_points(trips), city, seed)) == 1.0 for seed in range(20)) >= 19
    release = release_of(first_points(trips), city, 1)
    sizes, made = sizes_of(release)
    assert (sizes == 1).all() and len(sizes) == default_count(release) == len(made.trajectories.lon)
    assert abs(len(sizes) - SIZE) < 1000
    assert made.diagnostics["trajectories"] == len(sizes) and made.diagnostics["realised_density_jsd"] < 0.3
    (occupancy,) = exact_answers(made.trajectories, city.scope, [Count()])
    assert occupancy[0] == len(sizes)  # all inside the box and the days


def test_a_mixture_keeps_both_kinds(city, half):
    shares = [one_point_share(release_of(half, city, seed)) for seed in range(20)]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.1) and np.std(shares) < 0.12
    sizes, made = sizes_of(release_of(half, city, 0, epsilon=4))
    single = sizes == 1
    assert single.mean() == pytest.approx(0.5, abs=0.08)
    assert np.median(sizes[~single]) > 5
    # The order says nothing about the kind.
    assert 0.3 < single[: len(single) // 2].mean() < 0.7
    moved_m = np.array([np.ptp(part) for part in np.split(made.trajectories.lat, made.trajectories.offsets[1:-1])])
    assert (moved_m[single] == 0).all() and np.median(moved_m[~single]) > 0.002


def test_trips_stay_as_long_when_single_points_are_added(city, trips, half):
    """What single points add to the lowest bins is not taken for short trips."""
    whole, mixed = (sizes_of(release_of(data, city, 2, epsilon=8))[1].trajectories for data in (trips, half))
    questions = [Length.finest(city.scope), Duration.finest(city.scope)]
    alone = select(mixed, np.flatnonzero(np.diff(mixed.offsets) > 1))
    for one, other in zip(*(exact_answers(data, city.scope, questions) for data in (whole, alone)), strict=True):
        one, other = np.cumsum(one) / one.sum(), np.cumsum(other) / other.sum()
        assert np.abs(one - other).max() < 0.12


@pytest.mark.parametrize(("size", "epsilon"), [(SIZE, 1), (300, 1), (60, "0.5"), (5, "0.1")])
def test_noise_makes_no_single_points(city, trips, size, epsilon):
    for seed in range(25):
        release = release_of(select(trips, np.arange(size)), city, seed, epsilon)
        assert one_point_share(release) == 0.0
    lowered = without_one_point(release, 0.0)
    for answer in release.answers:
        same = lowered[answer.name].noisy
        assert np.array_equal(same, answer.noisy[1:] if answer.name == "mean_interval" else answer.noisy)


def test_only_single_points_are_in_their_bin(city):
    question = MeanInterval.finest(city.scope)
    lon, lat = (city.scope.west + city.scope.east) / 2, (city.scope.south + city.scope.north) / 2
    first = (city.scope.time_window() or (0.0, 0.0))[0]
    for times, expected in (([0.0], 0), ([0.0, 0.0], 1), ([0.0, 0.1, 0.2], 1), ([0.0, 5000.0], len(question.bins) - 1)):
        n = len(times)
        one = Trajectories(np.array([0, n]), np.full(n, lon), np.full(n, lat), first + np.array(times))
        (found,) = exact_answers(one, city.scope, [question])
        assert found[expected] == 1 == found.sum()


def test_the_bin_of_single_points_is_never_merged(city):
    fine, values = MeanInterval.finest_bins(city.scope), MeanInterval.value_bins(city.scope)
    assert fine.edges == (0.0, *values.edges) and values.edges[0] == 1.0
    for signal in (0.01, 1, 10, 100, 1e6):
        merged = merged_bins(fine, signal, MeanInterval.merging)
        assert merged.edges[:2] == (0.0, 1.0)
        assert merged == Bins((0.0, *merged_bins(values, signal, NARROW_SPIKES).edges))
        assert merged in possible_bins(fine, MeanInterval.merging)


def test_single_points_obey_rules(city, trips):
    scope = city.scope
    west, east = scope.west, (scope.west + scope.east) / 2
    ring = [[west, scope.south], [east, scope.south], [east, scope.north], [west, scope.north], [west, scope.south]]
    for hours in ({}, {"from": "06:00", "to": "18:00"}):
        closed = {"rule": "closed", "name": "West", **hours}
        feature = {
            "type": "Feature",
            "properties": closed,
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        }
        rules = tuple(read_rules({"type": "FeatureCollection", "features": [feature]}, scope, None))
        assert isinstance(rules[0], Closed)
        sizes, made = sizes_of(release_of(first_points(trips), city, 1), rules=rules, n=400)
        assert (sizes == 1).all() and len(sizes) == 400
        assert made.diagnostics["violations_after"]["West"]["points"] == 0

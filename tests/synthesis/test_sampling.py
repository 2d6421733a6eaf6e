"""Sampling intervals in whole seconds, preferably round, and the numbers of points that follow from them."""

from dataclasses import replace

import numpy as np
import pytest
from recordings import every

from changes import changed
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.questions.gap_ratio import GapRatio
from wayveil.questions.mean_interval import MeanInterval
from wayveil.questions.median_interval import MedianInterval
from wayveil.questions.top_speed import TopSpeed
from wayveil.simulate import simulate_trajectories
from wayveil.synthesis.estimate.estimate import estimate
from wayveil.synthesis.model import make_model
from wayveil.synthesis.place.sampling import (
    is_steady,
    roundness,
    shortest_interval_s,
    whole_seconds_in,
    with_sampling_intervals,
)
from wayveil.synthesis.recipe import draw_shard
from wayveil.synthesis.request import Request
from wayveil.workflow.synthesize import synthesize


def rng(seed=0):
    return np.random.default_rng(seed)


def with_intervals(estimates, intervals, share):
    """The estimates with these intervals (seconds: share), and that share of the gaps at the interval."""
    bins, ratio_bins = (estimates.distribution(question).bins for question in (MedianInterval, GapRatio))
    asked = np.zeros(len(bins))
    for seconds, part in intervals.items():
        asked[bins.index(np.array([float(seconds)]))] += part
    ratio = np.full(len(ratio_bins), (1 - share) / (len(ratio_bins) - 1))
    ratio[ratio_bins.index(np.array([1.0]))] = share
    return changed(estimates, median_interval=asked, gap_ratio=ratio)


def test_round_intervals_are_more_likely():
    weight = dict(zip([7.0, 5.0, 15.0, 60.0], roundness(np.array([7.0, 5.0, 15.0, 60.0])), strict=True))
    assert weight[7.0] == 1 < weight[5.0] < weight[15.0] < weight[60.0]
    assert whole_seconds_in(0.0, 1.5).tolist() == [1] and whole_seconds_in(4.5, 5.5).tolist() == [5]
    assert 60 in whole_seconds_in(58.9, 61.9) and len(whole_seconds_in(7.2, 7.3)) == 1


@pytest.mark.parametrize("seconds", [5, 15, 60])
def test_steady_devices_record_whole_numbers_of_intervals(small_estimates, seconds):
    random = rng(3)
    duration_s = random.uniform(300, 2000, 500)
    points = np.rint(duration_s / (seconds * random.uniform(0.95, 1.05, 500))).astype(int) + 1
    steady = with_intervals(small_estimates, {seconds: 1.0}, share=0.97)
    new_s, counted, interval = with_sampling_intervals(steady, duration_s, points, rng(1))
    interval_s = interval * new_s / (counted - 1)
    exact = np.abs(interval_s - seconds) < 1e-9
    assert exact.mean() > 0.4 and (np.rint(interval_s) == interval_s.round(6)).all()
    np.testing.assert_allclose(new_s, (counted - 1) * interval_s)
    assert np.abs(new_s - duration_s).max() <= 0.51 * interval_s.max()
    # Devices that miss their interval every other time say nothing about how long a recording lasts.
    loose, _, _ = with_sampling_intervals(
        with_intervals(small_estimates, {seconds: 1.0}, share=0.5), duration_s, points, rng(1)
    )
    assert (loose == duration_s).all()


def test_no_recording_is_cut_short_by_the_cap_on_points(small_estimates):
    most = small_estimates.scope.caps.points
    duration_s, points = np.full(50, 5.4 * (most - 1)), np.full(50, most)
    new_s, counted, _ = with_sampling_intervals(
        with_intervals(small_estimates, {5: 1.0}, share=0.97), duration_s, points, rng(1)
    )
    assert (new_s == duration_s).all() and (counted == most).all()


def test_recordings_with_pauses_keep_their_points(small_estimates):
    duration_s, points = np.full(100, 1000.0), np.full(100, 51)  # a mean gap of 20 s
    same_s, same, interval = with_sampling_intervals(
        with_intervals(small_estimates, {5: 1.0}, share=0.97), duration_s, points, rng(1)
    )
    assert (same == points).all() and (same_s == duration_s).all()
    np.testing.assert_allclose(interval, 0.25)


def test_steady_devices_rarely_have_intervals_that_are_not_round():
    loose, strict = (roundness(np.array([14.0, 15.0, 16.0]), steady) for steady in (False, True))
    assert loose[1] / loose.sum() < 0.7 < 0.95 < strict[1] / strict.sum()


def test_devices_are_steady_if_enough_gaps_equal_the_interval(small_estimates):
    for share in (0.5, 0.79, 0.81, 1.0):
        estimates = with_intervals(small_estimates, {15: 1.0}, share)
        assert is_steady(estimates.distribution(GapRatio)) == (share > 0.8)


def test_devices_with_fixed_intervals_have_a_shortest_interval(small_estimates):
    """One device in twenty may be faster, and there is no limit if most gaps differ from the interval."""
    clocks = {5: 0.6, 15: 0.37, 1: 0.03}
    assert shortest_interval_s(with_intervals(small_estimates, clocks, share=0.7)) == 5
    assert shortest_interval_s(with_intervals(small_estimates, {5: 0.9, 1: 0.1}, share=0.7)) == 1
    assert shortest_interval_s(with_intervals(small_estimates, clocks, share=0.5)) == 0


def test_a_recorder_that_is_exact_to_the_second_stays_so(small_city):
    data = every(15, simulate_trajectories(small_city, 500, seed=3))
    release = measure(data, small_city.scope, epsilon=20, unit="trajectory", noise=SeededNoise(5))
    made = synthesize(release, n=400, seed=1, estimator="bayes").trajectories
    inner = np.setdiff1d(np.arange(1, len(made.t_utc)), made.offsets[1:-1])
    gap_s = np.diff(made.t_utc)[inner - 1]
    assert (gap_s == 15).mean() > 0.8 and (np.abs(gap_s - 15) <= 1).mean() > 0.85


def test_an_exact_recorder_is_recognised_from_little_data(small_city):
    """Five units of noise on fourteen bins: a smooth curve through them would have no peak at the interval."""
    data = every(15, simulate_trajectories(small_city, 500, seed=3))
    share = []
    for seed in range(4):
        release = measure(data, small_city.scope, epsilon=1, unit="trajectory", noise=SeededNoise(seed))
        found = estimate(release).distribution(GapRatio)
        share.append(found.shares[found.bins.index(np.array([1.0]))[0]])
    assert np.mean(share) > 0.5


def gaps_of(made):
    inner = np.setdiff1d(np.arange(1, len(made.t_utc)), made.offsets[1:-1])
    return np.diff(made.t_utc)[inner - 1]


def test_gaps_of_devices_with_fixed_intervals_are_not_below_the_shortest_one(small_release):
    model = make_model(Request(small_release, seed=1, estimator="bayes"))
    bins, top = model.estimates.distribution(MeanInterval).bins, model.estimates.distribution(TopSpeed)
    mean_gap, fast = np.zeros(len(bins)), np.zeros(len(top.bins))
    mean_gap[bins.index(np.array([12.0]))] = fast[-1] = 1.0
    early = []
    for share in (0.7, 0.5):
        clock = changed(with_intervals(model.estimates, {10: 1.0}, share), mean_interval=mean_gap, top_speed=fast)
        early.append((gaps_of(draw_shard(replace(model, estimates=clock), 200, rng(5)).trajectories) < 10).mean())
    assert early[0] < 0.8 * early[1], "except where a fast step needed more time"


def test_steady_devices_have_the_round_interval_of_a_bin(small_estimates):
    duration_s, points = np.full(400, 3000.0), np.full(400, 51)
    for share, least in ((0.97, 0.95), (0.5, 0.0)):
        new_s, counted, interval = with_sampling_intervals(
            with_intervals(small_estimates, {60: 1.0}, share), duration_s, points, rng(1)
        )
        round_ones = (np.abs(interval * new_s / (counted - 1) - 60) < 1e-9).mean()
        assert round_ones > least
    assert round_ones < 0.9

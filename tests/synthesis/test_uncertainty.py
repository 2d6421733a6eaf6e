"""Relative errors of parts, and verdicts that follow the noise of a release."""

import numpy as np
import pytest

from wayveil.core.trajectories import Trajectories
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.release.kinds import KINDS
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.synthesis.uncertainty.parts import Pieces, Ranges, moved_errors, wrong_share
from wayveil.synthesis.uncertainty.uncertainty import SPREADS, can_be_judged, uncertainty
from wayveil.synthesis.uncertainty.verdict import Verdict, has_routes, sentence, square_zones, verdicts

TWO = np.array([0, 1])


@pytest.fixture(scope="module")
def found():
    """Uncertainty of the same trips, measured with nearly only noise, with some, and with nearly none."""
    city = simulate_city(0, size_km=(4, 4))
    rides = simulate_trajectories(city, 400, seed=3)
    result = {}
    for epsilon in ("0.002", "5", "1000"):
        noise = SeededNoise(4)
        release = measure(rides, city.scope, epsilon=epsilon, unit="trajectory", noise=noise, accept_low_signal=True)
        result[epsilon] = uncertainty(release)
    return result


def test_a_whole_block_weighs_its_noise_against_the_prior():
    variance = Pieces(TWO, TWO, np.array([100.0, 1.0]), 2).relative_variance(np.array([25.0, 1e9]), 2.0)
    assert variance == pytest.approx([1 / (1 / 4 + 400), 4.0], rel=1e-6)


def test_a_rare_part_is_at_most_its_estimate_plus_the_noise():
    rare = Pieces(TWO, TWO, np.array([10.0, 10_000.0]), 2)
    noise = np.array([100.0**2, 100.0**2])
    free, bounded = (rare.relative_variance(noise, 2.0, own=own) ** 0.5 for own in (False, True))
    assert free == pytest.approx([2.0, 0.01], rel=0.03) and bounded[1] == pytest.approx(0.01, rel=0.01)
    assert 10 * np.exp(1.645 * bounded[0]) == pytest.approx(10 + 1.645 * 100)


def test_a_piece_of_a_block_is_as_uncertain_as_the_prior_within_it():
    halves = Pieces(TWO, np.zeros(2, np.int64), np.array([50.0, 50.0]), 2)
    assert halves.relative_variance(np.array([1e-9]), 2.0) == pytest.approx([1.0, 1.0], abs=1e-6)  # (½·2)²


def test_blocks_of_no_part_do_not_count():
    alone = Pieces(np.array([0, -1]), TWO, np.array([10.0, 99.0]), 1)
    assert alone.relative_variance(np.array([1.0, 1e9]), 1.0) == pytest.approx([1 / (1 + 100)])


def test_the_wrong_share_is_that_of_lognormal_errors():
    random = np.random.default_rng(1)
    factor = np.exp(0.6 * random.standard_normal(200_000) - 0.18)
    assert wrong_share(np.array([0.36]), np.array([1.0])) == pytest.approx(np.abs(factor - 1).mean() / 2, abs=2e-3)


def test_more_epsilon_never_makes_an_error_larger(found):
    errors = [[one.error for one in verdicts(found[epsilon])] for epsilon in ("0.002", "5", "1000")]
    assert (np.diff(errors, axis=0) <= 0).all()


def test_strong_noise_is_never_called_good_and_weak_noise_always_is(found):
    words = {epsilon: {one.kind: one.word for one in verdicts(one_found)} for epsilon, one_found in found.items()}
    assert all(words["0.002"][kind] == "noise" for kind in ("zones", "streets", "hours", "speeds"))
    assert "good" not in words["0.002"].values()
    assert set(words["1000"].values()) == {"good"}
    assert "do not use" in sentence(verdicts(found["0.002"])).lower()


def test_errors_have_the_shape_of_the_zones(found):
    one = found["5"]
    zones = square_zones(one.estimates.grid, 3)
    zones[0, 0] = -1
    assert one.flows(zones).shape == (9, 9) and one.ends(zones).shape == one.traffic(zones).shape == (9,)
    assert one.trips_between(zones).sum() == pytest.approx(1, abs=0.02)
    assert (one.traffic(zones) <= SPREADS.place + 1e-9).all() and (one.paces(zones) > 0).all()
    assert len(one.hours((0, 6, 10, 16, 20))) == 5 and len(one.days) == 7
    grid = one.estimates.grid
    assert one.cells.shape == (grid.rows, grid.columns) and np.isfinite(one.cells).all()


def test_a_part_of_the_day_is_more_certain_than_its_hours(found):
    one = found["5"]
    assert one.hours((0, 12)).max() < one.hours().max()


def test_a_distribution_that_may_be_scaled_is_uncertain_at_its_flanks():
    ranges = Ranges(np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.25, 0.5, 0.25]))
    assert ranges.median == pytest.approx(1.5)
    assert ranges.between(np.array([0.0, 1.0, 2.0]), np.log(2)) == pytest.approx([0.125, 0.875])
    moved = moved_errors(ranges, ranges.edges, np.log(2), 0.01)
    assert moved[0] == pytest.approx(np.log(0.75 / 0.25)) and moved[2] == pytest.approx(np.log(0.25 / 0.01))
    assert moved_errors(ranges, ranges.edges, 0.0, 0.01) == pytest.approx([0.0, 0.0, 0.0])


def test_rare_ranges_are_less_certain_than_frequent_ones(found):
    edges = np.array([0.0, 300, 600, 1200, 3600, 7200])
    noisy, clear = (found[epsilon].durations(edges) for epsilon in ("5", "1000"))
    assert noisy[-1] > noisy.min() and (clear[:3] < noisy[:3]).all()


def test_trips_with_two_points_get_no_verdict_about_streets():
    city = simulate_city(0, size_km=(4, 4))
    rides = simulate_trajectories(city, 400, seed=3)
    ends = np.c_[rides.offsets[:-1], rides.offsets[1:] - 1].ravel()
    table = Trajectories(np.arange(0, 801, 2), rides.lon[ends], rides.lat[ends], rides.t_utc[ends])
    for data, routes in ((rides, True), (table, False)):
        release = measure(data, city.scope, epsilon="5", unit="trajectory", noise=SeededNoise(4))
        known = uncertainty(release)
        assert has_routes(known) is routes
        assert ("streets" in {one.kind for one in verdicts(known)}) is routes


def test_noise_does_not_show_that_there_are_no_routes(found):
    assert all(has_routes(one) for one in found.values())


def test_a_release_of_few_answers_is_not_judged(found):
    from dataclasses import replace

    release = found["5"].release
    assert can_be_judged(release) and not can_be_judged(replace(release, answers=release.answers[:3]))


def test_a_verdict_has_the_words_of_the_plan():
    for kind, about in KINDS.items():
        assert [Verdict(kind, error).word for error in (about.good, about.rough, about.rough + 0.01)] == [
            "good", "rough", "noise",
        ]  # fmt: skip


def test_answers_about_people_do_not_matter_for_trips():
    city = simulate_city(0, size_km=(4, 4))
    rides = simulate_trajectories(city, 400, seed=3)
    release = measure(
        rides, city.scope, epsilon=100, delta="1e-6", unit="user", max_per_user=5, noise=SeededNoise(4),
        accept_low_signal=True,
    )  # fmt: skip
    assert "people/trips" in release
    assert {one.kind for one in verdicts(uncertainty(release))} == set(KINDS)

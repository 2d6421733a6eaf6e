"""Weights, departures, shards and the whole recipe: each is checked for what it promises."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from changes import changed
from wayveil.core.scope import Scope
from wayveil.errors import InputError
from wayveil.questions.duration import Duration
from wayveil.questions.top_speed import TopSpeed
from wayveil.release import Release
from wayveil.release.number import estimate_number
from wayveil.rules import Closed, StayWithin, area_in_metres, count, hours, motion_of, with_scope_bounds
from wayveil.synthesis import shard as shards
from wayveil.synthesis.arguments import wanted_count, wanted_seed
from wayveil.synthesis.fit.weights import HardView, SoftView, fit_weights
from wayveil.synthesis.model import make_model
from wayveil.synthesis.obey.departures import exchanged_departures, open_departures
from wayveil.synthesis.place.track_columns import Tracks
from wayveil.synthesis.recipe import draw_shard, draw_shards
from wayveil.synthesis.request import Request
from wayveil.synthesis.shard import count_violations, shard_sizes
from wayveil.synthesis.trips.departures import departures
from wayveil.workflow.synthesize import synthesize

COLUMNS = ("offsets", "lon", "lat", "t_utc")
SCOPE = Scope.model_validate(
    {"name": "test", "south": 10.0, "west": 20.0, "north": 10.05, "east": 20.06, "timezone": "Europe/Paris",
     "first_day": "2025-03-24", "last_day": "2025-04-06"}
)  # fmt: skip
"""Two weeks, Monday to Sunday; the clocks go forward on the first Sunday."""


def rng(seed=0):
    return np.random.default_rng(seed)


def same(one, other):
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in COLUMNS)


# fit -----------------------------------------------------------------------------------------------------------------


def hard(target, bin_of, noise=1.0, name="view", step=0.7):
    return HardView(name, bin_of, np.asarray(target, float), noise, step)


def test_weights_fit_two_views_at_once():
    """Candidates in a 2 × 3 table: both margins are reached by one set of weights."""
    row, column = np.repeat([0, 1], 300), np.tile(np.repeat([0, 1, 2], 100), 2)
    rows, columns = np.array([0.3, 0.7]), np.array([0.5, 0.3, 0.2])
    views = [hard(rows, row, name="rows"), hard(columns, column, name="columns")]
    fit = fit_weights(views, 10_000.0, 600)
    assert fit.weight.sum() == pytest.approx(1) and (fit.weight > 0).all()
    np.testing.assert_allclose(views[0].shares(fit.weight), rows, atol=0.01)
    np.testing.assert_allclose(views[1].shares(fit.weight), columns, atol=0.01)
    uneven = 1 / (600 * (fit.weight**2).sum())
    assert fit.effective_sample_share == pytest.approx(uneven) and 0.5 < uneven < 1
    assert fit.loss.keys() == {"rows", "columns"} and max(fit.loss.values()) < 10


def test_an_answer_hidden_by_noise_changes_nothing():
    bin_of = np.repeat([0, 1], 50)
    calm, loud = (fit_weights([hard([0.9, 0.1], bin_of, noise)], 100.0, 100).weight for noise in (0.1, 1e5))
    assert calm[:50].sum() > 0.85
    np.testing.assert_allclose(loud, 0.01, rtol=1e-3)


def test_forbidden_candidates_get_nothing_unless_all_are():
    bin_of = np.repeat([0, 1], 50)
    forbidden = np.tile([True, False], 50)
    fit = fit_weights([hard([0.7, 0.3], bin_of)], 1000.0, 100, forbidden)
    assert fit.weight[forbidden].sum() < 1e-15
    assert fit.weight[:50].sum() == pytest.approx(0.7, abs=0.02)
    everything = fit_weights([hard([0.7, 0.3], bin_of)], 1000.0, 100, np.ones(100, bool))
    assert everything.weight[:50].sum() == pytest.approx(0.7, abs=0.02)


def test_a_soft_view_is_its_matrix():
    features = csr_matrix(np.array([[0.5, 0.5, 0], [0, 1, 0], [0, 0.25, 0.75], [1, 0, 0]]))
    target = np.array([0.5, 0.3, 0.2])
    view = SoftView("places", features, target, 0.5, 0.3)
    weight = np.full(4, 0.25)
    np.testing.assert_allclose(view.shares(weight), [0.375, 0.4375, 0.1875])
    np.testing.assert_allclose(view.of_candidates(np.array([1.0, 2, 4])), [1.5, 2, 3.5, 1])
    fitted = fit_weights([view], 1000.0, 4).weight
    assert np.abs(view.shares(fitted) - target).sum() < 0.3 * np.abs(view.shares(weight) - target).sum()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.integers(0, 99), st.floats(0.01, 1e4))
def test_weights_are_finite_and_bounded_for_any_target(target, seed, noise):
    target = np.array(target) + 1e-9
    bin_of = rng(seed).integers(0, len(target), 60)
    fit = fit_weights([hard(target / target.sum(), bin_of, noise)], 500.0, 60)
    assert np.isfinite(fit.weight).all() and fit.weight.sum() == pytest.approx(1)
    assert fit.weight.max() / fit.weight.min() < np.exp(7)  # bounded on both sides, so no candidate dominates
    assert 0 < fit.effective_sample_share <= 1 + 1e-9 and np.isfinite(fit.loss["view"])


# timing --------------------------------------------------------------------------------------------------------------


def test_departures_have_the_hours_and_weekdays_of_the_scopes_clocks(small_estimates):
    share = np.zeros((7, 24))
    share[0, 8], share[6, 17] = 0.75, 0.25
    found = departures(replace(changed(small_estimates, departure_week=share), scope=SCOPE), 400, rng(1))
    local = [dt.datetime.fromtimestamp(t, SCOPE.zone) for t in found]
    assert {(t.weekday(), t.hour) for t in local} <= {(0, 8), (6, 17), (6, 18)}
    # The Sunday on which the clocks change is the only day with an hour that is off by one.
    late = {t.date() for t in local if t.hour == 18}
    assert late <= {dt.date(2025, 3, 30)}
    assert sum(t.weekday() == 0 for t in local) == pytest.approx(300, abs=2)
    assert {t.date() for t in local if t.weekday() == 0} == {dt.date(2025, 3, 24), dt.date(2025, 3, 31)}
    assert len({t.minute for t in local}) > 50


def test_a_scope_of_one_day_or_of_none_still_has_departures(small_estimates):
    sunday = SCOPE.model_copy(update={"first_day": dt.date(2025, 3, 23), "last_day": dt.date(2025, 3, 23)})
    found = departures(replace(small_estimates, scope=sunday), 200, rng(2))
    first, last = sunday.time_window()
    assert (found >= first).all() and (found < last).all()
    timeless = SCOPE.model_copy(update={"first_day": None, "last_day": None})
    share = np.zeros((7, 24))
    share[3, 5] = 1.0
    found = departures(replace(changed(small_estimates, departure_week=share), scope=timeless), 50, rng(3))
    assert {(t.weekday(), t.hour) for t in (dt.datetime.fromtimestamp(t, timeless.zone) for t in found)} == {(3, 5)}


# departures ----------------------------------------------------------------------------------------------------------

MONDAY = dt.datetime(2025, 3, 24, tzinfo=SCOPE.zone).timestamp()
SQUARE = area_in_metres(shapely.box(1000, 1000, 2000, 2000))
AT_NOON = Closed(SQUARE, hours("11:00", "13:00"), name="noon")


def passing(*start_h, through=True):
    """Tracks of ten minutes through the square, or past it."""
    n = len(start_h)
    x, y = np.tile(np.linspace(500, 2500, 11), n), np.full(11 * n, 1500.0 if through else 3000.0)
    t = (MONDAY + 3600 * np.array(start_h))[:, None] + 60 * np.arange(11.0)
    return Tracks(np.arange(n + 1) * 11, x, y, t.ravel())


def still_closed(tracks, t_utc):
    clock = (t_utc - MONDAY) % 86_400 / 3600
    inside = (tracks.x_m > 1000) & (tracks.x_m < 2000) & (tracks.y_m < 2000)
    return inside & (clock > 11) & (clock < 13)


def test_closed_hours_move_departures_as_little_as_possible():
    tracks = passing(9.0, 11.1, 12.0)
    new = open_departures(tracks, [AT_NOON], SCOPE, MONDAY + 3600 * np.array([8.0, 9.5, 15.0]), rng(4))
    shift = (new - tracks.t_utc).reshape(3, 11)
    assert (shift == shift[:, :1]).all() and (shift == np.rint(shift)).all()
    assert shift[0, 0] == 0 and 0 < -shift[1, 0] <= 20 * 60 and shift[2, 0] != 0
    assert not still_closed(tracks, new).any() and still_closed(tracks, tracks.t_utc).any()
    first, last = SCOPE.time_window()
    assert new.min() >= first and new.max() < last


def test_departures_are_swapped_with_trips_that_pass_elsewhere():
    through, past = passing(*np.linspace(11.2, 12.6, 8)), passing(*np.linspace(6, 18, 60), through=False)
    columns = (np.r_[getattr(through, name), getattr(past, name)] for name in ("x_m", "y_m", "t_utc"))
    tracks = Tracks(np.arange(69) * 11, *columns)
    new = exchanged_departures(tracks, [AT_NOON], SCOPE, rng(1))
    assert still_closed(tracks, tracks.t_utc).any() and not still_closed(tracks, new).any()
    begin = tracks.offsets[:-1]
    before, after = (np.sort(np.rint(t[begin])) for t in (tracks.t_utc, new))
    assert (before == after).all(), "all departures are still there"
    np.testing.assert_allclose(np.diff(new.reshape(68, 11)), np.diff(tracks.t_utc.reshape(68, 11)), atol=1e-3)
    alone = passing(11.2, 12.6)
    assert (exchanged_departures(alone, [AT_NOON], SCOPE, rng(1)) == alone.t_utc).all(), "nobody to trade with"
    assert exchanged_departures(past, [AT_NOON], SCOPE, rng(1)) is past.t_utc


def test_no_trip_starts_before_the_first_day():
    """Ten minutes earlier would do, but that is the day before."""
    morning = Closed(SQUARE, hours("00:02", "06:00"), name="morning")
    tracks = passing(0.05)
    new = open_departures(tracks, [morning], SCOPE, MONDAY + 3600 * np.array([5.0, 9.0]), rng(4))
    assert new[0] >= MONDAY + 5 * 3600 and new[-1] < SCOPE.time_window()[1]


def test_times_stay_where_another_departure_is_not_needed_or_does_not_help():
    pool_utc = MONDAY + 3600 * np.arange(24.0)
    past = passing(12.0, through=False)
    assert open_departures(past, [AT_NOON], SCOPE, pool_utc, rng()) is past.t_utc
    always = Closed(SQUARE, name="always")
    tracks = passing(12.0)
    assert open_departures(tracks, [always], SCOPE, pool_utc, rng()) is tracks.t_utc  # no departure obeys this rule
    assert open_departures(tracks, [AT_NOON], SCOPE, np.zeros(0), rng()) is tracks.t_utc
    # The track is at most 500 m inside: with a limit of 600 m, moving points counts as the smaller change.
    assert (open_departures(tracks, [AT_NOON], SCOPE, pool_utc, rng(), deeper_than_m=600.0) == tracks.t_utc).all()
    assert (open_departures(tracks, [AT_NOON], SCOPE, pool_utc, rng(), deeper_than_m=400.0) != tracks.t_utc).all()


# shard ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(small_release):
    return make_model(Request(small_release, seed=1, estimator="bayes"))


def test_a_shard_has_the_requested_trips_inside_the_scope_at_possible_speeds(model):
    progress = []
    shard = draw_shard(model, 150, rng(5), lambda _, done: progress.append(done))
    made, scope = shard.trajectories, model.estimates.scope
    assert len(made) == 150 and progress[0] == 0 and progress == sorted(progress) and progress[-1] <= 1
    assert count_violations(with_scope_bounds((), scope), made, scope) == shard.facts.violations_after
    assert all(broken["points"] == 0 for broken in shard.facts.violations_after.values())
    motion = motion_of(made, scope)
    inner = np.ones(len(made.lon), bool)
    inner[made.offsets[:-1]] = False
    step = np.r_[0, np.hypot(np.diff(motion.x_m), np.diff(motion.y_m))][inner]
    took = np.r_[0, np.diff(made.t_utc)][inner]
    assert (took >= 1).all() and (made.t_utc == np.rint(made.t_utc)).all()
    assert (step <= took * scope.caps.speed_kmh / 3.6 + 0.1).all()
    assert shard.facts.loss.keys() >= {"occupancy", "length", "duration", "origin_destination", "displacement"}
    assert 0 < shard.facts.effective_sample_share <= 1 and 0 <= shard.facts.realised_density_jsd < np.log(2)


def test_a_shard_obeys_rules_that_half_of_it_would_break(model):
    scope = model.estimates.scope
    middle = scope.width_m / 2, scope.height_m / 2
    closed = Closed(area_in_metres(shapely.Point(*middle).buffer(500)), name="centre")
    stay = StayWithin(area_in_metres(shapely.box(200, 200, scope.width_m - 200, scope.height_m - 200)), name="stay")
    shard = draw_shard(replace(model, rules=(closed, stay)), 60, rng(6))
    assert len(shard.trajectories) == 60
    broken = count((closed, stay), motion_of(shard.trajectories, scope))
    assert all(each["points"] == 0 for each in broken.values())
    after = shard.facts.violations_after
    assert {name: after[name]["points"] for name in ("centre", "stay")} == {"centre": 0, "stay": 0}
    free = draw_shard(model, 60, rng(6))
    assert count((closed,), motion_of(free.trajectories, scope))["centre"]["trajectories"] > 5


def test_late_trips_of_the_last_day_arrive_before_it_ends(model):
    first, last = model.estimates.scope.time_window()
    days = round((last - first) / 86_400)
    share = np.zeros((7, 24))
    share[(model.estimates.scope.first_day.weekday() + days - 1) % 7, 23] = 1.0
    late = changed(model.estimates, departure_week=share)
    made = draw_shard(replace(model, estimates=late), 100, rng(9)).trajectories
    begin, end = made.t_utc[made.offsets[:-1]], made.t_utc[made.offsets[1:] - 1]
    assert (begin > last - 2 * 86_400).any() and begin.min() >= first
    assert end.max() < last


def test_candidates_without_weight_are_not_drawn(model, monkeypatch):
    def only_ten(views, count, candidates, forbidden=None):
        fit = fit_weights(views, count, candidates, forbidden)
        return replace(fit, weight=np.where(np.arange(candidates) % 20 == 3, 1.0, 0.0))

    monkeypatch.setattr("wayveil.synthesis.recipe.fit_weights", only_ten)
    made = draw_shard(model, 100, rng(8)).trajectories
    first, last = made.offsets[:-1], made.offsets[1:] - 1
    duration = np.rint(made.t_utc[last] - made.t_utc[first])
    # Only ten candidates have weight, each with its own duration; trips that cannot go so fast last a little longer.
    often = np.sort(np.unique(duration // 5, return_counts=True)[1])
    assert len(made) == 100 and often[-10:].sum() >= 95
    ends = np.stack([made.lat[first], made.lon[first], made.lat[last], made.lon[last], made.t_utc[first]], axis=1)
    assert len(np.unique(ends, axis=0)) == 100  # but no trip is a copy of another


def test_durations_have_the_estimated_distribution(model):
    shard = draw_shard(model, 2_000, rng(7))
    made, found = shard.trajectories, model.estimates
    took = made.t_utc[made.offsets[1:] - 1] - made.t_utc[made.offsets[:-1]]
    duration = found.distribution(Duration)
    shares = np.bincount(duration.bins.index(took), minlength=len(duration.bins)) / len(made)
    behind = np.abs(np.cumsum(shares) - np.cumsum(duration.shares)).max()
    assert behind < 0.1  # the Kolmogorov-Smirnov distance


def fastest_kmh(made, scope):
    x, y = scope.to_metres(made.lon, made.lat)
    step = np.hypot(np.diff(x, prepend=0.0), np.diff(y, prepend=0.0)) / np.maximum(
        np.diff(made.t_utc, prepend=0.0), 1.0
    )
    step[made.offsets[:-1]] = 0.0
    return 3.6 * np.maximum.reduceat(step, made.offsets[:-1])


def test_fastest_steps_follow_the_estimated_top_speeds(model):
    scope, bins = model.estimates.scope, model.estimates.distribution(TopSpeed).bins
    asked, fast = np.zeros(len(bins)), np.zeros(len(bins))
    asked[bins.index(np.array([41.0, 49.0]))] = 0.5
    fast[-1] = 1.0
    top = {}
    for kind, share in (("asked", asked), ("fast", fast)):
        estimates = changed(model.estimates, top_speed=share)
        made = draw_shard(replace(model, estimates=estimates), 400, rng(7)).trajectories
        top[kind] = fastest_kmh(made, scope)
    # A trip with a mean speed near its top speed exceeds it, because the duration takes precedence.
    assert (top["asked"] < 52).mean() > 0.9 > (top["fast"] < 52).mean()
    assert top["fast"].max() <= scope.caps.speed_kmh + 0.1


# synthesize ----------------------------------------------------------------------------------------------------------


def test_the_seed_determines_the_output(small_release):
    how = {"n": 40, "estimator": "bayes"}
    one, again, other = (synthesize(small_release, seed=seed, **how) for seed in (3, 3, 4))
    assert same(one.trajectories, again.trajectories) and one.diagnostics == again.diagnostics
    assert not same(one.trajectories, other.trajectories)
    assert one.private is False  # the release was made with seeded noise, so the output is not private


def test_the_default_number_is_the_noisy_count_and_diagnostics_are_complete(small_release):
    noisy = round(estimate_number(small_release).value)
    steps = []
    found = synthesize(small_release, seed=1, estimator="bayes", progress=lambda *step: steps.append(step))
    assert len(found.trajectories) == noisy == wanted_count(small_release, None) == found.diagnostics["trajectories"]
    assert set(found.diagnostics) == {
        "trajectories", "loss", "effective_sample_share", "effective_sample_size", "realised_density_jsd",
        "violations_before", "violations_after", "changed", "avoided",
    }  # fmt: skip
    assert not any(found.diagnostics["changed"].values())  # there are no rules
    assert 0.5 * noisy < found.diagnostics["effective_sample_size"] < 2 * noisy
    assert all(np.isfinite(loss) for loss in found.diagnostics["loss"].values())
    assert {what for what, _ in steps} == {"estimating", "balancing routes", "drawing trajectories"}
    assert steps[-1] == ("drawing trajectories", 1.0)


def with_count(release: Release, value: float) -> Release:
    answers = tuple(
        replace(a, noisy=np.array([round(value * a.resolution)])) if a.name == "count" else a for a in release.answers
    )
    return replace(release, answers=answers)


def test_invalid_requested_counts(small_release):
    assert 300 < wanted_count(with_count(small_release, -30), None) < 600  # the other answers imply about 500
    assert wanted_count(small_release, 7) == 7
    with pytest.raises(InputError, match=r"counts 100,000,000 trajectories.*say how many with n="):
        wanted_count(with_count(small_release, 1e12), None)
    assert wanted_count(small_release, np.int32(7)) == 7 and type(wanted_seed(np.uint8(3))) is int
    for n in (0, -1, True, 100_000_001, "5", 10.5, 10.0, np.nan):
        with pytest.raises(InputError, match=r"^n= must be a whole number from 1 to 100,000,000"):
            wanted_count(small_release, n)
    for seed in (-1, "a", 1.5):
        with pytest.raises(InputError, match=r"^seed= must be a whole number of at least 0"):
            wanted_seed(seed)


def test_wrong_arguments_are_named(small_release):
    for wrong, message in (
        ({"estimator": "magic"}, "bayes or learned"), ({"roads": "map.osm"}, "read_roads"),
        ({"rules": "rules.toml"}, "read_rules"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            make_model(Request(small_release, **wrong))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 10_000_000))
def test_shards_are_even_and_add_up(n):
    sizes = shard_sizes(n)
    assert sum(sizes) == n and max(sizes) <= shards.SHARD and max(sizes) - min(sizes) <= 1


def test_a_shard_depends_on_its_number_alone(model, small_release, monkeypatch):
    """So a run can continue where it stopped, and shards can be drawn anywhere in any order."""

    class Elsewhere:
        def map(self, function, pieces):
            return iter([function(piece) for piece in reversed(list(pieces))][::-1])

    monkeypatch.setattr(shards, "SHARD", 30)
    request = Request(small_release, n=80, seed=9)
    here = [shard.trajectories for shard in draw_shards(model, request)]
    assert [len(each) for each in here] == [27, 27, 26] and not same(here[0], here[1])
    there = [shard.trajectories for shard in draw_shards(model, request, Elsewhere())]
    assert all(same(one, other) for one, other in zip(here, there))
    (last,) = (shard.trajectories for shard in draw_shards(model, request, first=2))
    assert same(last, here[2])


def test_the_routes_influence_the_density_a_little(model):
    from wayveil.synthesis.recipe import _with_routes

    estimated = model.estimates.occupancy
    routed = np.zeros_like(estimated)
    routed[:, ::2] = model.estimates.passage[:, ::2]  # weighted by the pace, this is the density itself
    pooled = _with_routes(model.estimates, routed).occupancy
    assert pooled.sum() == pytest.approx(estimated.sum()) and (pooled[estimated > 0] > 0).all()
    on, off = pooled[:, ::2] / estimated[:, ::2], pooled[:, 1::2] / estimated[:, 1::2]
    inside = estimated[:, ::2] > 0
    assert on[inside].min() > 1.0 and off[estimated[:, 1::2] > 0].max() < 1.0 < on[inside].max() < 1.5

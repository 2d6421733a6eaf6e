"""Adding or removing one unit moves the exact sums by at most the claimed sensitivity; partitions and order do not."""

import datetime as dt
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayveil.core.grid import base_grid
from wayveil.core.prepare import prepare
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Serial
from wayveil.io.source import MemorySource
from wayveil.measurement import measure
from wayveil.measurement.exact import draw_kept, exact_answers
from wayveil.privacy.noise import SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.detail_weights import PARTS
from wayveil.questions.gap_ratio import GapRatio
from wayveil.questions.median_interval import MedianInterval
from wayveil.questions.occupancy import OCCUPANCY_RESOLUTION, Occupancy
from wayveil.questions.top_speed import TopSpeed

SCOPE = Scope(name="small", south=0.0, west=0.0, north=0.05, east=0.05, timezone="Europe/Paris", caps={"points": 50})
DATED = SCOPE.model_copy(update={"first_day": dt.date(1970, 1, 1), "last_day": dt.date(1970, 1, 2)})


def every_question():
    """All of the catalogue, so that a new question is tested without an edit here."""
    return [question.example(SCOPE) for question in QUESTIONS.values()]


VIEWS = every_question()
NAMES = [view.name for view in VIEWS]

# Monday 1969-12-29 00:00 is -259200: just below it the remainder of a week rounds up to a whole one.
TIMES = st.one_of(
    st.integers(0, 4_000).map(float),
    st.floats(-4e9, 4e9),
    st.sampled_from([0.0, -259_200.00000000003, -262_800.00000000003, 1e11, -1e11, 1e300, -1e300, 5e-324]),
)
LON = st.one_of(st.floats(0.0, 0.05), st.floats(-0.01, 0.06), st.sampled_from([0.0, 0.05, 180.0, -180.0, 5e-324]))
LAT = st.one_of(st.floats(0.0, 0.05), st.floats(-0.01, 0.06), st.sampled_from([0.0, 0.05, 90.0, -90.0]))
POINT = st.tuples(LON, LAT, TIMES)


def one(points):
    lon, lat, t_utc = np.array(points, float).T
    return Trajectories(np.array([0, len(points)]), lon, lat, t_utc)


def wanders(points, seed):
    """A long trajectory, over the cap of points."""
    random = np.random.default_rng(seed)
    step = random.normal(0, 3e-4, (2, points)).cumsum(axis=1) + 0.025
    return Trajectories(np.array([0, points]), step[0], step[1], np.cumsum(random.integers(0, 3, points)).astype(float))


TRAJECTORY = st.one_of(
    st.lists(POINT, min_size=1, max_size=12).map(one),
    POINT.map(lambda point: one([point] * 5)),
    st.tuples(st.lists(st.tuples(LON, LAT), min_size=2, max_size=8), TIMES).map(
        lambda drawn: one([(*place, drawn[1]) for place in drawn[0]])
    ),
    st.tuples(st.sampled_from([2, 3, 51, 500]), st.integers(0, 99)).map(lambda drawn: wanders(*drawn)),
)
DATASET = st.lists(TRAJECTORY, min_size=1, max_size=8)


def sums(parts, kept=None):
    return exact_answers(concatenate(list(parts)), SCOPE, VIEWS, kept=kept)


@settings(max_examples=30, deadline=None)
@given(DATASET, TRAJECTORY, st.data())
def test_one_trajectory_moves_each_question_by_at_most_its_resolution(parts, extra, data):
    place = data.draw(st.integers(0, len(parts)))
    before, alone = sums(parts), sums([extra])
    after = sums([*parts[:place], extra, *parts[place:]])
    for name, view, old, new, own in zip(NAMES, VIEWS, before, after, alone):
        assert np.abs(new - old).sum() <= view.resolution * Unit.trajectory().sensitivity, name
        # A trajectory adds the same, whatever else is in the data and in which order.
        assert np.array_equal(new - old, own), name


@settings(max_examples=15, deadline=None)
@given(DATASET, st.lists(TRAJECTORY, min_size=1, max_size=6), st.integers(1, 3), st.randoms(use_true_random=False))
def test_one_user_moves_each_question_by_at_most_c_resolutions(parts, own, cap, shuffle):
    unit = Unit.user(cap)
    labels = [k % 3 for k in range(len(parts))] + [9] * len(own)
    order = list(range(len(labels)))
    shuffle.shuffle(order)
    whole = concatenate([[*parts, *own][k] for k in order])
    users = np.array([labels[k] for k in order])
    whole = Trajectories(whole.offsets, whole.lon, whole.lat, whole.t_utc, users)
    kept = draw_kept(Passes(MemorySource(whole), Serial()), unit)
    for user in np.unique(users):
        assert kept[users == user].sum() == min(cap, (users == user).sum())
    others = users != 9
    with_user = exact_answers(whole, SCOPE, VIEWS, kept=kept)
    without = exact_answers(select(whole, others), SCOPE, VIEWS, kept=kept[others])
    for name, view, old, new in zip(NAMES, VIEWS, without, with_user):
        assert np.abs(new - old).sum() <= view.resolution * unit.sensitivity, name


class Recorder(SeededNoise):
    """Seeded noise, or earlier answers again; records each question's exact sums and sensitivity."""

    def __init__(self, seed, before=None):
        super().__init__(seed)
        self.asked, self.given, self._before = [], [], before

    def laplace(self, sums, sensitivity, epsilon):
        self.asked.append((sums, sensitivity))
        made = super().laplace(sums, sensitivity, epsilon) if self._before is None else self._before[len(self.given)]
        self.given.append(made)
        return made


@settings(max_examples=15, deadline=None)
@given(DATASET, TRAJECTORY, st.integers(0, 99), st.sampled_from(["0.1", "3", "100"]))
def test_one_trajectory_moves_each_answer_of_a_release_by_at_most_its_sensitivity(parts, extra, seed, epsilon):
    """The sums that get noise: pooled, weighted and cut into regions, given the same earlier answers."""
    sides, notes = [[wanders(50, 1), *parts]], [Recorder(seed)]
    sides.append([*sides[0], extra])
    for data in sides:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = measure(concatenate(data), SCOPE, epsilon=epsilon, unit="trajectory", noise=notes[-1])
        notes.append(Recorder(seed, notes[0].given))
    names = [answer.name for answer in release.answers]
    assert len(notes[0].asked) == len(notes[1].asked) == len(names)
    assert {name for name, question in QUESTIONS.items() if not question.optional} <= set(names)
    sizes = {}
    for answer, (old, sensitivity), (new, same) in zip(release.answers, notes[0].asked, notes[1].asked, strict=True):
        assert sensitivity == same == answer.resolution, answer.name
        assert np.abs(new - old).sum() <= sensitivity, answer.name
        sizes[answer.name] = sensitivity
    assert sizes["occupancy/detail"] == PARTS * sizes["occupancy/coarse"] == PARTS * OCCUPANCY_RESOLUTION


@settings(max_examples=15, deadline=None)
@given(st.lists(TRAJECTORY, min_size=7, max_size=16), st.randoms(use_true_random=False))
def test_sums_are_equal_for_any_partition_and_order(parts, shuffle):
    whole = sums(parts)
    for count in (2, 7):
        pieces = [exact_answers(concatenate(parts[k::count]), SCOPE, VIEWS) for k in range(count)]
        for name, expected, *found in zip(NAMES, whole, *pieces):
            assert np.array_equal(expected, sum(found)), (name, count)
    shuffled = list(parts)
    shuffle.shuffle(shuffled)
    for name, expected, found in zip(NAMES, whole, sums(shuffled)):
        assert np.array_equal(expected, found), name


def test_sums_are_equal_for_any_partition_of_many():
    """Enough trajectories that vectorised loops have bodies and tails of every length."""
    many = concatenate([wanders(2 + k % 60, k) for k in range(500)])
    whole = exact_answers(many, SCOPE, VIEWS)
    for count in (2, 7):
        pieces = [exact_answers(select(many, np.arange(k, 500, count)), SCOPE, VIEWS) for k in range(count)]
        for name, expected, *found in zip(NAMES, whole, *pieces):
            assert np.array_equal(expected, sum(found)), (name, count)


def test_ten_thousand_points_weigh_no_more_than_one():
    # Others may be zero: a loop has no difference of start and end, and one trip follows no other.
    for view, found in zip(VIEWS, sums([wanders(10_000, 1)])):
        least = 1 if view.adds_up or (view.about_people and view.of_everybody) else 0
        assert least <= np.abs(found).sum() <= view.resolution, view.name


def test_outside_the_scope_or_its_days_nothing_counts():
    outside = one([(1.0, 1.0, 0.0), (1.1, 1.0, 60.0)])
    assert all((found == 0).all() for found in sums([outside]))
    late = one([(0.01, 0.01, 3 * 86_400.0), (0.02, 0.01, 3 * 86_400.0 + 60)])
    assert len(prepare(late, SCOPE)) == 1 and len(prepare(late, DATED)) == 0
    broken = one([(np.nan, 0.01, 0.0), (0.01, np.inf, 0.0), (0.01, 0.01, np.nan)])
    assert all((found == 0).all() for found in sums([broken]))


def test_the_last_instant_of_a_week_stays_within_it():
    """The remainder of a week rounds up to the whole week here; hour 168 does not exist."""
    instant = np.nextafter(-262_800.0, -np.inf)
    assert SCOPE.local_seconds(np.array([instant]))[0] == 604_800.0
    found = dict(zip(NAMES, sums([one([(0.01, 0.01, instant)])])))
    assert found["departure_week"].sum() == found["departure_hour"].sum() == 1
    by_part = found["end_points/hours"].reshape(-1, 5)
    assert by_part.sum() == by_part[:, 0].sum() == QUESTIONS["end_points/hours"].resolution


def test_the_fastest_step_is_that_of_the_trajectory_alone():
    view = VIEWS[NAMES.index(TopSpeed.name)]
    east = 0.01 * 100_000 / 111_320  # about a kilometre
    calm = one([(0.0, 0.01, 0.0), (east, 0.01, 100.0), (east, 0.01, 200.0)])
    jump = one([(0.0, 0.01, 0.0), (0.0, 0.01, 100.0), (east / 100, 0.01, 100.0)])
    still = one([(0.05, 0.05, 5.0)])
    expected = [float(SCOPE.to_metres(np.array([lon]), np.array([0.01]))[0][0]) * 3.6 for lon in (0.0, east)]
    kmh = expected[1] - expected[0]
    for parts, speeds in (([calm], [kmh / 100]), ([jump], [kmh / 100]), ([still, calm, still], [0, kmh / 100, 0])):
        (found,) = exact_answers(concatenate(parts), SCOPE, [view])
        assert np.array_equal(found, np.bincount(view.bins.index(np.array(speeds)), minlength=len(view.bins)))


def test_the_median_interval_is_the_lower_one_of_the_trajectory_alone():
    interval, ratio = (VIEWS[NAMES.index(question.name)] for question in (MedianInterval, GapRatio))
    times = ([0.0, 5.0, 10.0, 110.0], [0.0, 60.0, 63.0], [7.0], [0.0, 0.0, 0.0, 30.0])
    parts = [one([(0.01, 0.01, t) for t in own]) for own in times]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 0]):
        found, shares = exact_answers(concatenate([parts[k] for k in order]), SCOPE, [interval, ratio])
        seconds = np.array([5.0, 3.0, 0.0, 0.0])[order]
        assert np.array_equal(found, np.bincount(interval.bins.index(seconds), minlength=len(interval.bins)))
        expected = np.zeros(len(ratio.bins), np.int64)
        for k in order:
            own = np.array([[1.0, 1.0, 20.0], [20.0, 1.0], [], [1.0, 1.0, 99.0]][k])
            np.add.at(expected, ratio.bins.index(own), ratio.resolution // max(len(own), 1))
        assert np.array_equal(shares, expected)


def test_the_bound_is_not_vacuous():
    """A view that weighed every point fully would be caught by the property above."""

    class Broken(Occupancy):
        def features(self, batch):
            found = super().features(batch)
            return type(found)(found.row, found.column, np.full_like(found.weight, self.resolution))

    view = Broken(base_grid(SCOPE), 1)
    (found,) = exact_answers(one([(0.01, 0.01, 0.0), (0.02, 0.01, 60.0)]), SCOPE, [view])
    assert np.abs(found).sum() > view.resolution


def test_each_trajectory_of_a_user_is_as_likely_to_be_kept():
    four = concatenate([one([(0.01, 0.01, 0.0)])] * 4)
    four = Trajectories(four.offsets, four.lon, four.lat, four.t_utc, np.array(["a"] * 4))
    kept = sum(draw_kept(Passes(MemorySource(four), Serial()), Unit.user(2)).astype(int) for _ in range(400))
    # Binomial(400, 1/2): below 1e-6 outside of 200 ± 50.
    assert kept.sum() == 800 and (np.abs(kept - 200) <= 50).all()


@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
def test_the_shape_of_a_question_is_that_of_its_answer(view):
    (found,) = Serial().sums(MemorySource(wanders(30, 3)), SCOPE, [view], None)
    assert found.dtype == np.int64 and found.shape == (int(np.prod(view.shape)),)

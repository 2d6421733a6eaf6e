"""What every question of the catalogue must satisfy; a new one is tested without an edit here."""

import copy
import json
import pickle
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wayveil.core.grid import base_grid
from wayveil.core.prepare import prepare
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.measurement import measure
from wayveil.measurement.exact import exact_answers
from wayveil.privacy.noise import SeededNoise
from wayveil.questions.catalogue import CATALOGUE, PEOPLE_QUESTIONS, QUESTIONS, SHARES, finest_questions
from wayveil.questions.question import Frame, size_of
from wayveil.release import release_to_json
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.synthesis.estimate.estimate import estimate
from wayveil.synthesis.estimate.estimators import ESTIMATORS

CITY = simulate_city(0, size_km=(4, 4))
DATA = simulate_trajectories(CITY, 300, seed=3)
RELEASES = {
    epsilon: measure(DATA, CITY.scope, epsilon=epsilon, unit="trajectory", noise=SeededNoise(2))
    for epsilon in ("10", "300")
}
"""The sizes of questions differ between the two, and only in the second one are all of them asked."""
ASKED = [(epsilon, answer.question) for epsilon, release in RELEASES.items() for answer in release.answers]
ALL = [*ASKED, *(("example", question.example(CITY.scope)) for question in QUESTIONS.values())]
OF_TRIPS = {name: question for name, question in QUESTIONS.items() if not question.about_people}
each_question = pytest.mark.parametrize(("size", "question"), ALL, ids=lambda value: getattr(value, "name", value))


def trajectory(points):
    lon, lat, t_utc = np.array(points, float).T
    scope = CITY.scope
    lon = scope.west + lon * (scope.east - scope.west)
    lat = scope.south + lat * (scope.north - scope.south)
    return Trajectories(np.array([0, len(points)]), lon, lat, t_utc)


INSTANTS = st.one_of(st.integers(0, 9_000).map(float), st.floats(-4e9, 4e9), st.sampled_from([0.0, 1e11, 5e-324]))
POINTS = st.tuples(st.floats(-0.1, 1.1), st.floats(-0.1, 1.1), INSTANTS)
TRAJECTORY = st.lists(POINTS, min_size=1, max_size=9).map(trajectory)


def frame_before(question, size):
    """What is known when the question is read: the questions before it."""
    questions = [asked for other, asked in ALL if other == size]
    earlier = {asked.name: asked for asked in questions[: [asked.name for asked in questions].index(question.name)]}
    if size == "example":  # of the examples, the coarse blocks have the size at which their detail is weighed
        earlier = {name: asked for name, asked in earlier.items() if not name.endswith("/coarse")}
        for name in ("end_points/coarse", "occupancy/coarse"):
            earlier[name] = QUESTIONS[name](base_grid(CITY.scope), 16)
    return Frame(CITY.scope, base_grid(CITY.scope), earlier)


def test_every_question_is_asked_at_some_size():
    """Questions about people are asked at user level only (test_people_questions)."""
    assert {question.name for _, question in ASKED} == set(OF_TRIPS)
    assert sum(SHARES.values()) == 1 and len(QUESTIONS) == len(CATALOGUE) + len(PEOPLE_QUESTIONS)


@each_question
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors])
@given(st.lists(TRAJECTORY, min_size=1, max_size=4), TRAJECTORY)
def test_one_trajectory_moves_it_by_at_most_its_resolution(size, question, others, one):
    batch = prepare(one, CITY.scope)
    found = question.features(batch)
    assert found.weight.dtype.kind == "i" and found.column.dtype.kind == "i"
    assert np.abs(found.weight).sum() <= question.resolution
    assert ((found.column >= 0) & (found.column < size_of(question))).all()
    (before,), (after,), (alone,) = (
        exact_answers(concatenate(parts), CITY.scope, [question]) for parts in (others, [one, *others], [one])
    )
    assert np.array_equal(after - before, alone)


@each_question
def test_sums_do_not_depend_on_the_partition(size, question):
    (whole,) = exact_answers(DATA, CITY.scope, [question])
    parts = [exact_answers(select(DATA, np.arange(k, len(DATA), 3)), CITY.scope, [question])[0] for k in range(3)]
    assert np.array_equal(whole, sum(parts)) and whole.dtype == np.int64 and whole.shape == (size_of(question),)


@pytest.mark.parametrize("epsilon", RELEASES)
def test_pooled_sums_are_the_sums_of_the_question_itself(epsilon):
    """What the noise is put on is pooled from finer sums; adding up the sized question's features gives the same."""
    known = dict(zip(finest_questions(CITY.scope), exact_answers(DATA, CITY.scope, finest_questions(CITY.scope))))
    for answer in RELEASES[epsilon].answers:
        question = answer.question
        summed = question.finest(CITY.scope)
        if summed is None:  # regions: the finest are those of the fine question
            summed = RELEASES[epsilon]["origin_destination/fine"].question
            if question.quantity != summed.quantity:
                continue
            (known[summed],) = exact_answers(DATA, CITY.scope, [summed])
        (own,) = exact_answers(DATA, CITY.scope, [question])
        assert np.array_equal(question.pooled(summed, known[summed]).ravel(), own), question.name


@each_question
def test_it_survives_json_and_workers(size, question):
    parameters = json.loads(json.dumps(question.to_json()))
    again = type(question).from_json(parameters, frame_before(question, size))
    assert again == question and again.to_json() == parameters and again.shape == question.shape
    assert pickle.loads(pickle.dumps(question)) == question and isinstance(hash(question), int)


def damaged(value):
    """The value with one thing wrong with it, in many ways."""
    yield from (None, "x", True, -1, 0, 0.5, [], {}, [value], float("nan"))
    if isinstance(value, list) and value:
        yield from ([*value, value[-1]], value[:-1], [None, *value[1:]], [*value[:-1], "x"])
        if isinstance(value[0], list):
            yield from ([[value[0]], *value[1:]], [value[0][:-1], *value[1:]], [[-7, -7], *value[1:]])
        if isinstance(value[0], float):
            yield from (value[::-1], [value[0] - 1, *value[1:]], [*value[:-1], 2 * value[-1] + 1])


@each_question
def test_damaged_parameters_are_refused(size, question):
    frame, sound = frame_before(question, size), json.loads(json.dumps(question.to_json()))
    for key, value in sound.items():
        without = {other: sound[other] for other in sound if other != key}
        wrongs = [wrong for wrong in damaged(value) if json.dumps(wrong) != json.dumps(value)]
        for parameters in (without, *({**without, key: wrong} for wrong in wrongs)):
            try:
                found = type(question).from_json(copy.deepcopy(parameters), frame)
            except (ValueError, TypeError, KeyError, AttributeError, AssertionError, OverflowError):
                continue
            # What is accepted is another possible size, and says so itself.
            assert json.dumps(found.to_json()) == json.dumps(parameters) and size_of(found) >= 1, (key, found)


@each_question
def test_it_describes_its_questions(size, question):
    words = question.words()
    assert len(words.split()) >= 4 and words.isprintable() and words.startswith(question.meaning[:8])
    least, most = question.noise_range
    assert 1 <= least <= most
    assert not any(name in words for name in ("Prepared", "φ", "_"))
    assert question.about_people or question.name in release_to_json(RELEASES["300"])


def test_questions_need_only_what_is_asked_before_them():
    before = set()
    for name, question in QUESTIONS.items():
        assert set(question.needs) <= before, name
        assert question.name == name and question.resolution >= 1 and question.__doc__
        before.add(name)


def test_every_kind_has_one_estimator_and_every_quantity_an_estimate():
    for question in OF_TRIPS.values():
        kinds = [kind for kind in ESTIMATORS if issubclass(question, kind)]
        assert len(kinds) == 1, question.name
    found = estimate(RELEASES["300"])
    assert set(found) == {question.quantity for question in OF_TRIPS.values()}


def test_a_question_is_frozen():
    for _, question in ALL:
        for one in fields(question):
            with pytest.raises(AttributeError):
                setattr(question, one.name, None)

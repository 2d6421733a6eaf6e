"""Sums over units: a user is clipped as a whole, wherever its trajectories lie, in memory or on disk."""

import errno
import os
import tempfile
from dataclasses import replace

import numpy as np
import pytest

from wayveil.core.prepare import prepare
from wayveil.core.trajectories import Trajectories, batches, select
from wayveil.engine.passes import Passes
from wayveil.engine.serial import Serial
from wayveil.engine.units import TripUnits, UserUnits, unit_sums, unit_vectors
from wayveil.errors import InputError
from wayveil.io.source import MemorySource
from wayveil.privacy.clipping import clip_l2, squared_norms
from wayveil.privacy.unit import Unit
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.count import Count
from wayveil.questions.norms import CENTRE_PARTS, Centre, NormBins, UnitQuery, clipped_resolution
from wayveil.questions.question import size_of
from wayveil.simulate import simulate_city, simulate_trajectories

CITY = simulate_city(0, size_km=(4, 4))
SCOPE = CITY.scope
FIRST = simulate_trajectories(CITY, 150, seed=3)
RANDOM = np.random.default_rng(0)
DATA = Trajectories(FIRST.offsets, FIRST.lon, FIRST.lat, FIRST.t_utc, RANDOM.integers(0, 9, len(FIRST)))
MOST = Unit.user(1000)
EXAMPLES = [question.example(SCOPE) for question in QUESTIONS.values()]


def queries(unit, bound=1.5):
    """Norms and clipped sums of each question, without and with a centre."""
    return [
        UnitQuery(question, NormBins.of(question, unit), value, centre)
        for question in EXAMPLES
        for centre in (None, some_centre(question))
        for value in (None, int(bound * clipped_resolution(question)))
    ]


def some_centre(question):
    size = size_of(question)
    return Centre.of(np.random.default_rng(size).dirichlet(np.full(size, 0.3)), question)


class Small(MemorySource):
    """Batches of seven trajectories: those of one user lie in many of them."""

    def batches(self, progress=None):
        yield from batches(self.trajectories, 7)


def user_sums(data, asked):
    with UserUnits(Passes(Small(data), Serial()), SCOPE, None) as units:
        return units.sums(asked)


def check_neighbours(sums, data, unit):
    """What is between the sums with and without each user is that user's own, and within the bound."""
    asked = queries(unit)
    whole = sums(data, asked)
    for user in np.unique(data.user):
        mine = data.user == user
        own = prepare(select(data, mine), SCOPE)
        for query, total, rest in zip(asked, whole, sums(select(data, ~mine), asked), strict=True):
            moved = [int(value) for value in total - rest]
            vectors = unit_vectors(query.question, own, np.zeros(len(own), np.int64), 1)
            counted = len(own) if query.question.about_people else min(len(own), unit.sensitivity)
            if counted < len(own):
                value = np.array([abs(v) * counted // len(own) * (1 if v > 0 else -1) for v in vectors.value.tolist()])
                some = value != 0
                vectors = replace(vectors, unit=vectors.unit[some], column=vectors.column[some], value=value[some])
            if query.bound is None:
                assert sorted(moved)[:-1] == [0] * (len(moved) - 1) and 0 <= max(moved) <= 1
            else:
                if query.centre is not None:
                    vectors = vectors.minus(query.centre.values, np.array([CENTRE_PARTS * counted]))
                assert sum(value * value for value in moved) <= query.bound**2, query.question.name
                assert moved == clip_l2(vectors, query.bound).sums(size_of(query.question)).tolist()


def test_a_user_moves_each_sum_by_its_clipped_vector():
    check_neighbours(user_sums, DATA, MOST)


@pytest.mark.parametrize("most", [1, 5, 16])
def test_a_user_of_many_trajectories_counts_as_the_most_that_count(most):
    check_neighbours(user_sums, DATA, Unit.user(most))
    assert np.bincount(DATA.user).min() < 16 < np.bincount(DATA.user).max()
    (count,) = user_sums(DATA, [UnitQuery(Count(), NormBins.of(Count, Unit.user(most)), 1 << 30)])
    assert count[0] == np.minimum(np.bincount(DATA.user), most).sum() * clipped_resolution(Count())


def test_a_clip_by_batch_is_caught():
    def by_batch(data, asked):
        found = [np.zeros(query.size, np.int64) for query in asked]
        for batch in batches(data, 7):
            codes = np.unique(batch.user, return_inverse=True)[1]
            for total, part in zip(found, unit_sums(asked, prepare(batch, SCOPE), codes)):
                total += part
        return found

    with pytest.raises(AssertionError):
        check_neighbours(by_batch, DATA, MOST)


def test_the_order_and_the_place_of_the_buckets_do_not_matter(monkeypatch):
    asked = queries(MOST)
    expected = user_sums(DATA, asked)
    shuffled = select(DATA, np.random.default_rng(1).permutation(len(DATA)))
    for data, memory in ((shuffled, 1 << 28), (DATA, 1), (shuffled, 1000)):
        monkeypatch.setattr("wayveil.engine.units.MOST_IN_MEMORY", memory)
        for one, other in zip(expected, user_sums(data, asked), strict=True):
            assert np.array_equal(one, other)


def test_buckets_on_disk_have_no_name(tmp_path, monkeypatch):
    """Nothing is left behind, however the process ends."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("wayveil.engine.units.MOST_IN_MEMORY", 1)
    with UserUnits(Passes(Small(DATA), Serial()), SCOPE, None) as units:
        assert units._file._rolled and not list(tmp_path.iterdir())
        units.sums(queries(MOST)[:2])
    assert not list(tmp_path.iterdir())


def test_a_full_temporary_folder_is_one_sentence(monkeypatch):
    class Full(tempfile.SpooledTemporaryFile):
        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", Full)
    with pytest.raises(InputError, match=r"temporary folder .* TMPDIR"):
        user_sums(DATA, queries(MOST))


def test_trajectories_and_users_of_one_trajectory_give_the_same_sums():
    unit = Unit.trajectory()
    alone = Trajectories(DATA.offsets, DATA.lon, DATA.lat, DATA.t_utc, np.arange(len(DATA)))
    asked = queries(unit, 0.4)
    by_trip = TripUnits(Passes(Small(DATA), Serial()), SCOPE).sums(asked)
    for one, other in zip(by_trip, user_sums(alone, asked), strict=True):
        assert np.array_equal(one, other)


def test_what_the_cap_leaves_out_takes_part_in_questions_about_people_alone():
    kept = np.arange(len(DATA)) % 3 == 0
    asked = queries(MOST)
    with UserUnits(Passes(Small(DATA), Serial()), SCOPE, kept) as units:
        found = units.sums(asked)
    capped, all_of_them = user_sums(select(DATA, kept), asked), user_sums(DATA, asked)
    for query, sums, used, everything in zip(asked, found, capped, all_of_them, strict=True):
        assert np.array_equal(sums, everything if query.question.about_people else used)


def test_trajectories_without_a_user_belong_to_nobody():
    users = np.where(np.arange(len(DATA)) % 4 == 0, None, DATA.user)
    some = Trajectories(DATA.offsets, DATA.lon, DATA.lat, DATA.t_utc, users)
    known = np.array([user is not None for user in users])
    asked = queries(MOST)
    for one, other in zip(user_sums(some, asked), user_sums(select(DATA, known), asked), strict=True):
        assert np.array_equal(one, other)


def test_trajectories_outside_the_scope_leave_their_user_alone():
    """`prepare` drops them; those that follow must not get another user."""
    lon = np.array(DATA.lon)
    for trajectory in (0, 3, 50):
        lon[DATA.offsets[trajectory] : DATA.offsets[trajectory + 1]] += 50
    moved = Trajectories(DATA.offsets, lon, DATA.lat, DATA.t_utc, DATA.user)
    inside = np.ones(len(DATA), bool)
    inside[[0, 3, 50]] = False
    asked = queries(MOST)
    for one, other in zip(user_sums(moved, asked), user_sums(select(DATA, inside), asked), strict=True):
        assert np.array_equal(one, other)


def test_one_trajectory_that_counts_once_has_norm_one():
    """The public rule for the bound at trajectory level."""
    batch = prepare(DATA, SCOPE)
    for question in EXAMPLES:
        norms = squared_norms(unit_vectors(question, batch, np.arange(len(batch)), len(batch)))
        assert max(norms) <= clipped_resolution(question) ** 2
        if question.one_hot:
            assert set(norms.tolist()) == {clipped_resolution(question) ** 2}

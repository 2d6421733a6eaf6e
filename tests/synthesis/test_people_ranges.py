"""Radii of gyration: trips are exchanged until people's radii have the wanted distribution."""

from types import SimpleNamespace

import numpy as np
import pytest

from wayveil.core import ragged
from wayveil.questions.people.places import GYRATION_KM
from wayveil.synthesis.people.ranges import arrange_ranges
from wayveil.synthesis.people.state import Chains, TripTable

PEOPLE, EACH = 200, 20


class Held:
    """Slots that hold trips, as in `Chains`."""

    def __init__(self, count):
        self.trip_of, self.slot_of = np.arange(count), np.arange(count)

    swap = Chains.swap


def task_with(wanted, rng):
    count = PEOPLE * EACH
    start, end = rng.uniform(0, 10_000, (2, count, 2))
    weekend = (rng.random(count) < 0.3).astype(float)
    table = TripTable(start, end, rng.uniform(0, 86_400, count), np.full(count, 600.0), weekend)
    plans = SimpleNamespace(trips=np.full(PEOPLE, EACH), offsets=EACH * np.arange(PEOPLE + 1))
    return SimpleNamespace(trips=table, plans=plans, habits=SimpleNamespace(ranges=wanted[None]))


def radii_km(task, held):
    points = np.concatenate([task.trips.start[held.trip_of], task.trips.end[held.trip_of]]) / 1000
    owner = np.tile(ragged.owners(task.plans.trips), 2)
    each = (points[owner == k] for k in range(PEOPLE))
    return np.array([np.sqrt(((own - own.mean(axis=0)) ** 2).sum(axis=1).mean()) for own in each])


def shares(radius_km):
    return np.bincount(GYRATION_KM.index(radius_km), minlength=len(GYRATION_KM)) / PEOPLE


@pytest.mark.parametrize("change_is_wanted", [True, False])
def test_radii_come_near_the_wanted_ones_and_trips_stay_on_their_kind_of_day(change_is_wanted):
    rng = np.random.default_rng(0)
    wanted = np.zeros(len(GYRATION_KM))
    wanted[GYRATION_KM.index(np.array([2.6, 3.2, 3.8]))] = (0.3, 0.3, 0.4)
    task = task_with(wanted, rng)
    held = Held(PEOPLE * EACH)
    before = radii_km(task, held)
    if not change_is_wanted:  # the wanted distribution is the present one
        task.habits.ranges = shares(before)[None]
    arrange_ranges(task, held, rng)
    assert np.array_equal(held.trip_of[held.slot_of], np.arange(PEOPLE * EACH))
    assert np.array_equal(task.trips.weekend[held.trip_of], task.trips.weekend)
    if not change_is_wanted:
        assert np.array_equal(held.trip_of, np.arange(PEOPLE * EACH))
        return
    off = [np.abs(shares(radius) - wanted).sum() / 2 for radius in (before, radii_km(task, held))]
    assert off[1] < 0.35 * off[0]


def test_one_person_keeps_the_trips():
    rng = np.random.default_rng(0)
    task = task_with(np.eye(len(GYRATION_KM))[0], rng)
    task.plans = SimpleNamespace(trips=np.array([50]), offsets=np.array([0, 50]))
    held = Held(50)
    arrange_ranges(task, held, rng)
    assert np.array_equal(held.trip_of, np.arange(50))

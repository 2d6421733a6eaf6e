"""Hours of the weekend that differ from those of working days."""

import numpy as np
import pytest

from wayveil.core.posterior import Noisy
from wayveil.questions.departure_week import PARTS_OF_DAY, parts_of_day
from wayveil.synthesis.estimate.curves import Total
from wayveil.synthesis.estimate.weekend import in_parts, weekend_affinity
from wayveil.synthesis.estimate.weekly import estimate_hours, estimate_week

HOUR = np.arange(24)


def bump(middle, wide):
    return np.exp(-0.5 * ((HOUR - middle) / wide) ** 2)


COMMUTE = 0.1 + bump(8, 1.2) + bump(17, 1.8)
LEISURE = 0.1 + 0.8 * bump(14, 4)
BUSY = np.array([1, 1, 1, 1, 1, 0.7, 0.7])


@pytest.fixture
def week():
    """Shares of a city that commutes on five days."""
    table = np.r_[np.tile(COMMUTE / COMMUTE.sum(), (5, 1)), np.tile(LEISURE / LEISURE.sum(), (2, 1))] * BUSY[:, None]
    return table / table.sum()


def estimated(week, count, noise, seed, parts=24):
    random = np.random.default_rng(seed)
    hour = count * week.sum(axis=0) + random.laplace(0, noise / 1.5, 24)
    asked = count * in_parts(week, parts)
    hours = estimate_hours(Noisy(hour, noise / 1.5), Total(count, 1))
    return estimate_week(hours, asked + random.laplace(0, noise, asked.shape), noise, count)


def morning(table):
    """Share of the weekend's departures between 7 and 9."""
    return table[5:, 7:9].sum() / table[5:].sum()


def test_a_weekend_without_a_rush_hour_comes_out_without_one(week):
    plain = COMMUTE[7:9].sum() / COMMUTE.sum()
    assert morning(week) < 0.08 and plain > 0.18
    found = np.mean([morning(estimated(week, 20_000, 80.0, seed)) for seed in range(8)])
    assert found < 0.13
    assert np.mean([morning(estimated(week, 20_000, 10.0, seed)) for seed in range(4)]) < 0.09


def test_where_the_weekend_is_like_the_week_it_stays_so(week):
    same = np.outer(week.sum(axis=1), week.sum(axis=0))
    found = np.mean([estimated(same, 20_000, 80.0, seed) for seed in range(8)], axis=0)
    assert morning(found) == pytest.approx(morning(same), rel=0.1)


def test_noise_alone_changes_little():
    hours, days = COMMUTE / COMMUTE.sum(), np.full(7, 1 / 7)
    for seed in range(6):
        noise = np.random.default_rng(seed).laplace(0, 1e4, (7, 24))
        affinity = weekend_affinity(100 * np.outer(days, hours) + noise, 1e4, days, hours, 100.0)
        assert affinity.shape == (7, 24) and np.abs(np.log(affinity)).max() < 0.05


def test_the_hours_of_all_days_and_the_days_are_kept(week):
    found = estimated(week, 50_000, 5.0, 3)
    np.testing.assert_allclose(found.sum(axis=0), week.sum(axis=0), atol=0.002)
    np.testing.assert_allclose(found.sum(axis=1), week.sum(axis=1), atol=0.004)


@pytest.mark.parametrize("day", [0, 5])
def test_all_recordings_of_one_day(day):
    week = np.zeros((7, 24))
    week[day] = LEISURE / LEISURE.sum()
    found = estimated(week, 20_000, 80.0, 1)
    assert np.isfinite(found).all() and (found >= 0).all() and found[day].sum() > 0.9


def test_hours_without_departures_do_not_fail():
    hours = np.zeros(24)
    hours[9] = 1.0
    affinity = weekend_affinity(np.zeros((7, 24)), 1.0, np.full(7, 1 / 7), hours, 1.0)
    assert np.isfinite(affinity).all() and (affinity > 0).all()


@pytest.mark.parametrize("parts", PARTS_OF_DAY)
def test_a_week_asked_in_parts_keeps_its_days_and_its_hours(week, parts):
    found = estimated(week, 20_000, 1.0, 3, parts)
    assert found.shape == (7, 24) and found.sum() == pytest.approx(1) and found.min() > 0
    np.testing.assert_allclose(found.sum(axis=1), week.sum(axis=1), rtol=0.02)
    np.testing.assert_allclose(found.sum(axis=0), week.sum(axis=0), rtol=0.03, atol=5e-4)
    if parts >= 8:  # what differs within three hours follows from the waves
        assert morning(found) == pytest.approx(morning(week), abs=0.01)


def test_few_trips_are_asked_about_few_parts_of_the_days(week):
    def apart(parts):
        found = [estimated(week, 10_000, 83.0, seed, parts) for seed in range(12)]
        return np.mean([np.abs(one.sum(axis=1) - BUSY / BUSY.sum()).sum() for one in found])

    assert parts_of_day(10_000 / 83.0) == 4 and apart(4) < 0.8 * apart(24)


def test_more_trips_are_asked_in_more_parts():
    signals = (0, 41, 42, 84, 167, 168, 503, 504, 1e9)
    assert [parts_of_day(signal) for signal in signals] == [1, 1, 2, 4, 4, 8, 8, 24, 24]

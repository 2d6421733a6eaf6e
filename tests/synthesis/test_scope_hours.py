"""Hours of the day in the scope: points outside are not measured, and nothing synthetic lies outside."""

import numpy as np
import pytest

import wayveil
from wayveil.core.prepare import prepare
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.report.data_sheet import make_sheet
from wayveil.rules import closed, hours
from wayveil.synthesis.trips.departures import within_days
from wayveil.workflow.synthesize import synthesize

BOX = {"name": "x", "south": 48.0, "north": 48.03, "west": 2.0, "east": 2.04, "timezone": "Europe/Paris"}
DAYS = {"first_day": "2024-03-04", "last_day": "2024-03-10"}
MONDAY = 1_709_506_800  # 2024-03-04 00:00 in Paris


def scope_with(window, **more):
    return Scope(**BOX, **DAYS, hours=window, **more)


@pytest.mark.parametrize(("window", "begin", "length_h"), [("06:00-11:00", 6, 5), ("22:30-01:00", 22.5, 2.5)])
def test_hours_are_read_and_bound_the_duration(window, begin, length_h):
    scope = scope_with(window, caps={"duration_h": 8})
    assert scope.hours_window_s == (begin * 3600, length_h * 3600)
    assert scope.caps.duration_h == length_h
    assert Scope.model_validate(scope.model_dump(mode="json")) == scope


@pytest.mark.parametrize("wrong", ["6-11", "06:00-06:00", "25:00-26:00", "06:00", "00:00-24:00"])
def test_malformed_hours_are_refused(wrong):
    with pytest.raises(ValueError, match="hours must be"):
        scope_with(wrong)


@pytest.mark.parametrize(("window", "kept"), [("06:00-11:00", [6, 10.99]), ("22:00-06:30", [5, 6, 23])])
def test_points_outside_the_hours_are_left_out(window, kept):
    hour = np.array([5, 6, 10.99, 11, 14, 23])
    ride = Trajectories([0, 6], np.full(6, 2.01), np.full(6, 48.01), MONDAY + 86_400 + 3600 * hour)
    assert ((prepare(ride, scope_with(window)).t_utc - MONDAY) / 3600 % 24).tolist() == pytest.approx(kept)


def test_trips_that_would_end_late_depart_earlier():
    scope, offsets = scope_with("06:00-11:00"), np.array([0, 2, 4])
    t_utc = MONDAY + 3600 * np.array([10.5, 11.5, 7, 8.0])
    moved = within_days(offsets, t_utc, scope)
    assert moved[1] <= MONDAY + 11 * 3600 - 1 and moved[1] - moved[0] == 3600
    assert np.array_equal(moved[2:], t_utc[2:])


@pytest.fixture(scope="module")
def rides():
    random = np.random.default_rng(0)
    starts = MONDAY + 86_400 * random.integers(0, 5, 400) + 3600 * random.uniform(5.5, 10.8, 400)
    steps = np.arange(6)
    lon = (2.005 + 0.02 * random.random(400))[:, None] + 0.002 * steps
    lat = (48.005 + 0.015 * random.random(400))[:, None] + 0.001 * steps
    return Trajectories(6 * np.arange(401), lon.ravel(), lat.ravel(), (starts[:, None] + 120 * steps).ravel())


@pytest.mark.parametrize("window", ["06:00-11:00", "07:30-08:10"])
@pytest.mark.parametrize("ruled", [False, True])
def test_nothing_synthetic_lies_outside_the_hours(rides, window, ruled):
    scope = scope_with(window)
    release = measure(rides, scope, epsilon="20", unit="trajectory", noise=SeededNoise(1))
    square = {"type": "Polygon", "coordinates": [[[2.0, 48.0], [2.02, 48.0], [2.02, 48.03], [2.0, 48.03], [2.0, 48.0]]]}
    rules = (closed(square, scope, hours("07:40", "08:00")),) if ruled else ()
    made = synthesize(release, n=300, seed=1, rules=rules).trajectories
    assert (scope.seconds_into_hours(made.t_utc) < scope.hours_window_s[1]).all()
    assert len(made) > 200
    problems = wayveil.check(made, scope).problems
    assert "outside the scope's hours of the day" not in problems and "outside the scope's days" not in problems


def test_the_release_and_its_sheet_say_which_hours_count(rides):
    release = measure(rides, scope_with("06:00-11:00"), epsilon="20", unit="trajectory", noise=SeededNoise(1))
    assert "between 06:00 and 11:00" in " ".join(wayveil.describe(release).split())
    sheet = make_sheet(release, synthesize(release, n=20, seed=1).trajectories)
    assert ("Hours of the day", "06:00-11:00") in sheet.scope

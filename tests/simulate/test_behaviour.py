"""The detailed simulation: whole days, physical speeds, devices of several kinds."""

import numpy as np
import pytest
from typer.testing import CliRunner

from wayveil.core.polylines import step_lengths
from wayveil.rules import count, motion_of, read_rules
from wayveil.simulate import DETAILED, Behaviour, simulate_city, simulate_trajectories
from wayveil.simulate.recorders import RECORDERS, recorder_of


@pytest.fixture(scope="module")
def city():
    return simulate_city(0, size_km=(5, 5))


@pytest.fixture(scope="module")
def people(city):
    return simulate_trajectories(city, 1500, seed=1, behaviour=DETAILED)


@pytest.fixture(scope="module")
def drivers(city):
    return simulate_trajectories(city, 400, seed=1, behaviour=Behaviour(kinematics=True))


def motion(city, people):
    """x, y, and for each step its trip, metres and seconds."""
    x, y = city.scope.to_metres(people.lon, people.lat)
    trip = np.repeat(np.arange(len(people)), np.diff(people.offsets))
    inside = np.flatnonzero(trip[1:] == trip[:-1]) + 1
    return x, y, trip[inside], step_lengths(people.offsets, x, y)[inside], np.diff(people.t_utc)[inside - 1]


def test_each_trip_starts_where_the_last_one_ended(city, people):
    x, y = city.scope.to_metres(people.lon, people.lat)
    first, last = people.offsets[:-1], people.offsets[1:] - 1
    same = people.user[1:] == people.user[:-1]
    jump_m = np.hypot(x[first[1:]] - x[last[:-1]], y[first[1:]] - y[last[:-1]])[same]
    assert same.sum() > 500 and np.quantile(jump_m, 0.95) < 60 and jump_m.max() < 250
    assert (people.t_utc[first[1:]] > people.t_utc[last[:-1]])[same].all()


def test_inward_in_the_morning_and_outward_in_the_evening(city, people):
    x, y = city.scope.to_metres(people.lon, people.lat)
    away = np.hypot(x - np.median(x), y - np.median(y))
    first, last = people.offsets[:-1], people.offsets[1:] - 1
    inward_m, hour = away[first] - away[last], city.scope.local_seconds(people.t_utc[first]) / 3600 % 24
    assert inward_m[(hour > 6) & (hour < 10)].mean() > 150
    assert inward_m[(hour > 16) & (hour < 20)].mean() < -150


def test_simulated_trips_obey_the_rules(city, people):
    found = count(read_rules(city.rules_geojson, city.scope, city.roadmap), motion_of(people, city.scope))
    assert {name: entry["points"] for name, entry in found.items()} == dict.fromkeys(found, 0)


def test_trips_stop_at_lights_and_slow_down_in_turns(city, drivers):
    _, _, _, metres, seconds = motion(city, drivers)
    mps = metres / seconds
    assert (seconds >= 1).all() and mps.max() * 3.6 <= 80
    # Red lights: also devices with short intervals have steps at less than walking speed.
    assert 0.01 < (mps[seconds < 15] < 1.0).mean() < 0.4
    # Acceleration and braking are bounded, so the corners of the route are never passed at full speed.
    from wayveil.simulate.kinematics import _corner_mps

    corner = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 100.0], [200.0, 100.1], [0.0, 100.0]])
    speeds = _corner_mps(corner, np.zeros(5, int))
    assert speeds[1] == pytest.approx(np.sqrt(20)) and speeds[3] < 1 and np.isinf(speeds[[0, 4]]).all()


def test_speeds_change_no_faster_than_cars_can():
    from wayveil.simulate.kinematics import _ACCELERATION, _BRAKING, _timed

    xy = np.column_stack([np.arange(0, 1001, 20.0), np.zeros(51)])
    most = np.full(51, 14.0)
    most[[0, 25, 50]] = 0.0
    drives = _timed(xy, most, np.zeros(51, int), np.where(np.arange(51) == 25, 30.0, 0.0), 1)
    assert len(drives.at_s) == 52 and np.diff(drives.at_s).max() == pytest.approx(30.0)
    step, gap = np.diff(drives.xy[:, 0]), np.diff(drives.at_s)
    mps = step[step > 0] / gap[step > 0]
    change = np.diff(mps) / ((gap[step > 0][1:] + gap[step > 0][:-1]) / 2)
    inside = np.delete(change, 24)  # the two steps around the stop
    assert inside.max() < _ACCELERATION + 0.01 and inside.min() > -_BRAKING - 0.01 and mps.max() < 14.001


def test_devices_record_by_time_or_by_distance(city):
    people = simulate_trajectories(city, 1500, seed=2, behaviour=Behaviour(recorders=True))
    _, _, trip, metres, seconds = motion(city, people)
    assert (seconds >= 1).all() and (seconds == np.floor(seconds)).all()
    kind = recorder_of(people.user)[trip]
    assert set(kind) == set(range(len(RECORDERS)))
    for number, recorder in enumerate(RECORDERS):
        if recorder.interval_s:
            assert np.median(seconds[kind == number]) == recorder.interval_s
        else:
            assert np.median(np.abs(metres[kind == number] - recorder.distance_m)) < 0.2 * recorder.distance_m
    gappy = [number for number, recorder in enumerate(RECORDERS) if recorder.gap_chance and recorder.interval_s]
    assert seconds[np.isin(kind, gappy)].max() > 100


def test_the_usual_behaviour_is_the_default(city):
    assert simulate_trajectories(city, 50, behaviour=Behaviour()) == simulate_trajectories(city, 50)
    assert simulate_trajectories(city, 50, behaviour=DETAILED) == simulate_trajectories(city, 50, behaviour=DETAILED)


def test_the_command_takes_behaviour_options(tmp_path):
    from wayveil.cli.main import app

    path = tmp_path / "city.parquet"
    arguments = ["simulate", "-o", str(path), "-n", "30", "--size-km", "3", "3"]
    result = CliRunner().invoke(app, [*arguments, "--diaries", "--kinematics", "--recorders"])
    assert result.exit_code == 0 and path.exists(), result.output

"""People of the embedded city: they move at possible speeds, obey the rules, have habits, and repeat with the seed."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from wayveil.errors import InputError
from wayveil.rules import count, motion_of
from wayveil.simulate import simulate_batches, simulate_city, simulate_to_parquet, simulate_trajectories


@pytest.fixture(scope="module")
def city():
    return simulate_city(0, size_km=(4, 4))


@pytest.fixture(scope="module")
def people(city):
    return simulate_trajectories(city, 1500, seed=0)


def steps(city, people):
    x, y = city.scope.to_metres(people.lon, people.lat)
    owner = np.repeat(np.arange(len(people)), np.diff(people.offsets))
    same = owner[1:] == owner[:-1]
    return owner[1:][same], np.hypot(np.diff(x), np.diff(y))[same], np.diff(people.t_utc)[same]


def test_exactly_n_with_users(people):
    assert len(people) == 1500
    counts = np.unique(people.user, return_counts=True)[1]
    assert counts.max() > 30 and np.median(counts) <= 3  # a heavy tail


def test_simulated_trips_are_physically_possible(city, people):
    _, metres, seconds = steps(city, people)
    assert (seconds >= 1).all() and (seconds == np.floor(seconds)).all()
    assert (metres / seconds * 3.6 <= 80).all()
    assert len(np.unique(seconds)) > 20  # irregular sampling
    points = np.diff(people.offsets)
    assert points.min() >= 2 and points.max() <= city.scope.caps.points


def test_inside_box_and_days(city, people):
    x, y = city.scope.to_metres(people.lon, people.lat)
    assert (x > 0).all() and (x < city.scope.width_m).all() and (y > 0).all() and (y < city.scope.height_m).all()
    first, after = city.scope.time_window()
    assert people.t_utc.min() >= first and people.t_utc.max() < after


def test_trips_of_a_person_never_overlap(people):
    starts, ends = people.t_utc[people.offsets[:-1]], people.t_utc[people.offsets[1:] - 1]
    order = np.lexsort((starts, people.user))
    user, starts, ends = people.user[order], starts[order], ends[order]
    assert (starts[1:] > ends[:-1])[user[1:] == user[:-1]].all()


def test_rush_hours_and_quiet_nights(city, people):
    week_s = city.scope.local_seconds(people.t_utc[people.offsets[:-1]])
    hour, weekday = week_s / 3600 % 24, week_s < 5 * 86_400
    by_hour = np.bincount(hour[weekday].astype(int), minlength=24) / weekday.sum()
    assert by_hour[7] + by_hour[8] > 4 * (by_hour[2] + by_hour[3])
    rest = np.bincount(hour[~weekday].astype(int), minlength=24) / (~weekday).sum()
    assert by_hour[7] > 2 * rest[7]


def test_people_stay_on_the_streets(city, people):
    from scipy.spatial import cKDTree

    x, y = city.scope.to_metres(people.lon, people.lat)
    streets = city.streets
    ends = np.delete(np.arange(len(streets.xy) - 1), streets.offsets[1:-1] - 1)
    shares = np.linspace(0, 1, 12)[:, None, None]
    along = (streets.xy[ends] * (1 - shares) + streets.xy[ends + 1] * shares).reshape(-1, 2)
    near, _ = cKDTree(along).query(np.column_stack([x, y]))
    assert np.quantile(near, 0.99) < 20


def rules_of(city, tmp_path):
    from wayveil.rules import read_rules
    from wayveil.simulate import rules_text

    path = tmp_path / "rules.geojson"
    path.write_text(rules_text(city))
    return read_rules(path, city.scope, city.roadmap)


def test_simulated_trips_obey_the_rules_file_exactly(city, people, tmp_path):
    found = count(rules_of(city, tmp_path), motion_of(people, city.scope))
    assert len(found) >= 6
    assert {name: entry["points"] for name, entry in found.items()} == dict.fromkeys(found, 0)


def test_trips_made_without_the_rules_violate_them(city, people, tmp_path):
    """Half a day later the same trajectories drive through closed areas, and backwards through one-way streets."""
    from wayveil.core.trajectories import Trajectories

    late = Trajectories(people.offsets, people.lon, people.lat, people.t_utc + 43_200, people.user)
    found = count(rules_of(city, tmp_path), motion_of(late, city.scope))
    assert sum(entry["points"] for name, entry in found.items() if "centre" in name or "park" in name) > 0
    last_first = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in zip(people.offsets[:-1], people.offsets[1:])])
    turned = Trajectories(people.offsets, people.lon[last_first], people.lat[last_first], people.t_utc, people.user)
    found = count(rules_of(city, tmp_path), motion_of(turned, city.scope))
    assert sum(entry["points"] for name, entry in found.items() if "ne-way" in name) > 0


def test_same_seed_same_people(city, people):
    assert simulate_trajectories(city, 1500, seed=0) == people
    assert simulate_trajectories(city, 100, seed=1) != simulate_trajectories(city, 100, seed=0)


def test_a_smaller_n_is_a_prefix_of_a_larger_one(city, people):
    few = simulate_trajectories(city, 100, seed=0)
    assert np.array_equal(few.lon, people.lon[: people.offsets[100]])
    assert len(simulate_trajectories(city, 0)) == 0


@pytest.mark.parametrize("n", [-1, 1.5, True, 10**12])
def test_impossible_numbers_of_trips_are_refused(city, n):
    with pytest.raises(InputError):
        simulate_trajectories(city, n)


def test_streamed_file_is_the_same_and_sorted(city, people, tmp_path):
    path = tmp_path / "city.parquet"
    simulate_to_parquet(path, 1500, 0, city=city)
    table = pq.read_table(path)
    assert table.column_names == ["traj_id", "lat", "lon", "t", "user_id"]
    ids = table["traj_id"].to_numpy()
    assert (np.diff(ids) >= 0).all() and len(np.unique(ids)) == 1500
    assert np.array_equal(table["lon"].to_numpy(), people.lon)
    assert np.array_equal(table["t"].to_numpy(), people.t_utc)
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_leaves_nothing_behind(city, tmp_path):
    def interrupt(stage: str, done: float) -> None:
        if stage == "trajectories":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_to_parquet(tmp_path / "city.parquet", 1500, 0, city=city, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_batches_cover_users_once(city):
    seen: set[int] = set()
    for piece in simulate_batches(city, 8000, seed=0):
        users = set(np.unique(piece.user).tolist())
        assert not users & seen
        seen |= users


def test_the_command_writes_a_city(tmp_path):
    from wayveil.cli import simulate as verb
    from wayveil.io.roads import read_roads
    from wayveil.io.scope_files import read_scope

    app = typer.Typer()
    app.callback()(lambda: None)
    verb.register(app)
    paths = {name: tmp_path / name for name in ("c.parquet", "r.parquet", "r.geojson", "c.toml")}
    arguments = ["simulate", "-o", str(paths["c.parquet"]), "-n", "50", "--size-km", "3", "3", "--json"]
    arguments += ["--roads", str(paths["r.parquet"]), "--rules", str(paths["r.geojson"])]
    arguments += ["--scope-out", str(paths["c.toml"])]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n"] == 50
    assert read_scope(paths["c.toml"]).name == "demo-city-3x3"
    assert len(read_roads(paths["r.parquet"])) > 100
    assert json.loads(paths["r.geojson"].read_text())["type"] == "FeatureCollection"
    assert len(np.unique(pq.read_table(paths["c.parquet"])["traj_id"])) == 50

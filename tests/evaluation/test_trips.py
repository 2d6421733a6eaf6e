"""The evaluation of single trips on a small simulated city."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import wayveil
from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.errors import InputError
from wayveil.evaluation import evaluate, evaluate_trips, project
from wayveil.evaluation.trips import rows
from wayveil.evaluation.trips.conclusions import MEASURES
from wayveil.evaluation.trips.features import features
from wayveil.evaluation.trips.places import inward_error, speed_errors, stays_per_100
from wayveil.evaluation.trips.roads import RoadIndex
from wayveil.evaluation.trips.streets import FLOWS, flow_codes, flow_error
from wayveil.evaluation.trips.tasks import next_cell_accuracy
from wayveil.io.files import write
from wayveil.io.roads import write_roads
from wayveil.report.internal import make_internal
from wayveil.report.trip_pictures import SHOWN, trip_pictures
from wayveil.simulate import scope_toml, simulate_city, simulate_trajectories

SCOPE = Scope(name="square", south=0.0, west=0.0, north=0.1, east=0.1, timezone="UTC")


def trips_of(*tracks):
    """Trajectories from lists of (x, y, t) in metres and seconds."""
    x, y, t = np.array([point for track in tracks for point in track], float).T
    return Trajectories(np.r_[0, np.cumsum([len(track) for track in tracks])], *SCOPE.to_degrees(x, y), t)


def paths_of(*tracks):
    return project(trips_of(*tracks), SCOPE)


@pytest.fixture(scope="module")
def town():
    city = simulate_city(0, size_km=(4, 4))
    # Trips of the same people: another seed has other people, with other homes and destinations.
    everything = simulate_trajectories(city, 1350, seed=1)
    order = np.random.default_rng(5).permutation(len(everything))
    return city, select(everything, np.sort(order[:900])), select(everything, np.sort(order[900:]))


def judged(town, synthetic, **options):
    return evaluate_trips(town[1], synthetic, town[0].scope, **options)


@pytest.mark.needs("sklearn")
def test_a_fresh_sample_scores_like_the_floor(town):
    said = []
    found = judged(town, town[2], roads=town[0].roadmap, progress=lambda stage, done: said.append(done))
    assert said[0] == 0.0 and said[-1] == 1.0 and said == sorted(said)
    assert set(found.scores) | set(found.left_out) == set(MEASURES) and "auc" in found.scores
    assert found.scores["auc"].value == pytest.approx(0.5, abs=0.1) == pytest.approx(found.scores["auc"].floor, abs=0.2)
    for name, score in found.scores.items():
        if name.startswith("ks_"):
            assert score.value <= 1.6 * score.floor + 0.03, name
        assert score.conclusion.endswith(".") and "nan" not in score.conclusion
    assert found.scores["next_cell"].value == pytest.approx(found.scores["next_cell"].floor, abs=0.08)
    assert found.scores["street_flow"].value <= 1.4 * found.scores["street_flow"].floor
    assert judged(town, town[2], roads=town[0].roadmap) == found
    json.dumps(found.to_dict(), allow_nan=False)


def straightened(data):
    """Every trip on the straight line between its ends, at its times."""
    first, last = data.offsets[:-1], data.offsets[1:] - 1
    owner = np.repeat(np.arange(len(data)), np.diff(data.offsets))
    share = (data.t_utc - data.t_utc[first][owner]) / np.maximum(data.t_utc[last] - data.t_utc[first], 1)[owner]
    lon, lat = (c[first][owner] + share * (c[last] - c[first])[owner] for c in (data.lon, data.lat))
    return replace(data, lon=lon, lat=lat)


def slowed(data):
    owner = np.repeat(np.arange(len(data)), np.diff(data.offsets))
    start = data.t_utc[data.offsets[:-1]][owner]
    return replace(data, t_utc=start + 2 * (data.t_utc - start))


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize(
    ("change", "group", "worse"),
    [
        (lambda data: replace(data, lon=data.lon + 0.0007, lat=data.lat + 0.0005), "road", "street_flow"),
        (straightened, "shape", "ks_shape"),
        (slowed, "speed", "travel_time"),
        (lambda data: replace(data, t_utc=data.t_utc + 6 * 3600), "departure", "ks_departure"),
    ],
    ids=["shifted", "straightened", "slowed", "re-timed"],
)
def test_changed_trips_are_distinguished_and_the_features_name_the_change(town, change, group, worse):
    found = judged(town, change(town[2]), roads=town[0].roadmap)
    auc = found.scores["auc"]
    # With 300 trips of each side an AUC has a standard error of about 0.024: this is six of them.
    assert auc.value > auc.floor + 0.15 and auc.conclusion.count(":") == 1
    assert group in {feature.group for feature in found.telling[:3]}
    assert found.telling[0].distance > 1.95 * np.sqrt(2 / 300)  # the Kolmogorov–Smirnov test at a level of 0.1 %
    assert found.scores[worse].value > 1.4 * found.scores[worse].floor


@pytest.mark.needs("sklearn")
def test_strange_trips_do_not_fail(town):
    scope = town[0].scope
    x, y = scope.width_m / 2, scope.height_m / 2
    lon, lat = (float(value[0]) for value in scope.to_degrees(np.array([x]), np.array([y])))

    def same(points, count):
        offsets = np.arange(count + 1) * points
        return Trajectories(offsets, *(np.full(points * count, v) for v in (lon, lat, 1.2e9)))

    one, two, many = same(1, 60), same(2, 60), same(5, 60)
    mixed = concatenate([one, two, many, replace(select(town[1], np.arange(60)), user=None)])
    plain = replace(town[1], user=None)
    for real, synthetic in ((plain, one), (plain, two), (one, plain), (many, two), (mixed, mixed), (one, one)):
        found = evaluate_trips(real, synthetic, scope, roads=town[0].roadmap)
        json.dumps(found.to_dict(), allow_nan=False)
        assert str(found) and set(found.scores) | set(found.left_out) == set(MEASURES)
    few = evaluate_trips(select(plain, np.arange(9)), plain, scope)
    assert few.scores == {} and "auc" in few.left_out
    # Nothing in common: the synthetic trips are in another corner, with no shared cell or street.
    a, b = (trips_of(*[[(at + 30 * k, at, k * 20) for k in range(9)]] * 60) for at in (500, 9000))
    apart = evaluate_trips(a, b, SCOPE)
    assert "cell_speed" in apart.left_out and apart.scores["next_cell" if "next_cell" in apart.scores else "auc"]


@pytest.mark.needs("sklearn")
def test_without_times_and_without_a_map(town):
    names = set(judged(town, town[2], with_time=False).scores)
    assert {"auc", "ks_shape", "next_cell"} <= names
    assert not names & {"ks_speed", "ks_departure", "travel_time", "cell_speed", "stays", "ks_road", *FLOWS}


@pytest.mark.needs("sklearn")
def test_a_map_of_another_city_is_refused(town):
    away = RoadMap(
        np.array([0, 2]), np.array([10.0, 10.1]), np.array([50.0, 50.1]), np.zeros(1, np.int8), np.zeros(1, np.int8),
        np.array([np.nan]),
    )  # fmt: skip
    with pytest.raises(InputError, match="No road of the map"):
        judged(town, town[2], roads=away)


def test_a_missing_extra_is_one_sentence_with_the_command(town, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"] + ["sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError) as error:
        evaluate("no such file", "nor this", town[0].scope, trips=True)
    assert str(error.value) == "trips=True needs scikit-learn; install it with: pip install 'wayveil[evaluate]'."


def test_a_map_without_trips_is_refused(town):
    with pytest.raises(InputError, match="add trips=True"):
        wayveil.evaluate(town[1], town[2], town[0].scope, roads=town[0].roadmap)


@pytest.mark.needs("sklearn")
def test_the_command_and_the_internal_report(town, tmp_path, monkeypatch, capsys):

    from wayveil.cli.main import main

    city, real, other = town
    monkeypatch.chdir(tmp_path)
    write(real, "rides.parquet")
    write(other, "made.parquet")
    write_roads(city.roadmap, "roads.parquet")
    (tmp_path / "town.toml").write_text(scope_toml(city), encoding="utf-8")
    words = "wayveil evaluate rides.parquet made.parquet --scope town.toml --headline --trips --roads roads.parquet"
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", [*words.split(), "-o", "evaluation.json"])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr()
    assert not stop.value.code and "Not for publication" in said.err
    assert "street_flow" in said.out and "what to conclude" in said.out and "real median" in said.out
    stored = json.loads((tmp_path / "evaluation.json").read_text(encoding="utf-8"))
    shown = make_internal(stored, None, picture=trip_pictures(real, other, city.scope))
    assert [row.name for row in shown.trips.scores] == list(stored["files"]["made.parquet"]["trips"]["scores"])
    assert shown.trips.telling and shown.trips.picture.count('class="way real"') == SHOWN
    assert shown.trips.picture.count('class="way made"') == SHOWN
    stored["files"]["made.parquet"]["trips"]["scores"]["auc"] = 3
    with pytest.raises(InputError, match="damaged"):
        make_internal(stored, None)


def test_pictures_of_strange_trips(town):
    still = trips_of([(50, 50, 0), (50, 50, 0)])
    assert trip_pictures(still, still, SCOPE).count('class="way') == 2 * SHOWN
    assert trip_pictures(still, trips_of([(50, 50, 0)]), SCOPE) is None
    assert trip_pictures(trips_of([(-50, 50, 0), (50, 50, 9)]), still, SCOPE) is None


def test_features_by_hand():
    square = [(1000 + x, 1000 + y, 60 * k) for k, (x, y) in enumerate([(0, 0), (600, 0), (600, 600), (0, 600)])]
    there_and_back = [(1000, 1000, 0), (1000, 1900, 60), (1000, 1000, 120)]
    waits = [(0, 0, 0), (300, 0, 30), (300, 0, 330), (600, 0, 360)]
    paths = paths_of(square, there_and_back, waits)
    found = features(paths, paths, None, True)
    assert found["shape"]["length_m"] == pytest.approx([1800, 1800, 600])
    assert found["shape"]["displacement_m"] == pytest.approx([600, 0, 600])
    assert found["shape"]["sharp_turns_per_km"][:2] == pytest.approx([2 / 1.8, 1 / 1.8])
    assert found["shape"]["right_angle_share"][:2] == pytest.approx([1, 0])
    assert found["shape"]["backtracked_share"][1] > 0.8 > 0 == found["shape"]["backtracked_share"][0]
    assert found["speed"]["standing_share"] == pytest.approx([0, 0, 300 / 360])
    assert found["speed"]["longest_standing_s"] == pytest.approx([0, 0, 300])
    assert found["speed"]["standing_spells"] == pytest.approx([0, 0, 1])
    assert found["speed"]["speed_median_mps"] == pytest.approx([10, 15, 10])
    assert found["recording"]["commonest_interval_share"] == pytest.approx([1, 1, 2 / 3])
    assert found["departure"]["departure_weekday"] == pytest.approx([3, 3, 3])  # 1970 began on a Thursday


def test_statistics_of_ragged_rows():
    column, offsets = np.array([3.0, 1.0, 2.0, 5.0]), np.array([0, 3, 3, 4])
    assert rows.mean(column, offsets) == pytest.approx([2, np.nan, 5], nan_ok=True)
    assert rows.largest(column, offsets) == pytest.approx([3, np.nan, 5], nan_ok=True)
    assert rows.smallest(column, offsets) == pytest.approx([1, np.nan, 5], nan_ok=True)
    assert rows.quantiles(column, offsets, (0.25,))[0] == pytest.approx([1.5, np.nan, 5], nan_ok=True)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50))
    whole = np.array([0, 50])
    assert rows.correlation(a, b, whole, 4) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert rows.autocorrelation(np.tile([1.0, -1.0], 25), whole) == pytest.approx(-49 / 50)


def test_next_cell_by_hand():
    def row(*columns):
        return [(500 * column + 250, 250, 10 * k) for k, column in enumerate(columns)]

    train = paths_of(row(0, 1, 2), row(0, 1, 2), row(3, 1, 4))
    assert next_cell_accuracy(train, paths_of(row(0, 1, 2), row(3, 1, 4))) == 1.0
    # Never seen two cells before: the commonest follower of the last one.
    assert next_cell_accuracy(train, paths_of(row(7, 1, 2), row(7, 1, 4))) == 0.5
    assert next_cell_accuracy(paths_of(row(0)), paths_of(row(0, 1, 2))) == 0.0
    assert next_cell_accuracy(train, paths_of(row(0, 1))) is None


def test_flows_by_hand():
    lon, lat = SCOPE.to_degrees(np.array([0.0, 2000.0]), np.array([1000.0, 1000.0]))
    index = RoadIndex(
        RoadMap(np.array([0, 2]), lon, lat, np.zeros(1, np.int8), np.ones(1, np.int8), np.array([np.nan])), SCOPE
    )
    east = [(x, 1010, x / 10) for x in range(100, 1000, 50)]
    west = [(x, 1010, (1000 - x) / 10) for x in range(950, 50, -50)]
    away = [(x, y + 500, t) for x, y, t in east]
    sides = {"east": paths_of(east), "west": paths_of(west), "away": paths_of(away)}
    flows = {name: flow_codes(paths, index.match(paths)) for name, paths in sides.items()}
    assert {name: flow_error(flows["east"][name], flows["west"][name]) for name in FLOWS} == pytest.approx(
        {"link_flow": 0, "street_flow": 0, "directed_street_flow": 2}
    )
    assert flow_error(flows["east"]["street_flow"], flows["away"]["street_flow"]) == pytest.approx(1)
    assert flow_error(flows["away"]["street_flow"], flows["east"]["street_flow"]) is None
    wrong = index.match(paths_of(west))
    assert wrong.one_way.all() and np.degrees(wrong.angle) == pytest.approx(180, abs=1)
    assert wrong.distance_m == pytest.approx(10, abs=1)


def test_places_by_hand():
    fast = [[(50 + 500 * k + 10 * s, 300, s * 10) for s in range(40)] for k in range(4)]
    slow = [[(x, y, 2 * t) for x, y, t in track] for track in fast]
    errors = speed_errors(paths_of(*fast), paths_of(*slow))
    assert errors["cell_speed"] == pytest.approx(1.8) and errors["hour_speed"] is None
    waiting = [(0, 0, 0), (500, 0, 60), (520, 0, 200), (510, 0, 400), (900, 0, 460), (905, 0, 900)]
    assert stays_per_100(paths_of(waiting, [(0, 0, 0)], fast[0], [(0, 0, 5), (0, 0, 5)])) == pytest.approx(50)
    inward = [[(0, 0, 3600 * h), (3000, 0, 3600 * h + 300), (3000, 0, 3600 * h + 600)] for h in (1, 8)] * 40
    tidal = [inward[0], [(3000, 0, 8 * 3600), (0, 0, 8 * 3600 + 600)]] * 40
    assert inward_error(paths_of(*inward), paths_of(*inward)) == pytest.approx(0)
    assert inward_error(paths_of(*inward), paths_of(*tidal)) == pytest.approx(3)

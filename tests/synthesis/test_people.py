"""Synthetic people: chains in time and place, rules, files, numbers, and small or unusual inputs."""

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from lxml import etree

import wayveil
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.errors import InputError
from wayveil.evaluation.people.measures import people_trips
from wayveil.io.options import ENDINGS, WRITABLE
from wayveil.privacy.noise import SeededNoise
from wayveil.questions import shares
from wayveil.rules import motion_of, violating_trajectories
from wayveil.rules.motion import ground_lengths
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.simulate.generate import Behaviour
from wayveil.synthesis.people.estimate import Coupling
from wayveil.synthesis.people.sequence import impossible_trips
from wayveil.synthesis.request import Request

CITY = simulate_city(0, size_km=(5, 5))
SCOPE = CITY.scope
SCHEMAS = Path(__file__).parents[1] / "io" / "schemas"


def released(data, **promise):
    with mock.patch.object(shares, "LEAST_PEOPLE", 0.0), mock.patch.object(shares, "FULL_SIGNAL", 3.01):
        given = {"epsilon": 20, "delta": "1e-6", "unit": "user", "max_per_user": 20, **promise}
        return wayveil.measure(data, SCOPE, noise=SeededNoise(1), **given)


@pytest.fixture(scope="module")
def release():
    return released(simulate_trajectories(CITY, 2000, seed=1, behaviour=Behaviour(diaries=True)))


@pytest.fixture(scope="module")
def made(release):
    return wayveil.synthesize(release, n=1500, seed=1, estimator="bayes").trajectories


def test_people_are_never_in_two_places_and_never_jump(made):
    trips = people_trips(made, SCOPE)
    assert impossible_trips(trips, SCOPE) == (0, 0)
    assert (trips.gap_s > 0).all()


def test_an_overlap_and_a_jump_are_counted():
    lon, lat = SCOPE.west + 0.01, SCOPE.south + 0.01
    t0 = SCOPE.time_window()[0]
    times = np.array([0, 600, 300, 900, 901, 1000.0]) + t0
    far = lon + 0.03
    data = Trajectories([0, 2, 4, 6], [lon, lon, lon, lon, far, far], [lat] * 6, times, [1, 1, 1])
    assert impossible_trips(people_trips(data, SCOPE), SCOPE) == (1, 1)


def test_trips_start_where_the_last_one_ended_and_come_back(made):
    trips = people_trips(made, SCOPE)
    assert len(made) == 1500
    near = (trips.apart_m <= 300).mean()
    shuffled = np.random.default_rng(0).permutation(made.user)
    chance = people_trips(Trajectories(made.offsets, made.lon, made.lat, made.t_utc, shuffled), SCOPE)
    assert near > 0.8 > 4 * (chance.apart_m <= 300).mean()
    assert (trips.repeats > 0).mean() > 2 * (chance.repeats > 0).mean()


def known_users(path):
    """The user of each trip in a file that was written for another program, in the order of the file."""
    if path.name.endswith(".rou.xml"):
        return [one.get("value") for one in etree.parse(path).iterfind("trip/param[@key='user_id']")]
    assert etree.DTD(str(SCHEMAS / "matsim_population.dtd")).validate(etree.parse(path).getroot())
    return [one.get("id") for one in etree.parse(path).iter("person") for _ in one.iter("leg")]


@pytest.mark.parametrize("ending", [ending for ending, kind in ENDINGS if kind in WRITABLE])
def test_every_format_stores_the_people(made, ending, tmp_path):
    path = tmp_path / f"x{ending}"
    some = select(made, np.arange(60))
    wayveil.write(some, path, extra_metadata={"timezone": SCOPE.timezone})
    users = known_users(path) if path.suffix == ".xml" else wayveil.read(path).user.tolist()
    assert sorted(map(str, users)) == sorted(map(str, some.user.tolist()))


def test_matsim_has_a_chain_of_activities_for_each_person(made, tmp_path):
    """Validated against MATSim's DTD: activities and legs alternate, and most people have a home."""
    path = tmp_path / "x.plans.xml"
    wayveil.write(made, path)
    tree = etree.parse(path)
    assert etree.DTD(str(SCHEMAS / "matsim_population.dtd")).validate(tree.getroot())
    trips = dict(zip(*np.unique(made.user.astype(str), return_counts=True)))
    plans = {one.get("id"): one.find("plan") for one in tree.iter("person")}
    assert {who: len(plan.findall("leg")) for who, plan in plans.items()} == trips
    homes = 0
    for plan in plans.values():
        assert [one.tag for one in plan] == [("activity", "leg")[k % 2] for k in range(len(plan))]
        kinds = {one.get("type") for one in plan.iter("activity")}
        assert kinds <= {"home", "other"}
        homes += "home" in kinds
    assert homes > 0.9 * len(plans)  # others start no trip where most of their trips end


def test_the_same_seed_gives_the_same_people(release, made):
    assert wayveil.synthesize(release, n=1500, seed=1, estimator="bayes").trajectories == made


def test_as_many_people_are_made_as_are_asked_for(release):
    some = wayveil.synthesize(release, people=40, seed=2, estimator="bayes").trajectories
    assert len(np.unique(some.user)) == 40


def test_rules_hold_for_people(release):
    rules = CITY.rules_geojson
    streets = CITY.roadmap
    read = wayveil.rules.read_rules(rules, SCOPE, streets)
    some = wayveil.synthesize(release, n=300, rules=read, roads=streets, seed=1, estimator="bayes").trajectories
    assert not violating_trajectories(read, motion_of(some, SCOPE)).any()
    assert impossible_trips(people_trips(some, SCOPE), SCOPE) == (0, 0)


def test_people_exceed_no_cap_of_the_scope():
    caps = {**SCOPE.caps.model_dump(), "speed_kmh": 45.0, "length_km": 6.0, "duration_h": 0.4}
    tight = SCOPE.model_copy(update={"caps": type(SCOPE.caps)(**caps)})
    data = simulate_trajectories(CITY, 2000, seed=2, behaviour=Behaviour(diaries=True))
    with mock.patch.object(shares, "LEAST_PEOPLE", 0.0), mock.patch.object(shares, "FULL_SIGNAL", 3.01):
        given = {"epsilon": 20, "delta": "1e-6", "unit": "user", "max_per_user": 20}
        answers = wayveil.measure(data, tight, noise=SeededNoise(1), **given)
    some = wayveil.synthesize(answers, n=2500, seed=1, estimator="bayes").trajectories
    motion = motion_of(some, tight)
    length_m, gap_s = ground_lengths(motion, np)
    first, last = some.t_utc[some.offsets[:-1]], some.t_utc[some.offsets[1:] - 1]
    assert (length_m[motion.joins] * 3.6 / gap_s[motion.joins]).max() <= 45
    assert np.add.reduceat(np.r_[0.0, length_m], some.offsets[:-1]).max() <= 6000
    assert (last - first).max() <= 0.4 * 3600 and last.max() < tight.time_window()[1]


def test_shards_share_no_person_and_files_resume(release, tmp_path, monkeypatch):
    from wayveil.synthesis import resume, shard

    monkeypatch.setattr(shard, "SHARD", 200)
    file = tmp_path / "people.parquet"
    wanted = Request(release, n=400, seed=3, estimator="bayes")
    real = resume._write_part

    def stops(path, part):
        if "000001" in path.name:
            raise KeyboardInterrupt
        real(path, part)

    monkeypatch.setattr(resume, "_write_part", stops)
    with pytest.raises(KeyboardInterrupt):
        resume.synthesize_to_parquet(wanted, file)
    monkeypatch.setattr(resume, "_write_part", real)
    done = resume.synthesize_to_parquet(wanted, file)
    assert done.resumed_shards == 1 and done.trajectories == 400
    people = wayveil.read(file)
    assert people == wayveil.synthesize(release, n=400, seed=3, estimator="bayes").trajectories
    assert impossible_trips(people_trips(people, SCOPE), SCOPE) == (0, 0)


def test_trajectory_level_has_no_people(release):
    data = simulate_trajectories(CITY, 300, seed=1)
    plain = released(data, unit="trajectory", max_per_user=None, delta="0", epsilon=2)
    assert wayveil.synthesize(plain, n=50, seed=1, estimator="bayes").trajectories.user is None
    with pytest.raises(InputError, match="measure with unit='user'"):
        wayveil.synthesize(plain, people=5)
    with pytest.raises(InputError, match="give one of them"):
        wayveil.synthesize(release, n=5, people=5)
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(InputError, match="whole number from 1"):
            wayveil.synthesize(release, people=wrong)


def test_without_answers_people_follow_public_priors():
    data = simulate_trajectories(CITY, 300, seed=1)
    plain = wayveil.measure(data, SCOPE, epsilon=1, delta="1e-6", unit="user", max_per_user=20, noise=SeededNoise(1))
    assert "people/trips" not in plain
    assert wayveil.synthesize(plain, n=40, seed=1, estimator="bayes").trajectories.user is None
    some = wayveil.synthesize(plain, people=30, seed=1, estimator="bayes").trajectories
    assert len(np.unique(some.user)) == 30


def users_of(kind, data):
    rng = np.random.default_rng(0)
    count = len(data)
    users = {
        "one user": np.zeros(count, int),
        "one trip each": np.arange(count),
        "one user with most": np.where(rng.random(count) < 0.9, 0, np.arange(count)),
    }.get(kind, data.user)
    t_utc = np.full(len(data.t_utc), data.t_utc[0]) if kind == "equal times" else data.t_utc
    return Trajectories(data.offsets, data.lon, data.lat, t_utc, users)


@pytest.mark.parametrize("kind", ["one user", "one trip each", "one user with most", "equal times"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_unusual_people_give_a_finite_result(kind, delta):
    data = users_of(kind, simulate_trajectories(CITY, 250, seed=1))
    some = wayveil.synthesize(released(data, delta=delta), n=60, seed=1, estimator="bayes").trajectories
    assert len(some) == 60
    if some.user is None:  # Laplace noise hides so few people
        assert delta == "0"
        return
    assert impossible_trips(people_trips(some, SCOPE), SCOPE) == (0, 0)


def test_thousands_of_trips_of_one_user_give_a_finite_result():
    few = simulate_trajectories(CITY, 100, seed=1)
    data = concatenate([few] * 31)
    later = 86_400.0 * np.repeat(np.arange(31) % 7, len(few.t_utc)) + 60.0 * np.repeat(np.arange(31), len(few.t_utc))
    users = np.where(np.arange(len(data)) < 3000, 0, np.arange(len(data)))
    data = Trajectories(data.offsets, data.lon, data.lat, data.t_utc + later, users)
    some = wayveil.synthesize(released(data), n=60, seed=1, estimator="bayes").trajectories
    assert len(some) == 60
    if some.user is not None:
        assert impossible_trips(people_trips(some, SCOPE), SCOPE) == (0, 0)


def test_a_missing_user_column_is_explained():
    data = simulate_trajectories(CITY, 20, seed=1)
    with pytest.raises(InputError, match='unit="user" needs a user column'):
        released(Trajectories(data.offsets, data.lon, data.lat, data.t_utc))


def test_people_may_have_up_to_twice_as_many_trips_as_were_used_per_person(release, made):
    most = np.unique(made.user, return_counts=True)[1].max()
    assert release.max_per_user < most <= 2 * release.max_per_user


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_a_coupling_reaches_the_wanted_shares_and_keeps_what_it_can(spread):
    rng = np.random.default_rng(0)
    chance, wanted = np.array([[0.5, 0.3, 0.2, 0.0]]), np.array([[0.5, 0.3, 0.2, 0.0]])
    wanted = (1 - spread) * wanted + spread * np.array([[0.1, 0.1, 0.3, 0.5]])
    bins = rng.choice(4, 40_000, p=chance[0])
    new = Coupling(chance, wanted).bins(np.zeros(40_000, int), bins, rng)
    assert np.allclose(np.bincount(new, minlength=4) / 40_000, wanted, atol=0.01)
    assert (new != bins).mean() == pytest.approx(np.abs(wanted - chance).sum() / 2, abs=0.01)


def test_noise_alone_leaves_shuffled_trips_as_they_are():
    """Users assigned at random: numbers per person are kept, and hardly any trip moves in space."""
    data = simulate_trajectories(CITY, 1500, seed=1)
    users = np.random.default_rng(0).integers(0, 100, len(data))
    shuffled = released(Trajectories(data.offsets, data.lon, data.lat, data.t_utc, users), epsilon=5)
    people = wayveil.synthesize(shuffled, n=1200, seed=1, estimator="bayes").trajectories
    trips = people_trips(people, SCOPE)
    assert (trips.trips == 1).mean() < 0.1
    assert (trips.apart_m <= 300).mean() < 0.1

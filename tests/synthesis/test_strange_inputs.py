"""Small and strange input is normal: a valid result or a clear message, never NaN, never a hang, rules obeyed."""

import itertools
import json
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import shapely

from wayveil.core.roads import ROAD_CLASSES, RoadMap
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.release import release_to_json
from wayveil.rules import (
    Closed,
    MaxDuration,
    SpeedLimit,
    area_in_metres,
    count,
    hours,
    map_one_ways,
    motion_of,
    with_scope_bounds,
)
from wayveil.synthesis import model
from wayveil.synthesis.estimate.learned.refine import LearnedFallback
from wayveil.workflow.synthesize import synthesize

LIMIT_S = 30
N = 25
DAYS = {"first_day": "2024-01-01", "last_day": "2024-01-07"}
MONDAY = 1_704_067_200.0  # 2024-01-01 00:00 UTC


@pytest.fixture(autouse=True)
def few_trips(monkeypatch, estimated_once):
    """Costs are balanced with a tenth of the trips, which saves time and makes no input less strange."""
    monkeypatch.setattr(model, "SETTINGS", model.ModelSettings(balance_trips=800))


@contextmanager
def limited(seconds=LIMIT_S):
    """Raise TimeoutError after this much CPU time, so that a hang fails instead of blocking the tests."""

    def ring(*_):
        raise TimeoutError(f"more than {seconds} CPU seconds")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def a_scope(km=3.0, **other):
    side = km / 111.195
    return Scope.model_validate({"name": "town", "south": 0.0, "west": 10.0, "north": side, "east": 10 + side, **other})


def from_metres(scope, x_m, y_m, t_utc, points):
    lon, lat = scope.to_degrees(np.ravel(x_m), np.ravel(y_m))
    offsets = np.r_[0, np.cumsum(points)].astype(np.int64)
    return Trajectories(offsets, lon, lat, np.ravel(t_utc).astype(float))


def walks(scope, n=50, points=8, step_m=60.0, interval_s=30.0):
    rng = np.random.default_rng(0)
    size = np.array([scope.width_m, scope.height_m])
    xy = rng.uniform(0.2, 0.8, (n, 1, 2)) * size + rng.normal(0, step_m, (n, points, 2)).cumsum(axis=1)
    xy = np.clip(xy, 1, size - 1)
    t = MONDAY + rng.integers(0, 5 * 86_400, (n, 1)) + interval_s * np.arange(points)
    return from_metres(scope, xy[..., 0], xy[..., 1], t, [points] * n)


def one_cell(scope):
    few = walks(scope, step_m=0.5)
    lon, lat = scope.to_degrees(np.array([1234.0]), np.array([1234.0]))
    return replace(few, lon=lon + (few.lon - few.lon.mean()) * 1e-3, lat=lat + (few.lat - few.lat.mean()) * 1e-3)


DATA = {
    "fifty": walks,
    "one": lambda scope: walks(scope, 1),
    "one cell": one_cell,
    "one point each": lambda scope: walks(scope, points=1),
    "one point in all": lambda scope: walks(scope, 1, points=1),
    "stationary": lambda scope: walks(scope, step_m=0.0),
    "takes days": lambda scope: walks(scope, 1, points=40, interval_s=3 * 3600.0),
    "too fast": lambda scope: walks(scope, step_m=900.0, interval_s=1.0),
}


@cache
def a_release(kind, epsilon="1", km=3.0, window=False):
    scope = a_scope(km, **(DAYS if window else {}))
    return measure(DATA[kind](scope), scope, epsilon=epsilon, unit="trajectory", noise=SeededNoise(7))


def made_of(release, **options):
    with limited(), warnings.catch_warnings():
        warnings.simplefilter("ignore", LearnedFallback)
        result = synthesize(release, seed=1, **{"n": N, **options})
    made, scope = result.trajectories, release.scope
    assert len(made) == options.get("n", N) or options.get("n", N) is None
    assert np.isfinite(made.lon).all() and np.isfinite(made.lat).all() and np.isfinite(made.t_utc).all()
    assert json.dumps(result.diagnostics, allow_nan=False)
    same = np.repeat(np.arange(len(made)), np.diff(made.offsets))
    steps = np.diff(made.t_utc)[same[1:] == same[:-1]]
    assert (steps > 0).all()
    rules = with_scope_bounds(options.get("rules", ()), scope)
    broken = {name: one for name, one in count(rules, motion_of(made, scope)).items() if one["points"]}
    assert broken == {}
    x_m, y_m = scope.to_metres(made.lon, made.lat)
    for at, size in ((x_m, scope.width_m), (y_m, scope.height_m)):
        assert at.min() >= -1e-6 and at.max() <= size + 1e-6  # on the border itself, up to the last digit of a degree
    speed_mps = np.hypot(np.diff(x_m), np.diff(y_m))[same[1:] == same[:-1]] / steps
    assert speed_mps.max(initial=0.0) <= scope.caps.speed_kmh / 3.6 * 1.001
    if (window := scope.time_window()) is not None:
        assert (made.t_utc >= window[0]).all() and (made.t_utc < window[1]).all()
    return result


def some_rules(scope):
    """An area closed for good, one closed in the morning, a speed limit and a longest duration."""
    size = scope.width_m
    block = area_in_metres(shapely.box(0.4 * size, 0.4 * size, 0.6 * size, 0.6 * size))
    half = area_in_metres(shapely.box(0, 0, 0.5 * size, size))
    return (
        Closed(block, name="block"),
        Closed(half, hours("07:00", "10:00"), name="morning"),
        SpeedLimit(60 / 3.6, name="slow"),
        MaxDuration(8 * 3600.0, name="long"),
    )


def a_map(scope, *lines, oneway=0):
    parts = [np.asarray(line, float) for line in lines]
    lon, lat = scope.to_degrees(*np.concatenate(parts).T)
    n = len(parts)
    offsets = np.r_[0, np.cumsum([len(part) for part in parts])].astype(np.int64)
    primary = np.full(n, ROAD_CLASSES.index("primary"), np.int8)
    return RoadMap(offsets, lon, lat, primary, np.full(n, oneway, np.int8), np.full(n, np.nan))


def block_of_streets(x0, y0, side, step=150.0):
    at = np.arange(0, side + 1, step)
    return [[(x0 + a, y0 + b) for b in at] for a in at] + [[(x0 + a, y0 + b) for a in at] for b in at]


def islands(scope):
    """Two networks that do not meet, one street that turns back on itself, and one stub of a metre."""
    nets = block_of_streets(200, 200, 900) + block_of_streets(1700, 1800, 900)
    roads = a_map(scope, *nets, [(300, 2500), (500, 2500), (300, 2500)], [(2500, 300), (2501, 300)])
    return replace(roads, oneway=np.arange(len(roads), dtype=np.int8) % 2)


MAPS = {
    "islands": islands,
    "one road": lambda scope: a_map(scope, [(500, 500), (2500, 500)]),
    "one-way dead end": lambda scope: a_map(scope, [(500, 500), (2500, 500)], oneway=1),
    "no length": lambda scope: a_map(scope, [(500, 500), (500, 500)]),
    "outside": lambda scope: a_map(scope, [(90_000, 90_000), (95_000, 90_000)]),
    "across": lambda scope: a_map(scope, [(-50_000, 1500), (50_000, 1500)]),
}


# The learned estimator starts from the Bayesian one, so "bayes" is tried alone with some kinds only.
@pytest.mark.parametrize(
    ("kind", "estimator"),
    [*((kind, "learned") for kind in DATA), ("one", "bayes"), ("one point in all", "bayes"), ("takes days", "bayes")],
)
def test_strange_data(kind, estimator):
    made_of(a_release(kind, window=kind == "takes days"), estimator=estimator)


@pytest.mark.parametrize("kind", ["one point in all", "takes days"])
def test_strange_data_with_rules(kind):
    release = a_release(kind)
    made_of(release, rules=some_rules(release.scope))


@pytest.mark.parametrize(
    ("kind", "epsilon", "estimator"),
    [
        ("fifty", "0.01", "bayes"), ("fifty", "20", "bayes"), ("fifty", "0.01", "learned"), ("fifty", "20", "learned"),
        ("one", "0.01", "learned"), ("one cell", "20", "learned"),
    ],
)  # fmt: skip
def test_extreme_epsilon(kind, epsilon, estimator):
    release = a_release(kind, epsilon)
    result = made_of(release, estimator=estimator, n=None if epsilon == "20" else N)
    if epsilon == "20":
        assert 40 <= len(result.trajectories) <= 60  # the noisy count is close to the 50 that there are


@pytest.mark.parametrize("counted", [0, -1, -(10**9)])
def test_a_noisy_count_near_zero(counted):
    """m̃ <= 0, with all other answers negative as well."""
    release = a_release("fifty", "0.01")
    answers = tuple(
        replace(one, noisy=one.noisy * 0 + counted * one.resolution if one.name == "count" else -abs(one.noisy))
        for one in release.answers
    )
    result = made_of(replace(release, answers=answers), n=None, rules=some_rules(release.scope))
    # A count is positive, so noise of ± 10,000 on all answers still means some trajectories.
    assert 1 <= len(result.trajectories) < 1_000


@pytest.mark.parametrize(("km", "window"), [(1.0, True), (1000.0, False)])
def test_scopes_of_every_size(km, window):
    release = a_release("fifty", km=km, window=window)
    made_of(release, rules=some_rules(release.scope) if window else (), estimator="bayes" if km > 10 else "learned")


@pytest.mark.parametrize("name", MAPS)
def test_strange_maps(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    release = a_release("fifty")
    roads = MAPS[name](release.scope)
    with limited():
        rules = (*some_rules(release.scope), map_one_ways(roads, release.scope)) if name == "islands" else ()
    made_of(release, roads=roads, rules=rules, estimator="bayes" if name == "across" else "learned")


def test_a_map_outside_the_scope_is_refused_before_any_budget_is_spent():
    scope = a_scope()
    with pytest.raises(InputError, match="No road of the map lies inside the scope"):
        measure(walks(scope), scope, epsilon="1", unit="trajectory", roads=MAPS["outside"](scope))


@pytest.mark.parametrize("n", [0, -1, 10**12])
def test_impossible_numbers_are_refused(n):
    with pytest.raises(InputError, match="n= must be"):
        synthesize(a_release("fifty"), n=n)


def test_data_outside_the_scope_is_measured_like_any_other():
    """A refusal would reveal that no trajectory is inside."""
    scope = a_scope()
    empty = Trajectories(np.zeros(1, np.int64), np.empty(0), np.empty(0), np.empty(0))
    far = walks(a_scope(km=3.0, west=50.0, east=50.03))
    for data in (empty, far):
        release = measure(data, scope, epsilon="1", unit="trajectory", noise=SeededNoise(1))
        assert len(synthesize(release, n=3, seed=1)) == 3


def test_the_time_limit_of_these_tests_works():
    with pytest.raises(TimeoutError), limited(0.05):
        sum(1 for _ in itertools.repeat(0))


# Ctrl-C ---------------------------------------------------------------------------------------------------------------

RUN = """
import glob, json, os, signal, sys
from contextlib import contextmanager
from wayveil.cli import synthesize
from wayveil.cli.main import main
from wayveil.synthesis import model, shard
shard.SHARD, model.SETTINGS = 20, model.ModelSettings(balance_trips=800)
for stage, output in json.loads(sys.argv[1]):
    seen = []
    @contextmanager
    def progress_bar():
        def listen(name, done):
            seen.append(name)
            drawn = len(glob.glob(output + ".parts/shard-*"))
            if stage in (f"{name} {seen.count(name)}", f"shards {drawn}"):
                os.kill(os.getpid(), signal.SIGINT)
        yield listen
    synthesize.progress_bar = progress_bar
    sys.argv = ["wayveil", "synthesize", "r.json", "-o", output, "-n", "50", "--seed", "4", "--estimator", "bayes"]
    try:
        main()
    except SystemExit as stop:
        names = sorted(os.listdir())
        inner = sorted(os.listdir(output + ".parts")) if output + ".parts" in names else []
        print(json.dumps([stage, stop.code, names, inner]), file=sys.stderr)
"""


@pytest.mark.needs("posix")  # signals
def test_after_ctrl_c_nothing_is_half_written_and_the_run_resumes(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "r.json").write_text(release_to_json(a_release("fifty")))
    stages = ["estimating 1", "shards 1", "shards 2", "writing 1", "writing 3"]
    runs = [["never", "whole.parquet"], *([stage, "s.parquet"] for stage in stages), ["never", "s.parquet"]]
    runs += [["balancing routes 1", "s.csv"], ["never", "s.csv"], ["drawing trajectories 1", "s.csv"]]
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(runs)], cwd=folder, capture_output=True, text=True, timeout=900
    )
    assert "Traceback" not in done.stderr, done.stderr
    left = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    assert [(stage, code) for stage, code, *_ in left] == [
        (stage, 0 if stage == "never" else 130) for stage, _ in runs
    ]  # fmt: skip
    first, *stopped, whole, no_csv, _, _ = left
    for stage, _, names, shards in stopped:
        assert names == sorted([*first[2], "s.parquet.parts"]), stage
        assert not any(name.startswith(".") for name in shards), stage
    assert [len(shards) for *_, shards in stopped] == [1, 2, 3, 4, 4]  # shards and run.json
    assert whole[2] == sorted([*first[2], "s.parquet"]) and no_csv[2] == whole[2]
    assert (folder / "s.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()
    assert "Continued an earlier run" in done.stderr
    # The file is that of the earlier run, not of the interrupted one.
    assert len((folder / "s.csv").read_text().splitlines()) > 50


@pytest.mark.needs("posix")  # signals
def test_ctrl_c_at_any_moment(tmp_path):
    """The signal comes from outside at arbitrary moments: start, imports, work, writing."""
    (tmp_path / "r.json").write_text(release_to_json(a_release("fifty")))
    words = ["-c", "from wayveil.cli.main import main; main()", "synthesize", "r.json", "-o", "s.csv", "-n", "20000"]
    for wait_s in (0.5, 1.5):
        running = subprocess.Popen([sys.executable, *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        time.sleep(wait_s)
        running.send_signal(signal.SIGINT)
        messages = running.communicate(timeout=600)[1]
        assert running.returncode != 0
        names = {path.name for path in tmp_path.iterdir() if not path.name.startswith("xdg-")}
        assert names == {"r.json"}, messages

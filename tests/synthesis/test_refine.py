"""Refined trajectories obey every rule; those that obeyed before are bitwise unchanged."""

import subprocess
import sys

import numpy as np
import pytest
import shapely

from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.rules import (
    Closed,
    MaxDuration,
    MinSpeed,
    SpeedLimit,
    StayWithin,
    area_in_metres,
    constructors,
    count,
    custom,
    hours,
    map_one_ways,
    motion_from_metres,
    one_way,
    scope_bounds,
)
from wayveil.synthesis.obey.refine import refine
from wayveil.synthesis.obey.task import Attraction
from wayveil.synthesis.place.physics import physical_times
from wayveil.synthesis.place.track_columns import Tracks, as_written

SCOPE = Scope.model_validate(
    {"name": "test", "south": 10.0, "west": 20.0, "north": 10.05, "east": 20.06, "timezone": "Etc/GMT-2",
     "first_day": "2025-03-10", "last_day": "2025-03-16"}
)  # fmt: skip
NOON = 1_741_600_800.0  # Monday 2025-03-10, 12:00 on the scope's clocks
DISC = area_in_metres(shapely.Point(3000, 2500).buffer(400))
ALWAYS_CLOSED = Closed(DISC, name="disc")
CLOSED_AT_NOON = Closed(area_in_metres(shapely.box(500, 500, 1500, 1500)), hours("10:00", "14:00"), name="noon")


def _rng():
    return np.random.default_rng(7)


def _walks(n=30, points=20, seed=0, step_m=120.0, interval_s=30.0):
    """Smooth walks from everywhere to everywhere: many cross the disc and the square."""
    rng = np.random.default_rng(seed)
    start, end = rng.uniform((400, 400), (6000, 5000), (2, n, 2))
    share = np.linspace(0, 1, points)[None, :, None]
    xy = start[:, None] * (1 - share) + end[:, None] * share + rng.normal(0, 15, (n, points, 2))
    xy = np.clip(xy, 50, (SCOPE.width_m - 50, SCOPE.height_m - 50))
    t = NOON + rng.integers(-1800, 1800, (n, 1)) + interval_s * np.arange(points)
    return np.arange(n + 1) * points, xy[..., 0].ravel(), xy[..., 1].ravel(), t.ravel().astype(float)


def _written(offsets, result):
    kept = as_written(Tracks(offsets, result.x_m, result.y_m, result.t_utc), SCOPE)
    return motion_from_metres(kept.x_m, kept.y_m, kept.t_utc, offsets, SCOPE)


def _assert_obeys(rules, offsets, result):
    assert len(result.unresolved) == 0
    for each in count((*rules, scope_bounds(SCOPE)), _written(offsets, result)).values():
        assert each == {"points": 0, "trajectories": 0}
    joined = np.ones(len(result.t_utc) - 1, bool)
    joined[offsets[1:-1] - 1] = False
    assert (np.diff(result.t_utc)[joined] >= 1).all()


def _line_motion(xy, interval_s=20.0):
    xy = np.asarray(xy, float)
    return np.array([0, len(xy)]), xy[:, 0], xy[:, 1], NOON + interval_s * np.arange(len(xy))


def _lon_lat(xy):
    lon, lat = SCOPE.to_degrees(np.array([p[0] for p in xy], float), np.array([p[1] for p in xy], float))
    return lon, lat


# times ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fastest", [0.5, 5.0, 25.0])
def test_physical_times(fastest):
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 40, 300)
    offsets = np.r_[0, np.cumsum(counts)]
    n = int(offsets[-1])
    x, y = rng.normal(0, 50, n).cumsum(), rng.normal(0, 50, n).cumsum()
    t = NOON + rng.exponential(20, n).cumsum()
    new = physical_times(offsets, x, y, t, fastest)
    joined = np.ones(n - 1, bool)
    joined[offsets[1:-1] - 1] = False
    step, dt = np.hypot(np.diff(x), np.diff(y))[joined], np.diff(new)[joined]
    assert (new == np.rint(new)).all() and (dt >= 1).all()
    assert (step <= fastest * dt + 1e-5).all()
    assert (new[offsets[:-1]] == np.rint(t[offsets[:-1]])).all()
    need = np.zeros(n)
    need[1:][joined] = np.maximum(np.ceil((step - 1e-6) / fastest), 1)
    needed = np.add.reduceat(need, offsets[:-1])
    before = np.rint(t[offsets[1:] - 1]) - np.rint(t[offsets[:-1]])
    # The duration is kept wherever it suffices, and otherwise grows to exactly what is needed.
    assert (new[offsets[1:] - 1] - new[offsets[:-1]] == np.maximum(before, needed)).all()
    assert (physical_times(offsets, x, y, new, fastest) == new).all()


def test_physical_times_of_many_blocks_and_none():
    offsets, x, y, t = _walks(n=3000, points=40)
    fastest = np.full(len(x), 3.0)
    whole = physical_times(offsets, x, y, t, fastest)
    last = physical_times(np.array([0, 40]), x[-40:], y[-40:], t[-40:], 3.0)
    assert (whole[-40:] == last).all() and not (whole == t).all()
    assert len(physical_times(np.array([0]), np.zeros(0), np.zeros(0), np.zeros(0), 5.0)) == 0
    assert physical_times(np.array([0, 1]), np.zeros(1), np.zeros(1), np.array([5.4]), 5.0).tolist() == [5.0]


def test_speed_limits_and_durations_need_no_descent():
    offsets, x, y, t = _walks(interval_s=10.0)
    rules = (SpeedLimit(15.0), SpeedLimit(8.0, DISC, name="slow disc"))
    result = refine(Tracks(offsets, x, y, t), rules, SCOPE, random=_rng())
    assert result.violations_before["speed_limit"]["points"] > 0
    assert result.violations_before["slow disc"]["points"] > 0
    _assert_obeys(rules, offsets, result)
    assert result.moved == 0 and result.retimed > 0
    slow = (MaxDuration(400.0), MinSpeed(3.0))
    result = refine(Tracks(offsets, x, y, t * 3 - 2 * NOON), slow, SCOPE, random=_rng())
    assert result.violations_before["max_duration"]["trajectories"] == 30
    assert result.violations_before["min_speed"]["trajectories"] > 0
    _assert_obeys(slow, offsets, result)
    assert result.moved == 0


def test_jax_is_not_imported_where_nothing_needs_it():
    code = (
        "import sys, numpy as np\n"
        "from wayveil.io.scope_files import read_scope\n"
        "from wayveil.rules import speed_limit\n"
        "from wayveil.synthesis.obey.refine import refine\n"
        "from wayveil.synthesis.place.track_columns import Tracks\n"
        "for t in ([0., 90.], [0., 1.]):\n"
        "    t_utc = 1741600800 + np.array(t)\n"
        "    tracks = Tracks(np.array([0, 2]), np.array([100., 900.]), np.array([100., 100.]), t_utc)\n"
        "    r = refine(tracks, (speed_limit(50),), read_scope('demo-city'), random=np.random.default_rng(0))\n"
        "    assert len(r.unresolved) == 0\n"
        "assert r.retimed == 1 and 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# places --------------------------------------------------------------------------------------------------------------


def test_closed_areas_with_and_without_hours_and_what_obeys_is_untouched():
    offsets, x, y, t = _walks(n=100)
    rules = (ALWAYS_CLOSED, CLOSED_AT_NOON, SpeedLimit(30.0))
    result = refine(Tracks(offsets, x, y, t), rules, SCOPE, random=_rng())
    assert result.violations_before["disc"]["trajectories"] > 3
    assert result.violations_before["noon"]["trajectories"] > 3
    _assert_obeys(rules, offsets, result)

    motion = _written(offsets, type("R", (), {"x_m": x, "y_m": y, "t_utc": t}))
    violating = np.zeros(100, bool)
    for rule in (*rules, scope_bounds(SCOPE)):
        violating[motion.owner[rule.violations(motion)]] = True
    obeying = np.repeat(~violating, 20)
    assert obeying.any()
    for new, old in ((result.x_m, x), (result.y_m, y), (result.t_utc, t)):
        assert new[obeying].tobytes() == old[obeying].tobytes()

    # Ends outside the areas stay where they are, up to a few metres for those next to a border.
    ends = np.zeros(len(x), bool)
    ends[offsets[:-1]] = ends[offsets[1:] - 1] = True
    ends &= ~(ALWAYS_CLOSED.violations(motion) | CLOSED_AT_NOON.violations(motion))
    far = np.hypot(result.x_m - x, result.y_m - y)
    assert far[ends].max() < 5.0
    assert far.max() < 450.0

    again = refine(Tracks(offsets, x, y, t), rules, SCOPE, random=_rng())
    assert again.x_m.tobytes() == result.x_m.tobytes() and again.t_utc.tobytes() == result.t_utc.tobytes()


def test_a_track_deep_in_a_closed_area_gets_another_departure_and_keeps_its_points():
    offsets, x, y, t = _line_motion([(1000 + 5 * i, 1000) for i in range(10)])
    result = refine(Tracks(offsets, x, y, t), (CLOSED_AT_NOON,), SCOPE, random=_rng())
    _assert_obeys((CLOSED_AT_NOON,), offsets, result)
    assert result.moved == 0 and result.retimed == 1
    window = SCOPE.time_window()
    assert result.t_utc[0] >= window[0] and result.t_utc[-1] < window[1]
    assert (np.diff(result.t_utc) == np.diff(t)).all()


def test_leaving_the_scope_or_an_area_to_stay_within():
    offsets, x, y, t = _walks(n=20)
    x = x - 300.0
    harbour = StayWithin(area_in_metres(shapely.Point(3200, 2700).buffer(2900), grow=-1))
    result = refine(Tracks(offsets, x, y, t), (harbour,), SCOPE, random=_rng())
    assert result.violations_before["stay_within"]["points"] > 5
    _assert_obeys((harbour,), offsets, result)


def test_one_way_streets_that_are_drawn_or_from_the_map():
    xy = [(500 + 60 * i, 3000) for i in range(40)]
    lon, lat = _lon_lat([(4000, 3000), (400, 3000)])
    line = {"type": "LineString", "coordinates": [list(p) for p in zip(lon.tolist(), lat.tolist())]}
    drawn = one_way(line, SCOPE, width_m=20)
    roads = RoadMap(np.array([0, 2]), lon, lat, np.zeros(1, np.int8), np.ones(1, np.int8), np.full(1, np.nan))
    for rule in (drawn, map_one_ways(roads, SCOPE)):
        offsets, x, y, t = _line_motion(xy)
        result = refine(Tracks(offsets, x, y, t), (rule,), SCOPE, random=_rng())
        assert result.violations_before[rule.name]["points"] > 30
        _assert_obeys((rule,), offsets, result)
        assert np.hypot(result.x_m - x, result.y_m - y).max() < 60
        # In the direction of the line, no rule is broken and nothing changes.
        back = refine(Tracks(offsets, x[::-1].copy(), y, t), (rule,), SCOPE, random=_rng())
        assert back.moved == back.retimed == 0


def test_a_user_defined_rule_with_attraction():
    import jax.numpy as jnp

    from wayveil.core.grid import base_grid

    rule = custom(lambda x, y, t: jnp.maximum(y - 4000.0, 0.0), SCOPE, "north")
    offsets, x, y, t = _line_motion([(1000 + 50 * i, 3800 + 15 * i) for i in range(20)])
    grid = base_grid(SCOPE)
    density = np.random.default_rng(0).random((grid.rows, grid.columns))
    result = refine(Tracks(offsets, x, y, t), (rule,), SCOPE, random=_rng(), attraction=Attraction(density, grid))
    assert result.violations_before["north"]["points"] > 0
    _assert_obeys((rule,), offsets, result)


# strange input -------------------------------------------------------------------------------------------------------


def test_trajectories_that_cannot_obey_are_listed_and_unchanged():
    offsets, x, y, t = _walks(n=4)
    everywhere = Closed(area_in_metres(shapely.box(-100, -100, 9000, 9000)), name="everywhere")
    result = refine(Tracks(offsets, x, y, t), (everywhere,), SCOPE, random=_rng())
    assert result.unresolved.tolist() == [0, 1, 2, 3]
    assert result.x_m.tobytes() == x.tobytes() and result.t_utc.tobytes() == t.tobytes()
    assert result.moved == result.retimed == 0

    opposed = (SpeedLimit(5.0), MaxDuration(60.0))
    result = refine(Tracks(offsets, x, y, t), opposed, SCOPE, random=_rng())
    assert result.unresolved.tolist() == [0, 1, 2, 3]
    assert np.isfinite(result.x_m).all() and np.isfinite(result.t_utc).all()


def test_empty_input_and_single_points():
    none = np.zeros(0)
    empty = refine(Tracks(np.array([0]), none, none, none), (ALWAYS_CLOSED,), SCOPE, random=_rng())
    assert len(empty.x_m) == 0 and len(empty.unresolved) == 0
    offsets = np.array([0, 1, 2, 3])
    x, y, t = np.array([3000.0, -40.0, 100.0]), np.array([2500.0, 300.0, 100.0]), np.full(3, NOON)
    rules = (ALWAYS_CLOSED, SpeedLimit(10.0), MaxDuration(60.0), MinSpeed(1.0))
    result = refine(Tracks(offsets, x, y, t), rules, SCOPE, random=_rng())
    assert result.moved == 2
    assert (count((*rules, scope_bounds(SCOPE)), _written(offsets, result))["disc"]["points"]) == 0
    _assert_obeys(rules, offsets, result)


def test_all_at_one_time_and_place():
    offsets = np.array([0, 5])
    x, y, t = np.full(5, 3000.0), np.full(5, 2500.0), np.full(5, NOON)
    result = refine(Tracks(offsets, x, y, t), (ALWAYS_CLOSED,), SCOPE, random=_rng())
    _assert_obeys((ALWAYS_CLOSED,), offsets, result)


def haversine_m(lon, lat):
    """Between neighbours, on the sphere: what somebody who checks a file computes."""
    east, north = np.radians(lon), np.radians(lat)
    half = np.sin(np.diff(north) / 2) ** 2 + np.cos(north[1:]) * np.cos(north[:-1]) * np.sin(np.diff(east) / 2) ** 2
    return 2 * 6_371_000 * np.arcsin(np.sqrt(half))


def test_a_speed_limit_holds_on_the_ground_of_a_tall_box():
    """The projection is exact only along the middle latitude: in the south of this box steps are 2 % longer."""
    scope = Scope(name="tall", south=59.9, west=20.0, north=61.4, east=21.0, timezone="UTC")
    random = np.random.default_rng(3)
    offsets = np.arange(0, 401, 10)
    lon = np.clip(20.5 + 0.01 * np.cumsum(random.normal(size=400)), 20.0, 21.0)
    lat = np.clip(np.repeat(random.uniform(59.9, 61.4, 40), 10) + 0.003 * random.normal(size=400), 59.9, 61.4)
    x, y = scope.to_metres(lon, lat)
    t = 1.7e9 + 30.0 * np.arange(400)
    found = refine(Tracks(offsets, x, y, t), [constructors.speed_limit(60)], scope, random=random)
    made = scope.to_degrees(found.x_m, found.y_m)
    inside = np.ones(399, bool)
    inside[offsets[1:-1] - 1] = False
    kmh = 3.6 * (haversine_m(*made) / np.diff(found.t_utc))[inside]
    assert kmh.max() <= 60.001 and (kmh > 59).any()
    counted = constructors.speed_limit(60).violations(motion_from_metres(x, y, t, offsets, scope))[1:][inside]
    fast = 3.6 * (haversine_m(lon, lat) / 30.0)[inside]
    clear = np.abs(fast - 60) > 0.001
    assert np.array_equal(counted[clear], fast[clear] > 60)

"""A small scope, shapes in it, and one of every rule."""

import numpy as np

from wayveil.core.roads import ROAD_CLASSES, RoadMap
from wayveil.core.scope import Scope
from wayveil.rules import (
    closed,
    custom,
    hours,
    map_one_ways,
    max_duration,
    min_speed,
    motion_from_metres,
    one_way,
    scope_bounds,
    speed_limit,
    stay_within,
)

MONDAY_UTC = 1_741_564_800.0  # 2025-03-10 00:00


def make_scope(**other):
    box = {"name": "test", "south": 10.0, "west": 20.0, "north": 10.05, "east": 20.06, "timezone": "UTC"}
    return Scope.model_validate({**box, **other})


def positions(scope, xy):
    lon, lat = scope.to_degrees(np.array([p[0] for p in xy], float), np.array([p[1] for p in xy], float))
    return [[float(a), float(b)] for a, b in zip(lon, lat)]


def polygon(scope, *rings):
    return {"type": "Polygon", "coordinates": [positions(scope, [*ring, ring[0]]) for ring in rings]}


def line(scope, xy):
    return {"type": "LineString", "coordinates": positions(scope, xy)}


def make_roads(scope):
    """Streets every 200 m: odd columns one-way to the north, even columns unknown or two-way, rows two-way."""
    lines, oneway, classes = [], [], []
    for number, x in enumerate(range(100, 6000, 200)):
        lines.append(positions(scope, [(x, 0), (x, 2500), (x, 5000)]))
        oneway.append(1 if number % 2 else (0 if number % 4 else -1))
        classes.append(ROAD_CLASSES.index("primary" if number % 3 == 0 else "residential"))
    for y in (1000, 3000):
        lines.append(positions(scope, [(0, y), (6000, y)]))
        oneway.append(0)
        classes.append(ROAD_CLASSES.index("motorway"))
    flat = np.array([p for one in lines for p in one])
    offsets = np.cumsum([0] + [len(one) for one in lines])
    return RoadMap(offsets, flat[:, 0], flat[:, 1], np.array(classes, np.int8), np.array(oneway, np.int8),
                   np.full(len(lines), np.nan))  # fmt: skip


SCOPE = make_scope()
ROADS = make_roads(SCOPE)
HOOK = [(1000, 1000), (4000, 1000), (4000, 4000), (2500, 1800), (1000, 4000)]
HOLE = [(1200, 1100), (1200, 1400), (1800, 1400), (1800, 1100)]


def _corner(x, y, t):
    import jax.numpy as jnp

    return jnp.maximum(x + y - 6000.0, 0.0)


def every_rule():
    area = polygon(SCOPE, HOOK, HOLE)
    return {
        "closed": closed(area, SCOPE),
        "closed at night": closed(area, SCOPE, hours("22:00", "06:00", ["mon", "wed", "sun"])),
        "speed everywhere": speed_limit(50),
        "speed in area": speed_limit(30, SCOPE, area),
        "speed by class": speed_limit(30, SCOPE, roads=ROADS, classes=["primary", "motorway"], width_m=60),
        "one way": one_way(line(SCOPE, [(500, 500), (2500, 1500), (5500, 1800)]), SCOPE, width_m=250),
        "map one-ways": map_one_ways(ROADS, SCOPE, width_m=40),
        "stay within": stay_within(area, SCOPE),
        "scope bounds": scope_bounds(SCOPE),
        "min speed": min_speed(15),
        "max duration": max_duration(0.1),
        "custom": custom(_corner, SCOPE),
    }


def make_motion(seed, trajectories=200, jitter_m=0.0, scope=SCOPE):
    """Random walks of 1 to 12 points, some standing still, some with equal times, some outside the scope."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 13, trajectories)
    offsets = np.r_[0, np.cumsum(counts)]
    x, y, t = [], [], []
    for n in counts:
        step = rng.choice([0.0, 30.0, 150.0, 400.0])
        heading = rng.choice([0, np.pi / 2, np.pi, -np.pi / 2]) + rng.normal(0, 0.2, n)
        x.append(rng.uniform(-200, scope.width_m + 200) + np.cumsum(step * np.cos(heading)))
        y.append(rng.uniform(-200, scope.height_m + 200) + np.cumsum(step * np.sin(heading)))
        t.append(MONDAY_UTC + rng.integers(0, 604_800) + np.cumsum(rng.integers(0, 90, n)))
    x, y = (np.concatenate(column) + rng.normal(0, jitter_m, offsets[-1]) for column in (x, y))
    return motion_from_metres(x, y, np.concatenate(t), offsets, scope)


RULES = every_rule()

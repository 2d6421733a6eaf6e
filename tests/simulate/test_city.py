"""The embedded city: streets that connect, rules that parse, options that refuse."""

import json
import tomllib

import numpy as np
import pytest

from wayveil.core.roads import ROAD_CLASSES, roads_digest
from wayveil.core.scope import Scope
from wayveil.errors import InputError
from wayveil.io.scope_files import parse_scope, read_scope
from wayveil.simulate import rules_text, scope_toml, simulate_city


@pytest.fixture(scope="module")
def city():
    return simulate_city(0, size_km=(5, 5))


def test_default_city_fills_the_shipped_scope():
    city = simulate_city(0)
    assert city.scope == read_scope("demo-city")
    x, y = city.scope.to_metres(city.roadmap.lon, city.roadmap.lat)
    assert x.min() >= -0.1 and x.max() <= city.scope.width_m + 0.1
    assert y.min() >= -0.1 and y.max() <= city.scope.height_m + 0.1
    assert np.ptp(x) > 0.95 * city.scope.width_m and np.ptp(y) > 0.95 * city.scope.height_m
    names = {ROAD_CLASSES[c] for c in np.unique(city.roadmap.road_class)}
    assert names == {"motorway", "primary", "secondary", "tertiary", "residential"}
    assert 0.05 < (city.roadmap.oneway == 1).mean() < 0.5
    assert len(city.roadmap) > 4000
    assert len(city.closures) == 3


def test_same_seed_same_city_other_seed_other_city(city):
    again, other = simulate_city(0, size_km=(5, 5)), simulate_city(1, size_km=(5, 5))
    assert roads_digest(again.roadmap) == roads_digest(city.roadmap)
    assert rules_text(again) == rules_text(city)
    assert roads_digest(other.roadmap) != roads_digest(city.roadmap)


def test_every_junction_reaches_every_other(city):
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    streets = city.streets
    both = ~streets.oneway
    a, b = np.r_[streets.start, streets.end[both]], np.r_[streets.end, streets.start[both]]
    n = len(streets.node_xy)
    count, _ = connected_components(coo_matrix((np.ones(len(a)), (a, b)), (n, n)), directed=True, connection="strong")
    assert count == 1


def test_edges_end_at_their_nodes(city):
    streets = city.streets
    assert np.allclose(streets.xy[streets.offsets[:-1]], streets.node_xy[streets.start])
    assert np.allclose(streets.xy[streets.offsets[1:] - 1], streets.node_xy[streets.end])
    assert (streets.length_m > 1).all()


def test_the_river_is_crossed_by_a_few_bridges_only(city):
    import shapely

    from wayveil.simulate.plan import Style, draw_plan

    plan = draw_plan(city.scope.width_m, city.scope.height_m, Style(), np.random.default_rng([0, 1]))
    river = shapely.linestrings(plan.warp(shapely.get_coordinates(shapely.segmentize(plan.river, 20.0))))
    owner = np.repeat(np.arange(len(city.streets)), np.diff(city.streets.offsets))
    crossing = shapely.intersects(shapely.linestrings(city.streets.xy, indices=owner), river)
    assert 2 <= crossing.sum() <= 14
    assert not np.isin(city.streets.road_class[crossing], [ROAD_CLASSES.index("residential")]).any()


@pytest.mark.parametrize("pattern", ["grid", "organic"])
@pytest.mark.parametrize("size", [(2, 2), (2, 6)])
def test_small_and_strange_cities(pattern, size):
    city = simulate_city(5, size_km=size, pattern=pattern, hot_spots=1)
    assert len(city.roadmap) > 30
    assert len(city.hot_spots) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"size_km": (1, 1)}, {"size_km": (5, 500)}, {"pattern": "spiral"}, {"block_m": 1.0}, {"hot_spots": 0},
        {"seed": -1}, {"scope": read_scope("demo-city"), "size_km": (3, 3)},
        {"scope": Scope(name="wide", south=0, west=0, north=5, east=5)},
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(options):
    with pytest.raises(InputError):
        simulate_city(**{"seed": 0, **options})


def test_scope_text_reads_back(city):
    assert parse_scope(scope_toml(city), "city") == city.scope
    assert tomllib.loads(scope_toml(city))["name"] == "demo-city-5x5"


def test_rules_file_has_closed_areas_oneways_and_limits(city):
    features = json.loads(rules_text(city))["features"]
    rules = [feature["properties"]["rule"] for feature in features]
    assert rules.count("closed") == 3 and rules.count("one_way") == 1 and rules.count("speed_limit") == 2
    for feature in features:
        if feature["properties"]["rule"] == "closed":
            ring = feature["geometry"]["coordinates"][0]
            assert ring[0] == ring[-1] and len(ring) >= 4
            assert {"from", "to"} <= set(feature["properties"])


def test_closures_know_their_hours(city):
    hours = {closure.name: closure for closure in city.closures}
    night = hours["City park at night"]
    week_s = np.array([23.0, 3.0, 12.0]) * 3600
    assert night.holds(week_s).tolist() == [True, True, False]
    match = hours["Stadium on match days"]
    assert match.holds(np.array([15.0, 5 * 24 + 15.0, 5 * 24 + 20.0]) * 3600).tolist() == [False, True, False]

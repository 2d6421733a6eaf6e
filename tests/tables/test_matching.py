"""Trips on links: cut at junctions, driven in a direction, joined by shortest paths, and honest about gaps."""

import numpy as np
import pytest

from wayveil.core.roads import RoadMap
from wayveil.core.scope import Scope
from wayveil.traffic import paths
from wayveil.traffic.links import links_of
from wayveil.traffic.matching import SETTINGS, match_trips

SCOPE = Scope(name="town", south=0.0, west=0.0, north=0.02, east=0.02)


def road_map(lines, oneway=None):
    """Roads through the given places, in metres."""
    counts = [len(line) for line in lines]
    x, y = np.concatenate([np.array(line, float) for line in lines]).T
    lon, lat = SCOPE.to_degrees(x, y)
    flags = np.array(oneway or [0] * len(lines), np.int8)
    return RoadMap(
        np.r_[0, np.cumsum(counts)], lon, lat, np.zeros(len(lines), np.int8), flags, np.full(len(lines), np.nan)
    )


CROSS = [[(100, 500), (500, 500), (900, 500)], [(500, 100), (500, 500), (500, 900)]]


def drive(links, *trips):
    """Metres by (trip, road, part, direction) of trips through (x, y, t)."""
    offsets = np.r_[0, np.cumsum([len(trip) for trip in trips])]
    x, y, t = np.concatenate([np.array(trip, float) for trip in trips]).T
    found = match_trips(links, offsets, x, y, t)
    metres: dict = {}
    for trip, link, forward, distance in zip(found.trip, found.link, found.forward, found.distance_m):
        key = (int(trip), int(links.road[link]), int(links.part[link]), "forward" if forward else "backward")
        metres[key] = metres.get(key, 0.0) + float(distance)
    return {key: round(value) for key, value in metres.items() if value > 1}, found


def test_roads_are_cut_where_they_touch():
    links = links_of(road_map(CROSS), SCOPE)
    assert len(links) == 4 and links.junctions == 5
    assert np.allclose(links.length_m, 400, atol=0.1)
    assert sorted(zip(links.road.tolist(), links.part.tolist())) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_turn_at_a_junction_uses_half_of_both_roads():
    links = links_of(road_map(CROSS), SCOPE)
    metres, found = drive(links, [(150, 503, 0), (495, 700, 60)])
    assert metres == {(0, 0, 0, "forward"): 350, (0, 1, 1, "forward"): 200}
    assert found.matched_share == 1.0
    assert found.duration_s.sum() == pytest.approx(60)


def test_the_direction_is_that_of_travel():
    links = links_of(road_map(CROSS), SCOPE)
    metres, _ = drive(links, [(850, 500, 0), (700, 500, 10), (150, 500, 60)])
    assert metres == {(0, 0, 1, "backward"): 350, (0, 0, 0, "backward"): 350}


def test_one_way_streets_are_not_driven_against_their_direction():
    block = [[(100, 100), (500, 100)], [(500, 100), (500, 300)], [(500, 300), (100, 300)], [(100, 300), (100, 100)]]
    links = links_of(road_map(block, [1, 1, 1, 1]), SCOPE)
    metres, _ = drive(links, [(480, 100, 0), (500, 280, 30)])
    assert metres == {(0, 0, 0, "forward"): 20, (0, 1, 0, "forward"): 180}
    metres, found = drive(links, [(500, 280, 0), (480, 100, 30)])  # the way around is 1,000 m: not believed
    assert metres == {} and found.matched_share == 0.0


def test_the_lane_in_the_direction_of_travel_is_chosen():
    lanes = [[(100, 500), (900, 500)], [(900, 510), (100, 510)]]
    links = links_of(road_map(lanes, [1, 1]), SCOPE)
    metres, _ = drive(links, [(800, 503, 0), (200, 503, 60)], [(200, 507, 0), (800, 507, 60)])
    assert metres == {(0, 1, 0, "forward"): 600, (1, 0, 0, "forward"): 600}


def test_gaps_are_reported_and_belong_to_no_street():
    links = links_of(road_map(CROSS), SCOPE)
    away = 500 + 2 * SETTINGS.reach_m
    metres, found = drive(links, [(150, 500, 0), (450, 500, 30), (300, away, 60), (150, 500, 120)])
    assert metres == {(0, 0, 0, "forward"): 300}
    steps = 300 + np.hypot(150, away - 500) * 2
    assert found.matched_share == pytest.approx(300 / steps)


def test_standing_still_and_single_points_are_no_traffic():
    links = links_of(road_map(CROSS), SCOPE)
    metres, found = drive(links, [(150, 500, 0), (150, 500, 30)], [(150, 500, 0)])
    assert metres == {} and len(found.trip) == 0


def test_longer_paths_are_those_of_networkx():
    import networkx

    places = [(100 + 200 * i, 100 + 200 * j) for i in range(5) for j in range(5)]
    random = np.random.default_rng(3)
    lines = [[a, b] for a in places for b in places if a < b and np.hypot(a[0] - b[0], a[1] - b[1]) == 200]
    lines = [line for line in lines if random.random() < 0.8]
    links = links_of(road_map(lines), SCOPE)
    graph = networkx.Graph()
    graph.add_weighted_edges_from((a, b, 200.0) for a, b in lines)
    checked = 0
    for _ in range(60):
        a, b = (places[k] for k in random.choice(len(places), 2, replace=False))
        straight = np.hypot(a[0] - b[0], a[1] - b[1])
        metres, _ = drive(links, [(*a, 0), (*b, 100)])
        if not (graph.has_node(a) and graph.has_node(b) and networkx.has_path(graph, a, b)):
            continue
        shortest = networkx.shortest_path_length(graph, a, b, "weight")
        believed = shortest <= paths.SETTINGS.detour * straight + paths.SETTINGS.slack_m
        assert sum(metres.values()) == pytest.approx(shortest if believed else 0, abs=2)
        checked += believed
    assert checked > 30

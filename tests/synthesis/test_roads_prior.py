"""The road map as a prior: hand-made maps with known results."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra

from wayveil.core.density import NoisyLevel, estimate_field
from wayveil.core.grid import base_grid
from wayveil.core.pyramid import pool
from wayveil.core.roads import ROAD_CLASSES, RoadMap
from wayveil.core.scope import Scope
from wayveil.synthesis.estimate.mapped_density import estimate_mapped_field
from wayveil.synthesis.routes.road_network import road_network
from wayveil.synthesis.routes.road_prior import prepare_roads, road_features

SCOPE = Scope(name="town", south=0.0, west=0.0, north=0.04, east=0.04)  # 4.4 km × 4.4 km
GRID = base_grid(SCOPE)
FLAT = np.ones((GRID.rows, GRID.columns))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def road_graph(roads, grid, scope, density):
    return prepare_roads(roads, grid, scope).graph(density)


def a_map(*roads, scope=SCOPE):
    """Each road: (class name, oneway, [(x, y), …] in metres)."""
    parts = [np.asarray(points, float) for _, _, points in roads]
    lon, lat = scope.to_degrees(*np.concatenate([*parts, np.empty((0, 2))]).T)
    return RoadMap(
        np.r_[0, np.cumsum([len(part) for part in parts])].astype(np.int64),
        lon,
        lat,
        np.array([ROAD_CLASSES.index(name) for name, _, _ in roads], np.int8),
        np.array([oneway for _, oneway, _ in roads], np.int8),
        np.full(len(roads), np.nan),
    )


def grid_town(low=200.0, high=4200.0, step=500.0, oneway=0):
    """Streets as whole lines that cross at shared inner vertices."""
    at = np.arange(low, high + 1, step)
    rows = [("residential", oneway, [(x, y) for x in at]) for y in at]
    columns = [("primary", oneway, [(x, y) for y in at]) for x in at]
    return a_map(*rows, *columns), at


def matrix_of(graph):
    return csr_matrix((graph.cost, (graph.tail, graph.head)), shape=(graph.nodes, graph.nodes))


def costs_between(graph, start, end):
    node = graph.nearest(np.array([start[0], end[0]]), np.array([start[1], end[1]]))
    return dijkstra(matrix_of(graph), indices=node[0])[node[1]]


def is_strong(graph):
    return connected_components(matrix_of(graph), directed=True, connection="strong")[0] == 1


def shape_lengths(graph):
    """Length of each directed edge through its shape."""
    total = np.zeros(len(graph.tail))
    for e in range(len(total)):
        part = slice(*graph.shape_offsets[e : e + 2])
        x = np.r_[graph.x_m[graph.tail[e]], graph.shape_x_m[part], graph.x_m[graph.head[e]]]
        y = np.r_[graph.y_m[graph.tail[e]], graph.shape_y_m[part], graph.y_m[graph.head[e]]]
        total[e] = np.hypot(np.diff(x), np.diff(y)).sum()
    return total


def test_features_hold_the_length_of_each_class_where_it_is():
    roads = a_map(("motorway", 1, [(500, 1050), (3500, 1050)]), ("path", -1, [(1050, 2000), (1050, 2400)]))
    *classes, uncovered = road_features(roads, GRID, SCOPE)
    assert len(classes) == 6
    assert classes[0].sum() == pytest.approx(30.0, rel=1e-3)
    assert classes[5].sum() == pytest.approx(4.0, rel=1e-3)
    assert sum(field.sum() for field in classes[1:5]) == 0
    assert classes[0][10, 20] == pytest.approx(1.0, abs=0.01)  # the road runs through the middle of the cell
    assert uncovered[10, 10] == 0 and uncovered[40, 40] == 1
    assert set(np.unique(uncovered)) == {0.0, 1.0}


def test_a_road_on_a_border_of_cells_belongs_to_both():
    motorway = road_features(a_map(("motorway", 0, [(500, 1000), (3500, 1000)])), GRID, SCOPE)[0]
    assert motorway[9, 20] == pytest.approx(0.5, abs=0.02)
    assert motorway[10, 20] == pytest.approx(0.5, abs=0.02)


def test_roads_outside_the_scope_and_empty_maps_change_nothing():
    outside = a_map(("primary", 0, [(9000, 9000), (12000, 9000)]))
    for roads in (outside, a_map()):
        prior = prepare_roads(roads, GRID, SCOPE)
        assert prior.features == () and len(prior) == 0
        graph = prior.graph(FLAT)
        assert graph.loose.all() and is_strong(graph)
        x, y = prior.points.draw_in_cells(np.arange(GRID.cells), np.random.default_rng(0))
        assert (GRID.index(x, y) == np.arange(GRID.cells)).mean() > 0.999


def test_a_grid_town_has_a_node_at_each_crossing_and_manhattan_distances():
    roads, at = grid_town()
    graph = road_graph(roads, GRID, SCOPE, FLAT)
    assert not graph.loose.any() and is_strong(graph)
    xx, yy = (v.ravel() for v in np.meshgrid(at, at))
    nearest = graph.nearest(xx, yy)
    assert np.hypot(graph.x_m[nearest] - xx, graph.y_m[nearest] - yy).max() < 1.0
    per_metre = graph.cost.sum() / shape_lengths(graph).sum()
    assert costs_between(graph, (200, 200), (3200, 2200)) / per_metre == pytest.approx(5000, rel=0.01)


def test_chains_are_joined_and_keep_their_shape():
    bend = [(1000, 1000), (1200, 1000), (1200, 1200), (1400, 1200)]
    pieces = [("tertiary", 0, bend[k : k + 2]) for k in range(3)]
    network = road_network(a_map(*pieces, ("tertiary", 0, [(1400, 1200), (1400, 1500), (1700, 1500)])), GRID, SCOPE)
    step = np.hypot(np.diff(network.vertex_x_m), np.diff(network.vertex_y_m))
    joints = network.offsets[1:-1] - 1
    assert np.delete(step, joints).sum() == pytest.approx(1200, rel=1e-3)
    assert len(network.x_m) <= 5


def test_a_change_of_class_stays_a_node():
    network = road_network(
        a_map(("tertiary", 0, [(1000, 1000), (1150, 1000)]), ("primary", 0, [(1150, 1000), (1300, 1000)])), GRID, SCOPE
    )
    assert len(network) == 2 and len(network.x_m) == 3


def test_reverse_edges_have_reversed_shapes():
    curve = [(1000 + 150 * np.sin(a), 1000 + 150 * np.cos(a)) for a in np.linspace(0, 3, 30)]
    graph = road_graph(a_map(("primary", 0, curve), ("primary", 0, [curve[-1], (3000, 1000)])), GRID, SCOPE, FLAT)
    edge = {(t, h): e for e, (t, h) in enumerate(zip(graph.tail, graph.head))}
    shaped = [(t, h, e) for (t, h), e in edge.items() if np.diff(graph.shape_offsets)[e] > 0]
    assert shaped
    for t, h, e in shaped:
        forth, back = (slice(*graph.shape_offsets[k : k + 2]) for k in (e, edge[h, t]))
        np.testing.assert_allclose(graph.shape_x_m[forth], graph.shape_x_m[back][::-1])
        np.testing.assert_allclose(graph.shape_y_m[forth], graph.shape_y_m[back][::-1])


def test_a_one_way_ring_is_followed_only_in_its_direction():
    angle = np.linspace(0, 2 * np.pi, 80)
    ring = np.c_[2200 + 1000 * np.cos(angle), 2200 + 1000 * np.sin(angle)]
    ring[-1] = ring[0]
    graph = road_graph(a_map(("secondary", 1, ring)), GRID, SCOPE, FLAT)
    east, north = ring[0], ring[20]
    along, against = costs_between(graph, east, north), costs_between(graph, north, east)
    assert against > 2 * along
    pairs = set(zip(graph.tail.tolist(), graph.head.tolist()))
    on_road = ~graph.loose
    assert not any((h, t) in pairs for t, h in pairs if on_road[t] and on_road[h])


def test_a_one_way_street_without_return_is_left_out():
    roads, _ = grid_town()
    dead_end = a_map(("residential", 1, [(700, 700), (950, 950)]))
    both = RoadMap(*(
        np.r_[getattr(roads, name), getattr(dead_end, name)[1:] + len(roads.lon)]
        if name == "offsets" else np.r_[getattr(roads, name), getattr(dead_end, name)]
        for name in ("offsets", "lon", "lat", "road_class", "oneway", "maxspeed_kmh")
    ))  # fmt: skip
    graph = road_graph(both, GRID, SCOPE, FLAT)
    assert is_strong(graph)
    assert np.hypot(graph.x_m - 950, graph.y_m - 950).min() > 200


def test_islands_are_joined_through_blocks():
    west = [("primary", 0, [(200, y), (900, y)]) for y in (500, 1000, 1500)]
    west.append(("primary", 0, [(200, 500), (200, 1000), (200, 1500)]))
    east = [("primary", 0, [(x + 3200, y) for x, y in points]) for _, _, points in west]
    graph = road_graph(a_map(*west, *[("primary", 0, points) for _, _, points in east]), GRID, SCOPE, FLAT)
    assert is_strong(graph) and graph.loose.any() and not graph.loose.all()
    assert (~graph.loose & (graph.x_m < 1000)).any() and (~graph.loose & (graph.x_m > 3000)).any()
    assert np.isfinite(costs_between(graph, (200, 500), (3400, 500)))
    # A loose node stands inside its own block, which is how a path finds the block again.
    assert graph.block_m == 400.0


def test_only_the_cheaper_of_parallel_roads_is_kept():
    direct, detour = [(1000, 1000), (1300, 1000)], [(1000, 1000), (1000, 1040), (1300, 1040), (1300, 1000)]
    links = [("primary", 0, [(600, 1000), (1000, 1000)]), ("primary", 0, [(1300, 1000), (1800, 1000)])]
    graph = road_graph(a_map(("primary", 0, direct), ("primary", 0, detour), *links), GRID, SCOPE, FLAT)
    key = graph.tail * graph.nodes + graph.head
    assert len(np.unique(key)) == len(key) and (graph.tail != graph.head).all()
    on_road = ~(graph.loose[graph.tail] | graph.loose[graph.head])
    per_metre = np.median(graph.cost[on_road] / shape_lengths(graph)[on_road])
    assert costs_between(graph, (1000, 1000), (1300, 1000)) == pytest.approx(300 * per_metre, rel=0.01)


def test_busy_roads_are_cheaper():
    roads, at = grid_town()
    density = FLAT * 0.05
    density[int(at[4] // 100), :] = 5.0
    graph = road_graph(roads, GRID, SCOPE, density)
    per_metre = graph.cost / shape_lengths(graph)
    on = (np.abs(graph.y_m[graph.tail] - at[4]) < 1) & (np.abs(graph.y_m[graph.head] - at[4]) < 1)
    off = (np.abs(graph.y_m[graph.tail] - at[4]) > 1) & (np.abs(graph.y_m[graph.head] - at[4]) > 1)
    assert per_metre[on].max() < 0.2 * per_metre[off].min()


def test_service_roads_only_where_there_is_nothing_else():
    roads = a_map(
        ("primary", 0, [(200, 200), (1200, 200)]), ("service", 0, [(700, 200), (700, 500)]),
        ("service", 0, [(3000, 3000), (4000, 3000)]),
    )  # fmt: skip
    network = road_network(roads, GRID, SCOPE)
    assert network.y_m.min() < 300 and not ((network.y_m > 300) & (network.y_m < 2900)).any()
    assert (network.y_m > 2900).any()


def test_cache_gives_the_same_and_survives_damage(tmp_path):
    roads, _ = grid_town()
    first = prepare_roads(roads, GRID, SCOPE)
    (file,) = (tmp_path / "wayveil").iterdir()
    written = file.stat().st_mtime_ns
    again = prepare_roads(roads, GRID, SCOPE)
    assert file.stat().st_mtime_ns == written
    good = file.read_bytes()
    for damaged in (b"", b"not a file", good[: len(good) // 2], good.replace(b"network", b"netwark")):
        file.write_bytes(damaged)
        mended = prepare_roads(roads, GRID, SCOPE)
        for other in (again, mended):
            np.testing.assert_array_equal(first.features, other.features)
            np.testing.assert_array_equal(first.network.vertex_x_m, other.network.vertex_x_m)
        assert file.read_bytes() != damaged
    other_map, _ = grid_town(step=1000.0)
    assert len(prepare_roads(other_map, GRID, SCOPE)) != len(first)
    assert len(list((tmp_path / "wayveil").iterdir())) == 2


def test_cache_never_unpickles_and_an_unwritable_folder_is_no_error(tmp_path):
    roads, _ = grid_town()
    first = prepare_roads(roads, GRID, SCOPE)
    (file,) = (tmp_path / "wayveil").iterdir()
    with open(file, "wb") as out:
        np.savez(out, features=np.array([print], dtype=object))
    assert len(prepare_roads(roads, GRID, SCOPE)) == len(first)
    blocked = tmp_path / "a file"
    blocked.write_text("")
    assert len(prepare_roads(roads, GRID, SCOPE, folder=blocked / "below")) == len(first)


def test_points_lie_on_roads_and_in_their_cells():
    prior = prepare_roads(a_map(("primary", 0, [(500, 1050), (3500, 1050)])), GRID, SCOPE)
    cell = np.repeat([10 * GRID.columns + 20, 30 * GRID.columns + 30], 4000)
    x, y = prior.points.draw_in_cells(cell, np.random.default_rng(1))
    np.testing.assert_array_equal(GRID.index(x, y), cell)
    assert np.std(y[:4000]) == pytest.approx(10, rel=0.1) and np.std(x[:4000]) == pytest.approx(29, rel=0.1)
    assert np.std(y[4000:]) == pytest.approx(29, rel=0.1)


def divergence(a, b):
    a, b = a / a.sum(), b / b.sum()
    m = (a + b) / 2
    return sum(np.sum(p * np.log(np.maximum(p, 1e-300) / np.maximum(m, 1e-300))) / 2 for p in (a, b))


def test_the_map_improves_the_density():
    roads, _ = grid_town()
    features = road_features(roads, GRID, SCOPE)
    random = np.random.default_rng(3)
    truth = 6.0 * features[1] + 1.0 * features[4] + 0.02
    truth *= np.exp(-np.hypot(*np.meshgrid(np.arange(GRID.columns) - 15, np.arange(GRID.rows) - 20)) / 15)
    truth *= 5_000 / truth.sum()
    levels = []
    for side in (8, 4, 1):
        counts = pool(truth, side)
        levels.append(NoisyLevel(counts + random.laplace(0, 6.0, counts.shape), side, 6.0))
    with_map = estimate_mapped_field(levels, 5_000, FLAT, features)
    without = estimate_field(levels, 5_000, FLAT)
    assert with_map.sum() == pytest.approx(5_000) and (with_map >= 0).all()
    assert divergence(truth, with_map) < 0.5 * divergence(truth, without)
    # A map of the wrong town must not mislead much where the counts are informative.
    wrong = tuple(np.roll(feature, (2, 2), (0, 1)) for feature in features)
    assert divergence(truth, estimate_mapped_field(levels, 5_000, FLAT, wrong)) < 2 * divergence(truth, without)

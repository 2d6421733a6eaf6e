"""Road maps: every kind of file, the tags' many spellings, clipping and the digest."""

import dataclasses
import json
import math
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wayveil.core.roads import ROAD_CLASSES, RoadMap
from wayveil.core.scope import Scope
from wayveil.errors import InputError
from wayveil.io.road_lines import direction, road_class_index, speed_kmh, street_name
from wayveil.io.roads import clip_roads, read_roads, roads_digest, write_roads


def small_map() -> RoadMap:
    return RoadMap(
        np.array([0, 2, 5, 7]),
        np.array([0.01, 0.02, 0.02, 0.03, 0.04, -0.01, 0.05]),
        np.array([0.01, 0.01, 0.01, 0.02, 0.02, 0.05, 0.05]),
        np.array([0, 5, 8], np.int8),
        np.array([1, 0, -1], np.int8),
        np.array([100.0, math.nan, 30.0]),
    )


def same(a: RoadMap, b: RoadMap) -> bool:
    names = ("offsets", "lon", "lat", "road_class", "oneway", "maxspeed_kmh")
    return all(np.array_equal(getattr(a, n), getattr(b, n), equal_nan=n == "maxspeed_kmh") for n in names)


@pytest.mark.parametrize("ending", ["parquet", "geojson"])
def test_street_names_are_kept(tmp_path, ending):
    path = tmp_path / f"roads.{ending}"
    named = dataclasses.replace(small_map(), name=np.array(["High Street", "", "Rue\u0301 de  l'Eau"], object))
    write_roads(named, path)
    again = read_roads(path)
    assert again.name.tolist() == ["High Street", "", "Rue\u0301 de l'Eau"]
    assert roads_digest(again) == roads_digest(small_map())
    write_roads(small_map(), path)
    assert read_roads(path).name is None
    box = Scope.model_validate({"name": "a", "south": 0.0, "west": 0.0, "north": 0.04, "east": 0.04})
    assert clip_roads(named, box).name.tolist() == ["High Street", ""]


@pytest.mark.parametrize(
    ("value", "name"),
    [("A\nB", "A B"), (["One", "Two"], "One"), ([], ""), (None, ""), (3.5, ""), ("x" * 500, "x" * 100)],
)
def test_names_are_short_lines_of_text(value, name):
    assert street_name(value) == name


@pytest.mark.parametrize("ending", ["parquet", "geojson"])
def test_read_of_write_is_the_same_map(tmp_path, ending):
    path = tmp_path / f"roads.{ending}"
    write_roads(small_map(), path)
    assert same(read_roads(path), small_map())
    assert roads_digest(read_roads(path)) == roads_digest(small_map())


def test_digest_sees_every_column():
    base = small_map()
    digests = {roads_digest(base)}
    for name in ("lon", "lat", "road_class", "oneway", "maxspeed_kmh"):
        column = np.array(getattr(base, name))
        column[0] = column[0] + 0.5 if column.dtype == float else column[0] - 1
        columns = {n: getattr(base, n) for n in ("offsets", "lon", "lat", "road_class", "oneway", "maxspeed_kmh")}
        digests.add(roads_digest(RoadMap(**{**columns, name: column})))
    assert len(digests) == 6


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("50", 50), (50, 50), ("30 mph", 48.28), ("50;30", 50), ("60 km/h", 60), (["40", "60"], 40), (50.0, 50)],
)
def test_speed_tags(tag, expected):
    assert speed_kmh(tag) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("tag", [None, "none", "RU:urban", "", "walk", 0, -5, "9999", True, "nan", math.nan, []])
def test_uninformative_speed_tags(tag):
    assert math.isnan(speed_kmh(tag))


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("yes", (1, False)), (True, (1, False)), ("1", (1, False)), ("-1", (1, True)), (-1, (1, True)),
        ("no", (0, False)), (False, (0, False)), (None, (-1, False)), ("reversible", (-1, False)),
    ],
)  # fmt: skip
def test_oneway_tags(tag, expected):
    assert direction(tag) == expected


def test_classes():
    assert ROAD_CLASSES[road_class_index("motorway_link")] == "motorway"
    assert ROAD_CLASSES[road_class_index("unclassified")] == "residential"
    assert ROAD_CLASSES[road_class_index(["primary", "trunk"])] == "primary"
    assert ROAD_CLASSES[road_class_index("footway")] == "path"
    assert ROAD_CLASSES[road_class_index(None)] == "unknown"


def write_geojson(path, features, **more):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features, **more}))
    return path


def feature(geometry, **properties):
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def test_geojson_lines(tmp_path):
    line = {"type": "LineString", "coordinates": [[1, 2, 9], [3, 4, 9]]}
    two = {"type": "MultiLineString", "coordinates": [[[1, 2], [1, 3]], [[5, 6], [5, 7], [5, 8]]]}
    point = {"type": "Point", "coordinates": [0, 0]}
    features = [
        feature(line, highway="primary", oneway="-1", maxspeed="50 mph"),
        feature(two, **{"class": "residential", "oneway": True}),
        feature(point),
        feature(None),
    ]
    roads = read_roads(write_geojson(tmp_path / "r.geojson", features))
    assert len(roads) == 3
    assert roads.lon[:2].tolist() == [3, 1]  # -1: against the polyline, so it is turned
    assert roads.oneway.tolist() == [1, 1, 1]
    assert roads.maxspeed_kmh[0] == pytest.approx(80.47, abs=0.01)
    assert [ROAD_CLASSES[c] for c in roads.road_class] == ["primary", "residential", "residential"]


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"type": "FeatureCollection", "features": []}', '{"features": 5}', "\x00", "[" * 100_000],
)
def test_bad_geojson_is_one_sentence(tmp_path, content):
    path = tmp_path / "r.geojson"
    path.write_text(content)
    with pytest.raises(InputError, match=r"r\.geojson"):
        read_roads(path)


@pytest.mark.parametrize("coordinates", [[[1, "x"], [2, 3]], [[1], [2]], [1, 2], [[1, 2], [500000, 4.5e6]]])
def test_bad_coordinates_are_not_printed(tmp_path, coordinates):
    path = write_geojson(tmp_path / "r.geojson", [feature({"type": "LineString", "coordinates": coordinates})])
    with pytest.raises(InputError) as caught:
        read_roads(path)
    assert "500000" not in str(caught.value)


def test_another_projection_is_refused(tmp_path):
    line = {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}}
    with pytest.raises(InputError, match="projection"):
        read_roads(write_geojson(tmp_path / "r.geojson", [feature(line)], crs=crs))


def test_parquet_with_only_lon_and_lat_and_short_roads(tmp_path):
    path = tmp_path / "r.parquet"
    lists = pa.array([[1.0, 2.0], [3.0], None, [4.0, 5.0, 6.0]], pa.list_(pa.float32()))
    pq.write_table(pa.table({"lon": lists, "lat": lists}), path)
    roads = read_roads(path)
    assert roads.offsets.tolist() == [0, 2, 5]
    assert roads.lon.tolist() == [1, 2, 4, 5, 6]
    assert roads.oneway.tolist() == [-1, -1]


def test_parquet_refusals(tmp_path):
    path = tmp_path / "r.parquet"
    lists = pa.array([[1.0, 2.0]])
    for table, reason in (
        (pa.table({"lon": lists}), "no column lat"),
        (pa.table({"lon": [1.0], "lat": [2.0]}), "lists"),
        (pa.table({"lon": lists, "lat": pa.array([[1.0, 2.0, 3.0]])}), "different numbers of longitudes"),
        (pa.table({"lon": lists, "lat": pa.array([[1.0, 200.0]])}), "degrees"),
        (pa.table({"lon": pa.array([[1.0]]), "lat": pa.array([[1.0]])}), "no lines"),
    ):
        pq.write_table(table, path)
        with pytest.raises(InputError, match=reason):
            read_roads(path)
    path.write_bytes(b"not parquet")
    with pytest.raises(InputError, match="not a Parquet file"):
        read_roads(path)


def test_unknown_extensions_and_missing_files(tmp_path):
    (tmp_path / "r.shp").write_bytes(b"")
    for name in ("r.shp", "absent.parquet"):
        with pytest.raises(InputError, match=r"\.parquet"):
            read_roads(tmp_path / name)
    with pytest.raises(InputError, match=r"\.geojson"):
        write_roads(small_map(), tmp_path / "r.shp")


BOX = Scope(name="box", south=0, west=0, north=0.1, east=0.1)


def test_clip_cuts_at_the_border_and_splits():
    lon = np.array([-0.05, 0.05, 0.05, 0.05, 0.2, 0.21])  # in through the west, out and back in the north; one outside
    lat = np.array([0.05, 0.05, 0.15, 0.05, 0.05, 0.06])
    roads = RoadMap(
        np.array([0, 4, 6]), lon, lat, np.array([2, 3], np.int8), np.array([1, 0], np.int8), np.array([50.0, 60.0])
    )
    clipped = clip_roads(roads, BOX)
    assert clipped.offsets.tolist() == [0, 3, 5]
    assert clipped.lon == pytest.approx([0, 0.05, 0.05, 0.05, 0.05])
    assert clipped.lat == pytest.approx([0.05, 0.05, 0.1, 0.1, 0.05])
    assert clipped.road_class.tolist() == [2, 2]


def test_clip_keeps_what_is_inside_and_gives_nothing_where_nothing_is():
    inside = RoadMap(
        np.array([0, 2]), np.array([0.01, 0.02]), np.array([0.01, 0.02]), np.zeros(1, np.int8), np.zeros(1, np.int8),
        np.array([math.nan]),
    )  # fmt: skip
    assert same(clip_roads(inside, BOX), inside)
    far = Scope(name="far", south=40, west=40, north=41, east=41)
    assert len(clip_roads(inside, far)) == 0


def test_clip_across_the_antimeridian():
    scope = Scope(name="date line", south=-0.5, west=179.5, north=0.5, east=-179.5)
    roads = RoadMap(
        np.array([0, 2]), np.array([179.0, -179.0]), np.zeros(2), np.zeros(1, np.int8), np.zeros(1, np.int8), np.ones(1)
    )
    assert clip_roads(roads, scope).lon == pytest.approx([179.5, -179.5])


GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="x" for="node" attr.name="x" attr.type="string"/><key id="y" for="node" attr.name="y" attr.type="string"/>
  <key id="h" for="edge" attr.name="highway" attr.type="string"/>
  <key id="o" for="edge" attr.name="oneway" attr.type="string"/>
  <key id="g" for="edge" attr.name="geometry" attr.type="string"/>
  <key id="m" for="edge" attr.name="maxspeed" attr.type="string"/>
  <graph edgedefault="directed">
    <node id="a"><data key="x">1.0</data><data key="y">2.0</data></node>
    <node id="b"><data key="x">1.5</data><data key="y">2.5</data></node>
    <edge source="a" target="b"><data key="h">['primary', 'secondary']</data><data key="o">False</data>
      <data key="g">LINESTRING (1 2, 1.2 2.4, 1.5 2.5)</data></edge>
    <edge source="b" target="a"><data key="h">primary</data><data key="o">False</data>
      <data key="g">LINESTRING (1.5 2.5, 1.2 2.4, 1 2)</data></edge>
    <edge source="b" target="a"><data key="h">motorway_link</data><data key="o">True</data>
      <data key="m">60 mph</data></edge>
  </graph>
</graphml>
"""


@pytest.mark.needs("networkx")
def test_graphml_as_osmnx_saves_it(tmp_path):
    path = tmp_path / "city.graphml"
    path.write_text(GRAPHML)
    roads = read_roads(path)
    assert len(roads) == 2  # the two directions of the first street are one road
    assert sorted(ROAD_CLASSES[c] for c in roads.road_class) == ["motorway", "primary"]
    assert sorted(roads.oneway.tolist()) == [0, 1]
    assert sorted(np.diff(roads.offsets).tolist()) == [2, 3]
    path.write_text("<graphml")
    with pytest.raises(InputError, match="readable GraphML"):
        read_roads(path)


@pytest.mark.parametrize(("ending", "package"), [("pbf", "pyrosm"), ("graphml", "networkx")])
def test_without_the_extra_the_message_names_it(tmp_path, monkeypatch, ending, package):
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / f"city.{ending}"
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"wayveil\[osm\]"):
        read_roads(path)


def lines(tmp_path, *properties, kind="LineString"):
    shape = {"type": kind, "coordinates": [[0.01, 0.01], [0.02, 0.01]]}
    features = [{"type": "Feature", "geometry": shape, "properties": each} for each in properties]
    path = tmp_path / "lines.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def test_the_case_of_tags_does_not_matter(tmp_path):
    small = {"highway": "primary", "oneway": "yes", "maxspeed": "50"}
    large, mixed = ({change(key): value for key, value in small.items()} for change in (str.upper, str.title))
    both = {
        "HIGHWAY": "path",
        "Oneway": None,
        "ONEWAY": "no",
        **small,
        "maxspeed": None,
        "MAXSPEED": 50,
    }  # the usual spelling wins over the others
    roads = read_roads(lines(tmp_path, small, large, mixed, both, {"FCLASS": "primary", " OneWay ": 1, "MaxSpeed": 50}))
    assert set(roads.road_class.tolist()) == {ROAD_CLASSES.index("primary")}
    assert set(roads.oneway.tolist()) == {1} and set(roads.maxspeed_kmh.tolist()) == {50.0}


def test_a_rules_file_is_not_a_road_map(tmp_path):
    for properties in ({"rule": "one_way"}, {"Rule": "closed", "name": "park"}):
        for kind in ("LineString", "Polygon"):
            with pytest.raises(
                InputError, match=r"'lines.geojson' contains traffic rules, not roads; pass it with rules="
            ):
                read_roads(lines(tmp_path, {"highway": "primary"}, properties, kind=kind))
    assert len(read_roads(lines(tmp_path, {"highway": "primary", "rule": "none"}, {"rule": None}))) == 2

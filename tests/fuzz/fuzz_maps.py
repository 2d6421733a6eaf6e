"""Damaged road maps and rules files: what wayveil reads about public space."""

import json
import random
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_files import EVIL, WORDS, Kind, damaged_bytes, damaged_json, odd_value

from wayveil.core.roads import clip_roads, roads_digest
from wayveil.io.roads import read_roads
from wayveil.io.scope_files import parse_scope
from wayveil.rules import count, motion_from_metres, read_rules

BOX = parse_scope('name = "box"\nsouth = 10.0\nwest = 20.0\nnorth = 10.05\neast = 20.06\n', "box")
LINES = [
    ([[20.001, 10.001], [20.02, 10.002], [20.03, 10.04]], "primary", True, "50", "High Street"),
    ([[20.0, 10.03], [20.05, 10.03]], "residential", False, "30 mph", ["A", "B"]),
    ([[20.05, 10.0], [20.05, 10.049], [20.07, 10.06]], ["footway", "path"], None, None, None),
    ([[19.9, 9.9], [19.95, 9.95]], "motorway_link", "-1", 120, 7),
]
RING = [[20.01, 10.01], [20.03, 10.01], [20.03, 10.03], [20.02, 10.015], [20.01, 10.03], [20.01, 10.01]]
AREA = {"type": "Polygon", "coordinates": [RING]}
STREET = {"type": "LineString", "coordinates": [[20.005, 10.005], [20.025, 10.015], [20.05, 10.04]]}
RULES: list[tuple[dict[str, Any], Any]] = [
    ({"rule": "closed", "from": "22:00", "to": "06:00", "days": ["mon", "fri"], "name": "harbour"}, AREA),
    ({"rule": "closed", "days": "sat, sun", "stroke": "#555", "fid": 3, "kmh": None}, AREA),
    ({"rule": "speed_limit", "kmh": 90}, None),
    ({"rule": "speed_limit", "kmh": "30"}, {"type": "MultiPolygon", "coordinates": [[RING]]}),
    ({"rule": "speed_limit", "kmh": 50, "classes": ["motorway"], "width_m": 20}, None),
    ({"rule": "one_way", "width_m": 12}, STREET),
    ({"rule": "one_way"}, None),
    ({"rule": "stay_within"}, {"type": "Polygon", "coordinates": [[[19, 9], [21, 9], [21, 11], [19, 11], [19, 9]]]}),
    ({"rule": "min_speed", "kmh": 5}, None),
    ({"rule": "max_duration", "minutes": 90}, None),
]
CRS = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
GRAPH = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="x" for="node" attr.name="x" attr.type="string"/><key id="y" for="node" attr.name="y" attr.type="double"/>
<key id="h" for="edge" attr.name="highway" attr.type="string"/><key id="o" for="edge" attr.name="oneway" attr.type="string"/>
<key id="g" for="edge" attr.name="geometry" attr.type="string"/><key id="m" for="edge" attr.name="maxspeed" attr.type="string"/>
<graph edgedefault="directed">
<node id="1"><data key="x">20.01</data><data key="y">10.01</data></node>
<node id="2"><data key="x">20.03</data><data key="y">10.02</data></node>
<edge source="1" target="2"><data key="h">['primary', 'residential']</data><data key="o">True</data>
<data key="g">LINESTRING (20.01 10.01, 20.02 10.03, 20.03 10.02)</data><data key="m">['50', '30 mph']</data></edge>
<edge source="2" target="1"><data key="h">service</data><data key="o">False</data></edge>
</graph></graphml>
"""  # noqa: E501
TEXTS = [
    "", "nan", "1e999", "LINESTRING EMPTY", "POINT (1 2)", "LINESTRING (1 2)", "LINESTRING (nan 1, 2 inf)", "[" * 5000,
    "['a'", "[{}, ()]", "['a', ['b']]", "__import__('os').system('true')", "9" * 5000, "2" * 400, "-1", "&#0;", EVIL,
    "<!DOCTYPE a [<!ENTITY b 'c'>]>", "</graph>", "</node>", "<edge/>", "<node/>", "<data key='x'/>", "int", "boolean",
    "undirected", "é", "MULTILINESTRING ((1 2, 3 4))",
]  # fmt: skip
LAUGHS = "<!DOCTYPE g [<!ENTITY a0 'ha'>" + "".join(
    f"<!ENTITY a{k} '{f'&a{k - 1};' * 10}'>" for k in range(1, 12)
) + "]>"  # fmt: skip


def geojson_roads() -> dict[str, Any]:
    names = ("highway", "oneway", "maxspeed", "name")
    shapes = [{"type": "LineString", "coordinates": line[0]} for line in LINES]
    shapes[1] = {"type": "MultiLineString", "coordinates": [LINES[1][0], LINES[0][0]]}
    features = [
        {"type": "Feature", "properties": dict(zip(names, line[1:])), "geometry": shape}
        for line, shape in zip(LINES, shapes)
    ]
    return {"type": "FeatureCollection", "crs": CRS, "features": features}


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    stream = BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


@cache
def road_table() -> pa.Table:
    return pa.table(
        {
            "edge_id": [0, 1, 2, 3],
            "oneway": [True, False, None, True],
            "highway": ["primary", "residential", "path", None],
            "maxspeed_kmh": [50.0, None, 30.0, 120.0],
            "lon": [[place[0] for place in line[0]] for line in LINES],
            "lat": [[place[1] for place in line[0]] for line in LINES],
        }
    )


def odd_column(rng: random.Random) -> pa.Array:
    """Four rows of any Arrow type."""
    texts = [rng.choice(WORDS) for _ in range(4)]
    return rng.choice([
        pa.nulls(4), pa.array([1, 2, 3, 4]), pa.array(texts), pa.array(texts).dictionary_encode(),
        pa.array([b"a"] * 4), pa.array([[texts[0]], [], None, texts[:2]]), pa.array([[1.0, None]] * 4),
        pa.array([[[1.0, 2.0]]] * 4), pa.array([[float("nan"), float("inf")]] * 4), pa.array([{"a": 1}] * 4),
        pa.array([[1, 2], [3, 4, 5], [6], []]), pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2)),
        pa.array([[1e300, -1e300]] * 4), pa.array([True] * 4), pa.array([2**62] * 4, pa.timestamp("ms")),
        pa.array([[True, False]] * 4), pa.array([[1, 2]] * 4, pa.large_list(pa.decimal128(9, 2))),
        pa.array([1.0] * 4, pa.float16()), pa.array([float("nan")] * 4),
    ])  # fmt: skip


def damaged_road_table(rng: random.Random) -> bytes:
    table = road_table()
    for _ in range(rng.randint(0, 2)):
        at = rng.randrange(table.num_columns)
        kind = rng.randrange(6)
        if kind == 0 and table.num_columns > 1:
            table = table.remove_column(at)
        elif kind == 1:
            table = table.append_column(rng.choice(["lon", "lat", "highway", "x"]), odd_column(rng))
        elif kind == 2:
            table = table.slice(0, rng.randrange(4))
            break
        else:
            table = table.set_column(at, table.column_names[at], odd_column(rng))
    data = parquet_bytes(table)
    return damaged_bytes(data, rng) if rng.random() < 0.6 else data


def damaged_graph(rng: random.Random) -> bytes:
    text = GRAPH
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(text))
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + rng.choice(TEXTS) + text[at:]
        else:
            # Inside a tag's text or value: from one sign to the next.
            ends = [place for place in (text.find(sign, at) for sign in '<"') if place >= 0]
            starts = max(text.rfind(">", 0, at), text.rfind('"', 0, at)) + 1
            text = text[:starts] + rng.choice(TEXTS) + text[min(ends, default=at) :]
    if rng.random() < 0.02:
        text = text.replace("<graphml", LAUGHS + "<graphml", 1).replace("20.01", "&a11;", 1)
    return damaged_bytes(text.encode(), rng) if rng.random() < 0.2 else text.encode()


def rules_document(rng: random.Random, number: int = 2) -> dict[str, Any]:
    features = [
        {"type": "Feature", "properties": properties, "geometry": geometry}
        for properties, geometry in rng.sample(RULES, number)
    ]
    return {"type": "FeatureCollection", "features": features, "crs": CRS}


def damaged_rules(rng: random.Random) -> bytes:
    document = json.loads(json.dumps(rules_document(rng)))
    if rng.random() < 0.5:  # numbers that are still coordinates
        for feature in document["features"]:
            if feature["geometry"] is not None and rng.random() < 0.7:
                spot = feature["geometry"]["coordinates"]
                while isinstance(spot[0], list):
                    spot = rng.choice(spot)
                at = rng.randrange(2)
                moved = [spot[at] + rng.gauss(0, 0.02), -spot[at], spot[at] + 360, 180, 90, odd_value(rng, spot[at])]
                spot[at] = rng.choice(moved)
    return damaged_json(document, rng)


def use_roads(path: Path) -> None:
    roads = read_roads(path)
    assert np.isfinite(roads.lon).all() and np.isfinite(roads.lat).all()
    roads_digest(roads)
    clipped = clip_roads(roads, BOX)
    assert np.isfinite(clipped.lon).all() and np.isfinite(clipped.lat).all()


@cache
def good_roads() -> Any:
    from wayveil.io.road_lines import roads_from_lines

    return roads_from_lines(LINES, "good")


def use_rules(path: Path) -> None:
    rules = read_rules(path, BOX, good_roads())
    motion = motion_from_metres([10.0, 900.0, 950.0], [10.0, 800.0, 850.0], [0.0, 9.0, 9.0], [0, 3], BOX)
    assert all(np.isfinite(rule.penalty(motion)).all() for rule in rules)
    count(rules, motion)
    " ".join(rule.describe() for rule in rules).encode()


KINDS = {
    "rules": Kind(
        "x.geojson", lambda: json.dumps(rules_document(random.Random(0))).encode(), damaged_rules, use_rules
    ),
    "roads.parquet": Kind("r.parquet", lambda: parquet_bytes(road_table()), damaged_road_table, use_roads),
    "roads.geojson": Kind(
        "r.geojson", lambda: json.dumps(geojson_roads()).encode(), lambda rng: damaged_json(geojson_roads(), rng),
        use_roads,
    ),
    "roads.graphml": Kind("r.graphml", GRAPH.encode, damaged_graph, use_roads),
}  # fmt: skip

"""Rules files: what is read, what is refused, and that nothing else ever happens."""

import copy
import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from rules_zoo import HOOK, MONDAY_UTC, ROADS, SCOPE, line, make_scope, polygon
from typer.testing import CliRunner

from wayveil.errors import RuleError, WayveilError
from wayveil.rules import count, draw_rules, hours, motion_from_metres, read_rules
from wayveil.rules.polygons import MAX_EDGES
from wayveil.rules.without_scope import read_without_scope

BOX = polygon(SCOPE, [(-500, -500), (9000, -500), (9000, 9000), (-500, 9000)])
STREET = [(500, 500), (2500, 1500)]
NIGHT = {"from": "22:00", "to": "06:00"}


def feature(geometry=None, **properties):
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def collection(*features, **other):
    return {"type": "FeatureCollection", "features": list(features), **other}


GOOD = collection(
    feature(polygon(SCOPE, HOOK), rule="closed", **NIGHT, days=["mon", "fri"], name="harbour"),
    feature(polygon(SCOPE, HOOK), rule="closed", days="sat, sun", stroke="#555", fid=3, kmh=None),
    feature(None, rule="speed_limit", kmh=90),
    feature(polygon(SCOPE, HOOK), rule="speed_limit", kmh="30"),
    feature(None, rule="speed_limit", kmh=50, classes=["motorway"], width_m=20),
    feature(line(SCOPE, STREET), rule="one_way", width_m=12),
    feature(None, rule="one_way"),
    feature(BOX, rule="stay_within"),
    feature(None, rule="min_speed", kmh=5),
    feature(None, rule="max_duration", minutes=90),
    crs={"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}},
)


def test_reads_every_kind_of_rule():
    rules = read_rules(GOOD, SCOPE, ROADS)
    texts = [rule.describe() for rule in rules]
    assert len(rules) == 10 and rules[0].name == "harbour" and rules[1].name == "closed 2"
    assert "22:00" in texts[0] and "Mon, Fri" in texts[0] and "Sat, Sun" in texts[1]
    assert "90 km/h anywhere" in texts[2] and "motorway" in texts[4] and "12 m" in texts[5] and "90 minutes" in texts[9]


def test_reads_a_file_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "rules.geojson"
    path.write_text("\ufeff" + json.dumps(collection(feature(None, rule="speed_limit", kmh=50))), encoding="utf-8")
    assert len(read_rules(path, SCOPE)) == 1


CLOSED = polygon(SCOPE, HOOK)
BAD = {
    "unknown rule": (feature(CLOSED, rule="close"), "feature 1.*must be one of"),
    "no properties": ({"type": "Feature", "geometry": None}, "no properties"),
    "misspelt option": (feature(CLOSED, rule="closed", form="07:00"), "did you mean 'from'"),
    "option of another rule": (feature(CLOSED, rule="closed", kmh=3), "no meaning"),
    "bad clock": (feature(CLOSED, rule="closed", **{"from": "25:00"}), "07:00"),
    "same clock": (feature(CLOSED, rule="closed", **{"from": "07:00", "to": "07:00"}), "same time"),
    "bad day": (feature(CLOSED, rule="closed", days=["someday"]), "mon, tue"),
    "exchanged letters": (feature(None, rule="speed_limit", khm=3), "did you mean 'kmh'"),
    "misspelt rule": (feature(CLOSED, rule="colsed"), "did you mean 'closed'"),
    "no speed": (feature(None, rule="speed_limit"), "speed_limit needs 'kmh'"),
    "negative speed": (feature(None, rule="speed_limit", kmh=-5), "kmh must be at least 0.1[.]"),
    "too fast": (feature(None, rule="speed_limit", kmh=1e6), "kmh must be at most 2000[.]"),
    "no number": (feature(None, rule="speed_limit", kmh="fast"), "kmh must be a number[.]"),
    "not finite": (feature(None, rule="min_speed", kmh=float("inf")), "kmh must be a number[.]"),
    "no time": (feature(None, rule="max_duration", minutes=0), "minutes must be above 0[.]"),
    "no day": (
        feature(CLOSED, rule="closed", days=[]),
        "days is an empty list; name at least one value, or leave days out",
    ),
    "many days": (feature(CLOSED, rule="closed", days=["mon"] * 99), "days has more than 50 entries[.]"),
    "days as number": (feature(CLOSED, rule="closed", days=5), "days must be a list of words[.]"),
    "days of numbers": (feature(CLOSED, rule="closed", days=[1, 2]), "days must be a list of words[.]"),
    "clock as number": (feature(CLOSED, rule="closed", **{"from": 7}), "from must be text[.]"),
    "long name": (feature(CLOSED, rule="closed", name="x" * 300), "name is longer than 200 letters[.]"),
    "no class": (feature(None, rule="speed_limit", kmh=5, classes=[]), "classes is an empty list"),
    "bad class": (feature(None, rule="speed_limit", kmh=5, classes=["lane"]), "motorway, trunk"),
    "area and class": (feature(CLOSED, rule="speed_limit", kmh=5, classes=["motorway"]), "not both"),
    "line as area": (feature(line(SCOPE, STREET), rule="closed"), "polygon"),
    "area as line": (feature(CLOSED, rule="one_way"), "line"),
    "both durations": (feature(None, rule="max_duration", minutes=3, hours=2), "either minutes or hours"),
    "place for a pace": (feature(CLOSED, rule="min_speed", kmh=3), "whole trajectories"),
    "outside": (feature(polygon(SCOPE, [(9e5, 0), (9e5, 99), (8e5, 99)]), rule="closed"), "outside the scope"),
    "swapped": (
        feature({"type": "Polygon", "coordinates": [[[10, 20], [10.1, 20], [10, 20.1], [10, 20]]]}, rule="closed"),
        "longitude first",
    ),
    "two corners": (feature({"type": "Polygon", "coordinates": [[[20, 10], [20.1, 10]]]}, rule="closed"), "corners"),
    "words": (feature({"type": "Polygon", "coordinates": [[["a", "b"]] * 4]}, rule="closed"), "longitude, latitude"),
    "latitude": (feature({"type": "Polygon", "coordinates": [[[20, 95]] * 4]}, rule="closed"), "degrees"),
    "around a pole": (
        feature({"type": "Polygon", "coordinates": [[[0, 80], [120, 80], [-120, 80], [0, 80]]]}, rule="closed"),
        "pole",
    ),
    "flat": (feature({"type": "Polygon", "coordinates": [[[20, 10], [20.03, 10.02], [20, 10]]]}, rule="closed"), "."),
}


@pytest.mark.parametrize("name", BAD)
def test_refuses_with_the_reason(name):
    bad, reason = BAD[name]
    with pytest.raises(RuleError, match=f"(?i)feature 1: .*{reason.removeprefix('feature 1')}"):
        read_rules(collection(bad), SCOPE, ROADS)


def test_finer_classes_of_openstreetmap_are_those_that_they_count_as():
    words = {"rule": "speed_limit", "kmh": 20}
    for classes, told in (
        (["living_street"], "residential (which includes living_street)"),
        (["living_street", "unclassified", "primary_link"],
         "residential (which includes living_street and unclassified), primary (which includes primary_link)"),
        (["residential", "primary"], "residential, primary"),
    ):  # fmt: skip
        for roads in (ROADS, None):
            (rule,) = read_rules(collection(feature(None, **words, classes=classes)), SCOPE, roads, map_may_miss=True)
            assert rule.describe().endswith(f"of class {told}.")
    fine, coarse = (read_rules(collection(feature(None, **words, classes=[name])), SCOPE, ROADS)[0].where.chosen
                    for name in ("living_street", "residential"))  # fmt: skip
    assert fine.any() and (fine == coarse).all()


@pytest.mark.parametrize("kind", ["one_way", "speed_limit"])
def test_names_the_option_where_a_map_is_missing(kind):
    options = {"kmh": 50, "classes": ["motorway"]} if kind == "speed_limit" else {}
    with pytest.raises(RuleError, match="roads="):
        read_rules(collection(feature(None, rule=kind, **options)), SCOPE)


def test_refuses_other_projections_and_other_files(tmp_path):
    other = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}}
    with pytest.raises(RuleError, match="WGS 84"):
        read_rules(collection(feature(None, rule="speed_limit", kmh=5), crs=other), SCOPE)
    deep = tmp_path / "deep.geojson"
    deep.write_text("[" * 200_000)
    for text in (b"", b"\xff\xfe\x00", b"{}", b"[1]", b'{"type": "FeatureCollection", "features": []}'):
        path = tmp_path / "bad.geojson"
        path.write_bytes(text)
        for file in (path, deep, tmp_path / "missing.geojson", tmp_path):
            with pytest.raises(RuleError):
                read_rules(file, SCOPE)


SIDE = [polygon(SCOPE, [(x, -9), (x + 4000, -9), (x + 4000, 6000), (x, 6000)]) for x in (-500, 3000)]
CONTRADICTIONS = {
    "all closed": [feature(BOX, rule="closed")],
    "all closed in parts": [feature(side, rule="closed") for side in SIDE],
    "day and night": [
        feature(BOX, rule="closed", **{"from": "06:00", "to": "20:00"}),
        feature(None, rule="closed", **{"from": "20:00", "to": "06:00"}),
    ],
    "no place left": [feature(CLOSED, rule="closed"), feature(CLOSED, rule="stay_within")],
    "apart": [feature(polygon(SCOPE, [(x, 0), (x + 99, 0), (x, 99)]), rule="stay_within") for x in (0, 3000)],
    "too fast": [feature(None, rule="min_speed", kmh=50), feature(None, rule="speed_limit", kmh=50)],
    "no way": [feature(None, rule="max_duration", minutes=1), feature(None, rule="speed_limit", kmh=5)],
    "opposed": [feature(line(SCOPE, STREET), rule="one_way"), feature(line(SCOPE, STREET[::-1]), rule="one_way")],
    "opposed in one": [
        feature(
            {
                "type": "MultiLineString",
                "coordinates": [line(SCOPE, way)["coordinates"] for way in (STREET, STREET[::-1])],
            },
            rule="one_way",
        )
    ],
    "a minute a day": [feature(None, rule="closed", **{"from": "00:00", "to": "23:59"})],
    "faster than anybody": [feature(None, rule="min_speed", kmh=400)],
    "too fast in the box": [feature(None, rule="min_speed", kmh=50), feature(BOX, rule="speed_limit", kmh=50)],
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_refuses_contradictions(name):
    with pytest.raises(RuleError, match="contradict"):
        read_rules(collection(*CONTRADICTIONS[name]), SCOPE)
    if len(CONTRADICTIONS[name]) > 1:
        for one in CONTRADICTIONS[name]:
            assert len(read_rules(collection(one), SCOPE)) == 1


def test_days_outside_the_scope_do_not_resolve_a_contradiction():
    mondays = collection(feature(None, rule="closed", days=["mon"]))
    assert len(read_rules(mondays, SCOPE)) == 1
    for last, refused in (("2025-03-03", True), ("2025-03-04", False)):
        scope = make_scope(first_day="2025-03-03", last_day=last)
        if refused:
            with pytest.raises(RuleError, match="at all times"):
                read_rules(mondays, scope)
        else:
            assert len(read_rules(mondays, scope)) == 1
    nights = collection(feature(None, rule="closed", **{"from": "00:10", "to": "23:58"}))
    assert len(read_rules(nights, SCOPE)) == 1, "twelve minutes around midnight are enough for a trip"


@pytest.mark.parametrize(("start", "end", "days", "inside", "outside"), [
    ("07:00", "10:00", None, [7.5, 24 * 6 + 9.9], [6.9, 10.1]),
    ("22:00", "06:00", ["sun"], [24 * 6 + 23, 5.9, 24 * 6 + 22.1], [6.1, 24 * 6 + 21, 24 * 6 + 5, 24 + 5]),
    (None, None, ["sat", "sun"], [24 * 5 + 0.1, 24 * 7 - 0.01], [0.1, 24 * 5 - 0.1]),
    ("18:00", None, ["mon"], [23.9], [24.1, 17]),
    ("22:00", "00:00", ["mon"], [23.9], [24.1]),
    ("20:00", "08:00", None, [0.5, 24 * 7 - 0.01, 100], [12]),
])  # fmt: skip
def test_hours_are_read_from_text(start, end, days, inside, outside):
    when = hours(start, end, days)
    assert (when.depth_s(np.array(inside) * 3600.0, np) > 0).all()
    assert (when.depth_s(np.array(outside) * 3600.0, np) < 0).all()


def test_hours_follow_the_zone():
    scope = make_scope(timezone="America/New_York")
    rules = read_rules(collection(feature(None, rule="closed", **{"from": "07:00", "to": "08:00"})), scope)
    noon = MONDAY_UTC + 11.5 * 3600  # 07:30 in New York, on summer time since the day before
    motion = motion_from_metres([10.0, 10.0], [10.0, 10.0], [noon, noon + 3600], [0, 2], scope)
    assert rules[0].violations(motion).tolist() == [True, False]


def test_across_the_antimeridian():
    scope = make_scope(west=179.97, east=-179.97)
    written = [[179.99, 10.01], [-179.99, 10.01], [-179.99, 10.03], [179.99, 10.03], [179.99, 10.01]]
    beyond = [[lon + 360 if lon < 0 else lon, lat] for lon, lat in written]
    halves = ((179.99, 180), (-180, -179.99))
    split = [[[[a, 10.01], [b, 10.01], [b, 10.03], [a, 10.03], [a, 10.01]]] for a, b in halves]
    shapes = [{"type": "Polygon", "coordinates": [ring]} for ring in (written, beyond)]
    shapes.append({"type": "MultiPolygon", "coordinates": split})
    x, y = scope.to_metres(np.array([180.0, -179.995, 179.98]), np.array([10.02] * 3))
    motion = motion_from_metres(x, y, [0.0, 1.0, 2.0], [0, 3], scope)
    for shape in shapes:
        (rule,) = read_rules(collection(feature(shape, rule="closed")), scope)
        assert rule.violations(motion).tolist() == [True, True, False]


def test_many_corners_and_self_crossing():
    angle = np.linspace(0, 2 * np.pi, 20_001)[:-1]
    radius = 1500 + 20 * np.sin(1000 * angle)
    star = polygon(SCOPE, list(zip(3000 + radius * np.cos(angle), 2700 + radius * np.sin(angle))))
    rng = np.random.default_rng(0)
    n = 4000
    motion = motion_from_metres(rng.uniform(0, 6000, n), rng.uniform(0, 5400, n), np.zeros(n), np.arange(n + 1), SCOPE)
    closed, within = (read_rules(collection(feature(star, rule=kind)), SCOPE)[0] for kind in ("closed", "stay_within"))
    for rule in (closed, within):
        broken = rule.violations(motion)
        assert len(rule.area.edges) <= MAX_EDGES
        assert (rule.penalty(motion)[broken] > 0).all() and 0.1 < broken.mean() < 0.9
    bow = polygon(SCOPE, [(1000, 1000), (3000, 3000), (3000, 1000), (1000, 3000)])
    (rule,) = read_rules(collection(feature(bow, rule="closed")), SCOPE)
    assert rule.area.shape.is_valid and 0 < rule.violations(motion).mean() < 0.2


def test_a_self_crossing_border_is_named(tmp_path, capsys):
    from wayveil.cli.rules import check
    from wayveil.rules.explain import crossing_text

    bow = polygon(SCOPE, [(1000, 1000), (3000, 3000), (3000, 1000), (1000, 3000)])
    tips = [(3000 + 1500 * np.sin(4 * np.pi * k / 5), 2700 + 1500 * np.cos(4 * np.pi * k / 5)) for k in range(5)]
    star = polygon(SCOPE, tips)  # in one line: its middle is enclosed twice
    touching = polygon(SCOPE, [(0, 0), (1000, 0), (500, 500), (1000, 1000), (0, 1000), (500, 500)])
    features = [
        feature(bow, rule="closed"), feature(star, rule="speed_limit", kmh=30), feature(CLOSED, rule="closed"),
        feature(touching, rule="closed"), feature(None, rule="min_speed", kmh=3),
    ]  # fmt: skip
    rules = read_rules(collection(*features), SCOPE)
    words = [crossing_text(rule) for rule in rules]
    assert "the 2 parts that" in words[0] and "the 5 parts that" in words[1] and words[2:] == [None] * 3
    middle = np.array([3000.0]), np.array([2700.0])
    assert not rules[1].where.inside(*middle) and rules[1].where.inside(middle[0], middle[1] + 1200)
    file, scope = tmp_path / "rules.geojson", tmp_path / "s.toml"
    file.write_text(json.dumps(collection(*features)))
    scope.write_text('name = "test"\nsouth = 10.0\nwest = 20.0\nnorth = 10.05\neast = 20.06\n')
    check(file, str(scope), None, None, False, no_picture=True)
    assert capsys.readouterr().out.count("Its polygon crosses itself") == 2
    check(file, str(scope), None, None, True, no_picture=True)
    remarks = [rule["remark"] for rule in json.loads(capsys.readouterr().out)["rules"]]
    assert remarks[:3] == words[:3]


def test_rules_are_drawn_with_their_names():
    from matplotlib.figure import Figure

    rules = read_rules(GOOD, SCOPE, ROADS)
    ax = Figure().add_subplot()
    draw_rules(ax, rules, SCOPE)
    assert "harbour" in ax.get_legend_handles_labels()[1]


def test_command_line(tmp_path):
    import typer

    from wayveil.cli.rules import register

    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    file, scope, picture = tmp_path / "rules.geojson", tmp_path / "s.toml", tmp_path / "rules.svg"
    file.write_text(json.dumps(collection(*GOOD["features"][:4])))
    scope.write_text('name = "test"\nsouth = 10.0\nwest = 20.0\nnorth = 10.05\neast = 20.06\n')
    run = CliRunner().invoke(app, ["rules", "check", str(file), "--scope", str(scope), "-o", str(picture)])
    assert run.exit_code == 0 and "harbour: The area is closed from 22:00" in run.stdout
    assert picture.read_bytes().lstrip().startswith(b"<?xml")
    run = CliRunner().invoke(app, ["rules", "check", str(file), "--scope", str(scope), "--json"])
    assert run.exit_code == 0 and len(json.loads(run.stdout)["rules"]) == 5
    run = CliRunner().invoke(app, ["rules", "check", str(file), "--scope", str(scope), "-o", "rules.doc"])
    assert isinstance(run.exception, WayveilError)


def test_rules_read_no_private_data():
    """What cannot be imported cannot leak."""
    code = "import sys, wayveil.rules; print(*[m for m in sys.modules if m.startswith(('wayveil.', 'jax', 'shapely'))])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    packages = {".".join(name.split(".")[:2]) for name in loaded}
    assert loaded and packages <= {"wayveil.core", "wayveil.errors", "wayveil.progress", "wayveil.rules"}


STRANGE = [None, True, -1, 0, 1e308, float("nan"), float("inf"), 10**40, "", "x", "07:00", "\u202e<b>", [], [[]], {},
           [None], [[1, 2], [3]], {"type": "Polygon"}, "closed", [["mon"]], 180, -90, [[[[20, 10]]]]]  # fmt: skip


def _mutate(value, rng):
    """One random change somewhere in a JSON value."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            del value[key]
        elif rng.random() < 0.1:
            value[key + rng.choice("_xs")] = value.pop(key)
        else:
            value[key] = _mutate(value[key], rng)
        return value
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.random() < 0.1:
            del value[at]
        elif rng.random() < 0.1:
            value.insert(at, copy.deepcopy(value[at]))
        else:
            value[at] = _mutate(value[at], rng)
        return value
    if isinstance(value, float | int) and abs(value) < 1e300 and rng.random() < 0.6:
        return rng.choice([value + rng.gauss(0, 0.02), -value, value * 1e3, value + 360, int(abs(value) < 1e9)])
    return copy.deepcopy(rng.choice(STRANGE))


def test_random_properties_give_a_rule_or_a_rule_error(tmp_path):
    """Mutated rules files are read or refused in one sentence; WAYVEIL_FUZZ sets how many (300)."""
    number = int(os.environ.get("WAYVEIL_FUZZ", "300"))
    rng = random.Random(5)
    path = tmp_path / "fuzz.geojson"
    motion = motion_from_metres([10.0, 900.0, 950.0], [10.0, 800.0, 850.0], [0.0, 9.0, 9.0], [0, 3], SCOPE)
    read = 0
    for round_number in range(number):
        features = json.loads(json.dumps(rng.choices(GOOD["features"], k=2)))
        for _ in range(rng.randint(1, 3)):  # mostly deep inside, where a file is still almost right
            spot, key = rng.choice(features), rng.choice(["properties", "geometry"])
            if isinstance(spot[key], dict):
                inner = "coordinates" if "coordinates" in spot[key] else rng.choice([*spot[key], "name"])
                spot[key][inner] = _mutate(spot[key].get(inner), rng)
        document = collection(*features, crs=copy.deepcopy(GOOD["crs"]))
        if rng.random() < 0.2:
            document = _mutate(document, rng)
        text = json.dumps(document)
        if rng.random() < 0.1:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(["", "{", '"', "\x00", "9" * 5000]) + text[at + rng.randint(0, 3) :]
        path.write_text(text)
        rules, messages = None, []
        try:
            read_without_scope(path)
        except WayveilError as error:
            messages.append(str(error))
        try:
            rules = read_rules(path, SCOPE, ROADS)
        except WayveilError as error:
            messages.append(str(error))
        assert not any("\n" in message for message in messages), round_number
        if rules is None:
            continue
        read += 1
        counted = count(rules, motion)
        assert all(np.isfinite(rule.penalty(motion)).all() for rule in rules) and counted
    assert read > number / 10


def test_the_first_instant_of_a_window_is_inside():
    """Who is told "from 07:00" does not expect somebody at 07:00:00."""
    when = hours("07:00", "09:00", ["mon"])
    seconds = 3600 * np.array([7.0, 7.0, 9.0, 9.0]) + [0.0, -1.0, -1.0, 0.0]
    assert (when.depth_s(seconds, np) > 0).tolist() == [True, False, True, False]


def test_streets_lie_under_the_picture(tmp_path):
    from wayveil.core.roads import RoadMap
    from wayveil.rules.picture import save_picture

    lon, lat = np.linspace(SCOPE.west, SCOPE.east, 4), np.linspace(SCOPE.south, SCOPE.north, 4)
    roads = RoadMap(np.array([0, 2, 4]), lon, lat, np.zeros(2, np.int8), np.zeros(2, np.int8), np.full(2, np.nan))
    for name, given in (("bare.svg", None), ("streets.svg", roads)):
        save_picture(tmp_path / name, (), SCOPE, given)
    bare, streets = ((tmp_path / name).read_text().count("stroke: #b8b8b8") for name in ("bare.svg", "streets.svg"))
    assert (bare, streets) == (0, 2)

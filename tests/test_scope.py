"""Scope: the public limits of a dataset, its file and its commands."""

import datetime as dt
import json
import re
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import wayveil.cli.scope
from wayveil.core.scope import Scope
from wayveil.errors import InputError
from wayveil.io.scope_files import TEMPLATE, parse_scope, read_scope, scope_text, shipped_scopes

PARIS = {"name": "x", "south": 48.8, "west": 2.2, "north": 48.9, "east": 2.5, "timezone": "Europe/Paris"}


def toml(**changes):
    values = {**PARIS, **changes}
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None)


def test_shipped_scopes_are_valid_and_where_they_should_be():
    assert set(shipped_scopes()) >= {"san-francisco", "beijing", "demo-city"}
    for name in shipped_scopes():
        assert read_scope(name).caps.points >= 2
    city = read_scope("san-francisco")
    assert (city.south, city.west, city.north, city.east) == (37.60, -122.52, 37.82, -122.35)
    city = read_scope("beijing")
    assert (city.south, city.west, city.north, city.east) == (39.75, 116.15, 40.10, 116.60)


EXAMPLE = re.compile(r'"\?"  # such as (.+)')


def test_a_template_that_is_not_filled_in_is_refused():
    with pytest.raises(InputError, match="not filled in yet: name, south, west, north, east, timezone, first_day"):
        parse_scope(TEMPLATE, "my-city.toml")
    almost = EXAMPLE.sub(r"\1", TEMPLATE).replace("north = 48.91", 'north = "?"')
    with pytest.raises(InputError, match=r"'my-city.toml' is not filled in yet: north\. Write"):
        parse_scope(almost, "my-city.toml")


def test_the_template_with_its_examples_is_a_valid_scope():
    scope = parse_scope(EXAMPLE.sub(r"\1", TEMPLATE), "template")
    assert scope.timezone == "Europe/Paris" and str(scope.last_day) == "2024-03-31" and scope.caps.points == 500


def test_caps_by_the_size_of_the_city():
    small, large = parse_scope(toml(), "x"), parse_scope(toml(south=45.0), "x")
    assert small.caps.points == 500 and small.caps.length_km < large.caps.length_km
    given_caps = parse_scope(toml() + "\n[caps]\npoints = 7\n", "x").caps
    assert given_caps.points == 7 and given_caps.length_km == small.caps.length_km


@pytest.mark.parametrize(
    "changes",
    [
        {"north": 48.8}, {"north": 48.7}, {"east": 2.2}, {"south": -90}, {"west": 200}, {"timezone": "Mars/Base"},
        {"timezone": "../../etc/passwd"}, {"first_day": "2024-01-01"}, {"name": ""}, {"name": None}, {"south": None},
        {"south": "x"}, {"surprise": 1}, {"east": 120.0}, {"north": 48.80001}, {"caps": 3}, {"name": "x" * 300},
    ],
)  # fmt: skip
def test_bad_scopes_get_one_sentence(changes):
    with pytest.raises(InputError) as caught:
        parse_scope(toml(**changes), "x")
    assert "\n" not in str(caught.value) and "wayveil.template('scope')" in str(caught.value)


@pytest.mark.parametrize("text", ["", "[", "name = ", "a = " + "[" * 5000, "a = nan", toml() + "\n[caps]\npoints=1"])
def test_damaged_scope_files_are_refused(text):
    with pytest.raises(InputError):
        parse_scope(text, "x")


@pytest.mark.parametrize(("box", "said"), [
    ({"west": 2.5, "east": 2.2}, "the box is wider than 3000 km; its west and east seem to be swapped"),
    ({"west": 2.5, "east": 2.2, "caps": 9}, "the box is wider than 3000 km; its west and east seem to be swapped"),
    ({"south": -85, "west": -179, "north": 85, "east": 179}, "the box is wider than 3000 km; wayveil is made for"),
    ({"south": -60, "west": -20, "north": 70, "east": 60}, "the box is wider than 3000 km; wayveil is made for"),
])  # fmt: skip
def test_a_box_that_is_too_large_is_named(box, said):
    caps = box.pop("caps", None)
    with pytest.raises(InputError, match=f"^Scope 'x': scope: {said}"):
        parse_scope(toml(**box) + (f"\n[caps]\nlength_km = {caps}" if caps else ""), "x")


def test_days_must_be_in_order():
    with pytest.raises(InputError, match="last_day"):
        parse_scope(toml() + "\nfirst_day = 2024-02-02\nlast_day = 2024-02-01", "x")


def test_files_that_are_not_scopes(tmp_path):
    with pytest.raises(InputError, match="san-francisco"):
        read_scope(tmp_path / "none.toml")
    (tmp_path / "big.toml").write_bytes(b"#" * (1 << 21))
    with pytest.raises(InputError, match="1 MB"):
        read_scope(tmp_path / "big.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="text"):
        read_scope(tmp_path / "binary.toml")


@settings(max_examples=80, deadline=None)
@given(
    south=st.floats(-80, 79), west=st.floats(-180, 180), height=st.floats(0.01, 5), width=st.floats(0.05, 10),
    x=st.floats(0, 1), y=st.floats(0, 1),
)  # fmt: skip
def test_metres_and_degrees_are_inverse_also_across_the_antimeridian(south, west, height, width, x, y):
    east = west + width - (360 if west + width > 180 else 0)
    scope = Scope(name="x", south=south, west=west, north=south + height, east=east)
    x_m, y_m = np.array([x * scope.width_m]), np.array([y * scope.height_m])
    lon, lat = scope.to_degrees(x_m, y_m)
    assert -180 <= lon[0] <= 180
    back = scope.to_metres(lon, lat)
    np.testing.assert_allclose([back[0][0], back[1][0]], [x_m[0], y_m[0]], atol=1e-3)


def test_time_window_and_local_seconds_follow_the_clocks():
    text = toml() + "\nfirst_day = 2024-03-30\nlast_day = 2024-03-31"  # the clocks change on the second day
    scope = parse_scope(text, "x")
    first, after = scope.time_window()
    assert after - first == 47 * 3600
    assert parse_scope(toml(), "x").time_window() is None
    zone = ZoneInfo("Europe/Paris")
    moments = [dt.datetime(2024, 3, 31, hour, 30, tzinfo=zone) for hour in (0, 1, 3, 23)]
    seconds = scope.local_seconds(np.array([moment.timestamp() for moment in moments]))
    expected = [6 * 86_400 + moment.hour * 3600 + 1800 for moment in moments]
    assert seconds.tolist() == expected
    assert scope.local_seconds(np.array([])).tolist() == []


@pytest.fixture
def cli():
    app = typer.Typer()
    app.callback()(lambda: None)
    wayveil.cli.scope.register(app)
    return lambda *arguments: CliRunner().invoke(app, ["scope", *map(str, arguments)])


def test_the_scope_commands(tmp_path, cli):
    assert cli("list").stdout.split() == shipped_scopes()
    assert cli("new").stdout == TEMPLATE
    path = tmp_path / "city.toml"
    assert cli("new", "-o", path).exit_code == 0
    assert path.read_text() == TEMPLATE
    assert "already exists" in str(cli("new", "-o", path).exception)
    assert cli("new", "-o", path, "--force").exit_code == 0
    assert cli("show", "beijing").stdout == scope_text("beijing")
    assert "not filled in" in str(cli("show", path).exception)
    path.write_text(EXAMPLE.sub(r"\1", TEMPLATE))
    assert json.loads(cli("show", path, "--json").stdout)["timezone"] == "Europe/Paris"
    assert isinstance(cli("show", "atlantis").exception, InputError)


def test_a_position_does_not_depend_on_the_others_of_its_batch():
    """A point far away must not change the last digits of the rest: sensitivity is proved one trajectory at a time."""
    scope = Scope(name="small", south=0.0, west=0.0, north=0.05, east=0.05)
    lon = np.random.default_rng(0).uniform(0.0, 0.05, 1000)
    alone, _ = scope.to_metres(lon, np.zeros(1000))
    for far in (179.99, -179.99, 180.0, -180.0, 1e300):
        together, _ = scope.to_metres(np.r_[lon, far], np.zeros(1001))
        assert together[:-1].tobytes() == alone.tobytes()


def test_a_scope_is_written_without_a_text_editor(tmp_path):
    app = typer.Typer()
    wayveil.cli.scope.register(app)

    def cli(*words):
        return CliRunner().invoke(app, ["scope", "new", *map(str, words)])

    words = ["--name", "Bay", "--bbox", "37.6", "-122.52", "37.82", "-122.35", "--timezone", "America/Los_Angeles"]
    file = tmp_path / "bay.toml"
    made = cli(*words, "--days", "2008-05-17", "2008-06-10", "--hours", "06:00-11:00", "-o", file)
    assert made.exit_code == 0
    scope = read_scope(file)
    assert (scope.south, scope.west, scope.north, scope.east) == (37.6, -122.52, 37.82, -122.35)
    assert (scope.first_day, scope.last_day) == (dt.date(2008, 5, 17), dt.date(2008, 6, 10))
    assert scope.hours == "06:00-11:00" and scope.caps.duration_h == 5
    assert "--name, --timezone" in str(cli("--bbox", 1, 2, 3, 4).exception)
    for wrong, said in ((["--hours", "6-11"], "hours must be"), (["--days", "a", "b"], "two dates")):
        assert said in str(cli(*words, *wrong).exception)


def test_the_box_of_a_public_map_is_proposed(tmp_path):
    app = typer.Typer()
    wayveil.cli.scope.register(app)
    line = {"type": "LineString", "coordinates": [[2.223, 48.801], [2.468, 48.909]]}
    roads = {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": line}]}
    (tmp_path / "roads.geojson").write_text(json.dumps(roads))
    words = ["scope", "new", "--name", "x", "--timezone", "Europe/Paris", "--roads", str(tmp_path / "roads.geojson")]
    made = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "x.toml")])
    assert made.exit_code == 0
    scope = read_scope(tmp_path / "x.toml")
    assert (scope.south, scope.west, scope.north, scope.east) == (48.8, 2.22, 48.91, 2.47)

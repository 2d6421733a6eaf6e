"""`wayveil rules check FILE` and nothing else: the file in words and as a picture."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from rules_zoo import HOOK, ROADS, SCOPE, line, polygon
from typer.testing import CliRunner

from wayveil.cli.rules import register
from wayveil.errors import RuleError, WayveilError
from wayveil.rules.without_scope import read_without_scope

PARK = polygon(SCOPE, HOOK)


def rule(geometry=None, **properties):
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def square(west, south, side=0.01):
    ring = [[west, south], [west + side, south], [west + side, south + side], [west, south + side], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def written(*features, name="rules.geojson"):
    Path(name).write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}))
    return Path(name)


@pytest.fixture
def check(tmp_path, monkeypatch):
    """check("rules.geojson", ...) -> the run, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    return lambda *words: CliRunner().invoke(app, ["rules", "check", *map(str, words)])


def colours(picture):
    from matplotlib.image import imread

    red, green, blue = (imread(picture)[:, :, :3] * 255).round().astype(np.int64).transpose(2, 0, 1)
    codes = np.unique(red << 16 | green << 8 | blue)  # one number for each colour: unique rows take seconds
    return np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1) / 255


def test_the_file_alone_is_explained_and_drawn(check):
    file = written(
        rule(PARK, rule="closed", name="park", **{"from": "22:00", "to": "06:00"}),
        rule(line(SCOPE, [(500, 500), (2500, 1500)]), rule="one_way"), rule(None, rule="speed_limit", kmh=50),
    )  # fmt: skip
    run = check(file)
    assert run.exit_code == 0 and "1. park: The area is closed from 22:00 to 06:00 every day" in run.stdout
    assert "Use --scope to check" in run.stdout and "time zone" in run.stdout and "scope bounds" not in run.stdout
    assert "Drew the rules to rules.check.png." in run.stdout
    assert len(colours("rules.check.png")) > 100  # axes alone are shades of grey
    assert any(abs(red - blue) > 0.2 for red, _, blue in colours("rules.check.png"))
    Path("rules.check.png").unlink()
    answer = json.loads(check(file, "--json").stdout)
    assert answer["scope"] is None and answer["timezone"] is None and len(answer["rules"]) == 3
    assert "Drew" not in check(file, "--no-picture").stdout and not list(Path().glob("*.png"))
    assert check(file, "-o", "mine.svg").exit_code == 0 and [p.name for p in Path().glob("*.??g")] == ["mine.svg"]
    assert isinstance(check(file, "-o", "mine.svg", "--no-picture").exception, WayveilError)


@pytest.mark.parametrize("scope", [(), ("--scope", "demo-city")])
def test_rules_about_streets_have_words_without_a_map(check, scope):
    run = check(written(rule(rule="one_way"), rule(rule="speed_limit", kmh=30, classes=["residential"])), *scope)
    assert run.exit_code == 0 and run.stdout.count("use --roads to check and draw it") == 2
    assert (
        "a street that the map says is one-way" in run.stdout
        and "30 km/h with its middle within 25 m of a road" in run.stdout
    )
    wrong = check(written(rule(rule="speed_limit", kmh=30, classes=["lane"])), *scope)
    assert isinstance(wrong.exception, RuleError) and "motorway" in str(wrong.exception)


def test_rules_about_streets_widen_the_frame(check):
    file = written(rule(square(20.001, 10.001, 0.001), rule="closed"), rule(rule="one_way"))
    assert read_without_scope(file).frame.width_m < 1000
    assert read_without_scope(file, ROADS).frame.width_m > 6000
    assert read_without_scope(written(rule(square(20.001, 10.001, 0.001), rule="closed")), ROADS).frame.width_m < 1000


def test_an_empty_or_unwritable_picture_is_reported(check):
    run = check(written(rule(rule="closed", days="sun"), rule(rule="min_speed", kmh=5)))
    assert run.exit_code == 0 and "on Sun" in run.stdout and "nothing to draw" in run.stderr
    assert not list(Path().glob("*.png"))
    Path("rules.check.png").mkdir()  # nobody can write a file of this name
    run = check(written(rule(PARK, rule="closed")))
    assert run.exit_code == 0 and "were not drawn" in run.stderr and "Drew" not in run.output


PLACES = {
    "across the antimeridian": ([square(179.99, 10), square(-179.98, 10)], 4.38),
    "in two halves": ([{**square(0, 0), "type": "MultiPolygon", "coordinates": [
        square(179.995, 10, 0.005)["coordinates"], square(-180, 10, 0.005)["coordinates"]]}], 1.1),
    "a single small one": ([square(7, 50, 0.00001)], 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_the_frame_lies_around_the_shapes(check, name):
    shapes, wide_km = PLACES[name]
    found = read_without_scope(written(*(rule(shape, rule="speed_limit", kmh=9) for shape in shapes)))
    margin_km = max(0.3, 0.1 * wide_km)
    assert abs(found.frame.width_m / 1000 - wide_km - 2 * margin_km) < 0.1 and found.frame.height_m >= 600
    assert check("rules.geojson").exit_code == 0 and len(colours("rules.check.png")) > 20


def test_rules_too_large_for_a_scope_are_still_explained(check):
    world = {"type": "Polygon", "coordinates": [[[-180, -60], [180, -60], [180, 80], [-180, 80], [-180, -60]]]}
    for shapes in ([square(2, 48), square(48, 2)], [world], [world, square(2, 48)]):
        run = check(written(*(rule(shape, rule="closed") for shape in shapes), rule(rule="speed_limit", kmh=50)))
        assert run.exit_code == 0 and "too far apart" in run.stderr, run.output
        assert run.stdout.count("The area is closed") == len(shapes) and not list(Path().glob("*.png"))


def test_contradictions_and_broken_shapes_are_refused_without_a_scope(check):
    for features, words in (
        ([rule(square(2, 48), rule="stay_within"), rule(square(3, 48), rule="stay_within")], "do not overlap"),
        ([rule(rule="speed_limit", kmh=9), rule(rule="min_speed", kmh=10)], "is not below"),
        ([rule(square(2, 48), rule="closed"), rule({"type": "Point", "coordinates": [2, 48]}, rule="closed")], "area"),
        ([rule({"type": "Polygon", "coordinates": [[["a", 1]] * 4]}, rule="closed")], "longitude, latitude"),
    ):
        run = check(written(*features))
        assert isinstance(run.exception, RuleError) and words in str(run.exception), run.output


def test_python_checks_what_the_command_line_checks(check, tmp_path):
    """`wayveil.rules.check` gives the same words, the same mapping and a picture."""
    import wayveil

    file = written(rule(PARK, name="park", rule="closed", **{"from": "22:00", "to": "06:00"}), rule(rule="one_way"))
    checked = wayveil.rules.check(file)
    assert repr(checked) == "RulesCheck(2 rules without a scope, no contradiction)"
    assert "1. park: The area is closed from 22:00" in str(checked) and "use roads= to check" in str(checked)
    assert check(file, "--no-picture").stdout.strip() == checked.text("--scope", "--roads")
    assert json.loads(check(file, "--json").stdout) == checked.to_dict("--roads")
    checked.draw(tmp_path / "rules.png")
    assert (tmp_path / "rules.png").stat().st_size > 1000
    inside = wayveil.rules.check(file, SCOPE, ROADS)
    assert "Hours are in the time zone UTC." in str(inside) and inside.to_dict()["scope"] == SCOPE.name
    assert len(inside.rules) == 3 and "roads=" not in str(inside)
    with pytest.raises(WayveilError, match="scope= is needed"):
        wayveil.rules.check([wayveil.rules.speed_limit(50)])
    with pytest.raises(WayveilError, match="nothing to draw"):
        wayveil.rules.check(written(rule(rule="speed_limit", kmh=50))).draw(tmp_path / "none.png")

"""The page of `wayveil rules draw` in headless Chromium: drawing, files, keys, and agreement with `rules check`."""

import copy
import json
import random
import time

import pytest
from rules_zoo import HOOK, ROADS, SCOPE, line, polygon
from test_rules_geojson import BAD, CONTRADICTIONS, GOOD, collection, feature
from typer.testing import CliRunner

import wayveil
from chromium_pipe import Chromium
from real_components import find_chromium
from wayveil.cli.main import app
from wayveil.errors import InputError, RuleError
from wayveil.rules import read_rules
from wayveil.rules.editor import editor_page

pytestmark = pytest.mark.needs("chromium")
NOT_IN_THE_PAGE = {"misspelt option", "exchanged letters", "around a pole"}
"""Faults that only `rules check` finds, as the script's first lines and the how-to guide say."""


@pytest.fixture(scope="module")
def browser():
    with Chromium(find_chromium()) as found:
        yield found


@pytest.fixture
def page(browser, tmp_path):
    """An empty editor with streets; what it saves lands in the folder `saved`."""
    (tmp_path / "saved").mkdir()
    (tmp_path / "draw.html").write_text(editor_page(SCOPE, ROADS), encoding="utf-8")
    browser.requests.clear()
    browser.complaints.clear()
    browser.size(1280, 1000)
    browser.colours("light")
    browser.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "saved"))
    browser.open((tmp_path / "draw.html").as_uri())
    yield browser
    assert browser.complaints == []
    assert all(address.startswith(("file://", "blob:")) for address in browser.requests)
    browser.open("about:blank")


def text_of(page, name):
    return page.ask(f"document.getElementById('{name}').textContent")


def click(page, name):
    page.ask(f"document.getElementById('{name}').click()")
    page.settle()


def fill(page, name, value):
    page.ask(f"document.getElementById('{name}').value = {json.dumps(value)}")
    page.ask(f"document.getElementById('{name}').dispatchEvent(new Event('change'))")


def press_at(page, x_m, y_m):
    """Click a place of the map, in metres of the scope, while the whole area is shown."""
    left, top, wide, high = page.ask(
        "(r => [r.left, r.top, r.width, r.height])(document.getElementById('map').getBoundingClientRect())"
    )
    scale = 0.96 * min(wide / SCOPE.width_m, high / SCOPE.height_m)
    x = left + wide / 2 + (x_m - SCOPE.width_m / 2) * scale
    y = top + high / 2 - (y_m - SCOPE.height_m / 2) * scale
    page.mouse("mouseMoved", x, y)
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseReleased", x, y, button="left", clickCount=1)
    page.settle()
    return x, y


def saved(page, tmp_path, name="rules.geojson"):
    """The saved file, once the browser has written it."""
    path = tmp_path / "saved" / name
    path.unlink(missing_ok=True)
    click(page, "save")
    wait_for(path.exists)
    return path


def wait_for(holds, seconds=60):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def draw(page, tool, corners):
    click(page, f"tool-{tool}")
    for corner in corners:
        press_at(page, *corner)
    click(page, "finish")


AREA = [(500, 500), (1500, 500), (1500, 1500), (500, 1500)]
WAY = [(2200, 2200), (2800, 2300)]


def test_draw_save_reload_and_check(page, tmp_path):
    draw(page, "closed", AREA)
    fill(page, "field-name", "Harbour")
    fill(page, "field-from", "22:00")
    fill(page, "field-to", "06:00")
    click(page, "day-5")
    click(page, "day-6")
    page.ask("document.getElementById('snap').checked = false")
    draw(page, "one_way", WAY)
    fill(page, "field-width_m", "15")
    draw(page, "speed_limit", [(1800, 400), (2500, 400), (2200, 900)])
    fill(page, "field-kmh", "20")
    assert text_of(page, "problems") == "No contradiction was found."
    path = saved(page, tmp_path)
    rules = read_rules(path, SCOPE, ROADS)
    assert [rule.name for rule in rules] == ["Harbour", "one_way 2", "speed_limit 3"]
    assert "from 22:00 to 06:00 on Sat, Sun:" in rules[0].describe()
    assert rules[0].closed_area().shape.area == pytest.approx(1e6, rel=0.02)
    assert rules[0].closed_area().shape.bounds == pytest.approx((500, 500, 1500, 1500), abs=6)
    assert rules[1].segments.ends[0] == pytest.approx([*WAY[0], *WAY[1]], abs=6) and rules[1].width_m == 15
    assert rules[2].limit_mps * 3.6 == pytest.approx(20)
    checked = CliRunner().invoke(app, ["rules", "check", str(path), "--no-picture"])
    assert checked.exit_code == 0 and "No contradiction was found" in checked.output

    (tmp_path / "again.html").write_text(editor_page(SCOPE, ROADS, json.loads(path.read_text())["features"]))
    page.open((tmp_path / "again.html").as_uri())
    names = page.ask("[...document.querySelectorAll('#list span')].map(one => one.textContent)")
    assert names == ["Harbour", "one_way 2", "speed_limit 3"]
    page.ask("document.querySelector('#list button').click()")
    assert page.ask("document.getElementById('field-from').value") == "22:00"
    fill(page, "field-to", "05:00")
    again = saved(page, tmp_path)
    assert "from 22:00 to 05:00 on Sat, Sun:" in read_rules(again, SCOPE)[0].describe()


def test_open_a_file_and_keep_what_is_not_edited(page, tmp_path):
    source = tmp_path / "mine.geojson"
    source.write_text(json.dumps(GOOD), encoding="utf-8")
    root = page.send("DOM.getDocument")["root"]["nodeId"]
    node = page.send("DOM.querySelector", nodeId=root, selector="#open")["nodeId"]
    page.send("DOM.setFileInputFiles", files=[str(source)], nodeId=node)
    wait_for(lambda: "Opened" in text_of(page, "status"))
    assert text_of(page, "problems") == "No contradiction was found."
    assert json.loads(saved(page, tmp_path, "mine.geojson").read_text())["features"] == GOOD["features"]
    page.ask("document.querySelectorAll('#list button')[2].click()")
    fill(page, "field-kmh", "70")
    changed = json.loads(saved(page, tmp_path, "mine.geojson").read_text())["features"]
    wanted = copy.deepcopy(GOOD["features"])
    wanted[2]["properties"]["kmh"] = 70
    assert changed == wanted
    source.write_text("{", encoding="utf-8")
    page.send("DOM.setFileInputFiles", files=[str(source)], nodeId=node)
    wait_for(lambda: "not opened" in text_of(page, "status"))
    assert "not valid JSON" in text_of(page, "status")
    assert page.ask("document.querySelectorAll('#list button').length") == 10


def corners_of(page, tmp_path):
    return json.loads(saved(page, tmp_path).read_text())["features"][0]["geometry"]["coordinates"][0]


def test_move_add_and_delete_corners_undo_and_delete(page, tmp_path):
    draw(page, "closed", AREA)
    before = corners_of(page, tmp_path)
    x, y = press_at(page, *AREA[0])  # choose the corner
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    for step in (10, 25, 40):
        page.mouse("mouseMoved", x - step, y + step, button="left", buttons=1)
    page.mouse("mouseReleased", x - 40, y + 40, button="left", clickCount=1)
    page.settle()
    moved = corners_of(page, tmp_path)
    assert moved[1:4] == before[1:4] and moved[0][0] < before[0][0] and moved[0][1] < before[0][1]
    assert moved[0] == moved[-1] and len(moved) == 5
    click(page, "undo")
    assert corners_of(page, tmp_path) == before
    click(page, "redo")
    assert corners_of(page, tmp_path) == moved
    page.press(".", 190)
    page.press("i", 73)
    assert len(corners_of(page, tmp_path)) == 6
    page.press("Delete", 46)
    assert corners_of(page, tmp_path) == moved
    click(page, "delete")
    assert page.ask("document.querySelectorAll('#list button').length") == 0
    click(page, "save")
    assert "nothing to save" in text_of(page, "status")
    click(page, "undo")
    assert corners_of(page, tmp_path) == moved


def tab_to(page, name):
    for _ in range(60):
        if page.ask("document.activeElement.id") == name:
            return
        page.press("Tab", 9)
    raise AssertionError(f"{name} was not reached by the keyboard")


def test_the_editor_works_by_keyboard_alone(page, tmp_path):
    tab_to(page, "tool-closed")
    page.press("Enter", 13, text="\r")
    assert page.ask("document.activeElement.id") == "map"
    for key, code in (("ArrowLeft", 37), ("ArrowDown", 40), ("ArrowRight", 39), ("ArrowRight", 39)):
        page.press(" ", 32)
        page.press(key, code)
    page.press("Backspace", 8)
    page.press("Enter", 13)
    ring = corners_of(page, tmp_path)
    assert len(ring) == 4 and len({tuple(place) for place in ring}) == 3
    page.ask("document.getElementById('map').focus()")
    page.press(".", 190)
    page.press("ArrowUp", 38)
    higher = corners_of(page, tmp_path)
    assert higher[0][1] > ring[0][1] and higher[1:3] == ring[1:3]
    tab_to(page, "field-from")
    for letter in "07:00":
        page.send("Input.insertText", text=letter)
    page.press("Tab", 9)
    assert page.ask("document.querySelector('#list small').textContent") == "closed 07:00–24:00"
    page.ask("document.getElementById('map').focus()")
    page.press("Delete", 46)  # the chosen corner, which a triangle needs
    assert "needs these corners" in text_of(page, "status")
    page.press("Escape", 27)
    page.press("Delete", 46)
    assert page.ask("document.querySelectorAll('#list button').length") == 0
    page.send("Input.dispatchKeyEvent", type="keyDown", key="z", windowsVirtualKeyCode=90, modifiers=2)
    page.settle()
    assert page.ask("document.querySelectorAll('#list button').length") == 1


def test_one_way_lines_snap_to_streets_and_can_be_reversed(page, tmp_path):
    import shapely

    x_m, y_m = SCOPE.to_metres(ROADS.lon, ROADS.lat)
    road = shapely.LineString([(x_m[0], y_m[0]), (x_m[1], y_m[1])])
    near = [(p.x + 12, p.y + 12) for p in (road.interpolate(share, normalized=True) for share in (0.35, 0.65))]
    draw(page, "one_way", near)
    found = json.loads(saved(page, tmp_path).read_text())["features"][0]["geometry"]["coordinates"]
    streets = shapely.MultiLineString(
        [[(x_m[k], y_m[k]), (x_m[k + 1], y_m[k + 1])] for k in range(len(x_m) - 1) if k + 1 not in ROADS.offsets]
    )
    for place in found:
        x, y = SCOPE.to_metres(place[0], place[1])
        assert streets.distance(shapely.Point(x, y)) < 1.0
    click(page, "reverse")
    assert json.loads(saved(page, tmp_path).read_text())["features"][0]["geometry"]["coordinates"] == found[::-1]


def test_problems_are_shown_and_a_file_with_problems_says_so(page, tmp_path):
    draw(page, "closed", AREA)
    fill(page, "field-from", "7")
    assert "07:00" in text_of(page, "form-error") and "07:00" in text_of(page, "problems")
    saved(page, tmp_path)
    assert "with 1 problem" in text_of(page, "status")
    fill(page, "field-from", "")
    assert text_of(page, "problems") == "No contradiction was found."
    page.ask("document.getElementById('add-kind').value = 'max_duration'")
    click(page, "add")
    fill(page, "field-unit", "minutes")
    fill(page, "field-duration", "1")
    page.ask("document.getElementById('add-kind').value = 'speed_limit'")
    click(page, "add")
    fill(page, "field-kmh", "3")
    assert "leaves 50 m for a whole trajectory" in text_of(page, "problems")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "phone"), [(1280, False), (390, True)])
def test_the_editor_fits(page, scheme, width, phone):
    page.size(width, 800, phone)
    page.colours(scheme)
    page.settle()
    assert page.ask("document.documentElement.dataset.theme") == scheme
    draw(page, "closed", [(1000, 1000), (2000, 1000), (1500, 2000)])
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert page.ask("document.querySelectorAll('#list button').length") == 1


# ---- Agreement with `rules check`


def fault_of(features, roads=ROADS):
    """What Python says against features: (number of the feature or None, the sentence), or None."""
    try:
        read_rules(collection(*features), SCOPE, roads)
    except RuleError as error:
        text = str(error).split("': " if "contradict" not in str(error) else "other: ", 1)[-1]
        head, _, tail = str(error).partition(": ")
        if "feature" in head:
            return int(head.rsplit(" ", 1)[1]) - 1, tail.lower().rstrip(".")
        return None, text.lower().rstrip(".")
    return None


def faults_in_page(page, cases):
    """The first problem of each list of features, as `fault_of` gives it."""
    found = page.ask(f"{json.dumps(cases)}.map(features => checkRules(features, rulesPage).problems)")
    return [None if not one else (one[0].get("feature"), one[0]["text"].lower().rstrip(".")) for one in found]


def test_the_page_finds_the_same_faults_and_contradictions(page):
    cases = {name: [bad] for name, (bad, _) in BAD.items() if name not in NOT_IN_THE_PAGE | {"not finite"}}
    cases |= {f"contradiction: {name}": features for name, features in CONTRADICTIONS.items()}
    cases |= {"good": GOOD["features"]} | {f"alone {k}": [one] for k, one in enumerate(GOOD["features"])}
    for name, found in zip(cases, faults_in_page(page, list(cases.values()))):
        wanted = fault_of(cases[name])
        if wanted and "did you mean" in wanted[1]:  # the page makes no guesses
            wanted = (wanted[0], wanted[1].split("; did you mean")[0])
        assert found == wanted, name


def random_area(rng):
    size = rng.choice([0, 300, 2000, 9000])
    if size == 0:
        return polygon(SCOPE, HOOK)
    if size == 9000:  # the whole box
        return polygon(SCOPE, [(-99, -99), (9000, -99), (9000, 9000), (-99, 9000)])
    x, y = rng.uniform(0, 5000), rng.uniform(0, 5000)
    corners = [(x + rng.uniform(-size, size), y + rng.uniform(-size, size)) for _ in range(rng.randint(3, 6))]
    return polygon(SCOPE, corners)  # its border may cross itself


def random_rule(rng):
    kind = rng.choice(["closed", "closed", "stay_within", "speed_limit", "one_way", "min_speed", "max_duration"])
    if kind == "closed":
        options = {"from": f"{rng.randint(0, 12):02d}:00", "to": rng.choice(["23:58", "13:00", "24:00", "05:30"])}
        options |= {"days": rng.choice(["mon-fri", "Sa", ["tue", "sun"]])} if rng.random() < 0.3 else {}
        return feature(random_area(rng), rule="closed", **(options if rng.random() < 0.7 else {}))
    if kind == "stay_within":
        return feature(random_area(rng), rule="stay_within")
    if kind == "speed_limit":
        return feature(rng.choice([None, random_area(rng)]), rule="speed_limit", kmh=rng.choice([3, 30, 60]))
    if kind == "one_way":
        street, shift = [(500, 500), (1500, 700), (2500, 1500)], rng.choice([0, 3, 9])
        way = [(x + shift, y) for x, y in rng.choice([street, street[::-1], street[:2][::-1]])]
        return feature(line(SCOPE, way), rule="one_way", width_m=rng.choice([5, 10, 40]))
    if kind == "min_speed":
        return feature(None, rule="min_speed", kmh=rng.choice([3, 30, 500]))
    return feature(None, rule="max_duration", minutes=rng.choice([1, 90]))


def test_the_page_agrees_on_random_rules(page):
    rng = random.Random(5)
    cases = [[random_rule(rng) for _ in range(rng.randint(1, 5))] for _ in range(250)]
    wanted = [fault_of(case) for case in cases]
    for case, found, known in zip(cases, faults_in_page(page, cases), wanted):
        assert found == known, json.dumps(case)
    assert 40 < sum(fault is None for fault in wanted) < 210
    assert len({fault[1][:25] for fault in wanted if fault}) >= 6


# ---- The command


@pytest.fixture
def folder(tmp_path):
    from wayveil.io.roads import write_roads
    from wayveil.simulate import scope_toml, simulate_city

    city = simulate_city(size_km=(2, 2))
    (tmp_path / "city.toml").write_text(scope_toml(city), encoding="utf-8")
    write_roads(city.roadmap, tmp_path / "roads.parquet")
    (tmp_path / "rules.geojson").write_text(json.dumps(city.rules_geojson), encoding="utf-8")
    return tmp_path


def run(folder, *words):
    return CliRunner().invoke(app, ["rules", "draw", *(str(folder / word) if "." in word else word for word in words)])


def test_the_command_and_its_refusals(folder):
    most = ("--scope", "city.toml", "--roads", "roads.parquet")
    result = run(folder, *most, "--rules", "rules.geojson", "-o", "draw.html")
    assert result.exit_code == 0 and "draw.html" in result.output
    text = (folder / "draw.html").read_text(encoding="utf-8")
    assert "Pedestrian centre" in text and "http" not in text.replace("http-equiv", "")
    assert run(folder, *most, "-o", "draw.html").exit_code == 0  # an earlier page may be replaced
    for output, reason in (("rules.geojson", "one of the inputs"), ("roads.parquet", "one of the inputs")):
        result = run(folder, *most, "--rules", "rules.geojson", "-o", output)
        assert isinstance(result.exception, InputError) and reason in str(result.exception)
    (folder / "notes.txt").write_text("mine")
    result = run(folder, *most, "-o", "notes.txt")
    assert "not a page of wayveil" in str(result.exception) and (folder / "notes.txt").read_text() == "mine"
    result = run(folder, "--scope", "san-francisco", "--roads", "roads.parquet", "-o", "other.html")
    assert "No road of the map lies inside the scope" in str(result.exception)
    (folder / "bad.geojson").write_text("[")
    result = run(folder, *most, "--rules", "bad.geojson", "-o", "other.html")
    assert "not valid JSON" in str(result.exception) and not (folder / "other.html").exists()


def test_python_and_names_that_look_like_html(folder, page):
    evil = "</script><img src=x onerror=alert(1)>"
    rules = collection(feature(polygon(SCOPE, HOOK), rule="closed", name=evil))
    wayveil.rules.write_editor(folder / "draw.html", SCOPE, roads=ROADS, rules=rules)
    page.open((folder / "draw.html").as_uri())
    assert page.ask("document.querySelector('#list span').textContent") == evil
    assert page.ask("document.images.length") == 0


def test_a_missing_street_map_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"no road map 'roads\.parquet'"):
        wayveil.rules.write_editor(tmp_path / "draw.html", SCOPE, roads="roads.parquet")
    with pytest.raises(InputError, match="roads= must be a road map"):
        wayveil.rules.write_editor(tmp_path / "draw.html", SCOPE, roads=7)

"""The pages in headless Chromium: nothing is asked from outside, nothing complains, everything moves."""

import io
import re

import numpy as np
import pytest
from matplotlib.image import imread

from chromium_pipe import Chromium
from real_components import find_chromium
from wayveil.report import internal_report, make_sheet, public_sheet
from wayveil.report.map_data import Overlay, map_data
from wayveil.report.page import render

BINARY = find_chromium()
pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def pages(tmp_path_factory, make_release, small_release, small_synthetic, small_real, small_city, small_rules):
    folder = tmp_path_factory.mktemp("pages")
    by_hour = make_release(small_city.scope, names=("count", "length", "end_points/hours"))
    more = {"roads": small_city.roadmap, "rules": small_rules}
    texts = {
        "public": public_sheet(by_hour, small_synthetic, **more),
        "internal": internal_report(by_hour, small_synthetic, small_real, **more),
        "bare": public_sheet(small_release, small_synthetic),
    }
    grid = Overlay(np.linspace(0, 1, 64).reshape(8, 8), 500.0)
    shown = map_data(small_city.scope, {"Synthetic": small_synthetic}, small_city.roadmap, small_rules, grid)
    sheet = make_sheet(small_release, small_synthetic)
    texts["overlay"] = render(sheet, shown, (), "Overlay")
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def browser():
    with Chromium(BINARY) as found:
        yield found


@pytest.fixture
def page(browser):
    browser.requests.clear()
    browser.complaints.clear()
    browser.size(1280, 900)
    browser.colours("light")
    yield browser
    assert browser.complaints == []
    assert all(address.startswith("file://") and address.endswith(".html") for address in browser.requests)
    assert browser.requests


PIXELS = "document.getElementById('map-0').toDataURL()"


def test_the_monitor_detects_requests_and_errors(tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("<script>fetch('http://localhost:9/x').catch(() => 0); console.error('no')</script>")
    # A browser of its own: on a busy machine the complaint about the request may come after the next page was opened.
    with Chromium(BINARY) as watched:
        watched.open(bad.as_uri())
        assert "http://localhost:9/x" in watched.requests
        assert watched.complaints


@pytest.mark.parametrize("name", ["public", "internal", "bare"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "phone"), [(1280, False), (390, True)])
def test_the_page_opens_without_errors_and_fits(page, pages, name, scheme, width, phone):
    page.size(width, 800, phone)
    page.colours(scheme)
    page.open((pages / f"{name}.html").as_uri())
    assert page.ask("document.documentElement.dataset.theme") == scheme
    assert page.ask("document.documentElement.scrollWidth") <= width
    page.ask("document.querySelector('.map').scrollIntoView()")
    picture = imread(io.BytesIO(page.picture()))[..., :3]
    assert picture.shape[1] == width * (2 if phone else 1)
    middle = picture[: len(picture) // 3 : 4, ::4].reshape(-1, 3)
    assert (middle.mean() > 0.5) == (scheme == "light")  # the paper
    assert len(np.unique((middle * 15).astype(int) @ [256, 16, 1])) > 20  # many shades: the map is drawn


def test_the_slider_moves_the_map(page, pages):
    page.open((pages / "public.html").as_uri())
    all_day = page.ask(PIXELS)
    page.ask("document.getElementById('hour').focus()")
    seen = {all_day}
    for hour in range(24):
        page.press("ArrowRight", 39)
        assert page.ask("document.getElementById('hour-text').textContent") == f"{hour:02d}:00–{hour + 1:02d}:00"
        if hour % 3 == 0:
            seen.add(page.ask(PIXELS))
        if hour == 12:
            assert "Pedestrian centre" in page.ask("document.getElementById('closed').textContent")
    assert len(seen) > 6
    page.press("Home", 36)
    assert page.ask("document.getElementById('hour-text').textContent") == "all day"
    assert page.ask(PIXELS) == all_day


def test_a_map_without_hours_has_no_slider(page, pages):
    page.open((pages / "bare.html").as_uri())
    assert page.ask("document.getElementById('hour') === null") and page.ask(PIXELS)


@pytest.mark.parametrize("layer", ["density", "tracks", "roads", "areas", "flows", "uncertain"])
def test_layers_can_be_switched_and_have_a_legend(page, pages, layer):
    page.open((pages / ("overlay.html" if layer == "uncertain" else "public.html")).as_uri())
    legend = f"document.querySelector('[data-layer={layer}]').checkVisibility()"
    before, checked = page.ask(PIXELS), layer != "flows"  # flows are drawn on demand
    assert page.ask(legend) is checked
    page.ask(f"document.getElementById('layer-{layer}').focus()")
    page.press(" ", 32, text=" ")
    assert page.ask(f"document.getElementById('layer-{layer}').checked") is not checked
    assert page.ask(legend) is not checked
    assert page.ask(PIXELS) != before
    page.press(" ", 32, text=" ")
    assert page.ask(PIXELS) == before


def test_every_layer_has_a_legend(page, pages):
    page.open((pages / "overlay.html").as_uri())
    boxes = page.ask("[...document.querySelectorAll('input[id^=layer-]')].map(box => box.id.slice(6))")
    entries = page.ask("[...document.querySelectorAll('[data-layer]')].map(entry => entry.dataset.layer)")
    assert set(entries) == {*boxes, "moving"} and len(boxes) == 6


def test_keys_mouse_and_buttons_move_the_view(page, pages):
    page.open((pages / "public.html").as_uri())
    home = page.ask(PIXELS)
    page.ask("document.getElementById('map-0').focus()")
    pictures = [home]
    for key, code in (("ArrowLeft", 37), ("ArrowUp", 38), ("+", 187), ("-", 189)):
        page.press(key, code)
        pictures.append(page.ask(PIXELS))
    assert len(set(pictures)) >= 4
    page.press("0", 48)
    page.ask("document.getElementById('map-0').blur()")
    page.settle()
    assert page.ask(PIXELS) == home
    page.ask("document.getElementById('map-0').focus()")
    page.mouse("mouseWheel", 640, 500, deltaX=0, deltaY=-200)
    page.settle()
    zoomed = page.ask(PIXELS)
    assert zoomed != home
    page.mouse("mousePressed", 640, 500, button="left", clickCount=1)
    page.mouse("mouseMoved", 700, 540, button="left", buttons=1)
    page.mouse("mouseReleased", 700, 540, button="left", clickCount=1)
    page.settle()
    assert page.ask(PIXELS) not in (zoomed, home)
    page.ask("document.getElementById('zoom-home').click()")
    page.mouse("mouseMoved", 5, 5)
    page.settle()
    assert page.ask(PIXELS) == home


def test_the_theme_button_overrides_the_system(page, pages):
    page.open((pages / "public.html").as_uri())
    page.ask("document.getElementById('theme').click()")
    assert page.ask("document.documentElement.dataset.theme") == "dark"
    page.colours("dark")
    page.ask("document.getElementById('theme').click()")
    assert page.ask("document.documentElement.dataset.theme") == "light"


def test_both_panels_move_together(page, pages):
    page.open((pages / "internal.html").as_uri())
    both = "[0, 1].map(k => document.getElementById('map-' + k).toDataURL())"
    before = page.ask(both)
    page.ask("document.getElementById('zoom-in').click()")
    page.settle()
    after = page.ask(both)
    assert before[0] != after[0] and before[1] != after[1]


def test_every_control_can_be_reached_by_tab(page, pages):
    page.open((pages / "public.html").as_uri())
    reached = set()
    for _ in range(20):
        page.press("Tab", 9)
        reached.add(page.ask("document.activeElement.id"))
    wanted = {"theme", "map-0", "hour", "layer-density", "layer-tracks", "layer-flows", "layer-roads", "layer-areas",
              "zoom-in", "play", "clock", "speed"}  # fmt: skip
    assert wanted <= reached


CANVAS = "document.getElementById('map-0').getBoundingClientRect()"


def wait_until(page, condition):
    wait = f"const wait = () => {condition} ? done(1) : requestAnimationFrame(wait)"
    page.ask(f"new Promise(done => {{ {wait}; wait(); }})")


def place_of(page, x, y):
    """Window coordinates of a place on the first map, from shares of the canvas; the map is scrolled into view."""
    page.ask("document.querySelector('.map').scrollIntoView()")
    box = page.ask(f"(r => [r.left, r.top, r.width, r.height])({CANVAS})")
    return box[0] + x * box[2], box[1] + y * box[3]


def test_the_wheel_scrolls_the_page_until_the_map_has_the_focus(page, pages):
    page.open((pages / "public.html").as_uri())
    x, y = place_of(page, 0.5, 0.5)
    start, home = page.ask("scrollY"), page.ask(PIXELS)
    page.mouse("mouseMoved", 5, 5)
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=100)
    wait_until(page, f"scrollY > {start}")
    assert page.ask("document.getElementById('hint-0').hidden") is False
    assert page.ask(PIXELS) == home  # not zoomed
    page.ask("document.getElementById('map-0').focus({preventScroll: true})")
    x, y = place_of(page, 0.5, 0.5)
    before = page.ask("scrollY")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
    page.settle()
    assert page.ask("scrollY") == before and page.ask(PIXELS) != home


def test_hovering_shows_the_value_and_the_street(page, pages, small_city, small_synthetic):
    """The place is the middle of the busiest cell; its value and the nearest street are computed here again."""
    page.open((pages / "public.html").as_uri())
    scope = small_city.scope
    x, y = scope.to_metres(small_synthetic.lon, small_synthetic.lat)
    cell_m = page.ask("JSON.parse(document.getElementById('map-data').textContent).cell_m")
    cells = np.c_[x // cell_m, y // cell_m]
    found, counts = np.unique(cells, axis=0, return_counts=True)
    busiest = (found[counts.argmax()] + 0.5) * cell_m
    box = page.ask(f"(r => [r.width, r.height])({CANVAS})")
    scale = 0.96 * min(box[0] / scope.width_m, box[1] / scope.height_m)
    share = 0.5 + (busiest - [scope.width_m / 2, scope.height_m / 2]) * scale / box * [1, -1]
    page.mouse("mouseMoved", *place_of(page, *share))
    page.settle()
    tip = page.ask("[...document.getElementById('tip-0').children].map(line => line.textContent)")
    percent = float(re.match(r"([\d.]+) % of all points in this cell", tip[-1])[1])
    assert percent == pytest.approx(100 * counts.max() / len(x), rel=0.06)
    assert tip[0] in small_city.roadmap.name
    page.mouse("mouseMoved", 5, 5)
    page.settle()
    assert page.ask("document.getElementById('tip-0').hidden")


def test_a_tap_shows_the_value_on_a_phone(page, pages):
    page.size(390, 800, phone=True)
    page.send("Emulation.setTouchEmulationEnabled", enabled=True)
    page.open((pages / "internal.html").as_uri())
    x, y = place_of(page, 0.5, 0.5)
    page.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
    page.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    page.settle()
    page.send("Emulation.setTouchEmulationEnabled", enabled=False)
    said = page.ask("document.getElementById('readout').textContent")
    assert re.search(r"Real [\d.]+ %, Synthetic [\d.]+ % of all points in this cell", said)
    assert page.ask("document.getElementById('tip-0').checkVisibility()")


def tab_to(page, name):
    for _ in range(40):
        if page.ask("document.activeElement.id") == name:
            return
        page.press("Tab", 9)
    raise AssertionError(f"{name} was not reached by the keyboard")


def test_the_map_works_by_keyboard_alone(page, pages):
    page.open((pages / "public.html").as_uri())
    tab_to(page, "map-0")
    said = {page.ask("document.getElementById('readout').textContent")}
    pictures = {page.ask(PIXELS)}
    for key, code in (("+", 187), ("+", 187), ("ArrowRight", 39), ("ArrowUp", 38), ("-", 189), ("0", 48)):
        page.press(key, code)
        pictures.add(page.ask(PIXELS))
        said.add(page.ask("document.getElementById('readout').textContent"))
    assert len(pictures) >= 6 and len(said) >= 3  # the view moves, and the values in its middle are read out
    for layer in ("density", "tracks", "flows"):
        tab_to(page, f"layer-{layer}")
        before = page.ask(PIXELS)
        page.press(" ", 32, text=" ")
        assert page.ask(PIXELS) != before
    tab_to(page, "play")
    page.press("Enter", 13, text="\r")
    playing = "document.getElementById('clock-text').textContent"
    started = page.ask(playing)
    assert page.ask("document.getElementById('play').textContent").endswith("Pause")
    wait_until(page, f"{playing} > '{started}'")
    page.press("Enter", 13, text="\r")
    assert page.ask("document.getElementById('play').textContent").endswith("Play")
    page.press("Tab", 9)
    now = page.ask(playing)
    page.press("ArrowRight", 39)
    assert page.ask("document.activeElement.id") == "clock" and page.ask(playing) != now
    tab_to(page, "stop")
    page.press("Enter", 13, text="\r")
    assert page.ask(playing) == "off"


def test_the_animation_shows_the_trips_under_way(page, pages, small_city, small_synthetic):
    page.open((pages / "public.html").as_uri())
    begin = small_city.scope.local_seconds(small_synthetic.t_utc[small_synthetic.offsets[:-1]]) % 86_400
    lasts = small_synthetic.t_utc[small_synthetic.offsets[1:] - 1] - small_synthetic.t_utc[small_synthetic.offsets[:-1]]
    pictures = set()
    for minute in (8 * 60, 13 * 60, 18 * 60):
        page.ask(f"document.getElementById('clock').value = {minute}")
        page.ask("document.getElementById('clock').dispatchEvent(new Event('input'))")
        page.settle()
        under = (60 * minute - begin) % 86_400 <= lasts
        said = page.ask("document.getElementById('moving-text').textContent")
        assert abs(int(said.split()[0]) - under.sum()) <= 2  # times are rounded to two seconds
        pictures.add(page.ask(PIXELS))
    assert len(pictures) == 3


def test_flows_of_the_zone_pointed_at(page, pages):
    page.open((pages / "public.html").as_uri())
    for layer in ("density", "tracks", "areas", "roads", "flows"):
        page.ask(f"document.getElementById('layer-{layer}').click()")
    page.settle()
    all_flows = page.ask(PIXELS)
    page.mouse("mouseMoved", *place_of(page, 0.5, 0.5))
    page.settle()
    assert page.ask(PIXELS) != all_flows
    tip = page.ask("document.getElementById('tip-0').textContent")
    assert re.search(r"[\d.]+ % of trips start in this zone, [\d.]+ % end in it", tip)


def test_streets_stay_visible_above_the_density_when_zoomed_in(page, pages):
    """Along a row of pixels the density changes slowly; each street must stand out from what is beside it."""
    for scheme in ("light", "dark"):
        page.colours(scheme)
        page.open((pages / "public.html").as_uri())
        page.ask("document.getElementById('layer-tracks').click()")
        page.ask("document.getElementById('layer-areas').click()")
        for _ in range(6):
            page.ask("document.getElementById('zoom-in').click()")
        page.settle()
        steps = []
        for _ in range(2):  # with and without roads
            left, row = (round(place) for place in place_of(page, 0.02, 0.4))
            shade = 255 * imread(io.BytesIO(page.picture()))[row, left : 1280 - left, :3].mean(axis=1)
            steps.append(np.abs(shade[5:] - shade[:-5]))
            page.ask("document.getElementById('layer-roads').click()")
            page.settle()
        assert steps[1].max() < 30 < 50 < steps[0].max()


def test_the_hatch_over_uncertain_places_is_equally_fine_at_every_zoom(page, pages):
    page.open((pages / "overlay.html").as_uri())
    for layer in ("density", "tracks", "roads", "areas"):
        page.ask(f"document.getElementById('layer-{layer}').click()")
    widths = []
    for _ in range(3):
        page.settle()
        left, row = (round(place) for place in place_of(page, 0.3, 0.3))
        shade = 255 * imread(io.BytesIO(page.picture()))[row, left : left + 240, :3].mean(axis=1)
        dark = shade < (shade.min() + shade.max()) / 2
        assert shade.max() - shade.min() > 15
        widths.append(240 / np.count_nonzero(dark[1:] & ~dark[:-1]))
        for _ in range(3):
            page.ask("document.getElementById('zoom-in').click()")
    assert all(abs(width - 12) < 1 for width in widths)

"""The pages in headless Chromium: nothing is asked from outside, nothing complains, everything moves."""

import pytest
from chromium_pipe import Chromium

from real_components import find_chromium
from wayveil.report import internal_report, public_sheet

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
    painted = "document.getElementById('map-0').getContext('2d').getImageData(0, 0, 300, 200).data.some(v => v > 0)"
    assert page.ask(painted)


def test_the_slider_moves_the_map(page, pages):
    page.open((pages / "public.html").as_uri())
    all_day = page.ask(PIXELS)
    page.ask("document.getElementById('hour').focus()")
    seen = {all_day}
    for hour in range(24):
        page.press("ArrowRight", 39)
        assert page.ask("document.getElementById('hour-text').textContent") == f"{hour:02d}:00–{hour + 1:02d}:00"
        seen.add(page.ask(PIXELS))
        if hour == 12:
            assert "Pedestrian centre" in page.ask("document.getElementById('closed').textContent")
    assert len(seen) > 15
    page.press("Home", 36)
    assert page.ask("document.getElementById('hour-text').textContent") == "all day"
    assert page.ask(PIXELS) == all_day


def test_a_map_without_hours_has_no_slider(page, pages):
    page.open((pages / "bare.html").as_uri())
    assert page.ask("document.getElementById('hour') === null") and page.ask(PIXELS)


@pytest.mark.parametrize("layer", ["density", "tracks", "roads", "areas"])
def test_layers_can_be_switched(page, pages, layer):
    page.open((pages / "public.html").as_uri())
    before = page.ask(PIXELS)
    page.ask(f"document.getElementById('layer-{layer}').focus()")
    page.press(" ", 32, text=" ")
    assert page.ask(f"document.getElementById('layer-{layer}').checked") is False
    assert page.ask(PIXELS) != before
    page.press(" ", 32, text=" ")
    assert page.ask(PIXELS) == before


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
    assert page.ask(PIXELS) == home
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
    wanted = {"theme", "map-0", "hour", "layer-density", "layer-tracks", "layer-roads", "layer-areas", "zoom-in"}
    assert wanted <= reached

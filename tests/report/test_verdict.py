"""The verdict on top of both pages, error bars, and a release that is noise."""

import base64
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from wayveil.evaluation.conclusion import MATTERS
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.report import internal_report, public_sheet, verdict_section
from wayveil.synthesis.uncertainty.verdict import Verdict

SCORES = {
    "start_hour": {"value": 0.02, "low": 0.015, "high": 0.025, "floor": 0.018},
    "trip_1000": {"value": 0.6, "low": 0.55, "high": 0.65, "floor": 0.1},
    "density_100": {"value": 0.1, "low": 0.09, "high": 0.11, "floor": 0.05},
}


@pytest.fixture(scope="module")
def sheets(small_city, small_real, small_synthetic, small_rules):
    """A page of a hopeless release for users, and one with hardly any noise."""
    data = small_real
    how = {"unit": "user", "max_per_user": 20, "epsilon": "0.05"}
    made = {"poor": how, "clear": {"unit": "trajectory", "epsilon": "1000"}}
    found = {}
    for name, promise in made.items():
        release = measure(data, small_city.scope, noise=SeededNoise(2), accept_low_signal=True, **promise)
        found[name] = public_sheet(release, small_synthetic, roads=small_city.roadmap, rules=small_rules)
    return found


def words_of(page):
    section = page[page.index('id="h-verdict"') : page.index('class="facts"')]
    return re.findall(r'<td><span class="word (\w+)">', section)


def hatched(page):
    text = re.search(r'<script type="application/json" id="map-data">(.*?)</script>', page, re.S).group(1)
    return np.frombuffer(base64.b64decode(json.loads(text)["uncertain"]["level"]), np.uint8) > 127


def test_a_hopeless_release_looks_hopeless(sheets):
    page = sheets["poor"]
    assert set(words_of(page)) == {"noise"}
    assert '<body class="poor">' in page and "do not use it" in page
    assert re.search(r'id="layer-tracks" autocomplete', page)  # no invented trips are drawn at first
    assert hatched(page).all()
    bars = re.findall(r'<rect class="(bar[^"]*)"', page)
    assert bars and all("faint" in kind for kind in bars)
    assert 'id="hour"' not in page


def test_a_clear_release_looks_clear(sheets):
    page = sheets["clear"]
    assert set(words_of(page)) == {"good"}
    assert "<body>" in page and re.search(r'id="layer-tracks" checked', page)
    assert hatched(page).mean() < hatched(sheets["poor"]).mean()
    assert "faint" not in "".join(re.findall(r'<rect class="(bar[^"]*)"', page)) and 'id="hour"' in page


def test_at_user_level_the_sheet_says_that_further_trips_are_missing(sheets):
    limit = "At most 20 trips of each person count; further trips are missing from all counts."
    assert limit in sheets["poor"]
    assert "trips of each person" not in sheets["clear"]


@pytest.mark.parametrize("name", ["poor", "clear"])
def test_every_chart_has_error_bars(sheets, name):
    page = sheets[name]
    charts = re.findall(r'<svg class="chart" .*?</svg>', page, re.S)
    assert len(charts) == 6 and all('class="likely"' in chart and ", likely " in chart for chart in charts)


def test_the_verdict_comes_first(sheets):
    page = sheets["clear"]
    places = [page.index(part) for part in ('id="h-verdict"', 'class="facts"', 'id="map-0"', 'id="h-promise"')]
    assert places == sorted(places)


def test_the_internal_report_begins_with_a_verdict_by_use(small_release, small_synthetic, small_real):
    rough = {"value": 0.1, "low": 0.09, "high": 0.11, "floor": 0.05}
    scores = dict.fromkeys(MATTERS["planning"], rough) | SCORES
    evaluation = {"scores": scores, "warnings": ["Floors differ."]}
    page = internal_report(small_release, small_synthetic, small_real, evaluation=evaluation)
    parts = ('id="h-verdict"', 'class="facts"', 'id="map-0"', 'id="h-differences"', 'id="h-pairs"', 'id="h-metrics"')
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert page.index(">Places and streets<") < page.index(">Trips between places<") < page.index(">Hours<")
    assert "Floors differ." in page and "trip_1000 (poor)" in page and "This data is rough for planning" in page
    assert 'class="word poor"' in page and 'class="word no verdict"' in page and "or research" in page
    assert 'class="differences"' in page and "<circle" in page


def test_without_an_evaluation_nothing_is_concluded(small_release, small_synthetic, small_real):
    page = internal_report(small_release, small_synthetic, small_real)
    assert "nothing can be concluded" in page


@pytest.mark.parametrize(
    ("errors", "poor"),
    [({"zones": 0.1, "streets": 0.9}, True), ({"zones": 0.9, "streets": 0.1}, False), ({"zones": 0.9}, True),
     ({"zones": 0.1}, False)],
)  # fmt: skip
def test_where_streets_are_noise_no_trip_is_drawn_at_first(monkeypatch, errors, poor):
    """Without routes, the trips between zones decide."""
    found = tuple(Verdict(kind, error) for kind, error in errors.items())
    monkeypatch.setattr(verdict_section, "verdicts", lambda _: found)
    release = SimpleNamespace(unit="trajectory")
    assert verdict_section.verdict_section(SimpleNamespace(release=release)).poor_map is poor

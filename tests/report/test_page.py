"""The two pages as text: what stands in them, what must not, and that nothing can break out of them."""

import collections
import dataclasses
import inspect
import json
import re
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from wayveil.core.trajectories import EMPTY
from wayveil.core.web import script_json
from wayveil.errors import InputError
from wayveil.release import write_release
from wayveil.report import internal_report, make_sheet, public_sheet

EVALUATION = {
    "scores": {
        "length": {"value": 0.0123, "low": 0.01, "high": 0.02, "floor": 0.005, "below_floor": False},
        "coverage_tau": {"value": 0.9, "low": 0.8, "high": 1, "floor": 0.95, "higher_is_better": True,
                         "below_floor": True},
    }
}  # fmt: skip
AUDIT = {"verdict": "No attack found more than the promise allows.", "passed": True, "attacks": [{"attack": "mi-7"}]}


class Page(HTMLParser):
    """Elements that would ask for something from outside, and the identifiers of a page."""

    def __init__(self, text):
        super().__init__()
        self.outside, self.ids, self.labels_for, self.handlers = [], [], [], []
        without_data = re.sub(r'(id="map-data">).*?</script>', r"\1</script>", text, flags=re.S)  # slow to parse
        self.feed(without_data)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            loads = name in ("src", "href", "action", "data", "poster", "srcset")
            if loads and value and value[0] != "#" and value != "data:,":
                self.outside.append((tag, value))
            if name == "id":
                self.ids.append(value)
            if name == "for":
                self.labels_for.append(value)
            if name.startswith("on"):
                self.handlers.append(name)


@pytest.fixture(scope="module")
def public(small_release, small_synthetic, small_city, small_rules):
    return public_sheet(small_release, small_synthetic, roads=small_city.roadmap, rules=small_rules)


@pytest.fixture(scope="module")
def internal(small_release, small_synthetic, small_real, small_city, small_rules):
    return internal_report(
        small_release, small_synthetic, small_real, roads=small_city.roadmap, rules=small_rules,
        evaluation=EVALUATION, audit=AUDIT,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["public", "internal"])
def test_a_page_is_self_contained(kind, request):
    text = request.getfixturevalue(kind)
    page = Page(text)
    assert page.outside == [] and page.handlers == []
    assert "@import" not in text and "url(" not in text and "fetch(" not in text and "XMLHttpRequest" not in text
    assert "default-src 'none'" in text
    assert len(page.ids) == len(set(page.ids)) and set(page.labels_for) <= set(page.ids)
    script = text[text.rindex("<script>") :]
    asked = set(re.findall(r'element\("([a-z-]+)"\)', script))
    assert asked - {"hour-text"} <= set(page.ids)  # this release was not asked for place and hour together
    assert len(text) < 3_000_000


def test_public_says_promise_ledger_rules_and_citation(public):
    for words in ("ε = 1", "e^ε = 2.72", "73 %", "one trajectory added or removed", "Pedestrian centre", "wayveil 9.9",
                  "How to cite", "What is not promised", "How many trajectories there are", "400"):  # fmt: skip
        assert words in public, words
    assert "Not for publication" not in public and "Not private" not in public


def test_public_cannot_take_anything_private():
    allowed = {"release", "synthetic", "roads", "rules", "notes"}
    assert set(inspect.signature(public_sheet).parameters) == allowed
    assert set(inspect.signature(make_sheet).parameters) == allowed


def test_public_does_not_depend_on_trusted_modules():
    import wayveil.release.statements
    import wayveil.report.data_sheet
    import wayveil.report.figures
    import wayveil.report.map_data

    for module in (
        wayveil.report.data_sheet,
        wayveil.report.map_data,
        wayveil.report.figures,
        wayveil.release.statements,
    ):
        source = inspect.getsource(module)
        assert not re.search(r"import.*(evaluation|audit|measure|prepare|formats)", source)


def test_internal_adds_metrics_audit_real_and_a_banner(internal):
    for words in ("Not for publication", "0.0123", "below the floor", "No attack found", "mi-7", ">Real<",
                  ">Synthetic<", "noindex"):  # fmt: skip
        assert words in internal, words
    assert internal.count('class="real"') == 6
    data = map_json(internal)
    assert [panel["name"] for panel in data["panels"]] == ["Real", "Synthetic"]


def map_json(text):
    return json.loads(re.search(r'id="map-data">(.*?)</script>', text, re.S)[1])


def test_public_map_holds_the_synthetic_data_only(public, small_synthetic, small_city):
    import base64

    data = map_json(public)
    assert [panel["name"] for panel in data["panels"]] == ["Synthetic"]
    panel = data["panels"][0]
    cells = data["columns"] * data["rows"]
    hours = np.frombuffer(base64.b64decode(panel["hours"]), np.uint8)
    assert len(hours) == 24 * cells
    x, y = small_city.scope.to_metres(small_synthetic.lon, small_synthetic.lat)
    cell = (y // data["cell_m"]).astype(int) * data["columns"] + (x // data["cell_m"]).astype(int)
    hour = (small_city.scope.local_seconds(small_synthetic.t_utc) // 3600).astype(int) % 24
    assert set(np.flatnonzero(hours).tolist()) == set(np.unique(hour * cells + cell).tolist())
    assert max(hours) == 255
    xy = np.frombuffer(base64.b64decode(panel["sample"]["xy"]), "<u2").reshape(-1, 2)
    counts = np.frombuffer(base64.b64decode(panel["sample"]["counts"]), "<u4")
    assert len(counts) == len(small_synthetic) and len(xy) == counts.sum()
    ticks = np.frombuffer(base64.b64decode(panel["sample"]["t"]), "<u2").astype(np.int64)
    day_s = small_city.scope.local_seconds(small_synthetic.t_utc) % 86_400
    assert np.array_equal(np.sort(ticks * data["tick_s"]), np.sort(day_s // 2 * 2))
    assert len(data["areas"]) == 3
    assert [data["areas"][0]["hours"].count(k) for k in (0, 1, 2)] == [14, 0, 10]  # the centre is closed from 10 to 20
    assert [data["areas"][2]["hours"].count(k) for k in (0, 1, 2)] == [18, 6, 0]  # the stadium on two days only


def test_flows_count_trips_between_zones(public, small_synthetic, small_city):
    flows, scope = map_json(public)["panels"][0]["flows"], small_city.scope
    first, last = small_synthetic.offsets[:-1], small_synthetic.offsets[1:] - 1
    zones = []
    for at in (first, last):
        x, y = scope.to_metres(small_synthetic.lon[at], small_synthetic.lat[at])
        zones.append([tuple(zone) for zone in (np.c_[x, y] // flows["zone_m"]).astype(int).tolist()])
    pairs = collections.Counter(zip(*zones))
    share = [100 * count / len(small_synthetic) for _, count in pairs.most_common()]
    assert flows["percent"] == pytest.approx(share, rel=0.01) and len(flows["x"]) == len({*zones[0], *zones[1]})
    assert sum(flows["percent"]) == pytest.approx(100, rel=0.01)


def test_streets_have_their_names(public, small_city):
    import base64

    roads = map_json(public)["roads"]
    name = np.frombuffer(base64.b64decode(roads["name"]), "<u4")
    shown = [roads["names"][k - 1] for k in name if k]
    assert sorted(shown) == sorted(name for name in small_city.roadmap.name if name)


def test_uncertain_places_are_an_overlay(small_city, small_synthetic):
    from wayveil.report.map_data import Overlay, map_data

    share = np.array([[0.0, 0.5], [1.0, 2.0]])
    grid = map_data(small_city.scope, {"Synthetic": small_synthetic}, uncertain=Overlay(share, 2000.0))["uncertain"]
    assert grid == {"columns": 2, "rows": 2, "cell_m": 2000.0, "level": "AID//w=="}


@pytest.mark.parametrize("panels", [1, 2])
def test_the_map_of_20000_trips_on_a_large_street_map_stays_below_3_mb(small_city, panels):
    """The worst case: every cell is used, every limit is reached. The rest of a page takes less than 0.3 MB."""
    from wayveil.core.roads import RoadMap
    from wayveil.core.trajectories import Trajectories
    from wayveil.report.map_data import map_data

    scope, rng = small_city.scope, np.random.default_rng(0)

    def anywhere(n):
        return rng.uniform(scope.west, scope.east, n), rng.uniform(scope.south, scope.north, n)

    trips = Trajectories(np.arange(20_001) * 40, *anywhere(800_000), rng.uniform(0, 86_400, 800_000))
    n, lines = 60_000, np.zeros(60_000, np.int8)
    names = np.array([f"Street of the number {k % 5000}" for k in range(n)], object)
    roads = RoadMap(np.arange(n + 1) * 3, *anywhere(3 * n), lines, lines, np.full(n, np.nan), names)
    data = map_data(scope, {f"Panel {k}": trips for k in range(panels)}, roads)
    assert 1_000_000 < len(script_json(data)) < 2_700_000


def test_violations_are_counted(small_release, small_synthetic, small_rules):
    late = dataclasses.replace(small_synthetic, t_utc=small_synthetic.t_utc + 43_200)
    obeying, breaking = (make_sheet(small_release, data, rules=small_rules) for data in (small_synthetic, late))
    assert sum(rule.points for rule in obeying.rules) == 0
    assert sum(rule.points for rule in breaking.rules) > 0
    assert any("obey" in step for step in obeying.steps) and not any("obey" in step for step in breaking.steps)
    assert 'class="bad"' in public_sheet(small_release, late, rules=small_rules)


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def test_a_page_with_closed_hours_says_what_moved(small_release, make_release, small_synthetic, small_rules):
    none = {"rules": "0"}
    asked = make_release(small_release.scope, names=("count", "length", "end_points/hours"))
    assert "rules" in make_sheet(asked, small_synthetic, rules=small_rules).hours
    assert "compare districts" in make_sheet(asked, small_synthetic, notes=none).hours
    ruled = make_sheet(small_release, small_synthetic, rules=small_rules)
    free = make_sheet(small_release, small_synthetic, notes=none)
    assert any("depends mainly on the rules" in line for line in ruled.not_promised) and ruled.hours is None
    assert any("apart from the rules, where people travel" in line for line in ruled.not_promised)
    assert not any("rules" in line for line in free.not_promised) and free.hours is None


@pytest.mark.parametrize(
    ("notes", "sentence"),
    [
        ({}, "No rules were given for this page."),
        ({"rules": "<b>8"}, "No rules were given for this page."),
        ({"rules": "0", "roads": "false"}, "Made without rules."),
        ({"rules": "1", "roads": "true"}, "Made with 1 rule, which was not given for this page."),
        ({"rules": "8", "roads": "true"}, "Made with 8 rules, which were not given for this page."),
    ],
)
def test_a_page_without_the_rules_file_still_says_that_rules_apply(small_release, small_synthetic, notes, sentence):
    text = public_sheet(small_release, small_synthetic, notes=notes)
    unknown = notes.get("rules") != "0"
    assert sentence in text and ("the same at every hour" in text) != unknown
    assert "measured separately" in text and 'id="hour"' not in text
    assert ("on a public road map" in text) == (notes.get("roads") == "true")


def test_a_page_with_all_rules_or_some_of_them(small_release, small_synthetic, small_city, small_rules):
    number, map_ = len(small_rules), small_city.roadmap
    for rules, made, sentence in (
        (small_rules, number, None), (small_rules, None, None), ((), 0, "Made without rules."),
        (small_rules[-1:], number, f"Made with {number} rules; 1 is shown on this page."),
    ):  # fmt: skip
        notes = {} if made is None else {"rules": str(made), "roads": "false"}
        sheet = make_sheet(small_release, small_synthetic, roads=map_, rules=rules, notes=notes)
        assert sheet.rules_missing == sentence
        assert any("on a public road map" in step for step in sheet.steps) == (made is None)


def test_names_are_escaped(make_release, small_city, small_synthetic, small_real, small_rules):
    scope = small_city.scope.model_copy(update={"name": EVIL})
    release = dataclasses.replace(make_release(scope, names=(EVIL, "count")), software=EVIL, neighbours=EVIL)
    rules = (dataclasses.replace(small_rules[0], name=EVIL),)
    evaluation = {"scores": {EVIL: EVALUATION["scores"]["length"]}}
    audit = {"verdict": EVIL, "passed": False, "list": [{EVIL: EVIL}]}
    for text in (
        public_sheet(release, small_synthetic, rules=rules),
        internal_report(release, small_synthetic, small_real, rules=rules, evaluation=evaluation, audit=audit),
    ):
        assert "<script>alert" not in text and "<img" not in text
        assert text.count("</script>") == 3
        assert Page(text).handlers == []


def test_script_json_cannot_end_its_element():
    value = {"a": "</script><!--<script>\u2028&"}
    assert not set("<>&\u2028") & set(script_json(value))
    assert json.loads(script_json(value)) == value


def test_not_private_release_says_so(make_release, small_city, small_synthetic):
    text = public_sheet(make_release(small_city.scope, private=False), small_synthetic)
    assert "Not private" in text


def test_user_level_and_delta_and_large_epsilon(make_release, small_city, small_synthetic):
    release = make_release(small_city.scope, unit="user", epsilon=Fraction(20), delta=1e-6)
    text = public_sheet(release, small_synthetic)
    for words in ("at most 10 of each person", "δ = 1.0e-06", "almost 100 %", "is large"):
        assert words in text, words


def test_strange_data(make_release, small_city):
    from wayveil.core.trajectories import Trajectories

    scope = small_city.scope
    release = make_release(scope, epsilon=Fraction(1, 100))
    one_point = Trajectories(np.array([0, 1]), np.array([scope.west]), np.array([scope.south]), np.zeros(1))
    outside = Trajectories(np.array([0, 2]), np.array([9.0, 9.0]), np.array([9.0, 9.0]), np.zeros(2))
    for data in (one_point, outside):
        text = public_sheet(release, data)
        assert "NaN" not in text and "nan" not in re.sub(r"[A-Za-z0-9+/=]{40,}", "", text)
    with pytest.raises(InputError, match="empty"):
        public_sheet(release, EMPTY)


def test_evaluation_as_computed_and_as_the_command_prints_it(small_release, small_synthetic, small_real, small_city):
    from wayveil.evaluation import evaluate
    from wayveil.evaluation.compare_files import Comparison

    found = evaluate(small_real, small_synthetic, small_city.scope, metrics=["length", "start_hour"])
    printed = Comparison({"s.parquet": found}, ()).to_dict()
    pages = [internal_report(small_release, small_synthetic, small_real, evaluation=e) for e in (found, printed)]
    assert pages[0] == pages[1]
    assert f"{found.scores['length'].value:.4f}" in pages[0] and ">start_<wbr>hour</code>" in pages[0]


@pytest.mark.parametrize(
    "evaluation", [{}, {"files": {"a": 3}}, {"scores": {"length": {"value": "x"}}}, {"scores": {"length": 3}}]
)
def test_a_damaged_evaluation_is_refused(small_release, small_synthetic, small_real, evaluation):
    with pytest.raises(InputError, match="evaluation"):
        internal_report(small_release, small_synthetic, small_real, evaluation=evaluation)


@pytest.mark.parametrize("audit", [{}, {"passed": False}, {"verdict": 3, "x": [1, 2]}, {"passed": "maybe", "n": 2.5}])
def test_any_audit_is_shown(small_release, small_synthetic, small_real, audit):
    assert "Audit" in internal_report(small_release, small_synthetic, small_real, audit=audit)


@pytest.fixture
def files(tmp_path, small_release, small_synthetic, small_real, small_city):
    from wayveil.io.files import write
    from wayveil.io.roads import write_roads
    from wayveil.release import origin_notes
    from wayveil.simulate import rules_text

    write_release(small_release, tmp_path / "r.release.json")
    write(small_synthetic, tmp_path / "s.parquet", extra_metadata=origin_notes(small_release))
    write(small_real, tmp_path / "real.parquet")
    write_roads(small_city.roadmap, tmp_path / "roads.parquet")
    (tmp_path / "rules.geojson").write_text(rules_text(small_city))
    (tmp_path / "audit.json").write_text(json.dumps(AUDIT))
    (tmp_path / "evaluation.json").write_text(json.dumps(EVALUATION))
    return tmp_path


def run(folder, *arguments):
    from wayveil.cli import report as verb

    app = typer.Typer()
    app.callback()(lambda: None)
    verb.register(app)
    places = [str(folder / word) if "." in word else word for word in arguments]
    return CliRunner().invoke(app, ["report", *places])


def test_the_command_writes_a_page(files):
    arguments = ["r.release.json", "s.parquet", "-o", "page.html", "--roads", "roads.parquet", "--rules"]
    result = run(files, *arguments, "rules.geojson")
    assert result.exit_code == 0, result.output
    assert "Pedestrian centre" in (files / "page.html").read_text()
    more = ["--internal", "--real", "real.parquet", "--audit", "audit.json", "--evaluation", "evaluation.json"]
    result = run(files, "r.release.json", "s.parquet", "-o", "in.html", *more, "--json")
    assert result.exit_code == 0, result.output
    assert "internal" in result.stdout
    assert (files / "in.html").stat().st_mode & 0o077 == 0  # for its owner only
    assert "Not for publication" in (files / "in.html").read_text()
    sheet = (files / "page.html").read_bytes()
    result = run(files, "r.release.json", "s.parquet", "-o", "page.html", *more)
    assert "is not an internal report" in str(result.exception)
    assert (files / "page.html").read_bytes() == sheet
    assert run(files, "r.release.json", "s.parquet", "-o", "in.html", *more).exit_code == 0
    result = run(files, "r.release.json", "s.parquet", "-o", "sheet.pdf")
    assert "ends in .html" in str(result.exception) and not (files / "sheet.pdf").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--real", "real.parquet"], "add internal=True"),
        (["--audit", "audit.json"], "add internal=True"),
        (["--internal"], "real="),
        (["--internal", "--real", "real.parquet", "--audit", "s.parquet"], "not readable JSON"),
    ],
)
def test_command_refusals(files, arguments, reason):
    result = run(files, "r.release.json", "s.parquet", "-o", "page.html", *arguments)
    assert isinstance(result.exception, InputError) and reason in str(result.exception)
    assert not (files / "page.html").exists()


def test_pieces_add_up(make_release, small_city, small_synthetic, small_rules, monkeypatch):
    """Large data is counted in pieces; the page must not depend on where they are cut."""
    import wayveil.report.data_sheet
    import wayveil.report.figures
    import wayveil.report.map_data
    from wayveil.core.trajectories import batches

    late = dataclasses.replace(small_synthetic, t_utc=small_synthetic.t_utc + 43_200)
    release = make_release(small_city.scope)
    whole = public_sheet(release, late, rules=small_rules)
    for module in (wayveil.report.figures, wayveil.report.map_data, wayveil.report.data_sheet):
        monkeypatch.setattr(module, "batches", lambda data: batches(data, 37))
    assert public_sheet(release, late, rules=small_rules) == whole


def test_the_names_of_ticks_stay_inside_the_picture():
    from wayveil.report.figures import _WIDTH, Axis, Shares, histogram

    edges = np.arange(21) * 5.0  # the last tick, 100, stands at the right edge
    drawn = histogram(
        Axis("duration_min", "Durations", "minutes", edges, name=str), Shares(np.full(20, 0.05), None, None)
    )
    assert f'<text x="{_WIDTH - 1}" text-anchor="end"' in drawn and drawn.count('text-anchor="middle"') == 6


def test_the_last_bar_is_labelled_as_the_tail():
    from wayveil.report.figures import Quantities, figures

    some = np.linspace(0.0, 10.0, 500)
    hour, day = np.zeros(500), np.zeros(500, np.int64)
    drawn = figures(Quantities(hour, day, np.r_[some[:-1], 400.0], some * 0 + 7, some, some))
    lengths, durations = drawn[2], drawn[3]
    assert lengths.count('class="bar tail"') == 1 and re.search(r">≥ 9[.\d]*</text>", lengths)
    assert re.search(r"<title>9[.\d]* km and more: ", lengths) and "and more" not in drawn[0] + drawn[1]
    assert "tail" not in drawn[0] + drawn[1]
    assert len(re.findall("≥", lengths)) == 1 and "–400" not in lengths and len(durations) > 100


def test_narrow_screens_keep_the_important_columns(internal, public):
    for text in (internal, public):
        assert text.count('class="number desk"') + text.count('class="nowrap desk"') >= 2
        heads = re.findall(r'<th scope="col"[^>]*>(?:<[^>]*>)*([^<]*)', text)
        assert "Noise" in heads and "Question" in heads
    assert re.search(r'<th scope="col" class="number">Floor', internal)

"""What the command line can do, Python can do; summaries for notebooks; docstrings with examples that run."""

import doctest
import importlib
import inspect
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import typer

import wayveil
from repeatable import RepeatableNoise
from wayveil.core.html import card, density_svg, table_of_text
from wayveil.core.trajectories import EMPTY, Trajectories, select
from wayveil.privacy.noise import SeededNoise
from wayveil.simulate import simulate_city, simulate_trajectories

COUNTERPARTS = {
    "audit files": "wayveil.audit_synthetic",
    "audit self-check": "wayveil.audit.self_check",
    "bench conformance": "wayveil.baselines.conformance.check_method",
    "bench methods": "wayveil.evaluation.methods_table.described",
    "bench utility": "wayveil.evaluation.compare_methods.compare_methods",
    "check": "wayveil.check",
    "convert": "wayveil.convert",
    "demo": "wayveil.run_demo",
    "describe": "wayveil.describe",
    "evaluate": "wayveil.evaluate",
    "ledger accept": "wayveil.Ledger.accept",
    "ledger allow": "wayveil.Ledger.allow",
    "ledger open": "wayveil.open_dataset",
    "ledger show": "wayveil.Ledger.table",
    "measure": "wayveil.measure",
    "paper comparison": "wayveil.reproduction.comparison.run",
    "paper constraints": "wayveil.reproduction.constraints.run",
    "paper parameters": "wayveil.reproduction.parameters.run",
    "paper synthesize": "wayveil.dpe.files.synthesize_file",
    "plan": "wayveil.plan",
    "report": "wayveil.write_report",
    "rules check": "wayveil.rules.check",
    "rules draw": "wayveil.rules.write_editor",
    "run": "wayveil.run",
    "scope list": "wayveil.shipped_scopes",
    "scope new": "wayveil.template",
    "scope show": "wayveil.read_scope",
    "simulate": "wayveil.simulate.write_city",
    "synthesize": "wayveil.synthesize_file",
    "tables": "wayveil.tables",
}
"""Command -> the Python call that does the same."""

SHARED = {
    "as_json", "json",  # a program has the result itself
    "format", "traj_column", "user_column", "lon_column", "lat_column", "time_column", "timezone", "drop_bad_rows",
    # ... which Python passes on to `wayveil.read` by the names traj_id, user, lon, lat, time, timezone, on_bad_rows
    "address",  # `engine=` takes the engine: wayveil.engine.engine_named(name, address)
    "line_column", "interval_seconds", "trip_columns", "decimal", "dayfirst",
}  # fmt: skip
"""Options that are expressed in the same other way everywhere."""
PAPER_OPTIONS = (
    "epsilon", "dim", "loss", "learning_rate", "iterations", "metric", "smoothing", "precision", "seed",
)  # fmt: skip
RENAMED = {
    "audit files": {"output": "AuditReport.to_dict", "strict": "AuditReport.passed"},
    "audit self-check": {"quick": "effort=QUICK"},
    "bench conformance": {"methods": "method"},
    "bench utility": dict.fromkeys(("time_limit", "memory_limit"), "wayveil.evaluation.bench_limits.Limits"),
    "check": {"file": "source"},
    "demo": {"output": "folder"},
    "describe": {"file": "release"},
    "evaluate": {
        "against": "wayveil.evaluation.compare_files.compare_files", "output": "Evaluation.to_dict",
        "headline": "metrics=HEADLINE", "no_time": "with_time",
    },
    "ledger accept": {"ledger": "self"},
    "ledger allow": {"ledger": "self"},
    "ledger open": {"file": "data"},
    "ledger show": {"ledger": "self", "name": "a row of the table", "verbose": "lines of the table"},
    "measure": {
        "file": "data", "output": "wayveil.write_release", "force": "wayveil.write_release", "yes": "accept_low_signal",
    },
    "paper comparison": {"data": "data_folder", "output": "folder", "time_scale": "time_scale_mps"},
    "paper constraints": {"output": "folder"},
    "paper parameters": {"output": "folder"},
    "paper synthesize": {
        "scope": "scope_name", "time_scale": "Options.time_scale_mps", "no_align": "Options.extend",
        "rules_factor": "Options.rules_factor",
        **dict.fromkeys(PAPER_OPTIONS, "wayveil.dpe.method.options_of"),
    },
    "report": {
        "release_file": "release", "synthetic_file": "synthetic", "output": "path", "roads_file": "roads",
        "rules_file": "rules", "real_file": "real", "audit_file": "audit", "evaluation_file": "evaluation",
    },
    "rules check": {"file": "rules", "output": "RulesCheck.draw", "no_picture": "RulesCheck.draw"},
    "rules draw": {"output": "path"},
    "run": {"template": "wayveil.template"},
    "scope new": {
        "output": "Path.write_text", "force": "Path.write_text", "roads": "wayveil.io.scope_files.box_of_roads",
        **dict.fromkeys(("name", "bbox", "timezone", "days", "hours"), "wayveil.io.scope_files.filled_scope"),
    },
    "scope show": {"name": "name_or_path"},
    "simulate": {
        "output": "path", "scope_out": "scope", "size_km": "wayveil.simulate.simulate_city",
        "pattern": "wayveil.simulate.simulate_city", "hot_spots": "wayveil.simulate.simulate_city",
        **dict.fromkeys(("diaries", "kinematics", "recorders"), "wayveil.simulate.Behaviour"),
    },
    "tables": {
        "release_file": "release", "synthetic_file": "synthetic", "output": "TrafficTables.write",
        "force": "TrafficTables.write",
    },
}  # fmt: skip
"""Command -> option -> what it is in Python, where it is not a parameter of the same name."""


def commands():
    from wayveil.cli.main import app

    def leaves(command, words):
        parts = getattr(command, "commands", None)
        if not parts:
            return {" ".join(words): command}
        return {name: leaf for word, part in parts.items() for name, leaf in leaves(part, [*words, word]).items()}

    return leaves(typer.main.get_command(app), [])


def found(path):
    """The object of a dotted path, by attributes where the package has them, and by imports where not."""
    value = importlib.import_module("wayveil")
    done = "wayveil"
    for part in path.split(".")[1:]:
        done = f"{done}.{part}"
        value = getattr(value, part) if hasattr(value, part) else importlib.import_module(done)
    return value


def test_each_command_has_a_counterpart_in_python():
    assert set(commands()) == set(COUNTERPARTS)
    for path in COUNTERPARTS.values():
        assert callable(found(path)), path


@pytest.mark.parametrize("name", sorted(COUNTERPARTS))
def test_each_option_has_a_counterpart_in_python(name):
    parameters = set(inspect.signature(found(COUNTERPARTS[name])).parameters)
    options = {parameter.name for parameter in commands()[name].params} - {"help"}
    assert options - parameters - SHARED - set(RENAMED.get(name, {})) == set()


@pytest.fixture(scope="module")
def city():
    return simulate_city(0, size_km=(3, 3))


@pytest.fixture(scope="module")
def rides(city):
    return simulate_trajectories(city, 60)


@pytest.fixture(scope="module")
def release(city, rides):
    return wayveil.measure(rides, city.scope, epsilon=5, unit="trajectory", noise=RepeatableNoise(1))


@pytest.fixture(scope="module")
def made(release):
    return wayveil.synthesize(release, n=40, seed=1)


class Checker(HTMLParser):
    """Each element is closed in its turn, and nothing is fetched or run."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img", "iframe", "style", "image", "use"), tag
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("src", "href", "xlink:href"), name
            assert "url(" not in value
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def text_of(page):
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert len(page) < 30_000
    return "\n".join(checker.text)


def test_a_notebook_shows_private_trajectories_as_private(rides):
    text = text_of(rides._repr_html_())
    assert "Private data: do not share" in text and "<svg" in rides._repr_html_()
    assert "60" in text and f"{len(rides.lon):,}" in text and "2025-03" in text
    assert repr(rides) == "Trajectories(with users)"


def test_no_coordinate_of_a_single_point_is_in_a_summary(rides):
    page = rides._repr_html_()
    decimals = re.findall(r"-?\d+\.\d{3,}", re.sub(r"<svg.*?</svg>", "", page, flags=re.S))
    assert decimals == []
    drawn = re.search(r"<svg.*?</svg>", page, re.S)[0]
    assert re.findall(r"\d+\.\d+", re.sub(r'stroke-opacity="[\d.]+"', "", drawn)) == []
    for value in (rides.lon.min(), rides.lon.max(), rides.lat.min(), rides.lat.max()):
        assert f"{value:.3f}" not in page
    box = re.search(r"(-?[\d.]+) to (-?[\d.]+) °N, (-?[\d.]+) to (-?[\d.]+) °E", page)
    south, north, west, east = map(float, box.groups())
    assert south <= rides.lat.min() and rides.lat.max() <= north
    assert west <= rides.lon.min() and rides.lon.max() <= east


def one_point(lon=2.3, lat=48.8, t=0.0):
    return Trajectories([0, 1], [lon], [lat], [t])


@pytest.mark.parametrize(
    "data",
    [
        EMPTY,
        one_point(),
        one_point(t=1e300),
        one_point(lon=np.nan, lat=np.nan, t=np.nan),
        Trajectories([0, 2], [179.9, -179.9], [0.0, 0.1], [0.0, 60.0]),
        Trajectories([0, 2], [0.0, 100.0], [90.0, -90.0], [-1e9, 1e9], ["<b>x</b>"]),
    ],
    ids=["empty", "one point", "far future", "not a number", "antimeridian", "poles"],
)
def test_unusual_trajectories_have_a_summary(data):
    text = text_of(data._repr_html_())
    assert f"{len(data.lon)}" in text and "<b>x" not in text


@pytest.fixture
def axes():
    """Axes of a figure that no screen shows."""
    from matplotlib.figure import Figure

    return Figure().subplots()


def test_trajectories_are_drawn_as_lines_or_as_a_density(rides, axes, monkeypatch):
    assert rides.plot(axes) is axes
    assert len(axes.collections[0].get_segments()) == len(rides)
    assert axes.get_title() == "Private data: do not share this output."
    monkeypatch.setattr("wayveil.core.plots.MOST_LINES", 10)
    axes.clear()
    drawn = rides.plot(axes).collections[0].get_array()
    assert 0.98 * len(rides.lon) < drawn.sum() <= len(rides.lon)  # a few points lie outside of the frame


def test_a_synthesis_and_a_release_are_drawn(made, release, axes):
    assert made.plot(axes).get_title() == "Synthetic trajectories"
    axes.clear()
    picture = release.plot(axes).images[0]
    assert picture.get_array().count() > 0 and "noise" in axes.get_title()
    west, east, south, north = picture.get_extent()
    scope = release.scope
    assert (west, south) == (scope.west, scope.south) and east >= scope.east - 1e-9 and north >= scope.north - 1e-9


@pytest.mark.parametrize("data", [EMPTY, one_point(), one_point(lon=np.nan, lat=np.nan, t=np.nan)])
def test_unusual_trajectories_can_be_drawn(data, axes):
    assert data.plot(axes) is axes


def test_frames_of_geopandas_have_lines_or_points(rides, made):
    lines, points = rides.to_geopandas(), rides.to_geopandas("points")
    assert len(lines) == len(rides) and len(points) == len(rides.lon) and lines.crs.to_epsg() == 4326
    assert list(lines.columns) == ["traj_id", "start", "end", "user_id", "geometry"]
    assert lines.geometry.iloc[0].coords[0] == (rides.lon[0], rides.lat[0])
    assert wayveil.read(points) == wayveil.read(rides.to_pandas())
    assert list(made.to_geopandas().columns) == ["traj_id", "start", "end", "geometry"]
    with pytest.raises(wayveil.errors.InputError, match="'lines' or 'points'"):
        rides.to_geopandas("areas")


def test_a_missing_notebook_extra_is_one_sentence(rides, monkeypatch):
    def missing(name):
        raise ImportError

    monkeypatch.setattr("wayveil.core.optional.importlib.import_module", missing)
    for work in (rides.to_pandas, rides.to_geopandas):
        with pytest.raises(wayveil.errors.InputError, match=r"needs (geo)?pandas; .*'wayveil\[notebook\]'"):
            work()


def test_the_largest_drawing_stays_small():
    rng = np.random.default_rng(0)
    checkers = (np.indices((480, 480)).sum(axis=0) % 2).astype(float)
    for density in (10.0 ** rng.uniform(-4, 0, (48, 48)), checkers[:48, :48], 10.0 ** rng.uniform(-4, 0, (1000, 3))):
        text_of(density_svg(density, label="a map"))
    assert "<path" not in density_svg(np.zeros((3, 3)), label="nothing")


def test_text_is_escaped():
    page = card("<script>", [("<a>", "</table>&")], notice="<i>", table=table_of_text(["<x>"], [["</td>"]]))
    text = text_of(page + density_svg(np.ones((2, 2)), label='"><script>'))
    for written in ("<script>", "<a>", "</table>&", "<i>", "<x>", "</td>"):
        assert written in text


def test_a_release_shows_its_promise_and_a_map(release, city, rides):
    text = text_of(release._repr_html_())
    assert "epsilon" in text and city.scope.name in text and "noisy" in text and "Not private" not in text
    assert repr(release) == (
        f"Release('{city.scope.name}', epsilon=5, unit='trajectory', {len(release.answers)} noisy answers, "
        "differentially private)"
    )
    seeded = wayveil.measure(rides, city.scope, epsilon=1, unit="user", max_per_user=2, noise=SeededNoise(0))
    assert "Not private" in text_of(seeded._repr_html_())
    assert "unit='user', max_per_user=2" in repr(seeded) and repr(seeded).endswith("NOT private)")


def test_a_synthesis_shows_itself_as_synthetic(made):
    text = text_of(made._repr_html_())
    assert "Synthetic trajectories" in text and "40" in text and "Private data" not in text and "epsilon" in text


def test_an_evaluation_shows_its_table(rides, made, city):
    scores = wayveil.evaluate(rides, made, city.scope, metrics=wayveil.evaluation.HEADLINE)
    text = text_of(scores._repr_html_())
    assert "Private data" in text and all(name in text for name in wayveil.evaluation.HEADLINE)
    assert repr(scores).startswith("Evaluation(5 metrics, ")
    few = wayveil.evaluate(select(rides, np.arange(5)), made, city.scope, metrics="length")
    assert "too few" in text_of(few._repr_html_()) and "too few" in repr(few)


def test_a_check_shows_numbers_only_when_printed(rides, city):
    report = wayveil.check(rides, city.scope)
    assert "60" in str(report) and "Not for publication" in str(report) and "No problems." in str(report)
    assert not re.search(r"[1-9]", repr(report))
    assert wayveil.check(rides, "san-francisco").nothing_left


def test_an_audit_in_python(rides, made, city):
    report = wayveil.audit_synthetic(rides, made, city.scope, epsilon=5)
    assert report.too_few and repr(report).startswith("AuditReport(too few trajectories, 0 of ")
    assert report.verdict in str(report)
    copied = wayveil.audit_synthetic(rides, rides, city.scope)
    assert "FAILED" in str(copied) and "FAILED" in repr(copied)


def test_reports_are_made_of_objects(tmp_path, rides, release, made, city):
    page = tmp_path / "sheet.html"
    wayveil.write_report(release, made, page, roads=city.roadmap, rules=city.rules_geojson)
    assert page.read_text().startswith("<!doctype html")
    with pytest.raises(wayveil.errors.InputError, match="is not marked as synthetic"):
        wayveil.write_report(release, made.trajectories, page)
    other = wayveil.measure(rides, city.scope, epsilon=4, unit="trajectory")
    with pytest.raises(wayveil.errors.InputError, match="from another release"):
        wayveil.write_report(other, made, page)
    inside = tmp_path / "internal.html"
    scores = wayveil.evaluate(rides, made, city.scope, metrics=wayveil.evaluation.HEADLINE)
    verdict = wayveil.audit_synthetic(rides, made, city.scope)
    wayveil.write_report(release, made, inside, internal=True, real=rides, evaluation=scores, audit=verdict)
    assert verdict.verdict[:30] in inside.read_text()


def test_a_dataset_is_opened_from_its_data(tmp_path, rides):
    ledger = wayveil.Ledger(tmp_path / "ledger.sqlite")
    assert repr(ledger) == "Ledger('ledger.sqlite')" and ledger.table() == []
    opened = wayveil.open_dataset(rides, "rides", "2.5", unit="trajectory", ledger=ledger)
    assert opened.name == "rides" and ledger.table()[0]["trajectory"]["total"] == "2.5"
    ledger.allow("rides", 3, "more")
    assert ledger.table()[0]["trajectory"]["left"] == "3"
    again = wayveil.open_dataset(rides, "same", 1, unit="trajectory", ledger=ledger)
    assert again.warnings  # the same content under another name


def test_a_synthesizer_gives_its_parameters_back():
    maker = wayveil.Synthesizer(scope="demo-city", epsilon="0.5", unit="user", max_per_user=3, traj_id="ride")
    parameters = maker.get_parameters()
    assert parameters["epsilon"] == 0.5 and parameters["max_per_user"] == 3 and parameters["traj_id"] == "ride"
    again = wayveil.Synthesizer(**parameters)
    assert again.get_parameters() == parameters and repr(again) == repr(maker)


def test_templates():
    assert "[caps]" in wayveil.template("scope") and "[measure]" in wayveil.template("run")
    with pytest.raises(wayveil.errors.InputError, match="'scope' or 'run'"):
        wayveil.template("rides")


OF_RULES = (
    "RulesCheck", "check", "closed", "count", "custom", "hours", "max_duration", "min_speed", "one_way", "read_rules",
    "speed_limit", "stay_within",
)  # fmt: skip
DOCUMENTED = [
    *(f"wayveil.{name}" for name in wayveil.__all__ if name != "__version__"),
    *(f"wayveil.rules.{name}" for name in OF_RULES),
    "wayveil.engine.engine_named",
    "wayveil.simulate.write_city",
]


@pytest.mark.parametrize("path", DOCUMENTED)
def test_help_begins_with_a_sentence_and_has_an_example(path):
    thing = found(path)
    text = inspect.getdoc(thing)
    first = text.split("\n\n")[0]
    assert first[0].isupper() and first.rstrip().endswith("."), first
    if not inspect.ismodule(thing):
        assert "Examples\n--------" in text and ">>>" in text and "Privacy\n-------" in text


@pytest.mark.parametrize("path", DOCUMENTED)
@pytest.mark.filterwarnings("ignore::wayveil.errors.FewTrajectoriesWarning")
def test_examples_in_docstrings_are_true(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = found(path)
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(verbose=False)
    for test in finder.find(thing, path, globs={}):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0

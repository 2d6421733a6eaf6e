"""Tables of traffic: totals, zones, marks, files, and uncertainties that grow as a release gets poorer."""

import json
import stat

import geopandas
import numpy as np
import pandas as pd
import pyogrio
import pytest
import shapely

import wayveil
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.roads import write_roads
from wayveil.privacy.noise import SeededNoise
from wayveil.release.number import estimate_number
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.traffic.parts import ALL_DAY, Parts, parts_of
from wayveil.traffic.uncertainty import Figures, Scale
from wayveil.traffic.zones import OUTSIDE, Zones, read_zones, release_zones


@pytest.fixture(scope="module")
def city():
    return simulate_city(size_km=(3, 3))


@pytest.fixture(scope="module")
def release(city):
    rides = simulate_trajectories(city, 800)
    return wayveil.measure(rides, city.scope, epsilon=2, unit="trajectory", noise=SeededNoise(1))


@pytest.fixture(scope="module")
def made(release, city):
    return wayveil.synthesize(release, roads=city.roadmap, n=400, seed=1)


@pytest.fixture(scope="module")
def found(release, made, city):
    return wayveil.tables(release, made, roads=city.roadmap)


def halves(scope):
    """Two zones, west and east, that leave out the northern fifth."""
    middle, top = (scope.west + scope.east) / 2, scope.south + 0.8 * (scope.north - scope.south)
    boxes = [shapely.box(scope.west, scope.south, middle, top), shapely.box(middle, scope.south, scope.east, top)]
    return geopandas.GeoDataFrame({"name": ["west", "east"]}, geometry=boxes, crs=4326)


def day(table, column="trips"):
    return table[column][table["part_of_day"] == ALL_DAY]


def test_every_total_is_the_number_of_trips_that_the_release_estimates(found, release):
    number = estimate_number(release).value
    assert found.summary["synthetic_trips"] == 400
    for total in (
        day(found.od).sum(), day(found.zones, "starts").sum(), day(found.zones, "ends").sum(),
        found.lengths["trips"].sum(), found.durations["trips"].sum(), found.hours["trips"].sum(),
    ):  # fmt: skip
        assert total == pytest.approx(number, rel=1e-3)
    parts = found.od["part_of_day"] != ALL_DAY
    assert found.od["trips"][parts].sum() == pytest.approx(number, rel=2e-3)  # each figure is rounded


def test_figures_are_those_of_the_synthetic_trips(found, made, release):
    scale = estimate_number(release).value / 400
    trips = made.trajectories
    hour = release.scope.local_seconds(trips.t_utc[trips.offsets[:-1]]) // 3600 % 24
    assert np.allclose(found.hours["trips"], scale * np.bincount(hour.astype(int), minlength=24), atol=0.01)
    lasted = (trips.t_utc[trips.offsets[1:] - 1] - trips.t_utc[trips.offsets[:-1]]) / 60
    assert found.durations["trips"][0] == pytest.approx(scale * (lasted < 5).sum(), abs=0.01)


def test_each_figure_lies_in_its_interval_and_none_is_certain(found):
    for table in found:
        for value in ("trips", "starts", "ends", "speed_kmh"):
            if value in table.columns:
                prefix = "" if value == "trips" else f"{value}_"
                known = np.isfinite(table[value])
                low, high, sd = (table[f"{prefix}{name}"][known] for name in ("low_90", "high_90", "sd"))
                assert (low <= table[value][known]).all() and (table[value][known] <= high).all(), table.name
                assert (low >= 0).all() and (sd > 0).all() and (high > low).all()


def test_own_zones_with_names_and_the_outside(release, made, city):
    table = wayveil.tables(release, made, zones=halves(city.scope)).od
    assert sorted(set(table["origin"])) == ["east", OUTSIDE, "west"]
    first, last = made.trajectories.offsets[:-1], made.trajectories.offsets[1:] - 1
    middle = (city.scope.west + city.scope.east) / 2
    top = city.scope.south + 0.8 * (city.scope.north - city.scope.south)
    lon, lat = made.trajectories.lon, made.trajectories.lat
    expected = ((lon[first] < middle) & (lat[first] < top) & (lon[last] > middle) & (lat[last] < top)).sum()
    chosen = (table["origin"] == "west") & (table["destination"] == "east") & (table["part_of_day"] == ALL_DAY)
    assert table["trips"][chosen] == pytest.approx(expected * estimate_number(release).value / 400, abs=0.01)


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "fgb", "shp"])
@pytest.mark.parametrize("epsg", [4326, 3857])
def test_zones_of_files_in_any_reference_system(tmp_path, city, ending, epsg):
    frame = halves(city.scope)
    frame.to_crs(epsg).to_file(tmp_path / f"zones.{ending}", engine="pyogrio")
    zones = read_zones(tmp_path / f"zones.{ending}")
    found = dict(zip(zones.names, zones.shapes))  # FlatGeobuf has an order of its own
    assert set(found) == {"west", "east"}
    for name, shape in zip(frame["name"], frame.geometry):
        assert found[name].area == pytest.approx(shape.area, rel=1e-6)


def test_names_of_zones_are_distinct_and_overlaps_belong_to_the_first():
    box = shapely.box(0, 0, 1, 1)
    zones = Zones(("a", "b"), np.array([box, box], object))
    assert zones.index(np.array([0.5, 2.0, 1.0]), np.array([0.5, 0.5, 1.0])).tolist() == [0, 2, 0]
    frame = geopandas.GeoDataFrame({"name": ["x", "x", OUTSIDE]}, geometry=[box] * 3, crs=4326)
    from wayveil.traffic.zones import zones_of

    assert zones_of(frame, None).names == ("x", "x (2)", f"{OUTSIDE} (2)")


def test_regions_of_the_release_cover_the_scope_once(release):
    zones = release_zones(release)
    union = shapely.union_all(zones.shapes)
    assert union.area == pytest.approx(sum(shape.area for shape in zones.shapes), rel=1e-9)
    scope = release.scope
    assert union.contains(shapely.box(scope.west, scope.south, scope.east, scope.north).buffer(-1e-9))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "not a readable GeoJSON"),
        ('{"features": [1]}', "not a readable GeoJSON"),
        ('{"features": [{"geometry": {"type": "Point", "coordinates": [1, 2]}}]}', "no polygons"),
        ('{"features": []}', "no polygons"),
    ],
)
def test_files_without_zones(tmp_path, content, said):
    (tmp_path / "zones.geojson").write_text(content)
    with pytest.raises(InputError, match=said):
        read_zones(tmp_path / "zones.geojson")
    for name in ("none.geojson", "zones.txt"):
        (tmp_path / "zones.txt").touch()
        with pytest.raises(InputError, match="give a"):
            read_zones(tmp_path / name)


def test_streets_have_the_traffic_of_the_trips(found, made, city, release):
    streets = found.streets
    traffic = day(streets) * day(streets, "length_m")
    x, y = city.scope.to_metres(made.trajectories.lon, made.trajectories.lat)
    step = np.hypot(np.diff(x), np.diff(y))
    step[made.trajectories.offsets[1:-1] - 1] = 0.0
    scale = estimate_number(release).value / 400
    # Paths on streets are a little longer than straight lines, and a few steps are gaps.
    assert 0.95 < traffic.sum() / (scale * step.sum()) < 1.25
    assert found.summary["matched_share"] > 0.9
    speed = day(streets, "speed_kmh")
    assert 5 < np.average(speed[np.isfinite(speed)]) < city.scope.caps.speed_kmh


@pytest.mark.parametrize(("hours", "names"), [(None, 5), ([0, 12], 2), ([0], 1)])
def test_tables_by_part_of_the_day(hours, names):
    parts = parts_of(hours)
    assert len(parts.names) == names and parts.index(np.array([0, 23])).tolist() == [0, names - 1]


@pytest.mark.parametrize("hours", [[], [6, 10], [0, 0], [0, 24], [10, 0], "ab", [None]])
def test_wrong_parts_of_the_day(hours):
    with pytest.raises(InputError, match="parts="):
        parts_of(hours)


def test_parts_outside_the_hours_of_the_scope_are_not_listed(city):
    scope = city.scope.model_copy(update={"hours": "06:00-11:00"})
    assert Parts((0, 6, 10, 16, 20)).covered(scope) == [1, 2]


def test_data_without_the_mark_of_the_release_is_refused(tmp_path, release, made, city):
    rides = simulate_trajectories(city, 50)
    for unmarked in (rides, made.trajectories, made.to_pandas()):
        with pytest.raises(InputError, match=r"not marked as synthetic.*allow_unmarked=True"):
            wayveil.tables(release, unmarked)
    other = wayveil.measure(rides, city.scope, epsilon=1, unit="trajectory", accept_low_signal=True)
    for allowed in (False, True):
        with pytest.raises(InputError, match="made from another release"):
            wayveil.tables(other, made, allow_unmarked=allowed)
    found = wayveil.tables(release, made.trajectories, allow_unmarked=True)
    assert not found.publishable and "do not publish" in " ".join(found.summary["notes"])
    for file in found.write(tmp_path / "unmarked"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_files_for_other_programs(tmp_path, found, city):
    files = found.write(tmp_path / "tables")
    assert sorted(file.name for file in files) == sorted(file.name for file in (tmp_path / "tables").iterdir())
    od = pd.read_csv(tmp_path / "tables" / "od.csv")
    assert list(od.columns) == ["origin", "destination", "part_of_day", "trips", "sd", "low_90", "high_90"]
    assert od.trips.tolist() == found.od["trips"].tolist()
    layers = dict(pyogrio.list_layers(tmp_path / "tables" / "tables.gpkg"))
    assert set(layers) == {"od", "zones", "streets", "lengths", "durations", "hours"} and layers["hours"] is None
    streets = geopandas.read_file(tmp_path / "tables" / "tables.gpkg", layer="streets")
    assert len(streets) == len(found.streets) and set(streets.geom_type) == {"LineString"}
    assert streets.crs.to_epsg() == 4326 and "speed_kmh_sd" in streets
    assert streets["name"].tolist() == city.roadmap.name[streets["road"]].tolist()
    summary = json.loads((tmp_path / "tables" / "tables.json").read_text())
    assert summary["trips"] == found.summary["trips"] and summary["marked"] is True
    with pytest.raises(InputError, match="already exists"):
        found.write(tmp_path / "tables")
    found.write(tmp_path / "tables", force=True)


def test_tables_become_frames_and_notebook_summaries(found):
    frame = found.streets.to_geopandas()
    assert frame.crs.to_epsg() == 4326 and len(frame) == len(found.streets)
    assert len(found.hours.to_pandas()) == 24 and found.hours.to_geopandas().geometry.isna().all()
    assert "rows" in found._repr_html_() and "low_90" in found.od._repr_html_() and "od:" in repr(found)


def test_without_the_extra_there_is_no_geopackage(tmp_path, found, monkeypatch):
    from wayveil.core import optional

    def missing(name):
        raise ImportError

    monkeypatch.setattr(optional.importlib, "import_module", missing)
    names = {file.name for file in found.write(tmp_path / "plain")}
    assert "tables.gpkg" not in names and "od.csv" in names


def test_the_command_writes_the_tables(tmp_path, release, made, city, monkeypatch, capsys):
    from wayveil.cli.main import main

    wayveil.write_release(release, tmp_path / "r.json")
    wayveil.write(made, tmp_path / "s.parquet")
    write_roads(city.roadmap, tmp_path / "roads.parquet")
    halves(city.scope).to_file(tmp_path / "zones.geojson")
    monkeypatch.chdir(tmp_path)

    def run(line):
        monkeypatch.setattr("sys.argv", ["wayveil", "tables", *line.split()])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code or 0, capsys.readouterr()

    code, said = run("r.json s.parquet --zones zones.geojson --roads roads.parquet --parts 0,12 --json -o out")
    assert code == 0 and "could not be matched" in said.err
    assert {"out/od.csv", "out/tables.gpkg"} <= set(json.loads(said.out)["files"])
    assert set(pd.read_csv("out/od.csv").part_of_day) == {ALL_DAY, "00:00-12:00", "12:00-24:00"}
    code, said = run("r.json s.parquet -o out")
    assert code == 2 and "--force" in said.err
    wayveil.write(wayveil.read("s.parquet"), "plain.parquet")  # without the mark
    code, said = run("r.json plain.parquet -o other")
    assert code == 2 and "--allow-unmarked" in said.err
    code, said = run("r.json s.parquet --parts a -o third")
    assert code == 2 and "--parts" in said.err


def test_a_poor_release_has_wide_intervals(city):
    """The same data, measured with less and less: every table says so."""
    rides = simulate_trajectories(city, 800)
    widths = []
    for epsilon in (50, 1, "0.02"):
        how = {"unit": "trajectory", "accept_low_signal": True, "noise": SeededNoise(1)}
        release = wayveil.measure(rides, city.scope, epsilon=epsilon, **how)
        made = wayveil.synthesize(release, n=800, seed=1)
        found = wayveil.tables(release, made, zones=halves(city.scope), roads=city.roadmap)
        row = []
        for table in found:
            value = "starts" if "starts" in table.columns else "trips"
            prefix = "" if value == "trips" else f"{value}_"
            busy = table[value] >= np.quantile(table[value], 0.9)
            row.append(np.median(table[f"{prefix}sd"][busy] / table[value][busy]))
        widths.append(row)
    good, usual, poor = np.array(widths)
    assert (good < usual).all() and (usual < poor).all()
    assert (poor > 0.45).all(), poor


def test_intervals_of_empty_and_large_figures():
    scale = Scale(1000.0, 0.0, 1000)
    found = Figures.counts(np.array([0, 100, 100]), np.array([0.1, 0.0, 1.0]), scale)
    assert found.low[0] == 0 and 1 < found.high[0] < 5
    assert found.low[1] == pytest.approx(100 - 1.645 * np.sqrt(200), rel=1e-3)
    assert found.low[2] < 20 and found.high[2] > 500


def test_no_trip_inside_the_scope(release):
    far = Trajectories([0, 1], [0.0], [0.0], [0.0])
    with pytest.raises(InputError, match="No synthetic trip"):
        wayveil.tables(release, far, allow_unmarked=True)


def test_overlapping_zones_are_named(release, made):
    """The summary and the command say so; zones that only touch do not overlap."""
    scope = release.scope
    touching = halves(scope)
    assert not any("overlap" in note for note in wayveil.tables(release, made, zones=touching).summary["notes"])
    wide = touching.copy()
    middle = (scope.west + scope.east) / 2
    wide.loc[1, "geometry"] = shapely.box((scope.west + middle) / 2, scope.south, scope.east, scope.north)
    (said,) = [note for note in wayveil.tables(release, made, zones=wide).summary["notes"] if "overlap" in note]
    assert said.startswith("2 zones overlap")


def test_streets_of_trips_with_two_points_are_called_guesses(monkeypatch, release, made, city):
    monkeypatch.setattr("wayveil.traffic.tables.has_routes", lambda found: False)
    notes = wayveil.tables(release, made, roads=city.roadmap).summary["notes"]
    assert any("recorded at their ends only" in note for note in notes)

"""Files given in the wrong place: the private one as the synthetic one, the map or the scope of another city."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from small_town import MEASURE, SCOPE

import wayveil as wv


@pytest.fixture
def folder(tmp_path, wayveil):
    points = [(k, 30.01 + i / 1000, -39.99, 1_700_000_000 + 60 * i) for k in range(6) for i in range(4)]
    (tmp_path / "small.toml").write_text(SCOPE)
    (tmp_path / "far.toml").write_text(SCOPE.replace("30.0", "50.0"))
    (tmp_path / "rides.csv").write_text("traj_id,lat,lon,t\n" + "".join(f"{k},{y},{x},{t}\n" for k, y, x, t in points))
    return tmp_path


@pytest.fixture
def released(wayveil, folder):
    assert wayveil("measure", "rides.csv", *MEASURE).code == 0
    return folder


def a_map(path, lat):
    line = {"type": "LineString", "coordinates": [[-39.99, lat], [-39.97, lat]]}
    features = [{"type": "Feature", "geometry": line, "properties": {"highway": "primary"}}]
    Path(path).write_text(json.dumps({"type": "FeatureCollection", "features": features}))


@pytest.mark.parametrize("ending", ["parquet", "geo.parquet", "csv", "gpx"])
def test_report_refuses_private_data_as_synthetic(wayveil, released, ending):
    assert wayveil("convert", "rides.csv", f"p.{ending}").code == 0
    said = wayveil("report", "x.release.json", f"p.{ending}", "-o", "page.html")
    assert said.code == 2 and "is not marked as synthetic" in said.err and "synthesize again" in said.err, said
    assert said.err.count("\n") == 1 and not Path("page.html").exists()
    assert wayveil("synthesize", "x.release.json", "-n", "5", "-o", f"s.{ending}").code == 0
    assert wayveil("report", "x.release.json", f"s.{ending}", "-o", "page.html").code == 0
    assert "Public data sheet" in Path("page.html").read_text()


def test_notes_of_a_replaced_csv_are_ignored(wayveil, released):
    assert wayveil("synthesize", "x.release.json", "-n", "5", "-o", "s.csv").code == 0
    assert wv.io.files.read_metadata("s.csv")["differentially_private"] == "true"
    shutil.copy("rides.csv", "s.csv")
    assert wv.io.files.read_metadata("s.csv") == {}
    said = wayveil("report", "x.release.json", "s.csv", "-o", "page.html")
    assert said.code == 2 and "is not marked as synthetic" in said.err
    # Nor does `synthesize` take it for its own and replace it.
    assert wayveil("synthesize", "x.release.json", "-n", "5", "-o", "s.csv").code == 2


def test_a_folder_is_not_a_synthetic_file(wayveil, released):
    Path("parts").mkdir()
    assert wayveil("synthesize", "x.release.json", "-n", "5", "-o", "parts/a.parquet").code == 0
    assert wayveil("convert", "rides.csv", "parts/b.parquet").code == 0
    assert wayveil("report", "x.release.json", "parts", "-o", "page.html").code == 2
    # Nor does one synthetic file vouch for the others of its folder.
    assert wv.io.files.read_metadata("parts/a.parquet") and wv.io.files.read_metadata("parts") == {}


def test_report_refuses_another_release(wayveil, released):
    again = [{"rides": "more", "x.release.json": "y.release.json"}.get(word, word) for word in MEASURE]
    assert wayveil("measure", "rides.csv", *again).code == 0
    assert wayveil("synthesize", "y.release.json", "-n", "5", "-o", "s.parquet").code == 0
    said = wayveil("report", "x.release.json", "s.parquet", "-o", "page.html")
    assert said.code == 2 and "another release" in said.err and not Path("page.html").exists(), said
    assert wayveil("report", "y.release.json", "s.parquet", "-o", "page.html").code == 0


def test_report_of_objects_equals_report_of_files(wayveil, folder):
    release = wv.measure("rides.csv", "small.toml", epsilon="0.7", unit="trajectory")
    made = wv.synthesize(release, n=5, seed=1)
    assert "Public data sheet" in wv.report.public_sheet(release, made.trajectories)
    wv.write_release(release, "y.release.json")
    wv.write(made, "s.parquet")
    said = wayveil("report", "y.release.json", "s.parquet", "-o", "page.html")
    assert said.code == 0 and Path("page.html").exists(), said
    wv.write(made.trajectories, "bare.parquet")
    assert wayveil("report", "y.release.json", "bare.parquet", "-o", "page.html").code == 2


@pytest.mark.parametrize("ending", ["parquet", "geo.parquet", "csv", "gpx"])
def test_a_synthetic_file_says_how_many_rules_it_obeys(wayveil, released, ending):
    law = {"type": "Feature", "geometry": None, "properties": {"rule": "speed_limit", "kmh": 90, "name": "secret"}}
    Path("limits.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [law, law]}))
    a_map("near.geojson", 30.01)
    words = ("synthesize", "x.release.json", "-n", "5", "--seed", "3", "-o")
    ruled = ("--rules", "limits.geojson", "--roads", "near.geojson")
    for name, more, rules, roads in (("free", (), "0", "false"), ("ruled", ruled, "2", "true")):
        file = f"{name}.{ending}"
        assert wayveil(*words, file, *more).code == 0
        notes = wv.io.files.read_metadata(file)
        assert (notes["rules"], notes["roads"]) == (rules, roads) and "secret" not in str(notes)
        again = Path(file).read_bytes()
        assert wayveil(*words, file, *more).code == 0 and Path(file).read_bytes() == again
        assert wayveil("report", "x.release.json", file, "-o", "page.html").code == 0
        page = Path("page.html").read_text()
        assert ("Made with 2 rules, which were not given for this page." in page) == (name == "ruled")
        assert ("the same at every hour" in page) == ("Made without rules." in page) == (name == "free")


def test_a_missing_release(wayveil, folder):
    said = wayveil("describe", "none.release.json")
    assert said.code == 2 and "There is no file 'none.release.json'" in said.err


def test_the_map_of_another_city(wayveil, released):
    a_map("far.geojson", 50.01)
    a_map("near.geojson", 30.01)
    words = ("synthesize", "x.release.json", "-n", "5", "-o", "s.parquet", "--roads")
    said = wayveil(*words, "far.geojson")
    assert said.code == 2 and "No road of the map lies inside the scope" in said.err, said
    assert not Path("s.parquet").exists()
    assert wayveil(*words, "near.geojson").code == 0
    page = ("report", "x.release.json", "s.parquet", "-o", "page.html", "--roads")
    said = wayveil(*page, "far.geojson")
    assert said.code == 2 and "No road of the map lies inside the scope" in said.err, said
    assert wayveil(*page, "near.geojson").code == 0


def test_the_next_step_keeps_the_map(wayveil, folder):
    a_map("my streets.geojson", 30.01)
    said = wayveil("measure", "rides.csv", *MEASURE, "--roads", "my streets.geojson")
    assert said.code == 0, said
    line = said.err.rpartition("Next: ")[2]
    assert line == "wayveil synthesize x.release.json --roads 'my streets.geojson' -o synthetic.parquet\n"
    assert wayveil(*shlex.split(line)[1:], "-n", "5").code == 0 and Path("synthetic.parquet").exists()


def test_the_map_of_another_city_in_python(released):
    a_map("far.geojson", 50.01)
    with pytest.warns(wv.errors.UnusedMapWarning, match="the map is not used") as said:
        wv.synthesize(wv.read_release("x.release.json"), roads=wv.read_roads("far.geojson"), n=5, seed=1)
    assert [one.filename for one in said if one.category is wv.errors.UnusedMapWarning] == [__file__]


def test_the_scope_of_another_city(wayveil, folder):
    Path("far.csv").write_text(Path("rides.csv").read_text().replace(",30.0", ",50.0"))
    for real, made, scope, whose in (
        ("rides.csv", "rides.csv", "far.toml", "rides.csv"),
        ("far.csv", "rides.csv", "small.toml", "far.csv"),
        ("rides.csv", "far.csv", "small.toml", "far.csv"),
    ):
        said = wayveil("evaluate", real, made, "--scope", scope, "--headline")
        assert said.code == 2 and f"No point of '{whose}' lies inside the scope" in said.err, said
        assert said.err.count("\n") == 1 and said.out == ""
    with pytest.raises(wv.errors.InputError, match="No point of the synthetic data"):
        wv.evaluate("rides.csv", "far.csv", "small.toml", metrics=["length"])


def test_check_says_so_where_every_row_is_outside(wayveil, folder):
    Path("days.toml").write_text(SCOPE + "first_day = 2001-01-01\nlast_day = 2001-01-02\n")
    with open("rides.csv", "a") as data:
        data.write("9,,,1700000000\n")  # a row without a place is neither inside nor outside
    for scope in ("far.toml", "days.toml"):
        said = wayveil("check", "rides.csv", "--scope", scope)
        assert said.code == 2 and "scope is probably wrong" in said.err and "No row can be used" in said.err
    advice = json.loads(wayveil("check", "rides.csv", "--scope", "far.toml", "--json").out)["advice"]
    assert "probably wrong" in advice["outside the scope's box"]
    with open("rides.csv", "a") as data:
        data.write("9,50.01,-39.99,1700000000\n")
    said = wayveil("check", "rides.csv", "--scope", "small.toml")
    assert said.code == 0 and "outside the scope's box" in said.out and "probably wrong" not in said.out


def test_python_warns_about_few_trajectories_too(folder, recwarn):
    import warnings

    import pandas as pd

    frame, promise = pd.read_csv("rides.csv"), {"epsilon": "0.5", "unit": "trajectory"}
    wv.measure(frame, "small.toml", **promise)
    wv.Synthesizer(scope="small.toml", **promise).fit(frame)
    said = [one for one in recwarn if issubclass(one.category, wv.errors.FewTrajectoriesWarning)]
    assert [one.filename for one in said] == [__file__] * 2 and said[0].lineno + 1 == said[1].lineno
    assert re.search(r"are few for ε = 0.5|trajectories is near zero", str(said[1].message)) and "n=" in str(
        said[1].message
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wv.measure(frame, "small.toml", dataset="rides", **promise).private  # paid for, so not lost to a warning
    recwarn.clear()
    wv.measure(frame, "small.toml", epsilon="900", unit="trajectory")
    assert not [one for one in recwarn if issubclass(one.category, wv.errors.FewTrajectoriesWarning)]


def test_small_counts_in_words(wayveil, folder):
    assert "needs wayveil[ray]" in wayveil("measure", "-h").out
    words = list(MEASURE)
    at = words.index("--epsilon")
    said = wayveil("measure", "rides.csv", *words[:at], *words[at + 2 :])
    assert said.code == 2 and "--epsilon 1 is a common value; see docs/explanation/which-epsilon.md" in said.err
    assert "common value" not in wayveil("measure", "rides.csv", *words[:-2]).err
    for verb in (
        ("measure", "rides.csv", "--epsilon", "1", "--unit", "trajectory", "--dataset", "d"),
        ("evaluate", "a", "b"),
    ):
        assert "`wayveil scope new` writes" in wayveil(*verb).err
    said = wayveil(
        "measure", "rides.csv", "--scope", "small.toml", "--dataset", "rides", "--epsilon", "1", "-o", "r.json"
    )
    assert said.code == 2 and "--unit user all trips of a person" in said.err
    for key, sentence in {
        'time_zone = "UTC"\n': "time_zone is not a known key (did you mean 'timezone'?); see `wayveil scope new`.",
        "[caps]\nlength_m = 3\n": "caps.length_m is not a known key (did you mean 'length_km'?); see",
        "zzz = 1\n": "zzz is not a known key; see",
    }.items():
        Path("odd.toml").write_text(SCOPE + key)
        said = wayveil("check", "rides.csv", "--scope", "odd.toml")
        assert said.code == 2 and sentence in said.err and "Extra inputs" not in said.err, said
    feature = {"type": "Feature", "geometry": None, "properties": {"rule": "speed_limit", "kmph": 50}}
    Path("rules.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    said = wayveil("rules", "check", "rules.geojson", "--scope", "small.toml")
    assert said.code == 2 and said.err.endswith("?\n"), said

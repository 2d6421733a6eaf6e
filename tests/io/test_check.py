"""`wayveil check`, `convert` and their functions."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

import wayveil.cli.check
import wayveil.cli.convert
import wayveil.io.readers.parquet as parquet_format
from wayveil.cli.console import NOT_FOR_PUBLICATION
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.io.check import check
from wayveil.io.check_report import ADVICE, PROBLEMS
from wayveil.io.convert import convert
from wayveil.io.files import read, read_metadata, write
from wayveil.io.scope_files import read_scope

NAN = float("nan")
ROWS = [  # traj, user, lat, lon, t
    ("a", "u", 37.70, -122.40, 100.0),
    ("a", "u", 37.70, -122.40, 100.0),  # same time
    ("a", "u", 37.70, -122.40, 90.0),  # time goes back
    ("a", "u", 37.75, -122.40, 95.0),  # 5.5 km in 5 s
    ("b", "u", NAN, -122.40, 100.0),
    ("b", "u", 37.70, -190.0, 100.0),
    ("b", "u", -122.4, 37.70, 100.0),  # exchanged
    ("b", "u", 37.70, -122.40, None),
    (None, "u", 37.70, -122.40, 100.0),
    ("b", None, 37.70, -122.40, 100.0),
    ("b", "v", 10.0, 10.0, 100.0),  # outside, alone
    ("c", "v", 37.70, -122.40, 100.0),
    ("c", "w", 37.70, -122.40, 200.0),  # second user
    ("a", "u", 37.70, -122.40, 5000.0),  # a again
]
OF_ALL_TIMES = {"date without a time of day": 0, "time that does not advance": 0, "time in the year 1970": 8}
ELSEWHERE = {
    "damaged file", "malformed row", "time without a time zone", "too many points", "unreadable trajectory id",
    "trajectory id longer than 256 bytes", "unreadable user", "user longer than 256 bytes",
    "line without positions, or without a time for each", "outside the scope's hours of the day",
}  # fmt: skip
EXPECTED = {**dict.fromkeys(PROBLEMS, 1), **dict.fromkeys(ELSEWHERE, 0), **OF_ALL_TIMES}


def frame():
    names = ("traj_id", "user", "lat", "lon", "t")
    return pa.table(dict(zip(names, map(list, zip(*ROWS)))))


@pytest.mark.parametrize("slice_rows", [1, 3, 1000])
def test_every_kind_of_problem_is_counted(tmp_path, monkeypatch, slice_rows):
    monkeypatch.setattr(parquet_format, "SLICE_ROWS", slice_rows)
    pq.write_table(frame(), tmp_path / "x.parquet")
    scope = read_scope("san-francisco").model_copy(update={"first_day": None, "last_day": None})
    report = check(tmp_path / "x.parquet", scope)
    expected = {name: count for name, count in EXPECTED.items() if name != "outside the scope's days"}
    expected |= {name: 0 for name in PROBLEMS if name.startswith(("longer than the scope", "more points than"))}
    expected["inside it if latitude and longitude are swapped"] = 0
    assert report.problems == {name: count for name, count in expected.items() if count}
    short = scope.model_copy(update={"caps": scope.caps.model_copy(update={"duration_h": 4909 / 3600})})
    longer = "longer than the scope's duration cap"  # a lasts 4,910 s, in two pieces
    assert check(tmp_path / "x.parquet", short).problems[longer] == 1
    assert set(ADVICE) == set(PROBLEMS)
    assert (report.rows, report.trajectories, report.users) == (14, 3, 3)
    assert (report.first_utc, report.last_utc) == (90.0, 5000.0)
    assert (report.south, report.west, report.north, report.east) == (10.0, -122.4, 37.75, 10.0)


def test_what_concerns_single_rows_trajectories_and_users_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("wayveil.io.readers.grouping.MAX_TRAJECTORY_POINTS", 2)
    rows = ["a,u,1.0,2.0,2024-03-04T07:30:00Z", "a,u,1.0,2.0,2024-03-04 07:31:00", "a,u,1.0,2.0", "a,u,1.0,2.0,1,2",
            'a,"u,1.0,2.0,3', "a\0,u,1.0,2.0,4", f"{'a' * 257},u,1.0,2.0,5", f"a,{'u' * 257},1.0,2.0,6",
            "b,u,1.0,2.0,7", "b,v,1.0,2.0,8", "c,w,1.0,2.0,9", "b,u,1.0,2.0,10", "b,v\0,1.0,2.0,11"]  # fmt: skip
    (tmp_path / "x.csv").write_text("traj_id,user,lat,lon,t\n" + "\n".join(rows))
    report = check(tmp_path / "x.csv")
    assert report.rows == 13 and report.trajectories == 3
    expected = {
        "malformed row": 3, "time without a time zone": 1, "unreadable trajectory id": 1, "unreadable user": 1,
        "trajectory id longer than 256 bytes": 1, "user longer than 256 bytes": 1, "several users in one trajectory": 1,
        "too many points": 1, "trajectory in several pieces": 1, "only one point": 2,
    }  # fmt: skip
    assert report.problems == expected and set(report.advice) == set(expected)
    assert "time without a time zone" not in check(tmp_path / "x.csv", timezone="UTC").problems


def test_damaged_files_of_a_folder_are_counted(tmp_path):
    (tmp_path / "1.txt").write_text("1,2008-02-02 15:36:08,116.5,39.5\n1,2008-02-02 15:46:08,116.25,39.25\nhalf a li")
    (tmp_path / "2.txt").write_bytes(bytes(range(256)))
    report = check(tmp_path)
    assert report.problems["damaged file"] == 1 and report.problems["malformed row"] >= 2 and report.trajectories == 1


def test_the_likely_cause_is_named_where_no_row_can_be_used(tmp_path, cli):
    (tmp_path / "x.csv").write_text("traj_id,lat,lon,t\n" + "a,1,2,2024-03-04 07:30:00\n" * 3)
    refused = cli("check", tmp_path / "x.csv")
    said = str(refused.exception)
    assert "No row can be used" in said and "timezone=" in said
    assert "timezone" not in refused.stdout and "see below" in refused.stdout  # the advice is given once


def test_times_are_local_and_equal_advice_is_given_once():
    rides = Trajectories([0, 2], [2.3, 2.31], [48.8, 48.81], [1_709_537_400, 1_709_537_460])
    scope = Scope(name="x", south=48, west=2, north=49, east=3, timezone="Europe/Paris", hours="06:00-08:30")
    report = check(rides, scope)
    assert "first time:   2024-03-04 08:30:00 Europe/Paris" in str(report)
    assert report.problems == {"outside the scope's hours of the day": 2} and report.nothing_left
    rows = pa.table({"traj_id": ["a", None], "lat": [None, 48.0], "lon": [2.0, 2.0], "t": [1, 2]})
    text = str(check(rows))
    assert text.count("left out of every measurement") == 1 and "as above" in text


def test_no_split_is_recommended_for_data_that_was_split(tmp_path):
    rows = ["van,48.8,2.3,0", "van,48.81,2.31,500", "van,48.82,2.32,1000", "van,48.8,2.3,90000"]
    (tmp_path / "x.csv").write_text("traj_id,lat,lon,t\n" + "\n".join(rows) + "\n")
    caps = {"duration_h": 0.2}
    scope = Scope(name="x", south=48, west=2, north=49, east=3, timezone="UTC", caps=caps)
    name = "longer than the scope's duration cap"
    assert "split_minutes=" in check(tmp_path / "x.csv", scope).advice[name]
    for ending in ("csv", "parquet", "gpx", "geojson"):
        convert(tmp_path / "x.csv", tmp_path / f"trips.{ending}", split_minutes=10)
        report = check(tmp_path / f"trips.{ending}", scope)
        assert "split" not in report.advice[name]
        above = replace(report, problems={name: report.trajectories})
        assert "split" not in above.advice[name] and "several trips" not in above.advice[name]


def test_days_of_the_scope():
    x = Trajectories([0, 2], [-122.4, -122.4], [37.7, 37.7], [0.0, 60.0])
    report = check(x, read_scope("san-francisco").model_copy(update=days("2008-05-17", "2008-06-10")))
    assert report.problems == {"time in the year 1970": 2, "outside the scope's days": 2}
    assert check(x, read_scope("san-francisco").model_copy(update=days("1970-01-01", "1970-01-01"))).problems == {
        "outside the scope's days": 2  # these are midnight in UTC, and there it is still 1969
    }
    assert report.users is None
    assert check(x).problems == {"time in the year 1970": 2}


def days(first, last):
    import datetime as dt

    return {"first_day": dt.date.fromisoformat(first), "last_day": dt.date.fromisoformat(last)}


def test_only_bad_rows_and_no_rows():
    report = check(pa.table({"traj_id": [1], "lat": [NAN], "lon": [NAN], "t": [NAN]}))
    assert report.trajectories == 0 and report.south is None and report.problems == {"missing coordinate": 1}
    assert report.nothing_left
    with pytest.raises(InputError, match="no rows"):
        check(pa.table({"traj_id": [], "lat": [], "lon": [], "t": []}))


@pytest.fixture
def cli():
    app = typer.Typer()
    app.callback()(lambda: None)
    wayveil.cli.check.register(app)
    wayveil.cli.convert.register(app)

    def run(*arguments):
        return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=True)

    return run


def test_check_on_the_command_line(tmp_path, cli):
    pq.write_table(frame(), tmp_path / "x.parquet")
    result = cli("check", tmp_path / "x.parquet", "--scope", "san-francisco", "--json")
    assert isinstance(result.exception, InputError)  # all its times lie outside the scope's days
    found = json.loads(result.stdout)
    assert found["notice"] == NOT_FOR_PUBLICATION and found["rows"] == 14
    result = cli("check", tmp_path / "x.parquet")
    assert result.exit_code == 0
    assert NOT_FOR_PUBLICATION in result.stdout and "missing user" in result.stdout
    assert isinstance(cli("check", tmp_path / "none.csv").exception, InputError)


def trips(times):
    rows = [(k, 37.7 + i / 1000, -122.4, t) for k, trip in enumerate(times) for i, t in enumerate(trip)]
    return pa.table(dict(zip(("traj_id", "lat", "lon", "t"), map(list, zip(*rows)))))


TIMES = {
    "seconds since a start": ([[60 * i for i in range(5)]] * 4, {"time in the year 1970": 20}),
    "days of a spreadsheet": ([[45_355.3 + k + i / 500 for i in range(5)] for k in range(4)],
                              {"time in the year 1970": 20}),
    "Unix seconds": ([[1_700_000_000 + 60 * i for i in range(5)]] * 4, {}),
    "a few that are equal": ([[1_700_000_000 + 60 * (i // 2) for i in range(6)]], {"same time as the row above": 3}),
    "text of dates": ([["2024-03-30"] * 5, ["2024-03-31"] * 5, ["2024-04-01"] * 5],
                      {"date without a time of day": 15}),
    "times of whole trips": ([[1_700_000_000 + 777 * k] * 5 for k in range(4)], {"time that does not advance": 16}),
    "too few to tell": ([[1_700_000_000] * 2], {"same time as the row above": 1}),
}  # fmt: skip


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("scope", [None, "san-francisco"])
def test_values_that_are_no_times_are_reported_with_the_remedy(kind, scope):
    times, expected = TIMES[kind]
    frame = None if scope is None else read_scope(scope).model_copy(update={"first_day": None, "last_day": None})
    report = check(trips(times), frame, **({"timezone": "Europe/Paris"} if "text" in kind else {}))
    report.problems.pop("faster than the scope's cap", None)
    assert report.problems == expected and not report.nothing_left
    if set(expected) - {"same time as the row above"}:
        assert not any("harmless" in advice for advice in report.advice.values())


def test_convert_sorts_and_keeps_notes(tmp_path, cli):
    rng = np.random.default_rng(0)
    x = Trajectories(np.arange(0, 41, 4), rng.uniform(0, 9, 40), rng.uniform(0, 9, 40), np.arange(40.0) / 4,
                     np.arange(10))  # fmt: skip
    write(x, tmp_path / "x.parquet", extra_metadata={"wayveil.private": "false"})
    for name in ("y.parquet", "y.geo.parquet", "y.csv", "y.gpx"):
        result = cli("convert", tmp_path / "x.parquet", tmp_path / name)
        assert result.exit_code == 0, result.exception
        back = read(tmp_path / name)
        users = x.user.astype(str) if name.endswith(".csv") else x.user  # labels of a CSV are text
        assert back == Trajectories(x.offsets, x.lon, x.lat, x.t_utc, users)
        assert read_metadata(tmp_path / name) == {"wayveil.private": "false"}
        assert cli("convert", tmp_path / name, tmp_path / "z.any", "--to", "parquet", "--force").exit_code == 0
        assert read(tmp_path / "z.any", format="parquet") == back
    assert isinstance(cli("convert", tmp_path / "x.parquet", tmp_path / "y", "--to", "geolife").exception, InputError)
    assert not (tmp_path / "y").exists()


def test_convert_leaves_bad_rows_out_when_asked(tmp_path):
    pq.write_table(frame().filter(pa.array([row[0] != "c" for row in ROWS])), tmp_path / "x.parquet")
    with pytest.raises(InputError):
        convert(tmp_path / "x.parquet", tmp_path / "y.csv")
    assert not (tmp_path / "y.csv").exists()
    convert(tmp_path / "x.parquet", tmp_path / "y.csv", on_bad_rows="drop")
    assert len(read(tmp_path / "y.csv")) == 2


def test_convert_overwrites_only_with_force(tmp_path, cli):
    (tmp_path / "x.csv").write_text("trip_id,lat,lon,ts,note\n1,1,1,0,mine\n1,1,1,9,mine\n")
    before = (tmp_path / "x.csv").read_bytes()
    (tmp_path / "y.csv").write_text("something else\n")
    refused = cli("convert", tmp_path / "x.csv", tmp_path / "y.csv")
    assert isinstance(refused.exception, InputError) and "force=True" in str(refused.exception)
    assert (tmp_path / "y.csv").read_text() == "something else\n"
    assert cli("convert", tmp_path / "x.csv", tmp_path / "y.csv", "--force").exit_code == 0
    assert (tmp_path / "y.csv").read_text().startswith("traj_id,")
    refused = cli("convert", tmp_path / "x.csv", tmp_path / "x.csv", "--force")
    assert isinstance(refused.exception, InputError) and "one of the inputs" in str(refused.exception)
    assert (tmp_path / "x.csv").read_bytes() == before


RECORDING = "van,when,lat,lon\n" + "".join(
    f"{van},{t},{1 + t / 1e5},2\n" for van in ("b", "a") for t in (0, 60, 660, 1261, 1300)
)


def test_recordings_are_cut_where_they_are_silent(tmp_path, cli):
    (tmp_path / "x.csv").write_text(RECORDING)
    words = ("convert", tmp_path / "x.csv", tmp_path / "y.csv", "--traj-column", "van", "--time-column", "when")
    assert cli(*words, "--split-minutes", "10").exit_code == 0
    made = read(tmp_path / "y.csv")
    # Ten minutes are not longer than ten minutes; 601 seconds are.
    assert np.diff(made.offsets).tolist() == [3, 2, 3, 2]
    assert list(made.user) == ["a", "a", "b", "b"]
    assert made.t_utc[:5].tolist() == [0, 60, 660, 1261, 1300]
    for bad in ("0", "-1", "nan", "20000"):
        refused = cli(*words, "--force", "--split-minutes", bad)
        assert isinstance(refused.exception, InputError) and "split_minutes=" in str(refused.exception)


def test_the_edge_of_the_box_is_inside():
    scope = read_scope("san-francisco").model_copy(update={"first_day": None, "last_day": None})
    n = 1001
    lon, lat = np.linspace(scope.west, scope.east, n), np.full(n, scope.north)
    corner = Trajectories([0, n], lon, lat, np.arange(n) * 60.0)
    assert "outside the scope's box" not in check(corner, scope).problems
    beyond = Trajectories([0, n], lon, lat + 1e-7, np.arange(n) * 60.0)
    assert check(beyond, scope).problems["outside the scope's box"] == n


def test_exchanged_columns_are_seen_where_both_could_be_latitudes():
    """Latitude 52 and longitude 13 are as possible the other way round; only the scope tells."""
    scope = read_scope("demo-city")
    middle = (scope.west + scope.east) / 2, (scope.south + scope.north) / 2
    exchanged = Trajectories([0, 2], [middle[1]] * 2, [middle[0]] * 2, [0.0, 60.0])
    report = check(exchanged, scope)
    assert report.problems["outside the scope's box"] == 2
    name = "inside it if latitude and longitude are swapped"
    assert report.problems[name] == 2 and "lat=" in report.advice[name]
    assert report.nothing_left and "latitude and longitude are swapped" in report.likely_cause
    assert name not in check(Trajectories([0, 2], [middle[0]] * 2, [middle[1]] * 2, [0.0, 60.0]), scope).problems


def test_a_step_at_the_cap_is_not_faster():
    scope = read_scope("san-francisco").model_copy(update={"first_day": None, "last_day": None})
    north_deg = np.degrees(scope.caps.speed_kmh / 3.6 * 60 / 6_371_008.8)  # a minute at the cap
    for factor, steps in ((1.0005, 0), (1.01, 1)):
        x = Trajectories([0, 2], [-122.4, -122.4], [37.7, 37.7 + factor * north_deg], [0.0, 60.0])
        assert check(x, scope).problems.get("faster than the scope's cap", 0) == steps


@pytest.mark.parametrize("slice_rows", [2, 1000])
def test_caps_that_most_trajectories_exceed_are_named(tmp_path, monkeypatch, slice_rows):
    monkeypatch.setattr(parquet_format, "SLICE_ROWS", slice_rows)
    scope = read_scope("demo-city")
    lat = (scope.south + scope.north) / 2 + np.arange(5) * 0.01  # 1.1 km a step
    lon = np.full(5, (scope.west + scope.east) / 2)
    times = (scope.time_window() or (1.7e9,))[0] + 600.0 * np.arange(5)
    rows = {"traj_id": np.repeat([1, 2], 5), "lat": np.r_[lat, lat[:1].repeat(5)], "lon": np.r_[lon, lon]}
    pq.write_table(pa.table({**rows, "t": np.r_[times, times]}), tmp_path / "x.parquet")

    def found(**caps):
        return check(tmp_path / "x.parquet", scope.model_copy(update={"caps": scope.caps.model_copy(update=caps)}))

    names = {"points": "more points than the scope's cap", "length_km": "longer than the scope's length cap",
             "duration_h": "longer than the scope's duration cap"}  # fmt: skip
    assert not set(found().problems) & set(names.values())
    for cap, small, enough, count in (("points", 4, 5, 2), ("length_km", 4.4, 4.5, 1), ("duration_h", 0.66, 0.67, 2)):
        report = found(**{cap: small})
        assert report.problems[names[cap]] == count
        assert ("the cap in the scope is too small" in report.advice[names[cap]]) == (count == 2)
        assert names[cap] not in found(**{cap: enough}).problems
    advice = found(points=4, duration_h=0.66).advice_once
    assert advice[names["points"]].startswith("most") and advice[names["duration_h"]] == "as above"


def test_a_trip_table_is_recognised_by_its_single_points():
    """One row a trip: the likely cause is named, and what comes of it."""
    n = 30
    table = {"traj_id": np.arange(n), "lat": np.full(n, 0.5), "lon": np.full(n, 0.5), "t": 60.0 * np.arange(n)}
    advice = check(pa.table(table)).advice["only one point"]
    assert "one row per trip" in advice and "start and end" in advice
    few = {**table, "traj_id": np.r_[0, 1 + np.arange(n - 1) // 2]}
    assert "harmless" in check(pa.table(few)).advice["only one point"]


def test_the_ends_of_a_trip_in_a_trip_table_are_one_piece(tmp_path):
    head = "ride_id,started_at,ended_at,start_lat,start_lng,end_lat,end_lng\n"
    row = "2024-03-04T08:00:00Z,2024-03-04T08:10:00Z,40.7,-74,40.8,-73.9\n"
    (tmp_path / "x.csv").write_text(head + f"a,{row}b,{row}")
    assert check(tmp_path / "x.csv").problems == {}
    (tmp_path / "x.csv").write_text(head + f"a,{row}b,{row}a,{row}")
    assert check(tmp_path / "x.csv").problems["trajectory in several pieces"] == 1


def test_a_decimal_comma_is_named_with_its_option(tmp_path, cli):
    (tmp_path / "x.csv").write_text("traj_id;lat;lon;t\n1;48,8;2,3;1709537400\n1;48,81;2,31;1709537460\n")
    found = cli("check", tmp_path / "x.csv")
    assert isinstance(found.exception, InputError) and 'decimal=","' in str(found.exception)
    assert check(tmp_path / "x.csv", decimal=",").problems == {}

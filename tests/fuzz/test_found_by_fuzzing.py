"""What the fuzzers found, each in its smallest form: refused in one sentence ever since."""

import json

import pytest
from fuzz_files import RUN, SCOPE, good_release

from wayveil.errors import InputError, ReleaseError
from wayveil.formats import read
from wayveil.release import release_from_json
from wayveil.runfile import read_run
from wayveil.scope import parse_scope, read_scope


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("south = 30.0", "south = 1" + "0" * 400),
        ("south = 30.0", "south = " + "9" * 5000),
        ("points = 500", '"a\\nb" = 1'),
        ("points = 500", '"' + "a" * 5000 + '" = 1'),
        ('name = "small"', 'name = "\\u001b[2J"'),
        ("last_day = 2024-03-31", "last_day = 9999-12-31"),
        ("first_day = 2024-01-01", "first_day = 0001-01-01"),
    ],
)
def test_scope(old, new):
    assert old in SCOPE
    parse_scope(SCOPE, "x")
    with pytest.raises(InputError) as refused:
        parse_scope(SCOPE.replace(old, new), "x")
    assert str(refused.value).isprintable() and len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('file = "none.csv"', 'file = "~no-such-user/x.csv"'),
        ('rules = "rules.geojson"', 'rules = "a\\u0000b"'),
        ('synthetic = "synthetic.parquet"', 'synthetic = "a\\nb"'),
        ('release = "rides.release.json"', 'release = "' + "a" * 300 + '"'),
        ('traj_id = "ride"', 'traj_id = "\\u001b[2J"'),
        ("seed = 1", "seed = " + "9" * 5000),
    ],
)
def test_run(tmp_path, old, new):
    assert old in RUN
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    read_run(path)
    path.write_text(RUN.replace(old, new))
    with pytest.raises(InputError) as refused:
        read_run(path)
    assert str(refused.value).isprintable() and len(str(refused.value)) < 400


def test_a_name_of_a_scope_that_no_file_can_have():
    with pytest.raises(InputError, match="No scope"):
        read_scope("a" * 300)


@pytest.mark.parametrize("software", ["\ud800", "\x1b]0;title\x07", "two\nlines"])
def test_release(software):
    release_from_json(json.dumps(good_release()))
    with pytest.raises(ReleaseError):
        release_from_json(json.dumps(good_release() | {"software": software}))


POINT = '<trkpt lat="1" lon="2"><time>2024-01-01T00:00:00Z</time></trkpt>'
USER = '<extensions><w:user xmlns:w="urn:wayveil:gpx:1">"u"</w:user></extensions>'


@pytest.mark.parametrize(
    "inner",
    [
        f"<trk>{USER}<trkseg>{POINT}</trkseg></trk>{POINT}",
        f"<trk>{USER}<trkseg>{POINT}</trkseg><trk>{USER}<trkseg>{POINT}</trkseg></trk></trk>",
    ],
)
def test_gpx_points_without_a_track_have_no_user(tmp_path, inner):
    path = tmp_path / "x.gpx"
    path.write_text(f"<gpx>{inner}</gpx>")
    with pytest.raises(InputError, match="outside its tracks"):
        read(path)
